"""The gates that count: how many loops of a project, of a type, and in all, and how many in one round.

Knows what is at work and what may be. Must never know which loop is next.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core import limits
from loopr.core.hot import passed_by
from loopr.core.housing import NEW, PACKING
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


def worktrees_closed(scene: Scene, loop: Loop, now: int) -> Closed:
    """It has no worktree, and there are as many as there may be; or its own is being packed."""
    most, taken = scene.policy.most_worktrees, len(scene.housed)
    if most is None or (taken < most and not scene.packing):
        return None
    housing = scene.housing(loop)
    if housing == PACKING:
        return "its worktree is being packed, to be laid again", None
    if housing != NEW or taken < most:
        return None
    return f"{taken} of {most} worktrees are taken (`worktrees.max`)", None


def pace_closed(scene: Scene, loop: Loop, now: int) -> Closed:
    """The last round launched as many as it may, and the next one is not due."""
    until = scene.shared.paced_until()
    if now >= until:
        return None
    return f"a round launches {scene.policy.batch_size} at most, and the next is not due (`dispatch`)", until


def full_ceilings(scene: Scene) -> Iterator[str]:
    """Name the settings with a ceiling that is reached: it lets no further loop start."""
    policy, occupied = scene.policy, scene.occupancy
    if not policy.unbounded and occupied.total >= policy.max_loops:
        yield "concurrency.max_loops"
    if policy.api_ceiling is not None and occupied.api_calls >= policy.api_ceiling:
        yield "concurrency.max_api_calls"
    for name in policy.types:
        limit = policy.per_type.get(name)
        if limit is not None and occupied.by_type.get(name, 0) >= limit:
            yield f"concurrency.per_type.{name}"
    for name, offered in policy.resources.items():
        if occupied.held.get(name, 0) >= offered:
            yield f"resources.{name}"
