"""What it means that something happens to the branch of a plan: the part of `intake.py` about where plans stand.

Forgives as that does: what is known already leads to nothing. Knows no ref and no repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loopr.core import observations as o
from loopr.core import plan_events as p
from loopr.core.attempt import lands
from loopr.core.events import Event
from loopr.core.hot import touched_turns
from loopr.core.judge_events import LandingWaits
from loopr.core.model import Loop, Status
from loopr.core.plan_observations import ForeignSeen, PlanStands, TipsFound
from loopr.core.scene import Scene
from loopr.core.taking import NOTHING_TAKEN, Taken, take_base
from loopr.core.tips import LANDED, STARTED
from loopr.errors import Deferred


class TipMoved(Deferred):
    """The branch of a plan stands elsewhere than it did when somebody began to make the commit it is to move to."""


def begin(scene: Scene, plan: str, commit: str) -> Iterator[Event]:
    """Announce that the branch of a plan begins at a commit, unless it has begun: from here on the name is loopr's."""
    tip = scene.shared.tip(plan)
    if commit and not tip.at and tip.stands != commit:
        yield p.PlanMoving(plan, "", commit, STARTED)


def move(
    scene: Scene, plan: str, new: str, why: str, *, old: str | None = None, taken: Taken = NOTHING_TAKEN
) -> Iterator[Event]:
    """Announce that the branch of a plan moves by a person's word; one move at a time.

    Whoever has made `new` from where the plan stood names that as `old`: what has landed since would be lost.
    """
    tip = scene.shared.tip(plan)
    if tip.moving is not None:
        who = tip.moving.loop or plan
        hint = "try again in a moment; where no engine is at work, `loopr run` ends it first"
        raise Deferred(f"a move of the branch of {plan} is under way ({who} is {tip.moving.why})", hint=hint)
    if old is not None and tip.at != old:
        raise TipMoved(f"the branch of {plan} has moved meanwhile", hint="run it again")
    if new != tip.at:
        yield p.PlanMoving(plan, tip.at, new, why, base=taken.base, others=taken.others)


def _landing_ready(scene: Scene, seen: o.LandingReady, now: int) -> Iterator[Event]:
    """The landing begins, unless the branch has moved since: then it is made ready anew.

    Nor does it where it changes files in which another loop has its turn to mend a conflict.
    """
    loop = scene.loops.get(seen.loop)
    if loop is None or loop.lease is None or loop.lease.attempt != seen.attempt or lands(loop):
        return
    if loop.status is not Status.LANDING:
        return
    if seen.old:
        tip = scene.shared.tip(loop.plan)
        if touched_turns(scene, loop, seen.touched):
            yield from _landing_touches(scene, seen, now)
            return
        if tip.stands != seen.old or (tip.moving is not None and not tip.begins):
            return
        if tip.begins:  # a worker has made it, or it is made with this move
            yield p.PlanMoved(loop.plan, "", seen.old, STARTED)
    yield p.LandingBegan(loop.id, seen.attempt)
    if seen.old != seen.new:
        yield p.PlanMoving(loop.plan, seen.old, seen.new, LANDED, loop.id, seen.loop_tip)


def _landing_touches(scene: Scene, seen: o.LandingReady | o.LandingTouches, now: int) -> Iterator[Event]:
    """The landing lets others pass while another loop mends a conflict in files that it changes."""
    loop = scene.loops.get(seen.loop)
    if loop is None or loop.lease is None or loop.lease.attempt != seen.attempt or loop.status is not Status.LANDING:
        return
    behind = touched_turns(scene, loop, seen.touched)
    if behind and not lands(loop) and behind != loop.lease.behind:
        yield LandingWaits(loop.id, seen.attempt, behind)


def moved_by(scene: Scene, loop: Loop) -> Iterator[Event]:
    """The branch of a plan stands where a loop that has landed was to bring it."""
    moving = scene.shared.tip(loop.plan).moving
    if moving is not None and moving.loop == loop.id:
        yield p.PlanMoved(loop.plan, moving.old, moving.new, moving.why)


def stayed_for(scene: Scene, loop: Loop, reason: str) -> Iterator[Event]:
    """The branch of a plan stays where it is, for the loop that was to move it cannot."""
    moving = scene.shared.tip(loop.plan).moving
    if moving is not None and moving.loop == loop.id:
        yield p.PlanStayed(loop.plan, moving.old, moving.new, reason)


def _plan_stands(scene: Scene, seen: PlanStands, now: int) -> Iterator[Event]:
    """A move that was announced is done, or cannot be."""
    moving = scene.shared.tip(seen.plan).moving
    if moving is None or moving.loop or moving.new != seen.new:
        return
    if seen.trouble:
        yield p.PlanStayed(seen.plan, moving.old, moving.new, seen.trouble)
    else:
        yield p.PlanMoved(seen.plan, moving.old, moving.new, moving.why)
        yield from take_base(scene, seen.plan, Taken(moving.base, moving.others))


def _tip_seen(scene: Scene, seen: ForeignSeen, now: int) -> Iterator[Event]:
    """The branch of a plan was where loopr had not brought it."""
    yield p.TipForeign(seen.plan, seen.tip, seen.kept, seen.back, seen.during)


def _tips_found(scene: Scene, seen: TipsFound, now: int) -> Iterator[Event]:
    """Plans of a journal that says nothing of their branches stand where the refs are, this once."""
    known = {plan for plan, tip in scene.shared.tips.items() if not tip.begins}
    fresh = {plan: at for plan, at in seen.tips.items() if plan in scene.loops.keys() - known}
    begun = [plan for plan, at in fresh.items() if at]
    if begun:
        yield p.TipsTaken(tuple(begun))
    for plan, at in fresh.items():
        bound = scene.shared.plans.get(plan)
        if at:
            yield p.PlanMoved(plan, "", at, STARTED)
        elif bound is not None:
            yield from begin(scene, plan, bound.base_commit)


MOVING: Mapping[type[o.Observation], Callable[[Scene, Any, int], Iterator[Event]]] = {
    o.LandingReady: _landing_ready,
    o.LandingTouches: _landing_touches,
    PlanStands: _plan_stands,
    ForeignSeen: _tip_seen,
    TipsFound: _tips_found,
}
"""What each of these observations means."""


def unrecorded(scene: Scene) -> Iterator[str]:
    """Name the plans with a branch of which the journal says nothing, since it is from before it did."""
    shared = scene.shared
    return (plan for plan, bound in shared.plans.items() if bound.base_commit and plan not in shared.tips)
