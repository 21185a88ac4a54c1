"""Protected paths: a loop may not change what it is judged by, so they land as the plan has them.

Knows patterns, and how a tree is made from another with some paths replaced. Must never know who protects what.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from loopr.world.repo.calls import Door
from loopr.world.repo.ground import Ground
from loopr.world.repo.scanning import Entry, changed_entries
from loopr.world.repo.words import PutBack

_NOTHING = "000000"


class Protect(NamedTuple):
    """What is protected: patterns as git reads them, and whether files that are added under them may stay."""

    patterns: tuple[str, ...] = ()
    keep_added: bool = False


def pathspecs(patterns: Iterable[str]) -> list[str]:
    """Turn patterns into words for git; each is read both ways that git knows, for more is safer than less."""
    return [f":({magic}){pattern}" for pattern in patterns for magic in ("top", "top,glob")]


def changed_protected(door: Door, base: str, loop: str, protect: Protect) -> list[PutBack]:
    """List the protected paths that a loop itself has changed since it parted from the plan."""
    if not protect.patterns:
        return []
    entries = changed_entries(door, base, loop, *pathspecs(protect.patterns))
    return [PutBack(each.path, _how(each)) for each in entries if not _may_stay(each, protect)]


def put_back(ground: Ground, door: Door, tree: str, plan_tip: str, protect: Protect) -> str:
    """Return the tree with every protected path, and everything that is never committed, as the plan has it."""
    left_out = [f":(top,literal){path}" for path in ground.left_out]
    wrong = [
        each
        for each in changed_entries(door, plan_tip, tree, *pathspecs(protect.patterns), *left_out)
        if ground.is_left_out(each.path) or not _may_stay(each, protect)
    ]
    return _with_entries(ground, door, tree, wrong) if wrong else tree


def _may_stay(entry: Entry, protect: Protect) -> bool:
    """Say whether a protected path may differ: only one that was added, where that is allowed."""
    return protect.keep_added and entry.was == _NOTHING


def _how(entry: Entry) -> Literal["changed", "deleted", "added"]:
    """Say in a word what was done to a path."""
    if entry.was == _NOTHING:
        return "added"
    return "deleted" if entry.mode == _NOTHING else "changed"


def _with_entries(ground: Ground, door: Door, tree: str, entries: Sequence[Entry]) -> str:
    """Return a tree in which these paths are as they were."""
    absent = "0" * len(tree)
    rows = [(each.was, absent if each.was == _NOTHING else each.old, each.path) for each in entries]
    rows.sort(key=lambda row: row[0] != _NOTHING)  # what goes makes place for what comes back
    text = b"".join(f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0" for mode, blob, path in rows)
    with TemporaryDirectory(dir=ground.state) as folder:
        own = door.with_index(Path(folder) / "index")
        own.run("read-tree", tree)
        own.run("update-index", "-z", "--index-info", stdin=text)
        return own.run("write-tree").line
