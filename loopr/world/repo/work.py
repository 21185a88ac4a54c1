"""What a loop has made of its plan so far, as one digest: equal for equal work, whatever its plan has landed meanwhile.

Knows paths, modes and contents. Must never know what anybody said of the work.
"""

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple

from loopr.world.repo.branches import loop_tip
from loopr.world.repo.ground import Ground
from loopr.world.repo.refs import merge_base
from loopr.world.repo.scanning import changed_entries

WORK_LENGTH = 16


class Work(NamedTuple):
    """What a loop's branch changes against its plan's, as a digest with what was handed over; and the files."""

    digest: str = ""
    paths: tuple[str, ...] = ()


def work_of(ground: Ground, name: str, stands: str, handed_over: bytes = b"") -> Work:
    """Look at the work of a loop; nothing if its branch and its plan's have no commit in common."""
    tip = loop_tip(ground, name)
    base = merge_base(ground.door, stands, tip) if stands else ""
    if not base:
        return Work()
    found = hashlib.sha256(handed_over)
    entries = sorted(changed_entries(ground.door, base, tip), key=lambda each: each.path)
    for each in entries:
        found.update(b"\0%b\0%b %b" % (os.fsencode(each.path), each.mode.encode(), each.blob.encode()))
    return Work(found.hexdigest()[:WORK_LENGTH], tuple(each.path for each in entries))
