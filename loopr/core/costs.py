"""What each class of trouble costs a loop and its lane: the cost table of `semantics.md` section 5 as code.

Turns trouble into events that carry their consequence. Knows numbers of the policy; must never know where the trouble
was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from loopr.core import events as e
from loopr.core import workspace_events as w
from loopr.core.answers import answered, enough, is_news
from loopr.core.attempt import tallied
from loopr.core.backoff import backoff_ms
from loopr.core.clash import MOST_PATHS
from loopr.core.events import Event
from loopr.core.hot import next_number
from loopr.core.in_vain import is_own_matter
from loopr.core.judge_events import Conflicted, Refused
from loopr.core.limits import LONGEST_WINDOW_MS, own_budget_reached, ramp_after, rest_ms
from loopr.core.model import Failure, Loop, Status
from loopr.core.observations import Trouble
from loopr.core.scene import Scene

TOLD_AFTER = 3
"""After so many equal answers in a row a person is told what they can do about it."""
_SAYS_NOTHING_OF_THE_LANE = frozenset({Failure.LIMITED, Failure.INFRA, Failure.HOST, Failure.LANE})


def cost(scene: Scene, loop: Loop, trouble: Trouble, now: int) -> Iterator[Event]:
    """Say what trouble at the end of the present attempt leads to, for the loop and for its lane."""
    from_command = loop.status in (Status.LEASED, Status.RUNNING)
    if from_command and not trouble.launch and trouble.failure not in _SAYS_NOTHING_OF_THE_LANE:
        yield from has_worked(scene, loop)
    yield from _COSTS[trouble.failure](scene, loop, trouble, now)


def attempt_of(loop: Loop) -> int:
    """Return the number of the attempt that the loop's lease is for."""
    return loop.lease.attempt if loop.lease is not None else loop.attempt


def _count(number: int, word: str) -> str:
    """Count things in words."""
    return f"{number} {word}{'s' * (number != 1)}"


def _refused(scene: Scene, loop: Loop, trouble: Trouble, now: int) -> Iterator[Event]:
    """A verdict of no: the next iteration, at once."""
    agent = whose_work(scene, loop)
    said = Refused(loop.id, attempt_of(loop), Status.PENDING, trouble.signature, trouble.reason, trouble.work, agent)
    yield from _no(scene, loop, trouble, said, now)


def _conflict(scene: Scene, loop: Loop, trouble: Trouble, now: int) -> Iterator[Event]:
    """As a refusal, and counted apart; a command that is still at its work has nothing to merge yet."""
    if loop.status not in (Status.CHECKING, Status.LANDING):
        yield from _refused(scene, loop, trouble, now)
        return
    agent = whose_work(scene, loop)
    said = Conflicted(loop.id, attempt_of(loop), Status.PENDING, trouble.signature, trouble.reason, trouble.work, agent)
    said = replace(said, tip=trouble.tip, paths=trouble.paths[:MOST_PATHS], number=next_number(scene))
    yield from _no(scene, loop, trouble, said, now)


def whose_work(scene: Scene, loop: Loop) -> str:
    """Name the agent whose work is judged, nothing where a command has done it."""
    return (loop.lease.agent if loop.lease is not None else "") or scene.agent_of(loop)


def _no(scene: Scene, loop: Loop, trouble: Trouble, said: Refused | Conflicted, now: int) -> Iterator[Event]:
    """Say where a verdict of no leads: on, to another agent, or to the end of the iterations or of the patience."""
    said = _outcome(scene, loop, trouble, replace(said, touched=trouble.touched[:MOST_PATHS]))
    if said.to is Status.PENDING and (reached := own_budget_reached(scene, loop, now)):
        yield from _spent_up(scene, loop, trouble, reached)
        return
    limit = scene.policy.retry.max_conflicts
    if isinstance(said, Conflicted) and said.to is Status.PENDING and answered(loop, said).conflicts >= limit:
        why = f"max_conflicts: {_count(limit, 'conflict')} while landing: {trouble.reason}"
        said = replace(said, to=Status.PARKED, reason=why, takes_over="")
    yield said


