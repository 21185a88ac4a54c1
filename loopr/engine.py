"""The one place that holds core and world together: think, remember, act.

A `Mind` is a forest in step with the journal it was read from. `Engine` derives what is owed, lets its hands do it, and
hears of it as observations only. Must never decide anything itself, nor show anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core.codec import decode, encode
from loopr.core.entries import Entry, decode_entry
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.handiwork import Hands
from loopr.core.intake import interpret
from loopr.core.model import Loop
from loopr.core.owed import WriteDeclared, owed
from loopr.core.trust import came_during
from loopr.core.turn import perform
from loopr.errors import Impossible, LooprError, Moved
from loopr.recall import Settle, read_rows
from loopr.world.journal import Change, Draft, Journal, Record, Spent

Decide = Callable[[Forest, int], Iterator[Event]]
Clock = Callable[[], int]
MOST_RETRIES = 50
MOST_ENTRIES = 1_024
ENTRIES = "entries"
WRITERS = 16


def recall(journal: Journal, settle: Settle = lambda records, loops: None, at: int | None = None) -> tuple[Forest, int]:
    """Read the forest from the rows of a journal, with the seq it stands at (`read_rows`)."""
    rows = read_rows(journal, settle, at)
    now = rows.at if at is None else at
    return Forest.from_rows(rows.loops, rows.records, rows.charges, now, rows.policy), rows.seq


def replay(journal: Journal) -> Forest:
    """Build the forest from the events alone, to compare it with the rows."""
    events = ((decode(each.event, each.version, each.data), each.at) for each in journal.since(0))
    return Forest.replay(events)


class Memory(Protocol):
    """What a mind needs of a journal."""

    def append(
        self,
        drafts: Sequence[Draft],
        changes: Iterable[Change] = (),
        spent: Iterable[Spent] = (),
        *,
        after: int,
        moved_ms: int = 0,
    ) -> int:
        """Keep events with the rows they lead to, or raise `Moved`."""
        ...

    def row(self, table: str, key: str) -> str | None:
        """Return one row."""
        ...

    def recall(self) -> tuple[Forest, int]:
        """Read the forest with the seq it stands at."""
        ...


class Journalled:
    """The memory that lasts."""

    def __init__(self, journal: Journal) -> None:
        """Remember in an open journal."""
        self.append, self.row, self._journal = journal.append, journal.row, journal

    def recall(self) -> tuple[Forest, int]:
        """Read the forest from the journal's rows."""
        return recall(self._journal)


class Paper:
    """A memory that begins with what is known and is thrown away: nothing is ever written."""

    def __init__(self, known: Callable[[], tuple[Forest, int]], journal: Journal | None) -> None:
        """Begin with a forest; entries that are not new are read from the journal, if there is one."""
        self.recall, self._journal = known, journal
        self._rows: dict[tuple[str, str], str | None] = {}

    def append(
        self,
        drafts: Sequence[Draft],
        changes: Iterable[Change] = (),
        spent: Iterable[Spent] = (),
        *,
        after: int,
        moved_ms: int = 0,
    ) -> int:
        """Keep the rows for this run."""
        self._rows |= {(change.table, change.key): change.body for change in changes}
        return after + len(drafts)

    def row(self, table: str, key: str) -> str | None:
        """Return one row, of this run or of the journal."""
        if (table, key) in self._rows:
            return self._rows[table, key]
        return self._journal.row(table, key) if self._journal is not None else None


