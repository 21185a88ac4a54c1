"""Files that never land: what a loop has made of those in the folder of a plan, kept on its own branch and put back.

Knows commits and worktrees. Must never know who is told of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from loopr.world.repo.branches import loop_tip
from loopr.world.repo.ground import Ground
from loopr.world.repo.laying import Laying, finish, lay
from loopr.world.repo.making import make_commit
from loopr.world.repo.protection import put_back_of, with_entries
from loopr.world.repo.refs import tree_of
from loopr.world.repo.scanning import changed_entries
from loopr.world.repo.slots import need_slot, opened
from loopr.world.repo.words import Committed, Message, PutBack


class LeftOut(NamedTuple):
    """The files that were changed and never land, and two commits that differ in them."""

    before: str
    after: str
    files: tuple[PutBack, ...]


class Span(NamedTuple):
    """The commit that an attempt began from, and where its plan stands; `at_ms` is now."""

    base: str
    stands: str
    at_ms: int


def keep_left_out(ground: Ground, name: str, done: Committed, span: Span, note: Callable[[LeftOut], None]) -> None:
    """Put back what an attempt has made of files that never land; a second call after a crash does what is left.

    What was made of them is noted before. Where something was refused not all is committed: no file
    is touched, and whoever makes the tree that lands puts them back there.
    """
    if done.moved and done.lands:
        return
    found = left_out_since(ground, name, span.base)
    if found is None:
        return
    note(found)
    if not done.refused:
        put_left_out_back(ground, name, span.stands, span.at_ms)


def left_out_since(ground: Ground, name: str, commit: str) -> LeftOut | None:
    """List what a loop has committed since one of its own commits, and never lands; None if that is nothing."""
    tip = loop_tip(ground, name)
    entries = changed_entries(ground.door, commit, tip) if commit not in ("", tip) else []
    found = tuple(put_back_of(each) for each in entries if ground.folder_of(each.path))
    return LeftOut(commit, tip, found) if found else None


def put_left_out_back(ground: Ground, name: str, stands: str, at_ms: int) -> None:
    """Bring the files that never land to where the plan has them, on the branch and in the folder of a loop at rest.

    All is committed before: what was made of them stays in the loop's own history.
    """
    with opened(ground, need_slot(ground, name)) as at:
        finish(at)
        tip = loop_tip(ground, name)
        before = tree_of(at.door, tip)
        wrong = [each for each in changed_entries(at.door, stands, before) if ground.folder_of(each.path)]
        if wrong:
            tree = with_entries(ground, at.door, before, wrong)
            lay(at, Laying(make_commit(at.door, tree, [tip], Message("Put back what never lands", at_ms=at_ms))))