def _outcome(scene: Scene, loop: Loop, trouble: Trouble, said: Refused | Conflicted) -> Refused | Conflicted:
    """Complete a verdict of no with what it leads to; a loop that stands still goes to another agent first."""
    limit = scene.judged_as(loop).max_iterations
    if loop.iteration - loop.granted_iterations >= limit:
        why = f"refused {_count(limit, 'time')}, its limit: {trouble.reason}"
        return replace(said, to=Status.FAILED, reason=_with_remedy(why, trouble))
    if isinstance(said, Conflicted) and is_news(loop, said.tip):
        return said
    counted = answered(loop, said)
    still = enough(scene.policy.retry, counted, said, quiet=trouble.quiet)
    if counted.repeats >= TOLD_AFTER:
        said = replace(said, reason=_with_remedy(trouble.reason, trouble))
    failure = Failure.CONFLICT if isinstance(said, Conflicted) else Failure.REFUSED
    after = loop._replace(tally=tallied(loop, failure))
    now_works, then_works = scene.agent_of(loop), scene.agent_of(after)
    if not still or then_works != now_works:
        return said
    reason, early = f"{trouble.reason}, {still}", scene.agent_of(after._replace(taken_early=True))
    if early not in (now_works, said.agent):
        return replace(said, reason=f"{reason}: {early} takes over", takes_over=early)
    return replace(said, to=Status.FAILED, reason=_with_remedy(reason, trouble))


def _with_remedy(reason: str, trouble: Trouble) -> str:
    """Add to a last word what a person can do, where that is known."""
    return f"{reason}; {trouble.remedy}" if trouble.remedy else reason


def _broke(scene: Scene, loop: Loop, trouble: Trouble, now: int) -> Iterator[Event]:
    """No verdict: one failure, and a delay."""
    to, why, not_before = failure_target(scene, loop, trouble.launch, now)
    if to is Status.PENDING and (reached := own_budget_reached(scene, loop, now)):
        yield from _spent_up(scene, loop, trouble, reached)
        return
    yield e.Broke(loop.id, attempt_of(loop), trouble.failure, trouble.launch, to, not_before, why + trouble.reason)


def failure_target(scene: Scene, loop: Loop, launch: bool, now: int) -> tuple[Status, str, int]:
    """Say where the next failure leads: to another try after a delay, or aside."""
    retry = scene.policy.retry
    if launch and loop.launch_failures + 1 >= retry.max_launch_failures:
        times = _count(retry.max_launch_failures, "time")
        return Status.PARKED, f"max_launch_failures: it did not start {times} in a row: ", 0
    if loop.failures + 1 >= retry.max_attempts:
        tries = f"{retry.max_attempts} {'try' if retry.max_attempts == 1 else 'tries'}"
        return Status.PARKED, f"max_attempts: {tries} ended without a verdict: ", 0
    return Status.PENDING, "", now + backoff_ms(retry, loop.failures + 1, loop.id, attempt_of(loop))


def _set_aside(scene: Scene, loop: Loop, trouble: Trouble, now: int) -> Iterator[Event]:
    """Only a person can help."""
    yield e.SetAside(loop.id, attempt_of(loop), trouble.failure, trouble.reason)


def _spent_up(scene: Scene, loop: Loop, trouble: Trouble, reached: str) -> Iterator[Event]:
    """A next try would have nothing left to spend."""
    yield e.SetAside(loop.id, attempt_of(loop), Failure.BUDGET, f"{reached}; its last try: {trouble.reason}")


def _free(loop: Loop, trouble: Trouble, rests: str = "") -> Event:
    """It costs the loop nothing; if it was the judge that met the trouble, only the judge runs again."""
    return e.Limited(loop.id, attempt_of(loop), trouble.failure, trouble.reason, _is_judged(loop), rests)


def _is_judged(loop: Loop) -> bool:
    """Say whether it is the judge of a loop that is at work."""
    return loop.status in (Status.CHECKING, Status.LANDING) or (loop.lease is not None and loop.lease.judge_only)


def _limited(scene: Scene, loop: Loop, trouble: Trouble, now: int) -> Iterator[Event]:
    """The lane rests; a limit of an attempt from before the rest may only lengthen it."""
    name = trouble.lane or loop.lane or ""
    if is_own_matter(scene, loop, name):
        yield from _own_limit(scene, loop, trouble, name, now)
        return
    lane = scene.shared.lane(name)
    asked = _asked_until(scene, name, trouble, now)
    grant = loop.lease.grant if loop.lease is not None else 0
    yield _free(loop, trouble, name if grant > lane.rest_grant else "")
    if grant > lane.rest_grant:
        until = max(asked, now + rest_ms(lane.hits + 1))
        yield w.LaneRested(name, lane.hits + 1, until, scene.shared.grants, trouble.reason)
    elif asked > lane.rest_until:
        yield w.LaneRested(name, lane.hits, asked, lane.rest_grant, trouble.reason)


