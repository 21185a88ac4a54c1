"""What an index has at a few paths, looked up in its bytes: git would read, and write, all of it to tell.

Knows version 2 of git's index. Must never know which paths are asked for, nor why.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path

from loopr.world.repo.trees import Leaf

_HEADER = 12
_STAT_BYTES = 40
_MODE_AT = 24
_MODES = frozenset({0o100644, 0o100755, 0o120000})
_LONGEST = 255  # of a longer name the length is no safe mark of where it begins


def leaves_at(index: Path, paths: Iterable[str], width: int) -> dict[str, Leaf | None] | None:
    """Return what an index has at some paths, None for all if one cannot be told; names of objects are `width` long.

    A path is preceded by flags, which are its length and nothing else where the entry is a plain one.
    """
    content = index.read_bytes()
    if content[:8] != b"DIRC" + struct.pack(">I", 2):
        return None
    found: dict[str, Leaf | None] = {}
    for path in paths:
        name = os.fsencode(path)
        leaves = list(_entries(content, name, width // 2)) if len(name) <= _LONGEST else []
        if len(leaves) > 1 or (not leaves and name + b"\0" in content):
            return None
        found[path] = leaves[0] if leaves else None
    return found


def _entries(content: bytes, name: bytes, width: int) -> Iterable[Leaf]:
    """Find what has the form of an entry of this name."""
    mark = struct.pack(">H", len(name)) + name + b"\0"
    at = content.find(mark)
    while at >= 0:
        begin = at - width - _STAT_BYTES
        (mode,) = struct.unpack_from(">I", content, begin + _MODE_AT) if begin >= _HEADER else (0,)
        if begin % 8 == _HEADER % 8 and mode in _MODES:
            yield Leaf(f"{mode:06o}", content[at - width : at].hex())
        at = content.find(mark, at + 1)
