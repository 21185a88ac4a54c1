"""What an engine looks after beside its loops: a machine that fills up, and budgets that run out.

Knows how often to look. Must never decide what follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loopr.core import observations as o
from loopr.core.costs import host_rest_ms
from loopr.core.forest import Forest
from loopr.core.policy import Policy
from loopr.world.host_facts import DISK, LOAD, is_full, short_of

EVERY_MS = 1_000


class Upkeep:
    """Looks after the machine."""

    def __init__(self, root: Path, state: Path) -> None:
        self._root, self._state = root, state
        self._next = 0
        self._policy: Policy | None = None
        self.full = ""  # what nothing can be written to any more, in words: not even that may be written down

    def look(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Look once a second."""
        if now < self._next:
            return
        self._next = now + EVERY_MS
        self.full = f"no space is left on the disk of {self._state}" if is_full(self._state) else ""
        yield from self._machine(forest, now)
        yield from _spending(forest)

    def _machine(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Probe the machine: whether there is room for more, or whether it has recovered."""
        host = forest.shared.host
        due = now >= host.until or forest.policy != self._policy  # other limits may be kept at once
        self._policy = forest.policy
        reason = self._short_of(forest) if due or not host.reason else ""
        if reason:
            refusals = host.refusals + 1
            yield o.HostSeen(reason, now + host_rest_ms(forest, refusals), refusals)
        elif host.reason and due:
            yield o.HostSeen("", refusals=0 if host.reason.startswith(_OURS) else host.refusals)

    def _short_of(self, forest: Forest) -> str:
        """Say what the machine is short of."""
        return short_of(self._root, forest.policy.min_free_bytes, forest.policy.max_load)


def _spending(forest: Forest) -> Iterator[o.Observation]:
    """Have the loops looked at that run on a budget of their own: their time goes by without a word from anybody."""
    for loop_id in forest.occupancy.loops:
        loop = forest.loops[loop_id]
        own, typed = loop.budget, forest.policy.type_of(loop.type).budget
        if loop.lease is not None and loop.parent is not None and not (own.unlimited and typed.unlimited):
            yield o.AttemptUsed(loop.id, loop.lease.attempt, loop.live)


_OURS = (DISK, LOAD)
