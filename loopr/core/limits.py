"""Lanes and budgets: how much, and how much at once.

Answers with numbers and reasons; whether that closes a gate is said in `gates.py`, and what it costs in `intake.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loopr.core.ledger import PLAN, PROJECT, Scope, Sums, scopes_of
from loopr.core.model import Loop
from loopr.core.policy import DEFAULT_LANE, NO_BUDGET, Budget
from loopr.core.scene import Crew, Scene

MAX_REST_DOUBLINGS = 6
FULL = 1000
"""A window that is used up, in thousandths."""
UNKNOWN_WINDOW_MS = 3_600_000
"""How long a level holds of which nobody says when it ends."""
LONGEST_WINDOW_MS = 32 * 86_400_000
"""No provider's window is longer: whoever says so is not believed."""


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
    return lane_full(scene, name, now)


def lane_full(scene: Scene, name: str, now: int) -> tuple[str, None] | None:
    """Say why a working lane is at its limit or ramp, or as wide as is wise before its wall; None if it is not."""
    used = scene.occupancy.by_lane.get(name, 0)
    limit = scene.policy.lane(name).max_concurrent
    if limit is not None and used >= limit:
        return f"lane {name} is at its limit of {limit}", None
    ramp = scene.shared.lane(name).ramp
    if ramp is not None and used >= ramp:
        return f"lane {name} starts slowly after its rest: {ramp} at once for now", None
    width = slow_width(scene, name, now)
    if width is not None and used >= width:
        percent = scene.shared.lane(name).level // 10
        return f"{percent}% of lane {name}'s window is used: only {width} at once until it begins anew", None
    return None


