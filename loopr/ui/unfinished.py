"""What an engine that has ended leaves to the next one, in words.

Must never know why it has ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core.model import Status
from loopr.core.scene import Scene

MOST_NAMED = 5
_WHAT = {
    Status.LANDING: "landing of",
    Status.CHECKING: "verdict on",
    Status.LEASED: "try of",
    Status.RUNNING: "try of",
}


def unfinished(scene: Scene) -> list[str]:
    """Name whatever was in the hands of the engine: a pull worker's lease is in its own."""
    return list(_unfinished(scene))


def _unfinished(scene: Scene) -> Iterator[str]:
    """Name one after the other, by the names of loops."""
    for loop_id in sorted(scene.occupancy.loops):
        loop = scene.loops[loop_id]
        owner = loop.lease or loop.ending
        if owner is not None and owner.expires_at is None:
            yield f"{_WHAT.get(loop.status, 'end of the try of')} {loop_id}"


def unfinished_line(scene: Scene) -> str:
    """Say on a line what is left to the next run; nothing if nothing is."""
    found = unfinished(scene)
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"left to the next run: {', '.join(found[:MOST_NAMED])}{more}" if found else ""
