"""Loops that begin a rest of a lane: others ask first after it, and when a limit is a matter of one loop alone.

Knows how often in a row a loop has asked a lane in vain, and whether the lane has worked since its rest. Must never
know what a limit costs (`costs.py`), nor the order among those that may ask (`choose.py`).
"""

from __future__ import annotations

from loopr.core.grouping import GroupKey
from loopr.core.limits import pick_lane
from loopr.core.model import Loop
from loopr.core.ranking import Group
from loopr.core.scene import Scene


def is_own_matter(scene: Scene, loop: Loop, name: str) -> bool:
    """Say whether a limit is a loop's own: it asked in vain before, and since that rest the lane serves others."""
    grant = loop.lease.grant if loop.lease is not None else 0
    lane = scene.shared.lane(name)
    others = not lane.hits and lane.worked_for != loop.id
    return loop.in_vain > 0 and loop.vain_on == name and others and grant > lane.rest_grant


def others_first(scene: Scene, groups: list[tuple[GroupKey, Group]], now: int) -> list[tuple[GroupKey, Group]]:
    """Leave those out that have asked a lane in vain, where others want it too: until it has worked after its rest."""
    if not any(_asks_again(scene, key) for key, _ in groups):
        return groups
    wanted = [pick_lane(scene, scene.loops[next(iter(group.members))], now) for _, group in groups]
    counts = [key.in_vain if key.vain_on == name else 0 for (key, _), name in zip(groups, wanted, strict=True)]
    least: dict[str | None, int] = {}
    for name, count in zip(wanted, counts, strict=True):
        least[name] = min(count, least.get(name, count))
    return [
        each
        for each, name, count in zip(groups, wanted, counts, strict=True)
        if count == least[name] or not _asks_again(scene, each[0])
    ]


def _asks_again(scene: Scene, key: GroupKey) -> bool:
    """Say whether loops have asked a lane in vain that has not worked for anybody since."""
    return key.in_vain > 0 and scene.shared.lane(key.vain_on).hits > 0
