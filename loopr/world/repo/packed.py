"""Refs that git has packed into one file, read without asking it.

Knows the form of that file. Must never know what a ref is for.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

PACKED = "packed-refs"
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def packed_refs(common: Path) -> dict[str, str]:
    """Read the packed refs; the last version read is kept, for a file that git replaces whole."""
    file = common / PACKED
    try:
        facts = file.stat()
    except OSError:
        return {}
    if not stat.S_ISREG(facts.st_mode):  # a pipe would have us wait for ever
        return {}
    version = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
    known = _KNOWN.get(file)
    if known is None or known[0] != version:
        rows = (line.partition(" ") for line in os.fsdecode(file.read_bytes()).split("\n"))
        known = (version, {name: commit for commit, _, name in rows if _COMMIT.fullmatch(commit)})
        _KNOWN[file] = known
    return known[1]


_KNOWN: dict[Path, tuple[tuple[int, int, int], dict[str, str]]] = {}
