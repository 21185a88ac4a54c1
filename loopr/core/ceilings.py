"""The gates that count: how many loops of a project, of a type, and in all, and how many in one round.

Knows what is at work and what may be. Must never know which loop is next.
"""

from __future__ import annotations

from loopr.core import limits
from loopr.core.hot import passed_by
from loopr.core.model import Loop
from loopr.core.offering import Closed
from loopr.core.scene import Scene


def project_closed(scene: Scene, loop: Loop, now: int) -> Closed:
    """Its project has as many loops as it may."""
    limit = scene.policy.project(loop.project).max_concurrent
    if limit is None or scene.occupancy.by_project.get(loop.project, 0) < limit:
        return None
    return f"project {loop.project} is at its limit of {limit}", None


def type_closed(scene: Scene, loop: Loop, now: int) -> Closed:
    """Its type has as many loops as it may."""
    limit = scene.policy.per_type.get(loop.type)
    if limit is None or scene.occupancy.by_type.get(loop.type, 0) < limit:
        return None
    loops = "loop is" if limit == 1 else "loops are"
    return f"{limit} of {limit} {loop.type} {loops} at work", None


def capacity_closed(scene: Scene, loop: Loop, now: int) -> Closed:
    """The workspace has as many loops, or as many API calls, as it may."""
    policy, occupied = scene.policy, scene.occupancy
    full = not policy.unbounded and occupied.total >= policy.max_loops
    if full and occupied.total - passed_by(scene) >= policy.max_loops:
        return f"all {policy.max_loops} slots are taken", None
    ceiling = policy.api_ceiling
    if ceiling is not None and occupied.api_calls >= ceiling and limits.api_lane(scene, loop, now):
        return f"all {policy.max_api_calls} API calls are taken", None
    return None


def pace_closed(scene: Scene, loop: Loop, now: int) -> Closed:
    """The last round launched as many as it may, and the next one is not due."""
    until = scene.shared.paced_until()
    if now >= until:
        return None
    return f"a round launches {scene.policy.batch_size} at most, and the next is not due (`dispatch`)", until
