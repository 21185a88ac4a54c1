"""Trees compared and made without asking git, as far as they are loose: most of a loop's are, and have few differences.

Knows how git writes a tree. Must never know where a tree comes from, nor what is done with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.calls import Door
from loopr.world.repo.objects import loose, loose_commit, write_loose

_LARGEST = 16 * 1024 * 1024
_REMEMBERED = 16
_TREE = "040000"
_FOLDER = b"40000"
_ROWS = {width: re.compile(rb"([0-7]+) ([^\0]+)\0(.{%d})" % width, re.DOTALL) for width in (20, 32)}
_Row = tuple[bytes, bytes, bytes]
_NOTHING: frozenset[_Row] = frozenset()


class Leaf(NamedTuple):
    """What a tree has at a path: a mode as git writes it, and an object."""

    mode: str
    name: str


class NotLoose(Exception):
    """Something that has to be read is packed, or is not what it should be."""


Differences = dict[str, tuple[Leaf | None, Leaf | None]]


def differing(door: Door, old: str, new: str) -> Differences | None:
    """Compare two trees or commits path by path, None if not all that differs is loose."""
    found: Differences = {}
    try:
        _compare(door.common, "", (_as_tree(door, old), _as_tree(door, new)), found)
    except NotLoose:
        return None
    return dict(sorted(found.items(), key=lambda each: os.fsencode(each[0])))


def _compare(common: Path, above: str, trees: tuple[str, str], found: Differences) -> None:
    """Compare two trees, of which either may be missing, and what is below them."""
    if trees[0] == trees[1]:
        return
    rows = [_rows(common, name) for name in trees]
    before, after = _named(rows[0] - rows[1]), _named(rows[1] - rows[0])
    for key in before.keys() | after.keys():
        sides = (before.get(key), after.get(key))
        below = ["" if side is None or side.mode != _TREE else side.name for side in sides]
        leaves = [None if side is None or side.mode == _TREE else side for side in sides]
        path = above + key
        if any(leaves):
            found[path] = (leaves[0], leaves[1])
        _compare(common, f"{path}/", (below[0], below[1]), found)


def _named(rows: Iterable[_Row]) -> dict[str, Leaf]:
    """Read some rows of a tree."""
    return {os.fsdecode(path): Leaf(mode.decode().zfill(6), name.hex()) for mode, path, name in rows}


def _as_tree(door: Door, name: str) -> str:
    """Return the tree of a commit, or the tree itself."""
    commit = loose_commit(door, name)
    return commit.tree if commit else name


@lru_cache(_REMEMBERED)
def _rows(common: Path, name: str) -> frozenset[_Row]:
    """Split one loose tree, or none, into its rows."""
    if not name:
        return _NOTHING
    found = loose(common, name, _LARGEST)
    if found is None or found.kind != "tree" or found.size > _LARGEST:
        raise NotLoose
    return frozenset(_ROWS[len(name) // 2].findall(found.content))


def grafted(door: Door, tree: str, changes: Mapping[str, Leaf | None]) -> str:
    """Write the tree that has these leaves at these paths, nothing where one is None; "" if it has nothing at all.

    `NotLoose` where a tree on the way is packed, or a file and a folder have one name.
    """
    return _grafted(door, _as_tree(door, tree), changes)


def _grafted(door: Door, tree: str, changes: Mapping[str, Leaf | None]) -> str:
    """Write a tree, none if nothing is in it."""
    rows = {path: (mode, name) for mode, path, name in _rows(door.common, tree)}
    below: dict[str, dict[str, Leaf | None]] = {}
    for key, leaf in changes.items():
        head, inside, rest = key.partition("/")
        path = os.fsencode(head)
        if inside:
            below.setdefault(head, {})[rest] = leaf
        elif rows.get(path, (b"", b""))[0] == _FOLDER:
            raise NotLoose
        elif leaf is None:
            rows.pop(path, None)
        else:
            rows[path] = (leaf.mode.lstrip("0").encode(), bytes.fromhex(leaf.name))
    for head, inner in below.items():
        path = os.fsencode(head)
        mode, name = rows.pop(path, (_FOLDER, b""))
        if mode != _FOLDER:
            raise NotLoose
        if made := _grafted(door, name.hex(), inner):
            rows[path] = (_FOLDER, bytes.fromhex(made))
    return _written(door, rows)


def _written(door: Door, rows: Mapping[bytes, tuple[bytes, bytes]]) -> str:
    """Write the rows of a tree; git sorts a folder as if its name ended with a slash."""
    order = sorted(rows, key=lambda path: path + b"/" if rows[path][0] == _FOLDER else path)
    content = b"".join(b"%b %b\0%b" % (rows[path][0], path, rows[path][1]) for path in order)
    long = any(len(name) > 20 for _, name in rows.values())
    return write_loose(door, "tree", content, long=long) if rows else ""
