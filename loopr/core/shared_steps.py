"""What each event that is about more than one loop changes in the state beside the loops.

Knows `Shared` and the events of `workspace_events.py`; called by `forest.py` alone.
"""

from __future__ import annotations

from loopr.core import plan_events as p
from loopr.core import workspace_events as w
from loopr.core.events import Event
from loopr.core.model import Hold
from loopr.core.offers import Kept
from loopr.core.policy import decode_policy
from loopr.core.redo import Round
from loopr.core.redo_events import RoundBegan
from loopr.core.shared import Accepted, Bound, Convoy, Host, Moved, Shared, Suspects, moved_key
from loopr.core.tips import Moving, Tip

RAMP_END = 1 << 16
"""A ramp that has grown this wide is no ramp any more."""


def apply_shared(shared: Shared, event: Event, at: int) -> None:
    """Take an event that is about more than one loop."""
    match event:
        case w.PolicyLoaded() | w.SettingsAccepted() | w.SettingsHeld() | w.SettingsPutBack():
            _apply_settings(shared, event)
        case w.PlanBound():
            bound = Bound(event.source, event.digest, event.base_branch, event.base_commit, event.repo)
            shared.put("plan", event.plan, bound)
        case w.ConvoyFormed():
            known = shared.convoys.get(event.name, Convoy())
            members = dict.fromkeys((*known.members, *event.members))
            shared.put("convoy", event.name, Convoy(tuple(members)))
        case w.ConvoyLanded():
            shared.put("convoy", event.name, shared.convoys[event.name]._replace(landed_at=at))
        case w.LoopsDispatched():
            shared.queue_up((*event.loops, *shared.dispatch))
        case w.ProblemSeen() | w.ProblemGone() | w.ListenerHeard() | w.ListenerLeft() | w.FileKept() | RoundBegan():
            _apply_word(shared, event)
        case w.SharedGrew() | w.SharedHarmed() | w.SuspectsCleared() | w.BranchMoved() | w.PlanCameHome():
            _apply_look(shared, event)
        case p.TipForeign() | p.TipsTaken():
            pass  # told, and nothing else
        case w.ScopeHeld() | w.ScopeLifted():
            _apply_hold(shared, event, at)
        case w.LaneRested() | w.LaneWorked() | w.LaneMeasured() | w.LaneParked() | w.LaneReset():
            _apply_lane(shared, event, at)
        case p.PlanMoving() | p.PlanMoved() | p.PlanStayed():
            _apply_tip(shared, event)
        case _:
            _apply_engine(shared, event, at)


def _apply_tip(shared: Shared, event: p.PlanMoving | p.PlanMoved | p.PlanStayed) -> None:
    """Note where the branch of a plan stands, and where it is about to."""
    at, moving = shared.tip(event.plan).at, None
    if isinstance(event, p.PlanMoving):
        moving = Moving(event.old, event.new, event.why, event.loop, event.loop_tip, event.base, event.others)
    elif isinstance(event, p.PlanMoved):
        at = event.new
    shared.put("tip", event.plan, Tip(at, moving))


_Word = w.ProblemSeen | w.ProblemGone | w.ListenerHeard | w.ListenerLeft | w.FileKept | RoundBegan


def _apply_word(shared: Shared, event: _Word) -> None:
    """Note what a person is to be told or has begun, how far listeners have heard, and which files are no person's."""
    match event:
        case RoundBegan():
            shared.put("round", event.plan, Round(shared.round(event.plan).number + 1))
        case w.FileKept() if event.digest:
            shared.put("kept", event.place, Kept(event.digest, event.during))
        case w.FileKept():
            shared.drop("kept", event.place)
        case w.ProblemSeen():
            shared.put("problem", event.place, event.text)
        case w.ProblemGone():
            shared.drop("problem", event.place)
        case w.ListenerHeard():
            shared.put("heard", event.listener, event.upto)
        case w.ListenerLeft():
            shared.drop("heard", event.listener)


def _apply_look(shared: Shared, event: Event) -> None:
    """Note what was changed of what all worktrees share, and who is kept from being at work with whom."""
    match event:
        case w.SharedHarmed():
            shared.has_looked(event.number)
            if len(event.during) > 1:
                others = (each for each in shared.suspects if not set(each.loops).issubset(event.during))
                shared.suspect((*others, Suspects(event.number, event.during, shared.grants, event.names)))
        case w.SuspectsCleared():
            shared.suspect(tuple(each for each in shared.suspects if event.loop not in each.loops))
        case w.BranchMoved():
            shared.has_looked(event.number)
            moved = Moved(event.old, event.new, event.during, event.explained, event.undo)
            shared.put("moved", moved_key(event.repo, event.branch), moved)
        case w.PlanCameHome() if event.plan in shared.plans:
            key = moved_key(shared.plans[event.plan].repo, event.branch)
            if key in shared.moved:
                shared.drop("moved", key)


def _forget_moves(shared: Shared) -> None:
    """Forget the moves that a checkout explains, and those of branches that no plan comes home to."""
    bases = {moved_key(each.repo, each.base_branch) for each in shared.plans.values()}
    for key in [key for key, each in shared.moved.items() if each.explained or key not in bases]:
        shared.drop("moved", key)


