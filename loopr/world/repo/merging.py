"""Merges two commits without touching a file.

Knows how git answers. Must never know which side is whose.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from loopr.world.repo.calls import Door, GitFailed


class Merged(NamedTuple):
    """A merged tree; with files in conflict it holds their markers, and `messages` are git's words on them."""

    tree: str
    files: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


def merge_trees(door: Door, ours: str, theirs: str) -> Merged:
    """Merge two commits; attributes are read from the work tree that the door stands before."""
    said = door.ask("merge-tree", "--write-tree", "-z", "--name-only", "--messages", ours, theirs)
    parts = os.fsdecode(said.out).split("\0")
    if said.code > 1 or len(parts[0]) not in (40, 64):  # exit 1 is a conflict only if a tree comes with it
        raise GitFailed("the merge cannot be tried", said)
    if said.code == 0:
        return Merged(parts[0])
    end = parts.index("", 1)
    return Merged(parts[0], tuple(dict.fromkeys(parts[1:end])), tuple(_messages(parts[end + 1 :])))


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