class Mind:
    """A forest in step with a memory: nothing is known that is not remembered."""

    def __init__(self, memory: Memory, clock: Clock, actor: str, policy: o.PolicySeen | None = None) -> None:
        """Read the forest; `policy` is what the settings lead to now."""
        self._memory, self._clock, self.actor, self._policy = memory, clock, actor, policy
        self.recalls = 0  # how often all was read anew: what others have decided by then was never handed out
        self._bodies: dict[str, str | None] = {}  # of entries, as of late: every act about a loop asks for its own
        self.forest, self.seq = memory.recall()
        self.began_at = self.forest.at  # of the last event before us

    def heed_clock(self) -> list[Event]:
        """Move every stored instant back if the clock is behind the last event; for whoever begins to serve."""
        now = self._clock()
        if now >= self.forest.at:
            return []
        events = perform(self.forest, interpret(self.forest, o.ClockBehind(self.forest.at - now), now), now)
        self._remember(events, now)
        return events

    def heed_policy(self, policy: o.PolicySeen) -> None:
        """Decide by another policy from now on."""
        self._policy = policy

    def take_policy(self) -> list[Event]:
        """Remember the policy of now, if it is another one: whoever looks at the forest next looks by that."""
        return self.decide(lambda forest, now: iter(()))

    def catch_up(self, records: Iterable[Record]) -> list[Event]:
        """Take in what others have remembered meanwhile, and return it."""
        events: list[Event] = []
        for each in records:
            event = decode(each.event, each.version, each.data)
            self.forest.apply(event, each.at)
            self.seq = each.seq
            events.append(event)
        self.forest.take_rows()
        self._bodies.clear()
        return events

    def decide(self, decide: Decide) -> list[Event]:
        """Let something be decided, remember it, and return it; if somebody was faster, learn that and decide again."""
        for _ in range(MOST_RETRIES):
            now = self.now()
            try:
                events = perform(self.forest, self._with_policy(decide, now), now)
                self._remember(events, now)
            except Moved:
                self._recall()
                continue
            except BaseException:
                self._recall()
                raise
            return events
        raise Moved("the journal moved on again and again", hint="try again when less is going on")

    def _recall(self) -> None:
        """Read all of it anew."""
        self.forest, self.seq = self._memory.recall()
        self._bodies.clear()
        self.recalls += 1

    def now(self) -> int:
        """Read the clock once; within a run it never goes back."""
        return max(self._clock(), self.forest.at)

    def _with_policy(self, decide: Decide, now: int) -> Iterator[Event]:
        """Put a changed policy, and a clock that is behind, before whatever is decided."""
        if self._policy is not None:
            yield from interpret(self.forest, self._policy, now)
        yield from decide(self.forest, now)

    def _remember(self, events: list[Event], now: int) -> None:
        """Append events with the rows they lead to."""
        rows = self.forest.take_rows()
        if not events:
            return
        drafts = [
            Draft(now, name, version, subject, self.actor, data) for name, version, data, subject in _written(events)
        ]
        changes = [Change(*each) for each in rows.changes]
        spent = [Spent(self.seq + 1 + place, *charge) for place, charge in rows.charges]
        self.seq = self._memory.append(drafts, changes, spent, after=self.seq, moved_ms=rows.moved_ms)
        for change in changes:
            if change.table == ENTRIES:
                self._keep(change.key, change.body)

    def entry(self, loop_id: str) -> Entry:
        """Return the entry a loop was declared with."""
        found = self.find_entry(loop_id)
        if found is None:
            raise Impossible(f"no entry was remembered for {loop_id}")
        return found

    def find_entry(self, loop_id: str) -> Entry | None:
        """Return the entry a loop was declared with, None for a plan, which has none."""
        if loop_id not in self._bodies:
            self._keep(loop_id, self._memory.row(ENTRIES, loop_id))
        body = self._bodies[loop_id]
        return decode_entry(json.loads(body)) if body else None

    def _keep(self, loop_id: str, body: str | None) -> None:
        """Keep an entry for those who will ask for it soon, but not all that there ever were."""
        if len(self._bodies) >= MOST_ENTRIES:
            self._bodies.clear()
        self._bodies[loop_id] = body


def _written(events: Iterable[Event]) -> Iterator[tuple[str, int, str, str | None]]:
    """Encode events, each with the loop it is about."""
    for event in events:
        yield (*encode(event), event.loop if isinstance(event, e.LoopEvent) else None)


