"""Who thinks in a simulated world: verbs, and an engine that may die between any two of its steps.

Thinks with `loopr.core` alone. What it does to the world is done by `hands.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loopr.core import observations as o
from loopr.core.choose import choose
from loopr.core.events import Event
from loopr.core.intake import interpret
from loopr.core.owed import owed
from loopr.core.turn import perform, think
from loopr.errors import Moved, WorldError
from tests.sim import invariants

if TYPE_CHECKING:
    from tests.sim.world import World


class Mind:
    """What one process remembers of the journal; it is thrown away whenever the journal refuses."""

    def __init__(self, world: World) -> None:
        """Read the rows."""
        self.world = world
        self.reload()

    def reload(self) -> None:
        """Begin again from the rows."""
        self.forest, self.seq = self.world.journal.load()

    def catch_up(self) -> None:
        """Take what others have appended meanwhile."""
        for told in self.world.journal.since(self.seq):
            self.forest.apply(told.event, told.at)
            self.seq = told.seq
        self.forest.take_rows()

    def now(self) -> int:
        """Read the clock; within a run it never goes back."""
        return max(self.world.wall, self.forest.at)

    def remember(self, events: list[Event], at: int) -> None:
        """Append what was decided; whatever goes wrong, the memory is that of the journal afterwards."""
        try:
            self.seq = self.world.journal.append(events, self.forest.take_rows(), at, self.seq)
        except WorldError:
            self.reload()
            raise


class Engine(Mind):
    """An engine: senses, thinks, remembers, acts, and may die between any two of these."""

    def begin(self) -> Iterator[str]:
        """Start: move the clock if it is behind, look at everything that was missed, and serve."""
        world = self.world
        seen: list[o.Observation] = []
        behind = self.forest.at - world.wall
        now = self.now()
        if behind > 0 and world.journal.turns_back:
            seen, now = [o.ClockBehind(behind)], world.wall
            world.met("fault: the clock was behind at a start")
        seen += [world.settings_seen(self.forest), o.PolicySeen(world.settings), o.EngineBegan(1, "here")]
        seen += [*world.hands.adopt(self.forest), *world.rescan(self.forest)]
        world.rescanned = world.mono
        yield from self._turn(seen, now)

    def turn(self) -> Iterator[str]:
        """Do one turn with all that has arrived."""
        self.catch_up()
        seen = self.world.take_inbox(self.forest)
        yield "sensed"
        yield from self._turn(seen, self.now())

    def _turn(self, seen: list[o.Observation], now: int) -> Iterator[str]:
        """Think until the journal takes it, then act."""
        world = self.world
        for _ in range(3):
            events = self._think(seen, now)
            yield "thought"
            try:
                if events:
                    self.remember(events, now)
                break
            except Moved:
                world.met("fault: an engine lost a race and decided again")
                now = max(now, self.forest.at)
            except WorldError:
                world.met("fault: an append found the disk full")
                world.inbox[:0] = seen
                return
        yield "remembered"
        for effect in list(owed(self.forest)):
            world.hands.perform(effect, self.forest.loops[effect.loop])
            yield "acted"

    def _think(self, seen: list[o.Observation], now: int) -> list[Event]:
        """Decide; a forest built from the rows must decide the very same."""
        twin = self.world.journal.load()[0] if self.world.compares() else None
        if twin is not None:
            invariants.same_state(self.forest, twin)
        events: list[Event] = []
        for each in seen:
            stale = invariants.is_stale(self.forest, each)
            got = perform(self.forest, interpret(self.forest, each, now), now)
            invariants.require(not (stale and got), f"a stale {each} led to {got}")
            events += got
        events += perform(self.forest, choose(self.forest, now), now)
        if twin is not None:
            also = think(twin, seen, now)
            invariants.require(events == also, f"live decides\n  {events}\nbut from rows\n  {also}")
        invariants.after_a_round(self.forest, now)
        return events
