"""What all loops of a workspace share: policy, lanes, holds, the engine, the host, plans, convoys, problems.

Each is a small frozen value under a key, so that it can be a row of the journal. Knows no loop; `apply` is called by
`forest.py` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loopr.core import workspace_events as w
from loopr.core.events import Event
from loopr.core.model import Bound, Convoy, Engine, Hold, Lane
from loopr.core.policy import Policy, decode_policy, encode_policy

WORKSPACE = "workspace"
RAMP_END = 1 << 16
"""A ramp that has grown this wide is no ramp any more."""


def project_scope(name: str) -> str:
    """Return the scope under which a project is held."""
    return f"project:{name}"


class Shared:
    """The state beside the loops."""

    def __init__(self, policy: Policy | None = None) -> None:
        """Begin with the built-in policy and nothing else."""
        self.policy = policy or Policy()
        self.policy_known = False
        self.lanes: dict[str, Lane] = {}
        self.holds: dict[str, Hold] = {}
        self.lifted: dict[str, int] = {}
        self.completed: dict[str, int] = {}
        self.convoys: dict[str, Convoy] = {}
        self.plans: dict[str, Bound] = {}
        self.problems: dict[str, str] = {}
        self.engine = Engine()
        self.host: tuple[str, int] = ("", 0)
        self.dispatch: tuple[str, ...] = ()
        self.grants = 0
        self.dirty: set[str] = set()

    def lane(self, name: str) -> Lane:
        """Return a lane's state; one that was never hit works."""
        return self.lanes.get(name) or Lane()

    def paced_until(self) -> int:
        """Say from when the next round may begin, after one that was cut short."""
        if not self.engine.cut_short:
            return 0
        return self.engine.last_grant_at + max(self.policy.spawn_delay_ms, self.policy.poll_interval_ms)

    def apply(self, event: Event, at: int) -> None:
        """Take an event that is about more than one loop."""
        match event:
            case w.PolicyLoaded():
                self.policy = decode_policy(event.policy)
                self.policy_known = True
                self.dirty.add("policy")
            case w.PlanBound():
                bound = Bound(event.source, event.digest, event.base_branch, event.base_commit)
                self._set("plan", self.plans, event.plan, bound)
            case w.HostChanged():
                self.host = (event.reason, event.until)
                self.dirty.add("host")
            case w.ConvoyFormed():
                known = self.convoys.get(event.name, Convoy())
                members = dict.fromkeys((*known.members, *event.members))
                self._set("convoy", self.convoys, event.name, Convoy(tuple(members)))
            case w.ConvoyLanded():
                self._set("convoy", self.convoys, event.name, self.convoys[event.name]._replace(landed_at=at))
            case w.LoopsDispatched():
                self.queue_up((*event.loops, *self.dispatch))
            case w.ProblemSeen():
                self._set("problem", self.problems, event.place, event.text)
            case w.ProblemGone():
                self._drop("problem", self.problems, event.place)
            case w.ScopeHeld() | w.ScopeLifted():
                self._apply_hold(event, at)
            case w.LaneRested() | w.LaneWorked() | w.LaneParked() | w.LaneReset():
                self._apply_lane(event, at)
            case _:
                self._apply_engine(event, at)

    def _apply_hold(self, event: w.ScopeHeld | w.ScopeLifted, at: int) -> None:
        """Hold or lift a project or the workspace; a second hold keeps the first."""
        if isinstance(event, w.ScopeHeld):
            self._set("hold", self.holds, event.scope, self.holds.get(event.scope) or Hold(event.by, at, event.reason))
        else:
            self._drop("hold", self.holds, event.scope)
            self._set("lifted", self.lifted, event.scope, at)

    def _apply_lane(self, event: w.LaneRested | w.LaneWorked | w.LaneParked | w.LaneReset, at: int) -> None:
        """Let a lane rest, work, be parked or begin again."""
        lane = self.lane(event.lane)
        match event:
            case w.LaneRested():
                begins = lane.rest_until <= at or event.hits > lane.hits
                lane = lane._replace(
                    hits=event.hits,
                    rest_from=at if begins else lane.rest_from,
                    rest_until=event.until,
                    rest_grant=event.grant,
                    ramp=1 if self.policy.ramp else None,
                    reason=event.reason,
                )
            case w.LaneWorked():
                lane = lane._replace(hits=0, ramp=event.ramp if event.ramp and event.ramp < RAMP_END else None)
            case w.LaneParked():
                lane = lane._replace(parked=event.reason)
            case w.LaneReset():
                lane = lane._replace(parked="", rest_until=min(lane.rest_until, at), reason="")
        self._set("lane", self.lanes, event.lane, lane)

    def _apply_engine(self, event: Event, at: int) -> None:
        """Note what the engine does."""
        match event:
            case w.EngineStarted():
                self.engine = Engine(started_at=at)
            case w.EngineDraining():
                self.engine = self.engine._replace(draining=True)
            case w.EngineEnded():
                self.engine = self.engine._replace(draining=False, cut_short=False)
            case w.RoundCut():
                self.engine = self.engine._replace(cut_short=True, last_grant_at=at)
            case w.ClockMoved():
                self._move_clock(event.by_ms)
        self.dirty.add("engine")

    def granted(self, loop_id: str, grant: int, at: int) -> None:
        """Note a grant: the count goes on, and a loop that was dispatched is no longer first."""
        self.grants = grant
        self.dirty.add("grants")
        if self.engine.cut_short:
            self.engine = self.engine._replace(cut_short=False)
            self.dirty.add("engine")
        if loop_id in self.dispatch:
            self.queue_up(tuple(each for each in self.dispatch if each != loop_id))

    def queue_up(self, loops: tuple[str, ...]) -> None:
        """Set who goes ahead of the queue, each once."""
        self.dispatch = tuple(dict.fromkeys(loops))
        self.dirty.add("dispatch")

    def finished(self, project: str, at: int) -> None:
        """Note when a project last had a completion."""
        self._set("completed", self.completed, project, at)

    def _set(self, kind: str, into: dict[str, Any], key: str, value: Any) -> None:
        """Set a value and remember that its row must follow."""
        into[key] = value
        self.dirty.add(f"{kind}/{key}")

    def _drop(self, kind: str, into: dict[str, Any], key: str) -> None:
        """Drop a value and its row."""
        into.pop(key, None)
        self.dirty.add(f"{kind}/{key}")

    def _move_clock(self, by_ms: int) -> None:
        """Move every stored instant."""
        for name, lane in list(self.lanes.items()):
            moved = lane._replace(rest_from=lane.rest_from + by_ms, rest_until=lane.rest_until + by_ms)
            self._set("lane", self.lanes, name, moved)
        for scope, hold in list(self.holds.items()):
            self._set("hold", self.holds, scope, hold._replace(at=hold.at + by_ms))
        for name, convoy in list(self.convoys.items()):
            if convoy.landed_at is not None:
                self._set("convoy", self.convoys, name, convoy._replace(landed_at=convoy.landed_at + by_ms))
        for kind, marks in (("lifted", self.lifted), ("completed", self.completed)):
            for key, at in list(marks.items()):
                self._set(kind, marks, key, at + by_ms)
        engine = self.engine
        self.engine = engine._replace(started_at=engine.started_at + by_ms, last_grant_at=engine.last_grant_at + by_ms)
        self.host = (self.host[0], self.host[1] + by_ms if self.host[1] else 0)
        self.dirty.add("host")

    # --- rows ------------------------------------------------------------------------------------------------------

    def row(self, key: str) -> Any:
        """Return the plain value of a row, None if it is no more."""
        kind, _, name = key.partition("/")
        if kind == "policy":
            return encode_policy(self.policy)
        if not name:
            return getattr(self, kind)
        return self._tables()[kind].get(name)

    def row_keys(self) -> list[str]:
        """List the keys of all rows."""
        named = [f"{kind}/{name}" for kind, table in self._tables().items() for name in table]
        return sorted(["policy", "engine", "host", "dispatch", "grants", *named])

    def read(self, rows: Mapping[str, Any]) -> None:
        """Take the state from rows."""
        for key, value in rows.items():
            kind, _, name = key.partition("/")
            match kind:
                case "policy":
                    self.policy = decode_policy(value)
                    self.policy_known = True
                case "engine":
                    self.engine = Engine(*value)
                case "host":
                    self.host = (value[0], value[1])
                case "dispatch":
                    self.dispatch = tuple(value)
                case "grants":
                    self.grants = value
                case _ if kind in _READ:
                    self._tables()[kind][name] = _READ[kind](value)

    def _tables(self) -> dict[str, dict[str, Any]]:
        """Map the kinds of rows with a name to where they are kept."""
        return {
            "lane": self.lanes,
            "hold": self.holds,
            "lifted": self.lifted,
            "completed": self.completed,
            "convoy": self.convoys,
            "plan": self.plans,
            "problem": self.problems,
        }


_READ: Mapping[str, Any] = {
    "lane": lambda value: Lane(*value),
    "hold": lambda value: Hold(*value),
    "lifted": int,
    "completed": int,
    "convoy": lambda value: Convoy(tuple(value[0]), value[1]),
    "plan": lambda value: Bound(*value),
    "problem": str,
}
