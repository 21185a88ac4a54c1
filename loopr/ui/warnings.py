"""Says beside a view that something is later, or dearer, or closer together than it should be.

Knows the scene and the words for it. Must never know a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

from loopr.core.grouping import budget_waits
from loopr.core.overlap import overlapping
from loopr.core.scene import Scene
from loopr.ui.conflicting import hot_files

MOST_OVERLAPS = 5


def queue_warning(scene: Scene, depth: Mapping[str, int]) -> str:
    """Say that more loops wait for a slot than they should, and of which types; nothing where it is not so.

    A long queue is nothing wrong by itself: where nobody has set a limit, it is one that keeps new plans out.
    """
    waiting, (soft, hard) = sum(depth.values()), scene.policy.queue_limits()
    if soft is None or hard is None or waiting <= soft or (scene.policy.soft_limit is None and waiting < hard):
        return ""
    types = ", ".join(f"{count} {name}" for name, count in depth.items())
    return f"queue delayed; respecting caps ({waiting} waiting: {types}; the soft limit is {soft})"


def budget_warnings(scene: Scene, now: int, say: Callable[[int], str | None]) -> list[str]:
    """Say how many loops wait for each budget that is used up, and until when; nothing where none is."""
    return [
        f"{reason}: {count} loop{'s wait' if count != 1 else ' waits'}{f' until {say(until)}' if until else ''}"
        for (reason, until), count in budget_waits(scene, now).items()
    ]


def warnings(scene: Scene, depth: Mapping[str, int]) -> list[str]:
    """List what a person may want to know; `depth` is how many wait for a slot, by type."""
    late = queue_warning(scene, depth)
    found = [late] if late else []
    busy = [scene.loops[each] for each in scene.occupancy.loops]
    for one, other, what in islice(overlapping(busy), MOST_OVERLAPS):
        found.append(f"{one.id} and {other.id} are at work at once, and both mean to touch {what} (`files`)")
    return found + hot_files(scene)
