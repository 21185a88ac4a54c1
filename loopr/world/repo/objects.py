"""Objects read and written without asking git: fresh ones lie in files of their own, and that takes no process.

Knows how git writes a loose object. Whatever is packed or replaced is not found here, and git is asked for it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.calls import Door
from loopr.world.repo.packed import packed_refs

_STEP = 64 * 1024
_HISTORY = 64
_TRIES = 5


class Found(NamedTuple):
    """The kind and size of an object, and its content as far as it was read."""

    kind: str
    size: int
    content: bytes


def loose(common: Path, name: str, limit: int) -> Found | None:
    """Read a loose object up to a limit of bytes, None if it is not loose, not whole, or git shows another for it."""
    if _is_replaced(common, name):
        return None
    try:
        with _place(common, name).open("rb") as file:
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


def _is_replaced(common: Path, name: str) -> bool:
    """Say whether somebody has git show another object in the place of this one."""
    ref = f"refs/replace/{name}"
    return os.path.lexists(f"{common}/{ref}") or ref in packed_refs(common)


def write_loose(door: Door, kind: str, content: bytes, *, long: bool) -> str:
    """Write an object as git does, whole or not at all, and return its name; `long` names are those of SHA-256."""
    whole = f"{kind} {len(content)}\0".encode() + content
    name = (hashlib.sha256 if long else hashlib.sha1)(whole).hexdigest()
    file = _place(door.common, name)
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


def _place(common: Path, name: str) -> Path:
    """The file of a loose object."""
    return Path(f"{common}/objects/{name[:2]}/{name[2:]}")


class Commit(NamedTuple):
    """What a commit points to."""

    tree: str
    parents: tuple[str, ...]


def loose_commit(door: Door, name: str) -> Commit | None:
    """Read a loose commit."""
    found = loose(door.common, name, _STEP)
    if found is None or found.kind != "commit":
        return None
    head = found.content.partition(b"\n\n")[0].decode("ascii", "replace")
    pairs = [line.partition(" ")[::2] for line in head.split("\n")]  # a name may hold what ends a line for Python only
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
    seen: tuple[set[str | None], set[str | None]] = (set(), set())
    for step in zip_longest(_line(door, one), _line(door, other)):
        for mine, others, name in zip(seen, reversed(seen), step, strict=True):
            if name is not None and name in others:
                return name
            mine.add(name)
    return ""


def _line(door: Door, tip: str) -> Iterator[str]:
    """Follow a commit back for a while, as far as there is one way."""
    name = tip
    for _ in range(_HISTORY):
        yield name
        commit = loose_commit(door, name)
        if commit is None or len(commit.parents) != 1:
            return
        name = commit.parents[0]
