"""From what the world reports to what is true: the one place that forgives.

Late, repeated and stale observations end here. Yields events one at a time; whoever asks applies each before asking for
the next, so every line sees the forest as it is. Knows no effect and no order of launching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core import offer_events as f
from loopr.core import worktree_events as v
from loopr.core.costs import attempt_of, clear_suspects, cost, failure_target, has_judged, has_worked
from loopr.core.declaring import (
    after_landing,
    declare_children,
    outline_problems,
)
from loopr.core.events import Event
from loopr.core.filing import FILING, clear_problem, place_of, problem
from loopr.core.housing import PACKING
from loopr.core.judge_events import JudgeWaits, VerdictGiven
from loopr.core.limits import judge_lane, own_budget_reached
from loopr.core.model import Failure, Loop, Status, Usage
from loopr.core.moving import MOVING, moved_by, stayed_for
from loopr.core.redoing import redo_after
from loopr.core.scene import Scene
from loopr.core.serving import SERVING
from loopr.core.taking import redo_outdated

_LIVE = frozenset({Status.LEASED, Status.RUNNING, Status.CHECKING})
_HAS_RUN = frozenset({Failure.REFUSED, Failure.CONFLICT})


def interpret(scene: Scene, seen: o.Observation, now: int) -> Iterator[Event]:
    """Say what an observation means; nothing, if it is old news."""
    yield from _MEANINGS[type(seen)](scene, seen, now)


def current(scene: Scene, loop_id: str, attempt: int) -> Loop | None:
    """Return the loop if the attempt is its present one: the fence against late and stale results."""
    loop = scene.loops.get(loop_id)
    if loop is None or loop.lease is None or loop.lease.attempt != attempt:
        return None
    return loop


# --- attempts -----------------------------------------------------------------------------------------------------


def _attempt_began(scene: Scene, seen: o.AttemptBegan, now: int) -> Iterator[Event]:
    """The process of a leased loop runs."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is not None and loop.status is Status.LEASED:
        yield e.AttemptStarted(loop.id, seen.attempt, seen.base_commit, seen.supervisor)


def _attempt_lost(scene: Scene, seen: o.AttemptLost, now: int) -> Iterator[Event]:
    """A lease without a process goes back, free of cost."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is not None and loop.status is Status.LEASED:
        yield e.LeaseReleased(loop.id, seen.attempt, "the engine ended before it started")


def _input_gone(scene: Scene, seen: o.InputGone, now: int) -> Iterator[Event]:
    """A lease without an input goes back, free of cost; the loop waits until the file is there again."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is not None and loop.parent is not None and loop.status is Status.LEASED:
        place = place_of(scene, scene.loops[loop.parent])
        yield from FILING[o.FileGone](scene, o.FileGone(loop.parent), now)
        yield e.LeaseReleased(loop.id, seen.attempt, f"its input {place} was gone before it began")
    yield from _stop_seen(scene, o.StopSeen(seen.loop, seen.attempt), now)


def _attempt_used(scene: Scene, seen: o.AttemptUsed, now: int) -> Iterator[Event]:
    """More has been used; a loop that has reached its own budget is set aside."""
    loop = scene.loops.get(seen.loop)
    owner = (loop.lease or loop.ending) if loop is not None else None
    if loop is None or owner is None or owner.attempt != seen.attempt or loop.status is Status.AWAITING:
        return
    usage = seen.usage if seen.usage.ms else _at_least(loop.live, seen.usage)
    if loop.live != usage:
        yield e.UsageSeen(loop.id, seen.attempt, usage)
    reached = own_budget_reached(scene, scene.loops[loop.id], now)
    if reached and loop.status in _LIVE:
        yield e.SetAside(loop.id, seen.attempt, Failure.BUDGET, reached, live=True)


def _at_least(known: Usage, told: Usage) -> Usage:
    """Return what is told of an attempt at work, but no less than is known: who begins to listen late hears less."""

    def most(*amounts: int | None) -> int | None:
        return max((each for each in amounts if each is not None), default=None)

    return told._replace(
        tokens=most(known.tokens, told.tokens),
        micro_usd=most(known.micro_usd, told.micro_usd),
        ms=known.ms,
        estimated=told.estimated or known.estimated,
    )


def _attempt_ended(scene: Scene, seen: o.AttemptEnded, now: int) -> Iterator[Event]:
    """The command is over."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is None:
        yield from _stop_seen(scene, o.StopSeen(seen.loop, seen.attempt), now)
        return
    if loop.status is Status.LEASED and (seen.trouble is None or seen.trouble.failure in _HAS_RUN):
        yield e.AttemptStarted(loop.id, seen.attempt)  # the report of its beginning was lost or is late
        loop = scene.loops[loop.id]
    yield from clear_suspects(scene, loop, seen.trouble)
    if seen.trouble is not None and loop.status in (Status.LEASED, Status.RUNNING):
        yield from cost(scene, loop, seen.trouble, now)
    elif seen.trouble is None and loop.status is Status.RUNNING:
        yield from has_worked(scene, loop)
        lane, waits = judge_lane(scene, loop, now)
        yield JudgeWaits(loop.id, seen.attempt, waits) if waits else e.WorkEnded(loop.id, seen.attempt, lane)


def _attempt_stopped(scene: Scene, seen: o.AttemptStopped, now: int) -> Iterator[Event]:
    """The command was ended by a stop that is news: it is free, as any stop."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is not None and loop.status in (Status.LEASED, Status.RUNNING):
        yield e.Stopped(loop.id, seen.attempt, seen.reason)
    yield from _stop_seen(scene, o.StopSeen(seen.loop, seen.attempt), now)


