"""Protected paths: a loop may not change what it is judged by, so they land as the plan has them.

Knows patterns, and how a tree is made from another with some paths replaced. Must never know who protects what.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from loopr.world.repo.calls import Door
from loopr.world.repo.ground import Ground
from loopr.world.repo.scanning import NOTHING, Entry, changed_entries
from loopr.world.repo.words import PutBack

_PLAIN = re.compile(r"(?!\.{1,2}(/|$))[A-Za-z0-9_.-]+(/(?!\.{1,2}(/|$))[A-Za-z0-9_.-]+)*/?")


class Protect(NamedTuple):
    """What is protected: patterns as git reads them, and whether added files may stay.

    `named` are paths that are protected where the plan has them.
    """

    patterns: tuple[str, ...] = ()
    keep_added: bool = False
    named: tuple[str, ...] = ()


def pathspecs(patterns: Iterable[str]) -> list[str]:
    """Turn patterns into words for git; each is read both ways that git knows, for more is safer than less."""
    return [f":({magic}){pattern}" for pattern in patterns for magic in ("top", "top,glob")]


def changed_protected(ground: Ground, door: Door, base: str, loop: str, protect: Protect) -> list[PutBack]:
    """List what a loop itself has changed since it parted from the plan, and lands as the plan has it."""
    changed = changed_entries(door, base, loop)
    entries = [each for each in changed if ground.folder_of(each.path)]
    entries += [each for each in _protected(door, (base, loop), protect, changed) if each not in entries]
    return [put_back_of(each) for each in entries]


def put_back(ground: Ground, door: Door, tree: str, plan_tip: str, protect: Protect) -> tuple[str, list[Entry]]:
    """Return the tree with every protected path, and all that is never committed, as the plan has it; and what differs.

    What differs is what would land: each path that the tree has other than the plan, after things were put back.
    """
    entries = changed_entries(door, plan_tip, tree)
    guarded = {each.path for each in entries if ground.is_left_out(each.path)}
    guarded |= {each.path for each in _protected(door, (plan_tip, tree), protect, entries)}
    wrong = [each for each in entries if each.path in guarded]
    if not wrong:
        return tree, entries
    return with_entries(ground, door, tree, wrong), [each for each in entries if each.path not in guarded]


def undone_between(door: Door, tree: str, before: str) -> list[PutBack]:
    """List what had been made of the paths that were put back in a tree."""
    return [put_back_of(each) for each in changed_entries(door, tree, before)]


def _protected(door: Door, trees: tuple[str, str], protect: Protect, entries: list[Entry]) -> list[Entry]:
    """Return those of the entries, which are all that differs between two trees, that are protected."""
    named = [each for each in entries if each.path in protect.named and each.was != NOTHING]
    if not entries or not protect.patterns:
        return named
    if all(_PLAIN.fullmatch(pattern) for pattern in protect.patterns):  # git would say the same
        found = [each for each in entries if any(_covers(pattern, each.path) for pattern in protect.patterns)]
    else:
        found = changed_entries(door, *trees, *pathspecs(protect.patterns))
    return named + [each for each in found if each not in named and not _may_stay(each, protect)]


def _covers(pattern: str, path: str) -> bool:
    """Say whether a plain path, of a file or a folder, covers another."""
    return path.startswith(pattern.rstrip("/") + "/") or path == pattern


def _may_stay(entry: Entry, protect: Protect) -> bool:
    """Say whether a protected path may differ: only one that was added, where that is allowed."""
    return protect.keep_added and entry.was == NOTHING


def put_back_of(entry: Entry) -> PutBack:
    """Say of a path that is put back what was made of it."""
    if entry.was == NOTHING:
        return PutBack(entry.path, "added")
    return PutBack(entry.path, "deleted" if entry.mode == NOTHING else "changed")


def with_entries(ground: Ground, door: Door, tree: str, entries: Sequence[Entry]) -> str:
    """Return a tree in which these paths are as they were."""
    absent = "0" * len(tree)
    rows = [(each.was, absent if each.was == NOTHING else each.old, each.path) for each in entries]
    text = b"".join(f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0" for mode, blob, path in rows)
    with TemporaryDirectory(dir=ground.state) as folder:
        own = door.with_index(Path(folder) / "index")
        own.run("read-tree", tree)
        own.run("update-index", "-z", "--index-info", stdin=text)
        return own.run("write-tree").line