def slow_width(scene: Scene, name: str, now: int) -> int | None:
    """Return how many may use a lane at once whose window is nearly used up; None while it may be used as it is.

    It narrows from all to one, as the rest of the window does.
    """
    lane, policy = scene.shared.lane(name), scene.policy.lane(name)
    if policy.slow_above is None or now >= lane.level_until or lane.level < policy.slow_above:
        return None
    ceilings = (policy.max_concurrent, scene.policy.max_loops, scene.policy.max_api_calls * (name != DEFAULT_LANE))
    most = min((each for each in ceilings if each is not None and each > 0), default=1)
    left, whole = max(0, FULL - lane.level), FULL - policy.slow_above
    return max(1, -(-most * left // whole)) if whole else 1


def crew_of(scene: Scene, loop: Loop, now: int) -> Crew:
    """Return who makes a loop's next attempt: the first whose lanes do not all rest, else whose work it is."""
    crews = scene.crews_of(loop)
    if len(crews) == 1:
        return crews[0]
    return next((crew for crew in crews if not all(is_shut(scene, lane, now) for lane in crew.lanes)), crews[0])


def pick_lane(scene: Scene, loop: Loop, now: int) -> str | None:
    """Return the first lane that takes the loop now."""
    return next((name for name in crew_of(scene, loop, now).lanes if lane_closed(scene, name, now) is None), None)


def judge_lane(scene: Scene, loop: Loop, now: int) -> tuple[str, str]:
    """Return the lane that takes the judges of a running loop, nothing for its own; and what is in the way of all."""
    names = scene.judged_as(loop).judge_lanes
    if not names or (loop.lane in names and not is_shut(scene, loop.lane or "", now)):
        return "", ""
    closed = {name: lane_closed(scene, name, now) or _api_full(scene, loop, name) for name in names}
    free = next((name for name, found in closed.items() if found is None), None)
    if free is not None:
        return free, ""
    first = closed[names[0]]
    return "", first[0] if first is not None else ""


def is_shut(scene: Scene, name: str, now: int) -> bool:
    """Say whether a lane rests or is parked."""
    lane = scene.shared.lane(name)
    return bool(lane.parked) or now < lane.rest_until


def _api_full(scene: Scene, loop: Loop, name: str) -> tuple[str, None] | None:
    """Say why a loop that goes on to a lane would be one API call too many, None if it would not."""
    adds = name != DEFAULT_LANE and loop.lane == DEFAULT_LANE
    ceiling = scene.policy.api_ceiling
    full = adds and ceiling is not None and scene.occupancy.api_calls >= ceiling
    return (f"all {scene.policy.max_api_calls} API calls are taken", None) if full else None


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
    top, policy = scene.loops.get(loop.plan), scene.policy
    own = top.budget if top is not None else NO_BUDGET
    budgets = (own, policy.project(loop.project).budget, policy.budget)
    if all(each.unlimited for each in budgets):  # asked of every loop that is ready
        return
    names = (f"plan {loop.plan}", f"project {loop.project}", "the workspace")
    yield from (each for each in zip(scopes_of(loop), names, budgets, strict=True) if not each[2].unlimited)


def budget_closed(scene: Scene, loop: Loop, now: int) -> tuple[str, int | None] | None:
    """Say which budget has no room for the loop, and when its window has let go of enough; None if all have."""
    spent = budget_spent(scene, loop, now)
    if spent is not None:
        return spent
    for scope, name, budget in budgets_of(scene, loop):
        measured = _being_measured(scene, scope, loop, now)
        if measured:
            return f"{measured} at the cost of {name} is being measured", None
        if silent := _are_silent(scene, scope, budget, loop, now):
            return f"none has told yet what a {loop.type} costs {name}: {silent} at once for now", None
    return None


def _are_silent(scene: Scene, scope: Scope, budget: Budget, loop: Loop, now: int) -> int:
    """Count how many of a type run where none has told a cost, if that is enough: one more than have ended; else 0."""
    known = scene.ledger.used_by_type(scope, loop.type, now)
    if known.told or (budget.tokens is None and budget.micro_usd is None):
        return 0
    busy = sum(each.type == loop.type and each.id != loop.id for each in _paid_by(scene, scope))
    return busy if busy > known.attempts else 0


def budget_spent(scene: Scene, loop: Loop, now: int) -> tuple[str, int | None] | None:
    """Say which budget is used up or spoken for: of several the one that stays so for longest, or for ever."""
    found: list[tuple[str, int | None]] = []
    for scope, name, budget in budgets_of(scene, loop):
        kept = reserved(scene, scope, now)
        unit = next(_reached(scene.ledger.used(scope, now).plus(kept), budget), None)
        if unit is not None:
            until = scene.ledger.fits_at(scope, now, _fits(budget, kept))
            found.append((f"the {unit} budget of {name} is reached", until))
    return max(found, key=lambda each: (each[1] is None, each[1] or 0), default=None)


def _fits(budget: Budget, kept: Sums) -> Callable[[Sums], bool]:
    """Say whether a budget has room for one more beside what is kept for others."""
    return lambda used: not any(_reached(used.plus(kept), budget))


def _being_measured(scene: Scene, scope: Scope, loop: Loop, now: int) -> str:
    """Say whose cost a loop waits to be told, if anybody's: no two run at a payer's cost of which nobody knows it.

    Where nothing at all is known that is whoever runs, else the first of its type, or of another that is new to all.
    """
    busy = [each for each in _paid_by(scene, scope) if each.id != loop.id]  # its own attempt that ends is a gate itself
    if usual(scene, scope, loop, now) is None:
        first = min((other.id for other in busy), default="")
        return first and f"{first}, the first"
    if scene.ledger.used_by_type(scope, loop.type, now).attempts:
        return ""
    is_new = _of_type(scene, scope, loop, now) is None
    alike = (other for other in busy if other.type == loop.type or (is_new and not _of_type(scene, scope, other, now)))
    one = min(alike, key=lambda other: other.id, default=None)
    return f"{one.id}, the first {one.type}" if one is not None else ""


def spent_budgets(scene: Scene, loop: Loop, now: int) -> Iterator[tuple[str, str]]:
    """List the budgets that are used up by what has ended alone, which hold a loop back: the name, and what of it."""
    for scope, name, budget in budgets_of(scene, loop):
        for unit in _reached(scene.ledger.used(scope, now), budget):
            yield name, unit


def _reached(used: Sums, budget: Budget) -> Iterator[str]:
    """List the units of which a budget is reached."""
    for amount, limit, unit in (
        (used.cost, budget.tokens, "tokens"),
        (used.usd, budget.micro_usd, "usd"),
        (used.ms, budget.secs, "secs"),
    ):
        if limit is not None and amount >= limit * _SCALE[unit]:
            yield unit


_SCALE = {"tokens": 1000, "usd": 1, "secs": 1000}


def _paid_by(scene: Scene, scope: Scope) -> Iterator[Loop]:
    """List the occupied loops that a payer pays for."""
    kind, name = scope
    for loop_id in scene.occupancy.loops:
        loop = scene.loops[loop_id]
        if (kind == PLAN and loop.plan != name) or (kind == PROJECT and loop.project != name):
            continue
        yield loop


def reserved(scene: Scene, scope: Scope, now: int, *, but: str = "") -> Sums:
    """Sum what the running loops of a payer, `but` one, will have used at least: so far, or what is usual."""
    total, means = Sums(), dict[tuple[str, str], Sums]()
    for loop in _paid_by(scene, scope):
        if loop.id == but:
            continue
        kind = (loop.type, loop.project)
        if kind not in means:
            means[kind] = usual(scene, scope, loop, now) or Sums()
        mean, parts = means[kind], _parts_to_come(scene, loop)
        total = total.plus(
            Sums(
                0,
                max(scene.cost_so_far(loop, now), parts * mean.cost),
                max(scene.usd_so_far(loop, now), parts * mean.usd),
                max(scene.live_usage(loop, now).ms, parts * mean.ms),
            )
        )
    return total


def usual(scene: Scene, scope: Scope, loop: Loop, now: int) -> Sums | None:
    """Return what an attempt like a loop's costs on average; None where nothing is known, which is never zero.

    One of a type of which nobody knows it is taken to cost what the dearest type does.
    """
    dearest = (scene.ledger.dearest_mean(each, now) for each in _from_inside(scope, loop))
    return _of_type(scene, scope, loop, now) or next(filter(None, dearest), None)


def _of_type(scene: Scene, scope: Scope, loop: Loop, now: int) -> Sums | None:
    """Return what an attempt of a loop's type costs on average, as its payer knows it, else as the wider ones do.

    What has used nothing, as one that a limit met at its first word, has told nobody anything.
    """
    known = (scene.ledger.mean_of_type(each, loop.type, now) for each in _from_inside(scope, loop))
    return next(filter(None, known), None)


def _from_inside(scope: Scope, loop: Loop) -> tuple[Scope, ...]:
    """List a payer, and the wider ones that pay for the same loop."""
    _, project, workspace = scopes_of(loop)
    return scope, project, workspace


def _parts_to_come(scene: Scene, loop: Loop) -> int:
    """Count the charges that a loop's attempt will still make: judges on a lane of their own are charged apart."""
    judges = scene.judged_as(loop).judge_lanes
    return 2 if judges and loop.lane not in judges else 1


def own_budget_reached(scene: Scene, loop: Loop, now: int) -> str | None:
    """Say which part of its own budget a loop has reached; that parks it."""
    live = scene.live_usage(loop, now) if loop.lease is not None else None
    cost = loop.spent.cost - loop.past.paid[0] + (scene.cost_so_far(loop, now) if live else 0)
    usd = loop.spent.usd - loop.past.paid[1] + (scene.usd_so_far(loop, now) if live else 0)
    ms = loop.spent.ms - loop.past.paid[2] + (live.ms if live else 0)
    own = own_budget(scene, loop)
    for amount, limit, unit in ((cost, own.tokens, "tokens"), (usd, own.micro_usd, "usd"), (ms, own.secs, "secs")):
        if limit is not None and amount >= limit * _SCALE[unit]:
            used, whole = _in_words(unit, amount), _in_words(unit, limit * _SCALE[unit])
            place = f"types.{loop.type}.budget" if loop.budget.unlimited else "`budget` in its entry"
            return f"its own budget of {whole} is used up: it has used {used}; raise {place}"
    return None


def _in_words(unit: str, amount: int) -> str:
    """Write an amount of what budgets count."""
    if unit == "usd":
        return f"${amount / 1_000_000:.2f}"
    return f"{amount // 1000:,} {unit}"


def own_budget(scene: Scene, loop: Loop) -> Budget:
    """Return what a loop itself may use: the smaller of its entry's and its type's budget; a plan's is its tree's."""
    typed = scene.policy.type_of(loop.type).budget
    if loop.parent is None or loop.budget.unlimited:
        return typed
    return Budget(*(_least(getattr(loop.budget, key), getattr(typed, key)) for key in ("tokens", "micro_usd", "secs")))


def _least(*numbers: int | None) -> int | None:
    """Return the smallest of the numbers that there are."""
    return min((each for each in numbers if each is not None), default=None)


def own_budget_ends(scene: Scene, loop: Loop) -> int | None:
    """Say when a running loop will have used up the time it has of its own, None where it has as much as it likes.

    Tokens and money are only known as far as its stream tells, so the clock ends nothing on their account.
    """
    secs, started = own_budget(scene, loop).secs, loop.lease.started_at if loop.lease is not None else None
    if secs is None or started is None or loop.live.ms:
        return None
    return started + max(0, secs * 1000 - loop.spent.ms + loop.past.paid[2])


def tokens_left(scene: Scene, loop: Loop, now: int) -> int | None:
    """Say how many tokens an attempt of a loop may use before a budget is reached, None where none limits them."""
    left = []
    own = own_budget(scene, loop).tokens
    if own is not None:
        left.append(own * 1000 - loop.spent.cost + loop.past.paid[0])
    for scope, _, budget in budgets_of(scene, loop):
        if budget.tokens is not None:
            used = scene.ledger.used(scope, now).plus(reserved(scene, scope, now, but=loop.id))
            left.append(budget.tokens * 1000 - used.cost)
    return max(0, min(left)) // 1000 if left else None


def api_lane(scene: Scene, loop: Loop, now: int) -> bool:
    """Say whether a loop's next attempt counts as an API call."""
    return (pick_lane(scene, loop, now) or crew_of(scene, loop, now).lanes[0]) != DEFAULT_LANE
