"""Lanes and budgets: how much, and how much at once.

Answers with numbers and reasons; whether that closes a gate is said in `gates.py`, and what it costs in `intake.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core.ledger import PLAN, PROJECT, Scope, Sums, scopes_of
from loopr.core.model import Loop
from loopr.core.policy import DEFAULT_LANE, NO_BUDGET, Budget
from loopr.core.scene import Scene

MAX_REST_DOUBLINGS = 6


# --- lanes --------------------------------------------------------------------------------------------------------


def rest_ms(hits: int) -> int:
    """Return the shortest rest after so many limits in a row."""
    return 1000 * (1 << min(hits, MAX_REST_DOUBLINGS))


def lane_closed(scene: Scene, name: str, now: int) -> tuple[str, int | None] | None:
    """Say why a lane takes no further loop now, and until when if that is known; None if it does."""
    lane = scene.shared.lane(name)
    if lane.parked:
        return f"lane {name} is parked: {lane.parked}; mend it, then `loopr reset lane:{name}`", None
    if now < lane.rest_until:
        why = f": {lane.reason}" if lane.reason else ""
        return f"lane {name} is backing off{why} ({lane.hits} hit{'s' * (lane.hits != 1)})", lane.rest_until
    return lane_full(scene, name)


def lane_full(scene: Scene, name: str) -> tuple[str, None] | None:
    """Say why a working lane is at its limit or ramp, None if it is not."""
    used = scene.occupancy.by_lane.get(name, 0)
    limit = scene.policy.lane(name).max_concurrent
    if limit is not None and used >= limit:
        return f"lane {name} is at its limit of {limit}", None
    ramp = scene.shared.lane(name).ramp
    if ramp is not None and used >= ramp:
        return f"lane {name} starts slowly after its rest: {ramp} at once for now", None
    return None


def pick_lane(scene: Scene, loop: Loop, now: int) -> str | None:
    """Return the first lane that takes the loop now."""
    return next((name for name in scene.lanes_of(loop) if lane_closed(scene, name, now) is None), None)


def ramp_after(scene: Scene, name: str) -> int | None:
    """Return how wide a lane's ramp is after one more good end; None once it does not bind any more."""
    ramp = scene.shared.lane(name).ramp
    if ramp is None:
        return None
    limits = (scene.policy.lane(name).max_concurrent, scene.policy.max_loops if scene.policy.max_loops > 0 else None)
    bound = min((each for each in limits if each is not None), default=None)
    return None if bound is not None and 2 * ramp >= bound else 2 * ramp


# --- budgets ------------------------------------------------------------------------------------------------------


def budgets_of(scene: Scene, loop: Loop) -> Iterator[tuple[Scope, str, Budget]]:
    """List the budgets that must have room before a loop may start: its plan's, its project's, the workspace's."""
    plan, project, workspace = scopes_of(loop)
    top = scene.loops.get(loop.plan)
    found = (
        (plan, f"plan {loop.plan}", top.budget if top is not None else NO_BUDGET),
        (project, f"project {loop.project}", scene.policy.project(loop.project).budget),
        (workspace, "the workspace", scene.policy.budget),
    )
    return (each for each in found if not each[2].unlimited)


def budget_closed(scene: Scene, loop: Loop, now: int) -> tuple[str, int | None] | None:
    """Say which budget has no room for the loop, and when its window frees some; None if all have."""
    for scope, name, budget in budgets_of(scene, loop):
        used = scene.ledger.used(scope, now).plus(reserved(scene, scope, now))
        for amount, limit, unit in (
            (used.cost, budget.tokens, "tokens"),
            (used.usd, budget.micro_usd, "usd"),
            (used.ms, budget.secs, "secs"),
        ):
            if limit is not None and amount >= limit * _SCALE[unit]:
                return f"the {unit} budget of {name} is reached", scene.ledger.frees_at(scope, now)
        if _unmeasured_busy(scene, scope, loop, now):
            return f"the first {loop.type} at the cost of {name} is being measured", None
    return None


_SCALE = {"tokens": 1000, "usd": 1, "secs": 1000}


def _paid_by(scene: Scene, scope: Scope) -> Iterator[Loop]:
    """List the occupied loops that a payer pays for."""
    kind, name = scope
    for loop_id in scene.occupancy.loops:
        loop = scene.loops[loop_id]
        if (kind == PLAN and loop.plan != name) or (kind == PROJECT and loop.project != name):
            continue
        yield loop


def reserved(scene: Scene, scope: Scope, now: int) -> Sums:
    """Sum what the running loops of a payer will have used at least: so far, or the mean of their type."""
    total = Sums()
    for loop in _paid_by(scene, scope):
        seen = scene.ledger.used_by_type(scope, loop.type, now)
        n = max(1, seen.attempts)
        total = total.plus(
            Sums(
                0,
                max(scene.cost_so_far(loop, now), seen.cost // n),
                max(scene.usd_so_far(loop, now), seen.usd // n),
                max(scene.live_usage(loop, now).ms, seen.ms // n),
            )
        )
    return total


def _unmeasured_busy(scene: Scene, scope: Scope, loop: Loop, now: int) -> bool:
    """Say whether a type without one measured attempt already has a loop running at a payer's cost."""
    if scene.ledger.used_by_type(scope, loop.type, now).attempts:
        return False
    return any(other.type == loop.type for other in _paid_by(scene, scope))


def own_budget_reached(scene: Scene, loop: Loop, now: int) -> str | None:
    """Say which part of its own budget a loop has reached; that parks it."""
    own = loop.budget if not loop.budget.unlimited and loop.parent is not None else NO_BUDGET
    typed = scene.policy.type_of(loop.type).budget
    live = scene.live_usage(loop, now) if loop.lease is not None else None
    cost = loop.spent.cost + (scene.cost_so_far(loop, now) if live else 0)
    usd = loop.spent.usd + (scene.usd_so_far(loop, now) if live else 0)
    ms = loop.spent.ms + (live.ms if live else 0)
    for amount, key, scale in ((cost, "tokens", 1000), (usd, "micro_usd", 1), (ms, "secs", 1000)):
        limits = [each for each in (getattr(own, key), getattr(typed, key)) if each is not None]
        if limits and amount >= min(limits) * scale:
            return f"its own budget of {key.replace('micro_usd', 'usd')} is used up"
    return None


def api_lane(scene: Scene, loop: Loop, now: int) -> bool:
    """Say whether a loop's next attempt counts as an API call."""
    return (pick_lane(scene, loop, now) or scene.lanes_of(loop)[0]) != DEFAULT_LANE
