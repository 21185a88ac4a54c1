"""What each event of an attempt changes in a loop beside its status: the lease, the counters, the feedback.

Knows one loop and its present attempt; whether the event is allowed at all was asked before (`lifecycle.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loopr.core import events as e
from loopr.core.answers import answered
from loopr.core.clash import Clash
from loopr.core.judge_events import Conflicted, JudgeWaits, LandingWaits, MergeTurnEnded, Refused, VerdictGiven
from loopr.core.model import NO_USAGE, Ending, Failure, Lease, Loop, Status, Usage
from loopr.core.plan_events import InputsMoved, LandingBegan
from loopr.errors import Impossible

S = Status
_LIVE = frozenset({S.LEASED, S.RUNNING, S.CHECKING, S.LANDING})


def lands(loop: Loop) -> bool:
    """Say whether the landing of a loop has begun: its plan's branch is about to move, and there is no way back."""
    return loop.lease is not None and loop.lease.lands


def let_go(loop: Loop) -> Loop:
    """Take the lease away; what may still run keeps its slot as an ending attempt."""
    lease = loop.lease
    if lease is None:
        return loop
    if loop.status not in _LIVE:
        return over(loop)
    held = lease.holds if loop.status is not S.LANDING else ()
    ending = Ending(lease.attempt, lease.lane, lease.started_at, lease.expires_at, lease.supervisor, held)
    return loop._replace(lease=None, ending=ending)


def over(loop: Loop) -> Loop:
    """End the attempt; what it used is booked by the forest, which knows the prices."""
    return loop._replace(lease=None, ending=None, live=NO_USAGE)


def _granted(loop: Loop, event: e.LeaseGranted, at: int) -> Loop:
    """Take the lease; a pull worker's attempt runs from this instant."""
    if event.attempt <= loop.attempt:
        raise Impossible(f"{loop.id} was granted attempt {event.attempt} after {loop.attempt}")
    if loop.ending is not None:
        raise Impossible(f"{loop.id} was leased while attempt {loop.ending.attempt} still lives")
    pull = event.expires_at is not None
    lease = Lease(
        event.attempt,
        event.holder,
        event.lane,
        at,
        event.grant,
        event.expires_at,
        at if pull else None,
        event.judge_only,
        event.agent,
        holds=event.holds,
    )
    return loop._replace(
        status=S.RUNNING if pull else S.LEASED,
        attempt=event.attempt,
        lease=lease,
        leased=True,
        engaged=True,
        live=NO_USAGE,
        not_before=0,
        judge_only=False,
        clash=_with_turn(loop, pull=pull, at=at),
        packed="",
        outdated=loop.outdated if event.judge_only else "",
        past=loop.past._replace(worked=event.work) if event.work != loop.past.worked else loop.past,
    )


def _with_turn(loop: Loop, *, pull: bool, at: int) -> Clash:
    """Begin the turn of a loop to mend its conflict; a pull worker has none."""
    clash = loop.clash
    if not clash.number:
        return clash
    return clash.over if pull else clash._replace(began=clash.began or at)


def _started(loop: Loop, event: e.AttemptStarted, at: int) -> Loop:
    """Note when the process began, and who watches it."""
    lease = _lease(loop)._replace(started_at=at, supervisor=event.supervisor)
    return loop._replace(status=S.RUNNING, lease=lease, base_commit=event.base_commit or loop.base_commit, reason="")


def _lease(loop: Loop) -> Lease:
    """Return the lease that the fence has found to be there."""
    if loop.lease is None:
        raise Impossible(f"{loop.id} has no lease")
    return loop.lease


def _usage_seen(loop: Loop, event: e.UsageSeen, at: int) -> Loop:
    """Remember what the attempt has used so far."""
    return loop._replace(live=event.usage)


def _step_timed(loop: Loop, event: e.StepTimed, at: int) -> Loop:
    """Count the time beside the commands along: it is shown, and no budget pays for it."""
    return loop._replace(spent=loop.spent._replace(beside_ms=loop.spent.beside_ms + event.ms))


def _renewed_lease(loop: Loop, event: e.LeaseRenewed, at: int) -> Loop:
    """Let the lease live longer."""
    return loop._replace(lease=_lease(loop)._replace(expires_at=event.expires_at))


