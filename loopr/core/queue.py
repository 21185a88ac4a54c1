"""Back-pressure: how many loops wait for nothing but a ceiling.

Knows the groups of ready loops. Must never know what is done about a long queue.
"""

from __future__ import annotations

from loopr.core.forest import Forest
from loopr.core.gates import SHARED_GATES
from loopr.core.limits import lane_full
from loopr.core.model import Loop
from loopr.core.scene import Scene

_CEILINGS = frozenset({"lane", "project", "type", "capacity"})


def queue_depth(forest: Forest, now: int) -> dict[str, int]:
    """Count, by type, the pending loops whose only closed gates are ceilings: of a type, project, lane or the whole."""
    forest.advance(now)
    depth: dict[str, int] = {}
    for key, group in forest.ready.groups():
        if key.command and _only_ceilings(forest, forest.loops[next(iter(group.members))], now):
            depth[key.type] = depth.get(key.type, 0) + len(group.members)
    return dict(sorted(depth.items()))


def _only_ceilings(scene: Scene, loop: Loop, now: int) -> bool:
    """Say whether a ceiling, and nothing but ceilings, holds a loop back."""
    closed = {name for name, check in SHARED_GATES if check(scene, loop, now) is not None}
    if "lane" in closed and not any(_is_full(scene, name, now) for name in scene.lanes_of(loop)):
        return False
    return bool(closed) and closed <= _CEILINGS


def _is_full(scene: Scene, name: str, now: int) -> bool:
    """Say whether a lane works and has as many loops as it may; one that rests or is parked is no ceiling."""
    lane = scene.shared.lane(name)
    return not lane.parked and now >= lane.rest_until and lane_full(scene, name) is not None
