"""What it means that a plan takes over a base: where it begins from then on, and who is done again for other inputs.

Knows loops and commits by name only. Must never know a repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from loopr.core import workspace_events as w
from loopr.core.events import Event, Renewed
from loopr.core.inputs import Differing
from loopr.core.model import OCCUPYING, Loop, Status
from loopr.core.plan_events import InputsMoved
from loopr.core.redoing import ask_redo, next_round
from loopr.core.scene import Scene
from loopr.core.tips import UPDATE_PLACE

MOST_NAMED = 3
ITS_INPUTS = "its inputs"
_AT_WORK = OCCUPYING | {Status.AWAITING}
_ENDED = frozenset({Status.FAILED, Status.PARKED})


class Taken(NamedTuple):
    """A base that a plan takes over, and the loops that have other inputs there, each with the reason."""

    base: str = ""
    others: tuple[str, ...] = ()


NOTHING_TAKEN = Taken()


def taken(base: str, since: str, found: Differing) -> Taken:
    """Say what a plan takes over, and why the loops with other inputs are done again."""
    reasons = (f"{each.loop} {_reason(each.paths, since)}" for each in found.others)
    return Taken(base, tuple(reasons))


def _reason(paths: tuple[str, ...], since: str) -> str:
    """Say which inputs are others since a commit."""
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    words = "is another" if len(paths) == 1 else "are others"
    return f"{', '.join(paths[:MOST_NAMED])}{more} {words} since {since[:7]}"


def take_base(scene: Scene, plan: str, said: Taken) -> Iterator[Event]:
    """Let a plan begin at another base; ask to do each loop again that has other inputs there.

    One that has failed or is parked begins anew; of one at work it is noted.
    """
    bound = scene.shared.plans.get(plan)
    if bound is not None and said.base not in ("", bound.base_commit):
        yield w.PlanBound(plan, *bound._replace(base_commit=said.base))
    if said.base:
        yield from clear_refusal(scene, plan)
    if said.others:
        yield from next_round(scene, plan)
    for each in said.others:
        name, _, why = each.partition(" ")
        loop = scene.loops.get(name)
        if loop is not None and loop.status is Status.COMPLETE:
            yield from ask_redo(scene, loop, why, cascades=True, again=True)
        elif loop is not None and loop.status in _ENDED:
            yield Renewed(name, ITS_INPUTS, loop.generation + 1, why)
        elif loop is not None and (loop.status in _AT_WORK or _is_judged_next(loop)):
            yield InputsMoved(name, why)


def clear_refusal(scene: Scene, plan: str) -> Iterator[Event]:
    """Take back that a plan has not taken its base, where that was reported."""
    place = f"{UPDATE_PLACE}{plan}"
    if place in scene.shared.problems:
        yield w.ProblemGone(place)


def _is_judged_next(loop: Loop) -> bool:
    """Say whether the work of a loop is there already, and waits for a judge only."""
    return loop.status is Status.PENDING and loop.judge_only


def redo_outdated(scene: Scene, before: Loop) -> Iterator[Event]:
    """Ask for a loop to be done again that has landed what it made from other inputs than those of now."""
    if before.outdated:
        yield from ask_redo(scene, scene.loops[before.id], before.outdated, cascades=True, again=True)
