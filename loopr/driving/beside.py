"""What happens beside the work: hooks and addresses are told, plans come home, their branches stay right, artifacts are
stamped.

The one door to the modules of that. None of it ever changes the tree, and no engine lives on for its sake alone where
only a person can help. Must never know what an event means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loopr.core import observations as o
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.left_out import LEFT_PLACE
from loopr.core.tips import BRANCH_PLACE, UPDATE_PLACE
from loopr.driving.couriers import NOTIFY
from loopr.driving.ending import free_locks
from loopr.driving.homecoming import Homecoming
from loopr.driving.hooks import HOOK
from loopr.driving.jobs import Jobs, Key
from loopr.driving.kit import Kit
from loopr.driving.left_out import is_gone
from loopr.driving.listeners import Listeners
from loopr.driving.occasions import BUDGET_PLACE, LANDING_PLACE
from loopr.driving.spending import Spending
from loopr.driving.stamps import Stamps
from loopr.driving.tips import Tips
from loopr.world.journal import Journal

PLACES = (HOOK, NOTIFY, LANDING_PLACE, BUDGET_PLACE, BRANCH_PLACE, UPDATE_PLACE, LEFT_PLACE)
"""How the places begin of problems that are reported and taken back here, and nowhere else."""
KINDS = frozenset({"hook", "courier", "home"})
FAREWELL_MS = 10_000
FREE_MS = 5_000


class Beside:
    """Everything beside the work of one engine."""

    def __init__(self, kit: Kit, jobs: Jobs, journal: Journal) -> None:
        self._kit, self._jobs = kit, jobs
        self._listeners = Listeners(kit, jobs, journal)
        self._home, self._stamps, self._spending = Homecoming(kit, jobs), Stamps(kit, jobs), Spending(kit)
        self._tips, self._clock = Tips(kit, jobs), kit.clock
        self._leaves_at = self._frees_at = 0

    def changes(self, forest: Forest, seq: int) -> list[o.Observation]:
        """Report who is to be told of what comes after an event, if that has changed."""
        return list(self._listeners.changes(forest, seq))

    def begin(self, forest: Forest, seq: int) -> None:
        """Take up what an earlier engine has left; whatever it tells still must not be taken for a stray."""
        self._listeners.begin(forest, seq)
        self._tips.look(forest, self._clock())  # whatever stands there was made before anything starts now

    def look(self, forest: Forest, seq: int, now: int) -> Iterator[o.Observation]:
        """Report what only a person can change, and who is to be told."""
        self._tips.look(forest, now)
        self._free_locks(now)
        yield from self._listeners.changes(forest, seq)
        yield from self._home.look(forest, now)
        yield from self._spending.look(forest, now)
        yield from is_gone(forest)

    def _free_locks(self, now: int) -> None:
        """Look for locks that a killed git has left below our refs, while something waits for a lock."""
        if now >= self._frees_at and any(place.endswith(".lock") for place in self._jobs.problems()):
            self._frees_at = now + FREE_MS
            grounds = list(self._kit.grounds.values())
            self._jobs.begin(Key("unlock", "", 0), free_locks(grounds), lambda error: None)

    def heed(self, forest: Forest, events: Iterable[Event], seq: int, now: int) -> None:
        """Do what the settings want to follow some events, up to the one that is numbered so."""
        self._stamps.heed(forest, events, now)
        self._listeners.read(forest, seq)
        self._go_on(forest, now)

    def _go_on(self, forest: Forest, now: int) -> None:
        """Begin what may be begun; an engine that leaves brings nothing home any more."""
        self._listeners.hooks.go_on(now)
        self._listeners.couriers.go_on(now)
        if not forest.shared.engine.draining:
            self._home.go_on(forest, now)

    def keeps(self, forest: Forest, seq: int, now: int, *, news: bool = True) -> bool:
        """Say whether an engine whose work has settled has somebody to tell, or something to bring home.

        That it has settled is told where that is `news`.
        """
        self._listeners.read(forest, seq)
        self._home.reckon(forest)
        if self._spending.has_news(forest, now):
            return True
        if news and not self.owes:
            self._listeners.settle(forest, now)
        self._go_on(forest, now)
        return self.owes

    @property
    def owes(self) -> bool:
        """True while something is owed that goes on by itself."""
        return self._listeners.hooks.owes or self._listeners.couriers.owes or self._home.owes

    def detains(self, now: int) -> bool:
        """Say whether an engine that is to leave waits for what is under way: a while only, since it stays owed."""
        if not any(self._jobs.of_kind(kind) for kind in KINDS):
            return False
        self._leaves_at = self._leaves_at or now + FAREWELL_MS
        return now < self._leaves_at

    def end(self, forest: Forest) -> list[o.Observation]:
        """Report how far those have heard whom nothing has concerned."""
        return list(self._listeners.up_to_date(forest))
