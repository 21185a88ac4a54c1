"""How many bytes the files of a checkout take, as its index remembers them: no file is looked at.

Knows versions 2 and 3 of git's index. Must never know what the bytes are for.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

_HEADER, _STAT_BYTES, _SIZE_AT = 12, 40, 36
_FLAGS, _EXTENDED, _LENGTH = 2, 0x4000, 0x0FFF
_KNOWN = (2, 3)


def bytes_of_checkout(git_dir: Path, *, width: int = 20) -> int | None:
    """Return the sizes of all files in an index, None where it cannot be read; names of objects have `width` bytes."""
    with suppress(OSError, struct.error, ValueError):
        return _sum_of_sizes((git_dir / "index").read_bytes(), width)
    return None


def _sum_of_sizes(content: bytes, width: int) -> int | None:
    """Add up the sizes of all entries."""
    magic, version, count = struct.unpack_from(">4sII", content, 0)
    if magic != b"DIRC" or version not in _KNOWN:
        return None
    at, total = _HEADER, 0
    for _ in range(count):
        (size,) = struct.unpack_from(">I", content, at + _SIZE_AT)
        (flags,) = struct.unpack_from(">H", content, at + _STAT_BYTES + width)
        name = at + _STAT_BYTES + width + _FLAGS + (2 if flags & _EXTENDED else 0)
        length = flags & _LENGTH
        end = name + length if length < _LENGTH else content.index(b"\0", name)
        at += (end - at + 8) // 8 * 8
        total += size
    return total