def _work_ended(loop: Loop, event: e.WorkEnded, at: int) -> Loop:
    """Stop the attempt's clock: what comes now is the engine's, or another lane's."""
    lease = _lease(loop)
    loop = loop if lease.judge_only else _served(loop)
    if event.lane:
        judged = lease._replace(expires_at=None, lane=event.lane, started_at=at)
        return loop._replace(status=S.CHECKING, lease=judged, live=NO_USAGE)
    return loop._replace(status=S.CHECKING, lease=lease._replace(expires_at=None), live=clocked(loop, at))


def _served(loop: Loop) -> Loop:
    """Forget the limits in a row: its attempt has ended in another way."""
    return loop._replace(in_vain=0, vain_on="")


def _in_vain(loop: Loop, lane: str) -> Loop:
    """Count one more limit in a row on a lane."""
    return loop._replace(in_vain=loop.in_vain + 1 if loop.vain_on == lane else 1, vain_on=lane)


def clocked(loop: Loop, at: int) -> Usage:
    """Return what the present or ending attempt has used; its duration is up to `at` unless its outcome said one."""
    owner = loop.lease or loop.ending
    started = owner.started_at if owner is not None else None
    if loop.live.ms or started is None:
        return loop.live
    return loop.live._replace(ms=max(0, at - started))


def _verdict(loop: Loop, event: VerdictGiven, at: int) -> Loop:
    """Remember the last yes of each judge: an older one was about a tree that is no more."""
    return loop._replace(yes=tuple((dict(loop.yes) | {event.judge: event.key}).items()))


def _passed(loop: Loop, event: e.Passed, at: int) -> Loop:
    """Go on to the person, which may take days: the attempt is paid for now; or to the plan branch."""
    if event.to is not S.AWAITING:
        return loop._replace(status=event.to, live=clocked(loop, at))
    return loop._replace(status=event.to, lease=_lease(loop)._replace(started_at=None), live=NO_USAGE)


def tallied(loop: Loop, failure: Failure) -> tuple[tuple[str, int], ...]:
    """Count one more failure of a class."""
    counts = dict(loop.tally)
    return tuple((counts | {failure.value: counts.get(failure.value, 0) + 1}).items())


def _refused(loop: Loop, event: Refused | Conflicted, at: int) -> Loop:
    """Begin the next iteration, unless this was the last."""
    clash = loop.clash
    if isinstance(event, Conflicted):
        clash = clash.again(event.paths, event.number)
    if event.touched != clash.touched:
        clash = clash._replace(touched=event.touched)
    return answered(over(_served(loop)), event)._replace(
        status=event.to,
        iteration=loop.iteration + (event.to is not S.FAILED),
        failures=0,
        launch_failures=0,
        taken_early=loop.taken_early or bool(event.takes_over),
        clash=clash,
        tally=tallied(loop, Failure.CONFLICT if isinstance(event, Conflicted) else Failure.REFUSED),
        reason=event.reason,
    )


def _limited(loop: Loop, event: e.Limited, at: int) -> Loop:
    """Wait, at no cost; if only the judge was limited, only the judge runs again."""
    counted = _in_vain(loop, event.rests) if event.rests else loop
    return over(counted)._replace(status=S.PENDING, judge_only=event.judge_only, reason=event.reason)


def _judge_waits(loop: Loop, event: JudgeWaits, at: int) -> Loop:
    """Wait for the judges' lane, at no cost."""
    return over(loop)._replace(status=S.PENDING, judge_only=True, reason=event.reason)


def _broke(loop: Loop, event: e.Broke, at: int) -> Loop:
    """Count a failure, and wait or be set aside."""
    counted = _in_vain(loop, loop.vain_on) if event.failure is Failure.LIMITED else _served(loop)
    return over(counted)._replace(
        status=event.to,
        judge_only=event.judge_only,
        failures=loop.failures + 1,
        launch_failures=loop.launch_failures + 1 if event.launch else 0,
        tally=tallied(loop, event.failure),
        not_before=event.not_before,
        reason=event.reason,
    )