class Engine:
    """Turns what is owed into effects, and what comes back into events."""

    def __init__(self, mind: Mind, hands: Hands, *, settles: bool = True) -> None:
        """Hold a mind and its hands; where another engine serves the workspace, that one settles declared loops."""
        self.mind, self.hands, self.settles = mind, hands, settles
        last_at = mind.began_at
        self.came: Callable[[int], tuple[str, ...] | None] = lambda at: came_during(self.forest, at, last_at)
        self.whose = self._whose  # both, until somebody looks who knows better

    def _whose(self, loop: Loop) -> tuple[str, ...] | None:
        """Say who was at work when a loop's file came, None if it is a person's."""
        return self.came(self.hands.changed_at(loop.id, loop.type))

    @property
    def forest(self) -> Forest:
        """The forest as it is now."""
        return self.mind.forest

    def learn(self, seen: Iterable[o.Observation], then: Decide | None = None) -> list[Event]:
        """Interpret observations, look at the files of loops that are declared by that, and decide what follows."""
        events: list[Event] = []
        waiting = list(seen)
        while True:
            fresh = self.mind.decide(_interpreting(waiting, then))
            events += fresh
            declared = [each.loop for each in fresh if isinstance(each, _DECLARES)]
            if not declared:
                return events
            looked = (self._look(self.forest.loops[loop_id]) for loop_id in declared)
            waiting = [each for each in looked if each is not None]

    def _look(self, loop: Loop) -> o.Observation | None:
        """Look at a loop's artifact, and say whose word it is."""
        return self.hands.look(loop.id, loop.type, during=self.whose(loop))

    def rescan(self, plan: str) -> list[Event]:
        """Learn of every artifact of a plan as it is on disk, and of those that are gone."""
        below = list(self.forest.tree.walk(plan)) if plan in self.forest.loops else []
        doubted = self.forest.shared.problems.keys()
        known = {loop.id: loop.artifact for loop in below if self._place_of(loop) not in doubted}
        seen = [self._doubt(each) for each in self.hands.look_everywhere(plan, known)]
        there = {getattr(each, "loop", "") for each in seen}
        missed = [each for each in below if each.id not in there and self.is_missed(each)]
        seen += [self._look(each) or o.FileGone(each.id) for each in missed]
        return self.learn(seen)

    def _doubt(self, seen: o.Observation) -> o.Observation:
        """Say of a file whose word it is."""
        if not isinstance(seen, o.FileSeen) or seen.loop not in self.forest.loops:
            return seen
        return replace(seen, during=self.whose(self.forest.loops[seen.loop]))

    def is_missed(self, loop: Loop) -> bool:
        """Say whether it matters that nothing lies at a loop's place."""
        lies = loop.on_disk or loop.offers.offered or loop.offers.unread
        return bool(lies) or self._place_of(loop) in self.forest.shared.problems

    def _place_of(self, loop: Loop) -> str:
        """Return how messages call a loop's artifact."""
        return self.forest.policy.place_of(loop.id, loop.type)

    def settle(self, plans: Iterable[str]) -> list[Event]:
        """Complete the declared loops of some plans, level by level, until none is left; start nothing."""
        wanted, events = set(plans) if self.settles else set(), list[Event]()
        while effects := [each for each in self._declared() if each.loop.partition("/")[0] in wanted]:
            with ThreadPoolExecutor(WRITERS) as pool:  # most of writing is waiting for the disk
                loops = [self.forest.loops[each.loop] for each in effects]
                written = list(pool.map(self.hands.write_declared, loops, [self.mind.entry(each.id) for each in loops]))
            done = self.learn(each for each in written if each is not None)
            if not done:
                break
            events += done
        return events

    def _declared(self) -> Iterator[WriteDeclared]:
        """List the artifacts that are owed to declared loops."""
        return (each for each in owed(self.forest) if isinstance(each, WriteDeclared))


_DECLARES = (e.Declared, e.DeclaredAgain)


def _interpreting(seen: Iterable[o.Observation], then: Decide | None = None) -> Decide:
    """Decide what observations mean, and what follows; where loops are declared their files must be looked at first."""
    known = list(seen)

    def decide(forest: Forest, now: int) -> Iterator[Event]:
        declares = False
        for each in known:
            for event in interpret(forest, each, now):
                declares = declares or isinstance(event, _DECLARES)
                yield event
        if then is not None and not declares:
            yield from then(forest, now)

    return decide


def compare(journal: Journal) -> list[str]:
    """Replay the journal and say where its rows differ from what its events lead to."""
    try:
        replayed = replay(journal).all_rows()
    except LooprError as error:
        return [f"the journal cannot be replayed: {error}"]
    rows = recall(journal)[0].all_rows()
    keys = sorted(replayed.keys() | rows.keys())
    return [
        f"{table} {key} differs from its events"
        for table, key in keys
        if replayed.get((table, key)) != rows.get((table, key))
    ]
