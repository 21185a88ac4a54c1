"""The next round of launches, before it is decided.

Asks the selector itself, on a forest of its own. Must never remember what it learns.
"""

from __future__ import annotations

from loopr.core.choose import choose
from loopr.core.events import LeaseGranted
from loopr.core.forest import Forest
from loopr.core.grouping import Waits
from loopr.core.model import Status
from loopr.core.scoring import score
from loopr.ui.views import Row, document, gate_row, instant, stand_in


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


def _grant_row(forest: Forest, event: LeaseGranted, at: int) -> Row:
    """Return one grant as it would be."""
    loop = forest.loops[event.loop]
    return {
        "id": loop.id,
        "lease": f"{loop.id}#{event.attempt}",
        "project": loop.project,
        "score": score(forest.policy, loop, at)._asdict(),
        "lane": event.lane,
        "agent": event.agent or None,
        "stands_in": stand_in(forest, loop, at) or None,
    }
