"""What an engine looks after beside its loops: settings that change while it runs, and a machine that fills up.

Knows how often to look. Must never decide what follows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from loopr.core import observations as o
from loopr.core.forest import Forest
from loopr.errors import UserError
from loopr.hands import FileHands
from loopr.world.host_facts import free_bytes

EVERY_MS = 1_000
PLACE = "loopr.yml"


class Reloaded(NamedTuple):
    """What new settings lead to."""

    policy: o.PolicySeen
    hands: FileHands


class Upkeep:
    """Looks after settings and machine."""

    def __init__(self, hands: FileHands, seal: Callable[[], str], reload: Callable[[], Reloaded]) -> None:
        self.hands = hands
        self._seal, self._reload = seal, reload
        self._known = seal()
        self._next = 0
        self._probes = 0

    def look(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Look once a second."""
        if now < self._next:
            return
        self._next = now + EVERY_MS
        yield from self._settings()
        yield from self._machine(forest, now)
        yield from _spending(forest)

    def _settings(self) -> Iterator[o.Observation]:
        """Load the settings again if what they are made from has changed; wrong ones change nothing, and are told."""
        found = self._seal()
        if found == self._known:
            return
        self._known = found
        try:
            loaded = self._reload()
        except UserError as error:
            yield o.Noticed(PLACE, f"the settings are wrong, those from before hold: {error}")
            return
        self.hands = loaded.hands
        yield o.Noticed(PLACE, "")
        yield loaded.policy

    def _machine(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Probe the machine: whether there is room for more, or whether it has recovered."""
        known, until = forest.shared.host
        reason = self._short_of(forest)
        if reason and reason != known:
            yield o.HostSeen(reason, now + forest.policy.retry.base_ms)
        elif known and not reason and (now >= until or known.startswith(_OURS)):
            yield o.HostSeen("")

    def _short_of(self, forest: Forest) -> str:
        """Say what the machine is short of."""
        policy = forest.policy
        free = free_bytes(self.hands.root)
        if free < policy.min_free_bytes:
            return f"{_DISK}: less than {policy.min_free_bytes / 1024**3:g} GiB free (worktrees.min_free_gb)"
        if policy.max_load is not None and os.getloadavg()[0] > policy.max_load:
            return f"{_LOAD}: above {float(policy.max_load):g} (scheduler.max_load)"
        return ""


def _spending(forest: Forest) -> Iterator[o.Observation]:
    """Have the loops looked at that run on a budget of their own: their time goes by without a word from anybody."""
    for loop_id in forest.occupancy.loops:
        loop = forest.loops[loop_id]
        own, typed = loop.budget, forest.policy.type_of(loop.type).budget
        if loop.lease is not None and loop.parent is not None and not (own.unlimited and typed.unlimited):
            yield o.AttemptUsed(loop.id, loop.lease.attempt, loop.live)


_DISK, _LOAD = "the disk is nearly full", "the machine is busy"
_OURS = (_DISK, _LOAD)