def _said_yes(scene: Scene, seen: o.SaidYes, now: int) -> Iterator[Event]:
    """A judge need not be asked again about this very tree."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is not None and loop.status in (Status.CHECKING, Status.LANDING):
        yield from has_judged(scene, loop)
        yield VerdictGiven(loop.id, seen.attempt, seen.judge, seen.key)


def _judged(scene: Scene, seen: o.Judged, now: int) -> Iterator[Event]:
    """The judge is over."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is None:
        yield from _stop_seen(scene, o.StopSeen(seen.loop, seen.attempt), now)
    elif loop.status is Status.CHECKING:
        if seen.trouble is not None:
            yield from has_judged(scene, loop, seen.trouble)
            yield from cost(scene, loop, seen.trouble, now)
        else:
            own = scene.judged_as(loop) if seen.as_leaf else scene.policy.type_of(loop.type)
            yield e.Passed(loop.id, seen.attempt, Status.AWAITING if own.approve else Status.LANDING)


def _landing_done(scene: Scene, seen: o.LandingDone, now: int) -> Iterator[Event]:
    """The loop is complete; its children are declared in the same breath."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is None or loop.status is not Status.LANDING:
        return
    yield from moved_by(scene, loop)
    yield e.Landed(loop.id, seen.attempt, seen.commit, seen.digest, seen.put_back, scene.shared.grants, seen.own)
    if seen.gave_way and seen.gave_way in (loop.offers.offered, loop.offers.counts):
        yield f.OfferReplaced(loop.id, seen.gave_way)
    place = place_of(scene, loop)
    problems = outline_problems(scene, loop, seen.artifact, place) if seen.artifact is not None else []
    if problems:
        yield from problem(scene, place, "\n".join(map(str, problems)))
    else:
        if not seen.stays:
            yield from clear_problem(scene, place)
        if seen.artifact is not None:
            yield from declare_children(scene, loop.id, seen.artifact)
    yield from after_landing(scene, loop)
    yield from redo_outdated(scene, loop)
    yield from redo_after(scene, loop)


def _landing_failed(scene: Scene, seen: o.LandingFailed, now: int) -> Iterator[Event]:
    """The loop could not land."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is None or loop.status is not Status.LANDING:
        return
    yield from stayed_for(scene, loop, seen.trouble.reason)
    yield from cost(scene, loop, seen.trouble, now)
    yield from after_landing(scene, loop)


def _stop_seen(scene: Scene, seen: o.StopSeen, now: int) -> Iterator[Event]:
    """An attempt that was told to stop gives up its slot."""
    loop = scene.loops.get(seen.loop)
    if loop is not None and loop.ending is not None and loop.ending.attempt == seen.attempt:
        yield e.AttemptGone(loop.id, seen.attempt)


def _packing_done(scene: Scene, seen: o.PackingDone, now: int) -> Iterator[Event]:
    """A worktree is packed, or stays."""
    loop = scene.loops.get(seen.loop)
    if loop is not None and loop.packed == PACKING and loop.attempt == seen.attempt:
        yield v.WorktreeKept(loop.id, seen.why) if seen.why else v.WorktreePacked(loop.id)


def _noticed(scene: Scene, seen: o.Noticed, now: int) -> Iterator[Event]:
    """Something is in the way of an effect, or no longer."""
    yield from problem(scene, seen.place, seen.text) if seen.text else clear_problem(scene, seen.place)


def reclaim(scene: Scene, loop: Loop, now: int, why: str) -> Iterator[Event]:
    """Take a silent worker's lease back; that counts as one failure."""
    to, words, not_before = failure_target(scene, loop, False, now)
    yield e.LeaseExpired(loop.id, attempt_of(loop), to, not_before, words + why)


def _step_took(scene: Scene, seen: o.StepTook, now: int) -> Iterator[Event]:
    """A setup or a judge is over that took its time."""
    loop = current(scene, seen.loop, seen.attempt)
    if loop is not None and loop.status in _AT_WORK:
        yield e.StepTimed(loop.id, seen.attempt, seen.step, seen.ms)


_AT_WORK = frozenset({Status.LEASED, Status.RUNNING, Status.CHECKING, Status.LANDING})
_Meaning = Callable[[Scene, Any, int], Iterator[Event]]
_MEANINGS: Mapping[type[o.Observation], _Meaning] = {
    o.AttemptBegan: _attempt_began,
    o.AttemptLost: _attempt_lost,
    o.InputGone: _input_gone,
    o.AttemptUsed: _attempt_used,
    o.StepTook: _step_took,
    o.AttemptEnded: _attempt_ended,
    o.AttemptStopped: _attempt_stopped,
    o.SaidYes: _said_yes,
    o.Judged: _judged,
    o.LandingDone: _landing_done,
    o.LandingFailed: _landing_failed,
    o.StopSeen: _stop_seen,
    o.PackingDone: _packing_done,
    o.Noticed: _noticed,
    **MOVING,
    **FILING,
    **SERVING,
}
