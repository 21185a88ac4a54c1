"""The next round of launches, before it is decided.

Asks the selector itself, on a forest of its own. Must never remember what it learns.
"""

from __future__ import annotations

from typing import NamedTuple

from loopr.core.choose import choose, take
from loopr.core.events import LeaseGranted
from loopr.core.forest import Forest
from loopr.core.gates import NOT_OF_WORKERS
from loopr.core.grouping import Waits
from loopr.core.model import Loop, Status
from loopr.core.scoring import score
from loopr.ui.views import Row, document, gate_row, instant, stand_in

MOST_LEASES = 1_000


def next_round(forest: Forest, now: int) -> Row:
    """Return the next round as it would be decided, and why every other pending loop is not in it.

    Changes the forest, which must be the caller's own.
    """
    at = max(now, forest.shared.paced_until())
    grants: list[Row] = []
    for event in choose(forest, at):
        if isinstance(event, LeaseGranted):
            grants.append(_grant_row(forest, event, at))
        forest.apply(event, at)
    held, waits = [], Waits(forest, at)
    for loop in forest.tree.walk():
        if loop.status is Status.PENDING:
            gate = waits.first_closed(loop)
            if gate is not None:
                held.append({"id": loop.id} | gate_row(gate))
    return document(now, {"at": instant(at), "grants": grants, "held": held})


class Leases(NamedTuple):
    """Which leases a pull worker would ask for: how many at most, of which types and projects."""

    limit: int = MOST_LEASES
    types: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()

    def asks_for(self, loop: Loop) -> bool:
        """Say whether a loop may be meant."""
        return (not self.types or loop.type in self.types) and (not self.projects or loop.project in self.projects)


def next_leases(forest: Forest, now: int, wanted: Leases) -> Row:
    """Return the leases as they would be taken one after another, and why each other loop would not be leased.

    Changes the forest, which must be the caller's own.
    """
    grants: list[Row] = []
    for event in take(forest, now, holder="", limit=wanted.limit, types=wanted.types, projects=wanted.projects):
        if isinstance(event, LeaseGranted):
            grants.append(_grant_row(forest, event, now))
        forest.apply(event, now)
    held, waits = [], Waits(forest, now)
    for loop in forest.tree.walk():
        if loop.status is Status.PENDING and wanted.asks_for(loop):
            gate = next((each for each in waits.closed(loop) if each.gate not in NOT_OF_WORKERS), None)
            held += [{"id": loop.id} | gate_row(gate)] if gate is not None else []
    return document(now, {"at": instant(now), "grants": grants, "held": held})


def _grant_row(forest: Forest, event: LeaseGranted, at: int) -> Row:
    """Return one grant as it would be."""
    loop = forest.loops[event.loop]
    return {
        "id": loop.id,
        "lease": f"{loop.id}#{event.attempt}",
        "project": loop.project,
        "score": score(forest.policy, loop, at, forest.priority_of(loop))._asdict(),
        "lane": event.lane,
        "agent": event.agent or None,
        "stands_in": stand_in(forest, loop, at) or None,
    }
