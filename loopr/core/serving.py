"""What it means that the engine, its machine or its settings report something: the part of `intake.py` without loops.

Forgives as that does: what is known already leads to nothing. Knows no file and no attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loopr.core import observations as o
from loopr.core import workspace_events as w
from loopr.core.accepting import settings_seen
from loopr.core.events import Event
from loopr.core.left_out import LEFT_PLACE
from loopr.core.limits import LONGEST_WINDOW_MS, UNKNOWN_WINDOW_MS
from loopr.core.offers import MOST_NAMED
from loopr.core.policy import encode_policy
from loopr.core.redoing import begin_daily
from loopr.core.scene import Scene
from loopr.core.taking import clear_refusal


def _policy_seen(scene: Scene, seen: o.PolicySeen, now: int) -> Iterator[Event]:
    """The policy is journalled whole, when it changes; lanes that were parked over settings may be mended now."""
    if seen.of is not None and seen.of != scene.shared.accepted[:2]:
        return  # others are in force by now
    changed = seen.policy != scene.policy or not scene.shared.policy_known
    before = scene.shared.seal
    if changed or seen.seal != scene.shared.seal:
        yield w.PolicyLoaded(encode_policy(seen.policy), seen.seal)
    if changed or (before and seen.seal != before):
        for name in [name for name, lane in scene.shared.lanes.items() if lane.parked]:
            yield w.LaneReset(name, "changed settings")


def _lane_level(scene: Scene, seen: o.LaneLevel, now: int) -> Iterator[Event]:
    """A lane's window is so full: told again only where that makes a difference, above the level that slows it down."""
    lane, warning = scene.shared.lane(seen.lane), scene.policy.lane(seen.lane).slow_above
    known = lane.level if now < lane.level_until else 0
    if warning is None or max(known, seen.level) < warning:
        return
    told = seen.resets_at if seen.resets_at is not None and now < seen.resets_at <= now + LONGEST_WINDOW_MS else None
    until = told or now + UNKNOWN_WINDOW_MS
    if seen.level != known or (told is not None and until != lane.level_until):
        yield w.LaneMeasured(seen.lane, seen.level, until)


def _host_seen(scene: Scene, seen: o.HostSeen, now: int) -> Iterator[Event]:
    """The machine changed its mind."""
    if scene.shared.host != (seen.reason, seen.until, seen.refusals):
        yield w.HostChanged(seen.reason, seen.until, seen.refusals)


def _engine_began(scene: Scene, seen: o.EngineBegan, now: int) -> Iterator[Event]:
    """An engine has begun."""
    yield w.EngineStarted(seen.pid, seen.host)


def _day_passed(scene: Scene, seen: o.DayPassed, now: int) -> Iterator[Event]:
    """What a rule has had done again may be done again once more."""
    yield from begin_daily(scene, now)


def _engine_drains(scene: Scene, seen: o.EngineDrains, now: int) -> Iterator[Event]:
    """Nothing more is started."""
    if not scene.shared.engine.draining:
        yield w.EngineDraining(seen.by)


def _engine_left(scene: Scene, seen: o.EngineLeft, now: int) -> Iterator[Event]:
    """The engine has ended in good order."""
    yield w.EngineEnded(scene.shared.grants if seen.looked and not scene.occupancy.total else -1)


def _file_kept(scene: Scene, seen: o.FileKept, now: int) -> Iterator[Event]:
    """A file is known to be no person's."""
    known = scene.shared.kept.get(seen.place)
    if (known.digest if known is not None else "") != seen.digest:
        yield w.FileKept(seen.place, seen.digest, seen.during[:MOST_NAMED])


def _clock_behind(scene: Scene, seen: o.ClockBehind, now: int) -> Iterator[Event]:
    """Every stored instant moves with the clock."""
    yield w.ClockMoved(-seen.by_ms)


def _came_home(scene: Scene, seen: o.CameHome, now: int) -> Iterator[Event]:
    """A plan is home, or what of it has landed."""
    yield w.PlanCameHome(seen.plan, seen.branch, seen.commit, seen.partial)
    if seen.partial:
        return
    yield from clear_refusal(scene, seen.plan)  # whether its branch lacks work of the base is of no interest now
    for place in sorted(scene.shared.problems):
        if f"{place}/".startswith(f"{LEFT_PLACE}{seen.plan}/"):
            yield w.ProblemGone(place)


def _growth_seen(scene: Scene, seen: o.GrowthSeen, now: int) -> Iterator[Event]:
    """What is shared is not as it was, and nobody has to look at once."""
    yield w.SharedGrew(seen.during, seen.names)


def _harm_seen(scene: Scene, seen: o.HarmSeen, now: int) -> Iterator[Event]:
    """Something was harmed; told once, though an engine that ended meanwhile may tell it again."""
    if seen.number > scene.shared.looked:
        yield w.SharedHarmed(seen.number, seen.names, seen.during)


def _branch_move_seen(scene: Scene, seen: o.BranchMoveSeen, now: int) -> Iterator[Event]:
    """A branch of a person's has moved, and stays."""
    if seen.number > scene.shared.looked:
        where = (seen.repo, seen.branch, seen.old, seen.new)
        yield w.BranchMoved(seen.number, *where, seen.during, seen.explained, seen.undo)


# --- who is told ----------------------------------------------------------------------------------------------------


def _listeners_set(scene: Scene, seen: o.ListenersSet, now: int) -> Iterator[Event]:
    """Whoever is set for the first time begins here, and whoever is set no more is forgotten."""
    heard = scene.shared.heard
    for name in sorted(set(seen.listeners) - heard.keys()):
        yield w.ListenerHeard(name, seen.upto)
    for name in sorted(heard.keys() - set(seen.listeners)):
        yield w.ListenerLeft(name)


def _listener_told(scene: Scene, seen: o.ListenerTold, now: int) -> Iterator[Event]:
    """A listener has heard more; one that is set no more is not asked."""
    if scene.shared.heard.get(seen.listener, seen.upto) < seen.upto:
        yield w.ListenerHeard(seen.listener, seen.upto)


SERVING: Mapping[type[o.Observation], Callable[[Scene, Any, int], Iterator[Event]]] = {
    o.PolicySeen: _policy_seen,
    o.SettingsSeen: settings_seen,
    o.LaneLevel: _lane_level,
    o.HostSeen: _host_seen,
    o.EngineBegan: _engine_began,
    o.EngineDrains: _engine_drains,
    o.DayPassed: _day_passed,
    o.EngineLeft: _engine_left,
    o.FileKept: _file_kept,
    o.ClockBehind: _clock_behind,
    o.CameHome: _came_home,
    o.GrowthSeen: _growth_seen,
    o.HarmSeen: _harm_seen,
    o.BranchMoveSeen: _branch_move_seen,
    o.ListenersSet: _listeners_set,
    o.ListenerTold: _listener_told,
}
"""What each of these observations means."""
