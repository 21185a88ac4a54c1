"""An engine that stays when all has settled, and how long it sleeps while there is nothing to do.

Where nothing has been heard for a moment and nothing is under way it looks around three times a minute only: whatever
people and other processes do wakes it. Must never decide what is done, nor know what it is woken by.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from loopr.core import observations as o
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.world.watching import Glance

BUSY_MS = 1_000  # an engine looks around that often, whatever it hears
REST_MS = 20_000  # one that stays and has nothing to do
CALM_MS = 3_000  # nothing was heard for so long: whatever comes in several pieces has come
_Counts = tuple[int, ...]


class Resting:
    """Knows whether an engine stays, whether all has settled, and when it rests."""

    def __init__(self, glance: Glance) -> None:
        """Begin with an engine that ends when all has settled; `glance` hears what else a rest is to end for."""
        self.stays = self.settled = False
        self._glance = glance
        self._listens = False
        self._ends: float | None = None
        self._heard_at = 0
        self._told: _Counts | None = None

    def stay(self, ends: float | None) -> None:
        """Stay; `ends` is the instant of the monotonic clock at which somebody asks whether it is over."""
        self.stays, self._ends = True, ends

    def stop(self) -> None:
        """Hear nothing any more."""
        self._glance.stop()

    def look(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Report that a day has passed since something of a plan was first done again, if the engine stays."""
        if self.stays and any(each.is_over(now) for each in forest.shared.rounds.values()):
            yield o.DayPassed()

    # -- how long to sleep

    def hear(self, now: int) -> None:
        """Note that something was heard: more may follow."""
        self._heard_at = now

    def rests(self, poll: select.poll, *, idle: bool, now: int) -> bool:
        """Say whether an engine rests; an `idle` one has nothing under way.

        It begins to hear before it rests: what changed before that is looked at in between.
        """
        listened = self._listens
        if not (self.stays and idle):
            if listened:
                with suppress(KeyError):
                    poll.unregister(self._glance)
            self._listens = False
            return False
        if not listened and self._glance.begin():
            poll.register(self._glance, select.POLLIN)
            self._listens = True
        self._glance.clear()
        return listened and abs(now - self._heard_at) >= CALM_MS

    def most_ms(self, *, rests: bool) -> int:
        """Say how long the engine may sleep at most."""
        most = REST_MS if rests else BUSY_MS
        if self._ends is None:
            return most
        return max(0, min(most, round((self._ends - time.monotonic()) * 1000) + 1))

    # -- what is told

    def settle(self, settled: bool) -> bool:
        """Note whether all has settled, and say whether that is new to an engine that stays."""
        turned = self.stays and settled and not self.settled
        self.settled = self.stays and settled
        return turned

    def heed_events(self, events: Sequence[Event]) -> None:
        """Note events: an engine that stays asks anew whether all has settled, one that ends does not."""
        if events:
            self.settled = False

    def heed(self, forest: Forest) -> None:
        """Note whether something is at work: what settles after it is news."""
        if forest.occupancy.total:
            self._told = None

    def is_news(self, forest: Forest) -> bool:
        """Say whether it is to be told that all has settled: after work, or where loops stand otherwise than before."""
        return not self.stays or self._told != _counts(forest)

    def have_told(self, forest: Forest) -> None:
        """Note that it was told."""
        self._told = _counts(forest)


def _counts(forest: Forest) -> _Counts:
    """Count how many loops stand how."""
    listed = (len(loops) for loops in forest.tree.by_status.values())
    complete = (forest.tree.below[each].complete + forest.tree.done(each) for each in forest.tree.children(None))
    return *listed, sum(complete)
