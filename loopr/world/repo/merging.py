"""Merges two commits without touching a file.

Knows how git answers, and what it would answer where the two have changed different files. Must never know which side
is whose.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple

from loopr.world.repo.calls import Door, GitFailed
from loopr.world.repo.making import habits_of
from loopr.world.repo.objects import fork_of
from loopr.world.repo.trees import NotLoose, differing, grafted
from loopr.world.repo.union import attributes_for


class Merged(NamedTuple):
    """A merged tree; with files in conflict it holds their markers, and `messages` are git's words on them."""

    tree: str
    files: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


def merge_trees(door: Door, ours: str, theirs: str) -> Merged:
    """Merge two commits; attributes are read from the work tree that the door stands before, then from the settings."""
    tree = _without_git(door, ours, theirs)
    if tree:
        return Merged(tree)
    door = replace(door, settings=(*door.settings, *attributes_for(door)))
    said = door.ask("merge-tree", "--write-tree", "-z", "--name-only", "--messages", ours, theirs)
    parts = os.fsdecode(said.out).split("\0")
    if said.code > 1 or len(parts[0]) not in (40, 64):  # exit 1 is a conflict only if a tree comes with it
        raise GitFailed("the merge cannot be tried", said)
    if said.code == 0:
        return Merged(parts[0])
    end = parts.index("", 1)
    return Merged(parts[0], tuple(dict.fromkeys(parts[1:end])), tuple(_messages(parts[end + 1 :])))


def _without_git(door: Door, ours: str, theirs: str) -> str:
    """Merge two commits of which each has only added or changed files, and none that the other has; else nothing.

    Where no file has gone, git has no rename to look for, and takes every file from the side that has changed it.
    """
    base = fork_of(door, ours, theirs)
    mine, others = (differing(door, base, each) if base else None for each in (ours, theirs))
    if mine is None or others is None or not habits_of(door).plain or mine.keys() & others.keys():
        return ""
    if any(after is None for _, after in (*mine.values(), *others.values())):
        return ""
    try:
        return grafted(door, ours, {path: after for path, (_, after) in others.items()})
    except NotLoose:
        return ""


def _messages(parts: list[str]) -> list[str]:
    """Read what git says of conflicts: a count of paths, the paths, a kind, a text, again and again."""
    found, at = [], 0
    while at < len(parts) and parts[at].isdigit():
        count = int(parts[at])
        kind, text = parts[at + count + 1 : at + count + 3]
        if kind.startswith("CONFLICT"):
            found.append(text.strip())
        at += count + 3
    return found
