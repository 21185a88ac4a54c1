"""How an engine leaves that is told to end at once: until when it waits, and what it leaves.

The instant is one of a clock that no person sets and that stands still while the machine sleeps.
Must never decide what becomes of a loop.
"""

from __future__ import annotations

import time
from collections.abc import Container
from enum import IntEnum

from loopr.core.forest import Forest
from loopr.core.model import Status
from loopr.core.owed import Effect, StopAttempt
from loopr.driving.jobs import Jobs
from loopr.driving.kit import Kit
from loopr.world.processes.waking import wake
from loopr.world.settings import Settings

MARGIN_SECS = 0.4
"""How long after the grace an engine that ends at once still waits for its threads."""
WORK = frozenset({"attempt", "judge", "land", "stop"})


class Wish(IntEnum):
    """What a person asks of the engine itself."""

    GO_ON = 0
    STOP = 1
    STOP_NOW = 2


class Leaving:
    """The end of one engine, from the moment in which it is asked for."""

    def __init__(self, kit: Kit, jobs: Jobs) -> None:
        self._kit, self._jobs = kit, jobs
        self._ends = 0.0
        self.unwritten = False  # nothing can be remembered any more, the stop neither

    @property
    def has_begun(self) -> bool:
        """True once the engine is to end at once."""
        return bool(self._ends)

    @property
    def is_due(self) -> bool:
        """True when there is no more waiting for anything."""
        return self.has_begun and time.monotonic() >= self._ends

    def begin(self) -> None:
        """Set the latest instant; once is enough."""
        secs = longest_grace_secs(self._kit.settings) + MARGIN_SECS
        self._ends = self._ends or time.monotonic() + secs

    def wait_ms(self, wanted: int) -> int:
        """Return how long to sleep: as wanted, but at most until the latest instant."""
        if not self.has_begun:
            return wanted
        return max(0, min(wanted, int((self._ends - time.monotonic()) * 1000) + 1))

    def press(self, reason: str) -> None:
        """Let landings give way, and wake whatever was stopped of those who end the commands."""
        self._jobs.give_way(frozenset({"land"}), reason)
        wake(self._kit.runs.root / run for run in self._jobs.running)

    def give_up(self, reason: str) -> None:
        """End all commands though nobody can write down why: their outcomes say it."""
        self.unwritten = True
        self._jobs.give_way(WORK, reason)

    def may_begin(self, effect: Effect) -> bool:
        """Say whether an effect is begun still."""
        return not self.has_begun or isinstance(effect, StopAttempt)

    @property
    def has_given_up(self) -> bool:
        """True if nothing can be remembered, and no command of ours lives any more."""
        return self.unwritten and not any(self._jobs.of_kind(kind) for kind in WORK)


def leaves_nothing(forest: Forest, waiting: Container[str]) -> bool:
    """Say whether no attempt of ours lives: a pull worker goes on without us.

    What lands has an act, or comes after one that has: that it waits for people, as `waiting` loops do, keeps nobody.
    """
    loops = (forest.loops[each] for each in forest.occupancy.loops if each not in waiting)
    owners = [each.lease or each.ending for each in loops if each.status is not Status.LANDING]
    return all(owner is not None and owner.expires_at for owner in owners)


def longest_grace_secs(settings: Settings) -> float:
    """Return the longest time that a command may take from being asked to end."""
    own = (each.timeouts.grace_ms for each in settings.types.values())
    return max(settings.timeouts.grace_ms, *own) / 1000