def _own_limit(scene: Scene, loop: Loop, trouble: Trouble, name: str, now: int) -> Iterator[Event]:
    """The lane works for others: one failure, and a delay, no shorter than the loop was told."""
    to, why, not_before = failure_target(scene, loop, False, now)
    if to is Status.PENDING:
        not_before = max(not_before, _asked_until(scene, name, trouble, now))
    words = f"{why}limited, while lane {name} works for others: {trouble.reason}"
    yield e.Broke(loop.id, attempt_of(loop), Failure.LIMITED, False, to, not_before, words, _is_judged(loop))


def _asked_until(scene: Scene, name: str, trouble: Trouble, now: int) -> int:
    """Say until when a lane is asked to rest, 0 where no time is told: anybody may write a time, so it has a bound."""
    asked = trouble.resets_at or (now + trouble.retry_after_ms if trouble.retry_after_ms else 0)
    if trouble.vouched and asked <= now + LONGEST_WINDOW_MS:
        return asked
    return min(asked, now + scene.policy.lane(name).max_rest_ms)


def _lane(scene: Scene, loop: Loop, trouble: Trouble, now: int) -> Iterator[Event]:
    """The account is of no use: the lane is parked, once."""
    name = trouble.lane or loop.lane or ""
    yield _free(loop, trouble)
    if not scene.shared.lane(name).parked:
        yield w.LaneParked(name, trouble.reason)


def _host(scene: Scene, loop: Loop, trouble: Trouble, now: int) -> Iterator[Event]:
    """The machine is in the way: nothing starts until it is probed again."""
    yield _free(loop, trouble)
    host = scene.shared.host
    if host.reason != trouble.reason:
        refusals = host.refusals + (not host.reason)  # what else it refuses meanwhile is no other time
        yield w.HostChanged(trouble.reason, now + host_rest_ms(scene, refusals), refusals)


def host_rest_ms(scene: Scene, refusals: int) -> int:
    """Say how long nothing starts after the machine has refused something so often in a row."""
    return backoff_ms(scene.policy.retry, refusals, "host", refusals)


def clear_suspects(scene: Scene, loop: Loop, trouble: Trouble | None) -> Iterator[Event]:
    """Let those be at work together again of whom one has worked since the harm, and has ended without another."""
    lease, own = loop.lease, [each for each in scene.shared.suspects if loop.id in each.loops]
    if not own or lease is None or lease.judge_only or any(lease.grant <= each.grant for each in own):
        return
    if trouble is None or not (trouble.harm or trouble.launch or trouble.failure in _SAYS_NOTHING_OF_THE_LANE):
        yield w.SuspectsCleared(loop.id, tuple(dict.fromkeys(name for each in own for name in each.loops)))


def has_worked(scene: Scene, loop: Loop) -> Iterator[Event]:
    """Let lane and machine forget what they have refused before this attempt; one for judges alone has yet to ask."""
    if scene.shared.host.refusals and not scene.shared.host.reason:
        yield w.HostWorked()
    if loop.lease is not None and not loop.lease.judge_only:
        yield from _lane_worked(scene, loop)


def has_judged(scene: Scene, loop: Loop, trouble: Trouble | None = None) -> Iterator[Event]:
    """Let a lane forget its hits on which judges alone have worked, once one of them has answered."""
    if loop.lease is None or (trouble is not None and trouble.failure in _SAYS_NOTHING_OF_THE_LANE):
        return
    if loop.lease.judge_only or loop.lease.lane not in scene.lanes_of(loop):
        yield from _lane_worked(scene, loop)


def _lane_worked(scene: Scene, loop: Loop) -> Iterator[Event]:
    """Let a lane forget its hits and widen its ramp after an attempt from after its rest."""
    name = loop.lane
    if name is None or loop.lease is None:
        return
    lane = scene.shared.lane(name)
    if loop.lease.grant > lane.rest_grant and (lane.hits or lane.ramp is not None):
        yield w.LaneWorked(name, ramp_after(scene, name), loop.id)


_Cost = Callable[[Scene, Loop, Trouble, int], Iterator[Event]]
_COSTS: Mapping[Failure, _Cost] = {
    Failure.REFUSED: _refused,
    Failure.CONFLICT: _conflict,
    Failure.INFRA: _broke,
    Failure.TIMEOUT: _broke,
    Failure.LIMITED: _limited,
    Failure.LANE: _lane,
    Failure.HOST: _host,
    Failure.CONFIG: _set_aside,
    Failure.BUDGET: _set_aside,
    Failure.BLOCKED: _set_aside,
}
