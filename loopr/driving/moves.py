"""Moves the branch of a plan by a person's word: announced in the journal, done, and told there.

Whoever is cut short leaves the announcement, and the next engine does the rest. Must never decide where a plan stands.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from loopr.core import moving
from loopr.core import observations as o
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.intake import interpret
from loopr.core.plan_observations import ForeignSeen, PlanStands
from loopr.core.taking import NOTHING_TAKEN, Taken
from loopr.engine import Mind
from loopr.errors import Deferred
from loopr.world.repo.ground import Ground
from loopr.world.repo.tips import Aim, alone_with_plans, bring
from loopr.world.repo.words import Brought

PATIENCE_SECS, PAUSE_SECS = 10.0, 0.1


def announce(mind: Mind, plan: str, new: str, why: str, *, old: str | None = None, base: Taken = NOTHING_TAKEN) -> None:
    """Announce a move; one that is under way, such as a landing, is waited for."""
    ends = time.monotonic() + PATIENCE_SECS
    while True:
        try:
            mind.decide(lambda forest, now: moving.move(forest, plan, new, why, old=old, taken=base))
        except moving.TipMoved:
            raise
        except Deferred:
            if time.monotonic() > ends:
                raise
            time.sleep(PAUSE_SECS)
        else:
            return


def move_plan(
    mind: Mind, ground: Ground, plan: str, new: str, why: str, *, old: str | None = None, base: Taken = NOTHING_TAKEN
) -> Brought:
    """Let the branch of a plan stand elsewhere; what somebody else has put there is kept, and told.

    `TipMoved` where it does not stand at `old` any more, should that matter; `base` is what it takes over.
    """
    announce(mind, plan, new, why, old=old, base=base)
    with alone_with_plans(ground):
        done = bring(ground, plan, Aim(new, mind.forest.shared.tip(plan).at), mind.now())
    seen: list[o.Observation] = [PlanStands(plan, new)]
    if done.foreign and not done.behind:
        back = new if done.outcome == "moved" else ""
        seen.insert(0, ForeignSeen(plan, done.foreign, done.kept, back))

    def course(forest: Forest, now: int) -> Iterator[Event]:
        for each in seen:
            yield from interpret(forest, each, now)

    mind.decide(course)
    return done