_SettingsEvent = w.PolicyLoaded | w.SettingsAccepted | w.SettingsHeld | w.SettingsPutBack


def _apply_settings(shared: Shared, event: _SettingsEvent) -> None:
    """Note which settings are in force, and what is held back; others in force leave nothing held."""
    known = shared.accepted
    match event:
        case w.PolicyLoaded():
            shared.policy = decode_policy(event.policy)
            shared.policy_known = True
            shared.seal = event.seal
            shared.dirty |= {"policy", "seal"}
        case w.SettingsAccepted():
            same = event.seal == known.seal
            shared.accepted = known._replace(live=event.live) if same else Accepted(event.seal, event.live)
        case w.SettingsHeld():
            shared.accepted = known._replace(held=event.seal, keys=event.keys)
        case w.SettingsPutBack():
            shared.accepted = known._replace(held="", keys=())
    if not isinstance(event, w.PolicyLoaded):
        shared.dirty.add("accepted")


def _apply_hold(shared: Shared, event: w.ScopeHeld | w.ScopeLifted, at: int) -> None:
    """Hold or lift a project or the workspace; a second hold keeps the first."""
    if isinstance(event, w.ScopeHeld):
        shared.put("hold", event.scope, shared.holds.get(event.scope) or Hold(event.by, at, event.reason))
    else:
        shared.drop("hold", event.scope)
        shared.put("lifted", event.scope, at)


_LaneEvent = w.LaneRested | w.LaneWorked | w.LaneMeasured | w.LaneParked | w.LaneReset


def _apply_lane(shared: Shared, event: _LaneEvent, at: int) -> None:
    """Let a lane rest, work, be parked or begin again."""
    lane = shared.lane(event.lane)
    match event:
        case w.LaneRested():
            begins = lane.rest_until <= at or event.hits > lane.hits
            lane = lane._replace(
                hits=event.hits,
                rest_from=at if begins else lane.rest_from,
                rest_until=event.until,
                rest_grant=event.grant,
                ramp=1 if shared.policy.ramp else None,
                reason=event.reason,
            )
        case w.LaneWorked():
            ramp = event.ramp if event.ramp and event.ramp < RAMP_END else None
            lane = lane._replace(hits=0, ramp=ramp, worked_for=event.loop if lane.hits else lane.worked_for)
        case w.LaneMeasured():
            lane = lane._replace(level=event.level, level_until=event.until)
        case w.LaneParked():
            lane = lane._replace(parked=event.reason)
        case w.LaneReset():
            rest_until, level_until = min(lane.rest_until, at), min(lane.level_until, at)
            lane = lane._replace(parked="", reason="", level=0, rest_until=rest_until, level_until=level_until)
    shared.put("lane", event.lane, lane)


def _apply_engine(shared: Shared, event: Event, at: int) -> None:
    """Note what the engine does, and its machine."""
    match event:
        case w.EngineStarted():
            serving = bool(shared.accepted.seal)
            shared.engine = shared.engine._replace(started_at=at, draining=False, serving=serving)
            _forget_moves(shared)
        case w.EngineDraining():
            shared.engine = shared.engine._replace(draining=True)
        case w.EngineEnded():
            shared.engine = shared.engine._replace(draining=False, serving=False)
            if event.looked >= 0:
                shared.files_looked = event.looked
                shared.dirty.add("files_looked")
        case w.HostChanged():
            shared.host = Host(event.reason, event.until, event.refusals)
            shared.dirty.add("host")
        case w.HostWorked():
            shared.host = shared.host._replace(refusals=0)
            shared.dirty.add("host")
        case w.RoundCut():
            shared.engine = shared.engine._replace(cut_short=True, last_grant_at=at)
        case w.ClockMoved():
            _move_clock(shared, event.by_ms)
    shared.dirty.add("engine")


def _move_clock(shared: Shared, by_ms: int) -> None:
    """Move every stored instant."""
    for name, lane in list(shared.lanes.items()):
        instants = {key: getattr(lane, key) for key in ("rest_from", "rest_until", "level_until")}
        shared.put("lane", name, lane._replace(**{key: at + by_ms for key, at in instants.items()}))
    for key, denied in list(shared.denied.items()):
        shared.put("denied", key, denied._replace(at=denied.at + by_ms))
    for scope, hold in list(shared.holds.items()):
        shared.put("hold", scope, hold._replace(at=hold.at + by_ms))
    for name, convoy in list(shared.convoys.items()):
        if convoy.landed_at is not None:
            shared.put("convoy", name, convoy._replace(landed_at=convoy.landed_at + by_ms))
    for plan, known in list(shared.rounds.items()):
        if known.used_at:
            shared.put("round", plan, known._replace(used_at=known.used_at + by_ms))
    for kind, marks in (("lifted", shared.lifted), ("completed", shared.completed)):
        for key, at in list(marks.items()):
            shared.put(kind, key, at + by_ms)
    engine = shared.engine
    shared.engine = engine._replace(started_at=engine.started_at + by_ms, last_grant_at=engine.last_grant_at + by_ms)
    shared.host = shared.host._replace(until=shared.host.until + by_ms if shared.host.until else 0)
    shared.dirty.add("host")