def _expired(loop: Loop, event: e.LeaseExpired, at: int) -> Loop:
    """Count a silent worker as one failure."""
    return over(_served(loop))._replace(
        status=event.to,
        failures=loop.failures + 1,
        launch_failures=0,
        tally=tallied(loop, Failure.INFRA),
        not_before=event.not_before,
        reason=event.reason,
    )


def _released(loop: Loop, event: e.LeaseReleased, at: int) -> Loop:
    """Wait again, free of cost."""
    return over(loop)._replace(status=S.PENDING, judge_only=_lease(loop).judge_only, reason=event.reason)


def _set_aside(loop: Loop, event: e.SetAside, at: int) -> Loop:
    """Wait for a person."""
    ended = _served(let_go(loop) if event.live else over(loop))
    return ended._replace(status=S.PARKED, reason=event.reason)


def _stopped(loop: Loop, event: e.Stopped, at: int) -> Loop:
    """Wait again, free of cost, once the attempt has ended."""
    return let_go(loop)._replace(status=S.PENDING, judge_only=_lease(loop).judge_only, reason=event.reason)


def _gone(loop: Loop, event: e.AttemptGone, at: int) -> Loop:
    """Give up the slot of the attempt that was told to stop."""
    if loop.lease is not None:
        raise Impossible(f"{loop.id} has a lease beside an ending attempt")
    return over(loop)


def _landing_began(loop: Loop, event: LandingBegan, at: int) -> Loop:
    """Begin the landing."""
    return loop._replace(lease=_lease(loop)._replace(lands=True))


def _landing_waits(loop: Loop, event: LandingWaits, at: int) -> Loop:
    """Remember the files for which the landing lets others pass."""
    return loop._replace(lease=_lease(loop)._replace(behind=event.paths))


def _turn_ended(loop: Loop, event: MergeTurnEnded, at: int) -> Loop:
    """Go on without a turn."""
    return loop._replace(clash=loop.clash.over)


def _inputs_moved(loop: Loop, event: InputsMoved, at: int) -> Loop:
    """Note that what it works from is old by now."""
    return loop._replace(outdated=event.why)


def _landed(loop: Loop, event: e.Landed, at: int) -> Loop:
    """Be done: integrated and published; its work is as old as the attempt that it comes from."""
    done, past = finish(over(loop), event.digest, at), loop.past
    if event.digest == loop.offers.counts:  # nothing handed over: the file that counts lies there
        done = done._replace(offers=loop.offers)
    if event.after:
        past = past._replace(made=past.worked, changed=event.after if event.commit else past.changed)
    own = tuple(sorted({*loop.own, *event.own})) if event.own else loop.own
    past = past._replace(ask=None) if past.ask else past
    return done._replace(landed=event.commit or loop.landed, past=past, own=own)


def finish(loop: Loop, digest: str, at: int) -> Loop:
    """Complete with an artifact that is on disk."""
    asked = loop.past.ask is not None and loop.status is not S.COMPLETE
    return loop._replace(
        status=S.COMPLETE,
        outdated="",
        past=loop.past._replace(ask=None) if asked else loop.past,
        artifact=digest,
        on_disk=True,
        seen=at,
        finished=loop.identity,
        not_before=0,
        judge_only=False,
        in_vain=0,
        vain_on="",
        reason="",
        yes=(),
        offers=loop.offers._replace(counts="") if loop.offers.counts else loop.offers,
    )


ATTEMPT_STEPS: Mapping[type[e.LoopEvent], Callable[[Loop, Any, int], Loop]] = {
    e.LeaseGranted: _granted,
    e.AttemptStarted: _started,
    e.LeaseReleased: _released,
    e.LeaseExpired: _expired,
    e.LeaseRenewed: _renewed_lease,
    e.UsageSeen: _usage_seen,
    e.StepTimed: _step_timed,
    e.WorkEnded: _work_ended,
    VerdictGiven: _verdict,
    JudgeWaits: _judge_waits,
    Refused: _refused,
    e.Limited: _limited,
    e.Broke: _broke,
    e.SetAside: _set_aside,
    e.Passed: _passed,
    LandingWaits: _landing_waits,
    MergeTurnEnded: _turn_ended,
    LandingBegan: _landing_began,
    InputsMoved: _inputs_moved,
    e.Landed: _landed,
    Conflicted: _refused,
    e.Stopped: _stopped,
    e.AttemptGone: _gone,
}
