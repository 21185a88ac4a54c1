"""Objects read and written without asking git: fresh ones lie in files of their own, and that takes no process.

Knows how git writes a loose object. Whatever is packed is not found here, and git is asked for it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.calls import Door

_STEP = 64 * 1024
_HISTORY = 64
_LARGEST_TREE = 16 * 1024 * 1024
_TREE = "040000"
_TRIES = 5


class Found(NamedTuple):
    """The kind and size of an object, and its content as far as it was read."""

    kind: str
    size: int
    content: bytes


def loose(door: Door, name: str, limit: int) -> Found | None:
    """Read a loose object up to a limit of bytes, None if it is not loose or not whole."""
    try:
        with _place(door, name).open("rb") as file:
            unpack = zlib.decompressobj()
            text = unpack.decompress(file.read(_STEP), _STEP)
            kind, _, rest = text.partition(b" ")
            size, _, content = rest.partition(b"\0")
            wanted = min(int(size), limit)
            while len(content) < wanted:
                fed = unpack.unconsumed_tail or file.read(_STEP)
                if not fed:
                    return None
                content += unpack.decompress(fed, _STEP)
    except (OSError, ValueError, zlib.error):
        return None
    return Found(kind.decode("ascii", "replace"), int(size), content[:wanted])


def write_loose(door: Door, kind: str, content: bytes, *, long: bool) -> str:
    """Write an object as git does, whole or not at all, and return its name; `long` names are those of SHA-256."""
    whole = f"{kind} {len(content)}\0".encode() + content
    name = (hashlib.sha256 if long else hashlib.sha1)(whole).hexdigest()
    file = _place(door, name)
    try:
        os.utime(file)  # what is young is left alone by those who collect garbage
    except OSError:
        _write(file, zlib.compress(whole, 1))
    return name


def _write(file: Path, packed: bytes) -> None:
    """Write a file that nobody shall change, by rename; git takes away the folder around it whenever it is empty."""
    for left in reversed(range(_TRIES)):
        file.parent.mkdir(exist_ok=True)
        try:
            descriptor, fresh = tempfile.mkstemp(prefix="tmp_obj_", dir=file.parent)
            break
        except FileNotFoundError:
            if not left:
                raise
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(packed)
        Path(fresh).chmod(0o444)
        Path(fresh).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(fresh).unlink()
        raise


def _place(door: Door, name: str) -> Path:
    """The file of a loose object."""
    return door.common / "objects" / name[:2] / name[2:]


class Commit(NamedTuple):
    """What a commit points to."""

    tree: str
    parents: tuple[str, ...]


def loose_commit(door: Door, name: str) -> Commit | None:
    """Read a loose commit."""
    found = loose(door, name, _STEP)
    if found is None or found.kind != "commit":
        return None
    head = found.content.partition(b"\n\n")[0].decode("ascii", "replace").splitlines()
    pairs = [line.partition(" ")[::2] for line in head]
    tree = next((value for key, value in pairs if key == "tree"), "")
    return Commit(tree, tuple(value for key, value in pairs if key == "parent")) if tree else None


def descends(door: Door, old: str, new: str) -> bool:
    """Say whether a commit is found among the loose ancestors of another; a no may be wrong, a yes is not."""
    seen, queue = {new}, [new]
    for name in queue:
        if name == old:
            return True
        commit = loose_commit(door, name) if len(seen) <= _HISTORY else None
        fresh = [each for each in (commit.parents if commit else ()) if each not in seen]
        seen.update(fresh)
        queue += fresh
    return False


def fork_of(door: Door, one: str, other: str) -> str:
    """Return where two lines of loose commits part if neither has joined another since, nothing if that is not seen."""
    first = set(_line(door, one))
    return next((name for name in _line(door, other) if name in first), "")


def _line(door: Door, tip: str) -> Iterator[str]:
    """Follow a commit back for a while, as far as there is one way."""
    name = tip
    for _ in range(_HISTORY):
        yield name
        commit = loose_commit(door, name)
        if commit is None or len(commit.parents) != 1:
            return
        name = commit.parents[0]


class Leaf(NamedTuple):
    """What a tree has at a path: a mode as git writes it, and an object."""

    mode: str
    name: str


class NotLoose(Exception):
    """Something that has to be read is packed."""


def differing(door: Door, old: str, new: str) -> dict[str, tuple[Leaf | None, Leaf | None]] | None:
    """Compare two trees or commits path by path, None if not all that differs is loose."""
    found: dict[str, tuple[Leaf | None, Leaf | None]] = {}
    try:
        _compare(door, "", (_as_tree(door, old), _as_tree(door, new)), found)
    except NotLoose:
        return None
    return dict(sorted(found.items(), key=lambda each: os.fsencode(each[0])))


def _compare(door: Door, above: str, trees: tuple[str, str], found: dict[str, tuple[Leaf | None, Leaf | None]]) -> None:
    """Compare two trees, of which either may be missing, and what is below them."""
    if trees[0] == trees[1]:
        return
    before, after = (_read_tree(door, name) if name else {} for name in trees)
    for key in before.keys() | after.keys():
        sides = (before.get(key), after.get(key))
        if sides[0] == sides[1]:
            continue
        below = ["" if side is None or side.mode != _TREE else side.name for side in sides]
        leaves = [None if side is None or side.mode == _TREE else side for side in sides]
        path = above + key
        if any(leaves):
            found[path] = (leaves[0], leaves[1])
        _compare(door, f"{path}/", (below[0], below[1]), found)


def _as_tree(door: Door, name: str) -> str:
    """Return the tree of a commit, or the tree itself."""
    commit = loose_commit(door, name)
    return commit.tree if commit else name


def _read_tree(door: Door, name: str) -> dict[str, Leaf]:
    """Read one loose tree."""
    found = loose(door, name, _LARGEST_TREE)
    if found is None or found.kind != "tree" or found.size > _LARGEST_TREE:
        raise NotLoose
    width, at, content, rows = len(name) // 2, 0, found.content, {}
    while at < len(content):
        end = content.index(b"\0", at)
        mode, _, path = content[at:end].partition(b" ")
        rows[os.fsdecode(path)] = Leaf(mode.decode().zfill(6), content[end + 1 : end + 1 + width].hex())
        at = end + 1 + width
    return rows
