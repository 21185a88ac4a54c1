"""How a plan's branch takes over the branch that it began at: the commit that has both, made without touching a file.

Knows commits and trees. Must never know who asks, nor move the branch of a plan.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from loopr.errors import Problem
from loopr.world.repo.ground import CANDIDATE, Ground
from loopr.world.repo.home import by_hand
from loopr.world.repo.landing import Onto
from loopr.world.repo.making import make_commit
from loopr.world.repo.merging import merge_trees
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.refs import Move, is_ancestor, merge_base, tree_of
from loopr.world.repo.scanning import changed_entries
from loopr.world.repo.words import HomeCandidate, Message, Refusal, Start


class Joined(NamedTuple):
    """A plan's branch and its base, together: the tree with both, and the files in which they do not agree.

    `home` is true where the base has all of the plan, be it under other names.
    """

    tree: str
    files: tuple[str, ...] = ()
    home: bool = False


def join(ground: Ground, stands: str, base: str) -> Joined | None:
    """Say what a plan and its base come to together; None where they have no commit in common."""
    door = ground.users_door
    if is_ancestor(door, stands, base):
        return Joined(tree_of(door, base), home=True)
    if is_ancestor(door, base, stands):
        return Joined(tree_of(door, stands))
    if not merge_base(door, stands, base):
        return None
    tree, files, _ = merge_trees(door, stands, base)
    return Joined(tree, files, not files and tree == tree_of(door, base))


def build_update(ground: Ground, found: Onto, base: Start, message: Message) -> HomeCandidate | Refusal:
    """Make the commit that has both a plan and its base: one of the two where that is so, else a merge."""
    plan, stands = found
    door, short = ground.users_door, ground.short_branch(plan)
    joined = join(ground, stands, base.commit)
    if joined is None:
        hint = f"`loopr adopt {plan} {base.branch} --replace` takes it all the same"
        return Refusal((Problem(f"{base.branch} has no commit in common with {short}", hint=hint),))
    if joined.files:
        words = f"{base.branch} conflicts with {short} in {', '.join(joined.files)}"
        return Refusal((Problem(words, hint=by_hand(ground, plan, stands, base.branch)),))
    if is_ancestor(door, base.commit, stands):
        new = stands
    elif is_ancestor(door, stands, base.commit):
        new = base.commit
    else:
        new = make_commit(door, joined.tree, [stands, base.commit], message)
    put_refs(door, [Move(f"{CANDIDATE}{plan}.home", new)], "loopr: candidate")
    changed = tuple(each.path for each in changed_entries(door, base.commit, new))
    return HomeCandidate(
        plan, base.branch, base.commit, new, joined.tree, stands, commits(ground, stands, base), changed
    )


def commits(ground: Ground, stands: str, base: Start) -> tuple[str, ...]:
    """List the commits of a base that a plan does not have, each with its subject, newest first."""
    said = ground.users_door.run("log", "-z", "--format=%H %s", f"{stands}..{base.commit}")
    return tuple(line for line in os.fsdecode(said.out).split("\0") if line)


def count_beyond(ground: Ground, base: str, known: Sequence[str]) -> int:
    """Count the commits of a base that none of some commits has."""
    said = ground.users_door.ask("rev-list", "--count", base, "--not", *known)
    return int(said.line) if said.code == 0 and said.line.isdigit() else 0
