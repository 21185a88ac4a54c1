"""A simulated world from one seed: disk, clock, processes, git, pull workers and one or two engines.

Everything that happens outside of the core is played here, and nothing is decided: engines and verbs think with
`loopr.core` alone (`minds.py`). What goes wrong is chosen in `faults.py`, what people do in `person.py`, and what must
hold in `invariants.py`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from random import Random
from typing import NamedTuple

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core.choose import next_wake
from loopr.core.entries import Artifact
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.core.turn import think
from loopr.errors import Moved, UserError, WorldError
from tests.sim import invariants
from tests.sim.author import Author, digest_of
from tests.sim.hands import Hands
from tests.sim.journals import MemoryJournal, Remembers, Told
from tests.sim.minds import Engine, Mind

BEGINNING = 1_700_000_000_000
PROBE_MS = 30_000
RESCAN_MS = 20_000


class Due(NamedTuple):
    """Something that happens at an instant; what an engine does itself dies with it."""

    at: int
    number: int
    dies_with_engine: bool
    happen: Callable[[], None]


class World:
    """One simulated world; `step` lets something happen, `quiet` lets everything come to rest."""

    def __init__(self, seed: int, journal: Remembers | None = None, *, compare_every: int = 1) -> None:
        """Make a world with one engine and nothing to do."""
        self.seed = seed
        self.chance = Random(seed)
        self.journal: Remembers = journal or MemoryJournal()
        self.author = Author(seed, priced=self.journal.turns_back)
        self.settings = self.author.policy()
        self.edits = 0  # of the files of the settings
        self.mono, self.skew = BEGINNING, 0
        self.host = ""
        self.listeners: set[str] = set()
        self.files: dict[str, Artifact | None] = {}
        self.contents: dict[str, Artifact] = {}
        self.during: dict[str, tuple[str, ...]] = {}  # of files that came while loops were at work
        self.inbox: list[o.Observation] = []
        self.met_with: Counter[str] = Counter()
        self.story: deque[str] = deque(maxlen=120)
        self.offered: dict[str, Artifact] = {}
        self.leases: list[str] = []
        self.old_leases: list[str] = []
        self.faulty = True
        self.doom: int | None = None
        self.rival = False
        self.rescanned = 0
        self._due: list[Due] = []
        self._numbers = 0
        self._compare_every = compare_every
        self._turns = 0
        self.hands = Hands(self)
        self.watch = invariants.Watch(self)
        self.journal.listeners.append(self._tell)
        self.desk = Mind(self)
        self.engine: Engine | None = None
        self.start_engine()

    # --- time -------------------------------------------------------------------------------------------------------

    @property
    def wall(self) -> int:
        """What the clock on the wall shows, right or wrong."""
        return self.mono + self.skew

    def later(self, delay_ms: int, happen: Callable[[], None], *, dies_with_engine: bool = False) -> None:
        """Let something happen after a while."""
        self._numbers += 1
        heappush(self._due, Due(self.mono + delay_ms, self._numbers, dies_with_engine, happen))

    def pass_time(self, to: int) -> None:
        """Let everything happen that is due until then."""
        while self._due and self._due[0].at <= to:
            due = heappop(self._due)
            self.mono = max(self.mono, due.at)
            due.happen()
        self.mono = max(self.mono, to)

    def next_due(self) -> int | None:
        """Say when something happens next."""
        return self._due[0].at if self._due else None

    # --- what is seen -----------------------------------------------------------------------------------------------

    def report(self, seen: o.Observation) -> None:
        """Let the engine know, if there is one, and if nothing comes between."""
        if self.engine is None:
            return
        roll = self.chance.random() if self.faulty else 1.0
        if roll < 0.04:
            self.met("fault: an observation was lost")
        elif roll < 0.08:
            self.met("fault: an observation came late")
            self.later(self.chance.choice((3_000, 90_000)), lambda: self.inbox.append(seen))
        else:
            self.inbox.append(seen)
            if roll < 0.14:
                self.met("fault: an observation came twice")
                self.later(self.chance.choice((0, 3_000, 90_000)), lambda: self.inbox.append(seen))

    def take_inbox(self, forest: Forest) -> list[o.Observation]:
        """Hand over what has arrived; now and then look at everything, since reports are only hints."""
        seen, self.inbox = self.inbox, []
        if self.mono - self.rescanned >= RESCAN_MS or (not self.faulty and self.next_due() is None):
            self.rescanned = self.mono
            seen += [*self.hands.adopt(forest, starting=False), *self.rescan(forest)]
        now, (reason, until, refusals) = max(self.wall, forest.at), forest.shared.host
        if self.host not in ("", reason) or (reason and until <= now):
            seen.append(o.HostSeen(self.host, now + PROBE_MS if self.host else 0, refusals))
        return [*seen, *self.heard(forest)]

    def heard(self, forest: Forest) -> Iterator[o.Observation]:
        """Say who is to be told of what happens, now and then that somebody has been, and what only is told."""
        upto, known = self.journal.last_seq(), forest.shared.heard
        if self.listeners != known.keys():
            yield o.ListenersSet(tuple(sorted(self.listeners)), upto)
        elif self.faulty and known and self.chance.random() < 0.2:
            yield o.ListenerTold(self.chance.choice(sorted(known)), self.chance.randint(0, upto))
        if self.faulty and forest.shared.plans and self.chance.random() < 0.02:
            plan = self.chance.choice(sorted(forest.shared.plans))
            yield from (
                o.CameHome(plan, "main", "c0ffee", not forest.tree.done(plan)),
                o.GrowthSeen(plan, ("refs/tags/v1",)),
            )
            during, number = tuple(forest.occupancy.loops), forest.shared.looked + self.chance.randint(0, 1)
            yield o.HarmSeen(number, ("config include.path",), during)
            yield o.BranchMoveSeen(number + 1, ".", "main", "b0", "b1", during, self.chance.random() < 0.5)

    def rescan(self, forest: Forest) -> Iterator[o.Observation]:
        """Look at every file."""
        for loop_id in sorted(self.files):
            yield self.file_seen(loop_id)
        for loop_id, loop in forest.loops.items():
            lies = loop.on_disk or loop.offers.offered or loop.offers.unread
            if loop_id not in self.files and (lies or self.place(loop_id) in forest.shared.problems):
                yield o.FileGone(loop_id)

    def settings_seen(self, forest: Forest, *, serving: bool = False) -> o.Observation:
        """Say what the files of the settings are like: each edit is of something else, now and then put back."""
        accepted = forest.shared.accepted.seal
        seal = accepted if accepted and self.edits % 4 == 3 else f"edit {self.edits}"
        keys = () if self.edits % 5 == 4 else ("types.code.check",)
        return o.SettingsSeen(seal, accepted, keys, self.edits % 2 == 1, serving=serving)

    def file_seen(self, loop_id: str) -> o.Observation:
        """Say what is in a file."""
        artifact, place = self.files[loop_id], self.place(loop_id)
        if artifact is None:
            return o.FileRefused(loop_id, place, f"{place}:1:1 is no artifact")
        return o.FileSeen(loop_id, digest_of(artifact), artifact, place, self.during.get(loop_id))

    def place(self, loop_id: str) -> str:
        """Say where a loop's artifact belongs."""
        return f"specs/{loop_id}/{self.author.ladder[loop_id.count('/')]}.md"

    def write(self, loop_id: str, artifact: Artifact | None, during: tuple[str, ...] | None = None) -> None:
        """Put a file on disk; None is one that nobody can read. It may come `during` the work of loops."""
        self.files[loop_id] = artifact
        self.during.pop(loop_id, None)
        if during is not None:
            self.during[loop_id] = during
        if artifact is not None:
            self.contents[digest_of(artifact)] = artifact

    # --- who thinks -------------------------------------------------------------------------------------------------

    def start_engine(self) -> None:
        """Start an engine, unless one serves already."""
        if self.engine is None:
            self.inbox = []
            self.engine = Engine(self)
            self._run(self.engine.begin())

    def kill_engine(self) -> None:
        """Take the engine away with all that it had in hand; attempts live on."""
        self.engine = None
        self.inbox = []
        self._due = [each for each in self._due if not each.dies_with_engine]
        heapify(self._due)
        self.hands.engine_died()

    def run_engine(self) -> None:
        """Let the engine do one turn."""
        if self.engine is not None:
            self._run(self.engine.turn())

    def _run(self, turn: Iterator[str]) -> None:
        """Go through a turn point by point; at any of them the engine may die, or somebody may be faster."""
        for point in turn:
            if point == "thought" and self.rival:
                self.rival = False
                self._let_rival_decide()
            if self.doom is not None:
                self.doom -= 1
                if self.doom < 0:
                    self.doom = None
                    self.tell(f"the engine dies: {point}")
                    self.met(f"fault: a crash after it {point}")
                    self.kill_engine()
                    return

    def _let_rival_decide(self) -> None:
        """Let a second process reach the same decisions first."""
        rival = Mind(self)
        now = rival.now()
        events = think(rival.forest, list(self.inbox), now)
        if events:
            self.tell("a rival is faster")
            try:
                rival.remember(events, now)
            except WorldError:
                self.tell("... but the disk is full")

    def request(self, name: str, wish: Callable[[Forest, int], Iterator[Event]]) -> bool:
        """Let a verb decide and append, in a process of its own; say whether the wish made sense."""
        desk = self.desk
        for _ in range(2):
            desk.catch_up()
            now, events = desk.now(), list[Event]()
            try:
                for event in wish(desk.forest, now):
                    desk.forest.apply(event, now)
                    events.append(event)
            except UserError as refusal:
                desk.reload()
                invariants.require(not events, f"{name} was refused ({refusal}) after {events}")
                self.tell(f"{name}: refused, {refusal}")
                return False
            if self.faulty and self.engine is not None and self.chance.random() < 0.1:
                self.run_engine()
            self.tell(f"{name}: {len(events)} events")
            try:
                if events:
                    desk.remember(events, now)
                return bool(events)
            except Moved:
                self.met("fault: a verb lost a race and decided again")
            except WorldError:
                return False
        return False

    # --- telling ----------------------------------------------------------------------------------------------------

    def met(self, what: str) -> None:
        """Count what this world has met with."""
        self.met_with[what] += 1

    def tell(self, line: str) -> None:
        """Go on with the story."""
        self.story.append(f"{(self.mono - BEGINNING) / 1000:9.1f}  {line}")

    def compares(self) -> bool:
        """Say whether this turn is compared with a forest from the rows."""
        self._turns += 1
        return self._turns % (self._compare_every if self.faulty else 6 * self._compare_every) == 0

    def _tell(self, told: list[Told]) -> None:
        """Let the rules and the hands know what was appended."""
        for each in told:
            self.tell(f"  {each.seq} {each.event}"[:300])
        self.watch.told(told)
        for each in told:
            self.met(f"event: {type(each.event).__name__}")
            if isinstance(each.event, e.CandidateReplaced):
                self.hands.candidate(self.shadow.loops[each.event.loop], self.contents[each.event.digest])

    @property
    def shadow(self) -> Forest:
        """The forest that is replayed from the texts of the events."""
        return self.watch.shadow

    def loops(self, *status: Status) -> list[Loop]:
        """List the loops in some states, in a fixed order."""
        found = [each for each in self.shadow.loops.values() if not status or each.status in status]
        return sorted(found, key=lambda each: each.id)

    # --- running ------------------------------------------------------------------------------------------------------

    def go(self, most_ms: int = 60_000) -> None:
        """Let time pass until something happens, then let the engine look."""
        instants = [self.next_due(), self._wake()]
        to = min((each for each in instants if each is not None), default=self.mono + 1_000)
        self.pass_time(max(self.mono + 1, min(to, self.mono + most_ms)))
        if self.engine is None and not self.faulty:
            self.start_engine()
        self.run_engine()

    def _wake(self) -> int | None:
        """Say when the engine wants to look again, on the clock that never jumps."""
        if self.engine is None:
            return None
        at = next_wake(self.engine.forest, self.engine.now())
        return None if at is None else max(self.mono, at - self.skew)

    def quiet(self, turns: int = 600) -> None:
        """Let everything come to rest without any fault."""
        self.faulty, self.doom, self.rival, self.journal.full, self.host = False, None, False, False, ""
        self.tell("--- quiet")
        self.inbox = [each for each in self.inbox if not isinstance(each, o.EngineDrains)]
        if self.shadow.shared.engine.draining:
            self.kill_engine()
        for _ in range(turns):
            before = self.journal.last_seq()
            self.go(most_ms=400_000_000)
            waits = self.next_due() is not None or self._wake() is not None or bool(self.inbox)
            if not waits and before == self.journal.last_seq():
                return
        raise invariants.Broken(f"the world does not come to rest in {turns} turns")
