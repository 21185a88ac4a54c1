"""What a loop has made of its plan so far, as one digest: equal for equal work, whatever its plan has landed meanwhile.

Knows paths, modes and contents. Must never know what anybody said of the work.
"""

from __future__ import annotations

import hashlib
import os

from loopr.world.repo.branches import loop_tip
from loopr.world.repo.ground import Ground
from loopr.world.repo.refs import merge_base
from loopr.world.repo.scanning import changed_entries

WORK_LENGTH = 16


def digest_of_work(ground: Ground, name: str, stands: str, handed_over: bytes = b"") -> str:
    """Digest what a loop's branch changes against its plan's, and what was handed over; nothing if that is not told."""
    tip = loop_tip(ground, name)
    base = merge_base(ground.door, stands, tip) if stands else ""
    if not base:
        return ""
    found = hashlib.sha256(handed_over)
    for each in sorted(changed_entries(ground.door, base, tip), key=lambda each: each.path):
        found.update(b"\0%b\0%b %b" % (os.fsencode(each.path), each.mode.encode(), each.blob.encode()))
    return found.hexdigest()[:WORK_LENGTH]
