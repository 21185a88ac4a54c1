"""The forest: all loops with every index a decision needs, and `apply`, the only thing that changes them.

Knows how an event changes the state and which rows of the journal follow from that. Must never decide what happens next
(`choose.py`, `intake.py`), nor read a clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from loopr.core import events as e
from loopr.core import workspace_events as w
from loopr.core.attempt import clocked
from loopr.core.gates import may_settle, own_gates_open, ready_since, scope_is_held
from loopr.core.grouping import group_key
from loopr.core.hot import concerned, has_turn
from loopr.core.ledger import Charge, charge_of, plan_key
from loopr.core.lifecycle import evolve
from loopr.core.model import Loop, Status, encode_loop
from loopr.core.policy import Policy
from loopr.core.ranking import Rank, Ready
from loopr.core.redo_events import RedoAsked
from loopr.core.scene import Scene
from loopr.core.scoring import fixed_score
from loopr.core.shared import Denied
from loopr.core.shared_steps import apply_shared
from loopr.core.staleness import comes_first
from loopr.core.turns import Turns


class Rows(NamedTuple):
    """What a journal must write beside the events: rows by table and key (None deletes), and charges.

    A charge comes with the place, among the events applied since, of the one that ended its attempt. All charges that
    are kept already move with the clock by `moved_ms`.
    """

    changes: list[tuple[str, str, str | None]]
    charges: list[tuple[int, Charge]]
    moved_ms: int = 0


class Forest(Scene):
    """The state of a workspace, with the ready loops in order."""

    def __init__(self, policy: Policy | None = None) -> None:
        """Begin with an empty workspace."""
        super().__init__(policy)
        self.ready = Ready()
        self.settling: dict[str, None] = {}
        self._turns = Turns()
        self._dirty: dict[str, None] = {}
        self._entries: dict[str, str] = {}
        self._charges: list[tuple[int, Charge]] = []
        self._applied = 0
        self._moved_ms = 0

    # --- applying events -------------------------------------------------------------------------------------------

    def apply(self, event: e.Event, at: int) -> None:
        """Take an event; one that the lifecycle does not allow raises and changes nothing."""
        evolved = evolve(self.loops.get(event.loop), event, at) if isinstance(event, e.LoopEvent) else None
        self.at = max(self.at, at)
        self._applied += 1
        if isinstance(event, e.LoopEvent) and evolved is not None:
            self._apply_to_loop(event, evolved, at)
            return
        apply_shared(self.shared, event, at)
        if isinstance(event, w.PolicyLoaded):
            self.ledger.window_ms = self.policy.window_ms
            self.reindex()
        elif isinstance(event, w.SharedHarmed | w.SuspectsCleared):
            members = event.during if isinstance(event, w.SharedHarmed) else event.loops
            for loop_id in members:
                if loop_id in self.loops:
                    self._reconsider(loop_id)
        elif isinstance(event, w.ClockMoved):
            self.at = at  # the one event after which instants are smaller; backoffs are compared with it
            self._move_clock(event.by_ms)

    def _apply_to_loop(self, event: e.LoopEvent, evolved: Loop, at: int) -> None:
        """Take what an event makes of one loop, and bring along whoever waits for it."""
        old = self.loops.get(event.loop)
        new = self._book(old, evolved, at) if old is not None else evolved
        chain = [new.id, *(above.id for above in self._above(new))]
        was_done = [self.tree.done_at(each) if self.tree.done(each) else None for each in chain]
        self._put(old, new)
        self._note(event, old, new, at)
        self._reconsider_around(event, old, new)
        for each in self._others_in_line(old, new):
            self._reconsider(each)
        for each, before in zip(chain, was_done, strict=True):
            if before != (self.tree.done_at(each) if self.tree.done(each) else None):
                for needer in list(self.tree.needers.get(each, ())):
                    self._reconsider(needer)
        for each in self._turns.change(old, new, getattr(event, "landed", "")):
            self._reconsider(each)

    def _others_in_line(self, old: Loop | None, new: Loop) -> list[str]:
        """List the loops that a turn to mend a conflict holds back or sets free, where one begins or ends."""
        if old is None or has_turn(old) == has_turn(new):
            return []
        return concerned(self, old if has_turn(old) else new)

    def _above(self, loop: Loop) -> Iterable[Loop]:
        """List the ancestors of a loop that may not be in the tree yet."""
        if loop.parent is None:
            return ()
        parent = self.loops[loop.parent]
        return (parent, *self.tree.ancestors(parent))

    def _book(self, old: Loop, new: Loop, at: int) -> Loop:
        """Charge an attempt that has just ended to whoever pays, and to the loop: its lease and clock are gone."""
        owner = old.lease or old.ending
        kept = new.lease or new.ending
        if owner is None or owner.started_at is None:
            return new
        if kept is not None and kept.started_at is not None and kept.lane == owner.lane:
            return new
        usual = self.ledger.price(owner.lane, at)
        charge = charge_of(self.policy, old, clocked(old, at), owner.lane, at, usual=usual)
        self._charges.append((self._applied - 1, charge))
        self.ledger.add(charge)
        spent = old.spent._replace(
            tokens=old.spent.tokens + (charge.tokens or 0),
            cost=old.spent.cost + charge.counted,
            usd=old.spent.usd + (charge.micro_usd or 0),
            ms=old.spent.ms + charge.ms,
            estimated=old.spent.estimated or charge.estimated,
        )
        return new._replace(spent=spent)

    def _put(self, old: Loop | None, new: Loop) -> None:
        """Replace a loop in the tree and in the count of what is occupied."""
        if old is not None and (old.occupying or old.holds_line):
            self.occupancy.count(old, -1)
        if new.occupying or new.holds_line:
            self.occupancy.count(new, 1)
        self.tree.put(new)
        if new.leased or new.id in self.housed:
            self.house(new)
        self._dirty[new.id] = None

    def _note(self, event: e.LoopEvent, old: Loop | None, new: Loop, at: int) -> None:
        """Keep what an event means beyond its loop: its entry's text, the count of grants, a project's completions."""
        entry = getattr(event, "entry", "")
        if entry:
            self._entries[new.id] = entry
        if isinstance(event, e.LeaseGranted):
            self.shared.granted(event.grant, pulled=event.expires_at is not None)
        if isinstance(event, w.SteeringRefused):
            denied = Denied(event.lease, event.about, event.tries, at)
            self.shared.put("denied", f"{event.loop} {event.wish}", denied)
        if isinstance(event, RedoAsked):
            self.shared.asked_again(new.plan, at)
        if not new.waits:
            self.shared.left_queue(new.id)
        if new.status is Status.COMPLETE and old is not None and old.status is Status.LANDING:
            self.shared.finished(new.project, at)

    def _reconsider_around(self, event: e.LoopEvent, old: Loop | None, new: Loop) -> None:
        """Look again at the loop itself and at those whose own gates an event about it can open or close."""
        self._reconsider(new.id)
        if isinstance(event, e.Held | e.Lifted) or (old is not None and _moves_below(old, new)):
            for below in self.tree.walk(new.id) if new.status is not Status.INVALIDATED else ():
                self._reconsider(below.id)
        elif old is not None and Status.COMPLETE in (old.status, new.status) and _differ(old, new):
            for child in self.tree.children(new.id):
                self._reconsider(child)

    # --- who is ready ----------------------------------------------------------------------------------------------

    def _reconsider(self, loop_id: str) -> None:
        """Put a loop where its own gates say: among the ready, the backing off, the settling, or nowhere."""
        loop = self.loops[loop_id]
        if may_settle(self, loop):
            self.settling[loop_id] = None
        else:
            self.settling.pop(loop_id, None)
        first = self._comes_first(loop) if loop.past.ask is not None else None
        if first is not None or not own_gates_open(self, loop):
            self.ready.leave(loop_id)
        elif loop.not_before > self.at:
            self.ready.wait(loop)
        else:
            self._enter(loop)

    def _comes_first(self, loop: Loop) -> str | None:
        """Name and remember whom a loop that is to be done again waits behind; nobody where it waits for no turn."""
        first = self._turns.first(loop.id)
        if not loop.waits:
            first = None
        elif first not in self.tree.redoing:
            first = comes_first(self.tree, loop)
        self._turns.wait(loop.id, first)
        return first

    def _enter(self, loop: Loop) -> None:
        """Let a loop whose own gates are open stand in its group."""
        priority = self.priority_of(loop)
        rank = Rank(fixed_score(self.policy, loop, priority), priority, ready_since(self, loop))
        self.ready.enter(loop, group_key(self, loop), self.tree.order(loop), rank)
        if loop.past.ask is not None:
            self._turns.enter(loop.id)

    def advance(self, now: int) -> None:
        """Let every loop whose backoff has ended by now stand in its group."""
        self.at = max(self.at, now)
        for loop_id in self._turns.doubted():
            self._reconsider(loop_id)
        for loop_id in self.ready.backed_off(now):
            self._enter(self.loops[loop_id])

    def settled_now(self) -> list[str]:
        """List the loops that complete by declaration now, in tree order."""
        open_ones = (each for each in self.settling if not scope_is_held(self, self.loops[each]))
        return sorted(open_ones, key=lambda each: self.tree.order(self.loops[each]))

    def reindex(self) -> None:
        """Build everything that follows from the loops and the policy anew."""
        self.ready = Ready()
        self.settling = {}
        self._turns = Turns()
        for loop in self.loops.values():
            if loop.leased:  # whether a type works without git may be new
                self.house(loop)
        for loop_id in self.loops:
            self._reconsider(loop_id)

    def _move_clock(self, by_ms: int) -> None:
        """Move every stored instant of every loop."""
        self.tree.move_clock(by_ms)
        for loop in list(self.loops.values()):
            self._put(loop, _moved(loop, by_ms))
        self.ledger.move_clock(by_ms)
        self._moved_ms += by_ms
        self.reindex()

    # --- rows ------------------------------------------------------------------------------------------------------

    def take_rows(self) -> Rows:
        """Return the rows that changed since the last call."""
        changes: list[tuple[str, str, str | None]] = []
        for loop_id in self._dirty:
            changes.append(("loops", loop_id, _dump(encode_loop(self.loops[loop_id]))))
        changes += [("entries", loop_id, entry) for loop_id, entry in self._entries.items()]
        for key in sorted(self.shared.dirty):
            value = self.shared.row(key)
            changes.append(("records", key, None if value is None else _dump(value)))
        for _, charge in self._charges:
            key = plan_key(charge.plan, charge.type)
            changes.append(("records", key, _dump(self.ledger.totals()[key])))
        rows = Rows(changes, self._charges, self._moved_ms)
        self._dirty, self._entries, self._charges, self._applied, self._moved_ms = {}, {}, [], 0, 0
        self.shared.dirty.clear()
        return rows

    def all_rows(self) -> dict[tuple[str, str], Any]:
        """Return every row but the entries as plain values, to compare two forests."""
        rows: dict[tuple[str, str], Any] = {("loops", each.id): encode_loop(each) for each in self.loops.values()}
        rows |= {("records", key): self.shared.row(key) for key in self.shared.row_keys()}
        rows |= {("records", key): sums for key, sums in self.ledger.totals().items()}
        return rows

    @classmethod
    def from_rows(
        cls,
        loops: Iterable[str],
        records: Mapping[str, str],
        charges: Iterable[Charge],
        at: int,
        policy: Policy | None = None,
    ) -> Forest:
        """Build a forest from the rows of a journal (`Scene.read`), with its ready loops in order at an instant."""
        forest = cls()
        forest.read(loops, records, charges, policy)
        forest.at = at
        forest.reindex()
        return forest

    @classmethod
    def replay(cls, events: Iterable[tuple[e.Event, int]]) -> Forest:
        """Build a forest from the events alone."""
        forest = cls()
        for event, at in events:
            forest.apply(event, at)
        return forest


def _moves_below(old: Loop, new: Loop) -> bool:
    """Say whether all below a loop stand elsewhere now: its place, its entry, or the budget of a plan changed."""
    if (old.place, old.priority, old.resources) != (new.place, new.priority, new.resources):
        return True
    return new.parent is None and old.budget != new.budget


def _differ(old: Loop, new: Loop) -> bool:
    """Say whether children may see a difference in their parent."""
    return old.status is not new.status or old.on_disk != new.on_disk or old.seen != new.seen


def _dump(value: Any) -> str:
    """Write a row as compact JSON."""
    return json.dumps(value, separators=(",", ":"))


def _moved(loop: Loop, by_ms: int) -> Loop:
    """Move every instant of a loop that is set."""

    def move(at: int) -> int:
        return at + by_ms if at else 0

    lease, ending, hold, ask, clash = loop.lease, loop.ending, loop.hold, loop.past.ask, loop.clash
    return loop._replace(
        created=move(loop.created),
        since=move(loop.since),
        updated=move(loop.updated),
        not_before=move(loop.not_before),
        lifted=move(loop.lifted),
        seen=move(loop.seen),
        past=loop.past._replace(ask=ask._replace(at=move(ask.at))) if ask is not None else loop.past,
        clash=clash._replace(began=move(clash.began)) if clash.began else clash,
        hold=hold and hold._replace(at=move(hold.at)),
        lease=lease
        and lease._replace(
            at=move(lease.at),
            started_at=lease.started_at and move(lease.started_at),
            expires_at=lease.expires_at and move(lease.expires_at),
        ),
        ending=ending
        and ending._replace(
            started_at=ending.started_at and move(ending.started_at),
            expires_at=ending.expires_at and move(ending.expires_at),
        ),
    )
