"""What a person, a script or an agent may wish for, and what each wish leads to.

A wish that makes no sense in the present state raises a `UserError` and changes nothing. Yields events one at a time,
like `intake.py`. Knows no terminal and no protocol: `ui/requests.py` has read and validated the words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from loopr.core import events as e
from loopr.core import moving
from loopr.core import workspace_events as w
from loopr.core.attempt import lands
from loopr.core.choose import ENGINE
from loopr.core.declaring import awaits_cancel, cancel_event
from loopr.core.dropping import held_by_cancel
from loopr.core.events import Event
from loopr.core.intake import current, interpret, reclaim
from loopr.core.lifecycle import allows
from loopr.core.model import CLEARED, Loop, Status, Usage
from loopr.core.observations import AttemptEnded, AttemptUsed, FileSeen, Trouble
from loopr.core.offering import offered_file, words_for
from loopr.core.redoing import worked_below
from loopr.core.refusing import does_not_fit, nothing_stuck
from loopr.core.scene import Scene
from loopr.core.shared import WORKSPACE
from loopr.core.states import GONE, NOT_OVER, is_written
from loopr.core.trust import approve_file, reject_file
from loopr.errors import NotFound, StaleLease, UserError

STOPPED = "the engine was stopped by "


def _unreadable(loop: Loop, digest: str) -> FileSeen:
    """Say that a text is kept nowhere."""
    raise UserError(f"the text that is offered for {loop.id} is kept nowhere", hint="save the file again, yourself")


_LIVE = frozenset({Status.LEASED, Status.RUNNING, Status.CHECKING})
_MAY_STOP = _LIVE | {Status.LANDING}
_STUCK = frozenset({Status.PARKED, Status.FAILED, Status.CANCELLED})
_JUDGED = frozenset({Status.CHECKING, Status.AWAITING, Status.LANDING})


class Word(NamedTuple):
    """A person's word on a loop: on its `file` or on whatever waits; `read` returns a text that is kept, by digest."""

    file: bool = False
    by: str = ""
    read: Callable[[Loop, str], FileSeen] = _unreadable


NO_WORD = Word()


def _loop(scene: Scene, loop_id: str) -> Loop:
    """Return a loop by its exact id."""
    loop = scene.loops.get(loop_id)
    if loop is None:
        raise NotFound(f"there is no loop {loop_id}", hint="`loopr ls` lists them")
    return loop


def _all_pending(scene: Scene, loop_ids: tuple[str, ...], verb: str, hint: str) -> list[Loop]:
    """Return some loops, each once; if any waits for no turn, all that do not are told together."""
    loops = [_loop(scene, loop_id) for loop_id in dict.fromkeys(loop_ids)]
    others = [loop for loop in loops if not loop.waits]
    wrong = [does_not_fit(scene, each, verb, hint, of_below=True) for each in others]
    if wrong:
        raise UserError("", problems=[problem for each in wrong for problem in each.problems])
    return loops


def pause(scene: Scene, scope: str, by: str, reason: str, *, at_once: bool = False) -> Iterator[Event]:
    """Hold a loop with its subtree, `project:NAME` or `workspace`; a live attempt ends by itself unless `at_once`."""
    if scene.tree.at_rest(scope):
        return  # nothing of it is left to hold
    if scope == WORKSPACE or scope.startswith("project:"):
        if scope not in scene.shared.holds:
            yield w.ScopeHeld(scope, by, reason)
    elif (hold := _loop(scene, scope).hold) is None or hold.is_clearing:
        yield e.Held(scope, by, reason)
    if at_once:
        for loop in _in_scope(scene, scope):
            if may_stop(loop):
                yield e.Stopped(loop.id, loop.attempt, f"paused by {by}")


def may_stop(loop: Loop) -> bool:
    """Say whether something of a loop is under way that a word may still end, free of cost."""
    return loop.status in _MAY_STOP and not lands(loop)


def stop_all(scene: Scene, by: str) -> Iterator[Event]:
    """Stop every live attempt of the engine's own, free of cost."""
    for loop_id in list(scene.occupancy.loops):
        loop = scene.loops[loop_id]
        if loop.status in _LIVE and loop.lease is not None and loop.lease.expires_at is None:
            yield e.Stopped(loop.id, loop.attempt, f"{STOPPED}{by}")


def _in_scope(scene: Scene, scope: str) -> list[Loop]:
    """List the loops that a hold reaches."""
    if scope == WORKSPACE:
        return list(scene.tree.walk())
    if scope.startswith("project:"):
        return [loop for loop in scene.tree.walk() if f"project:{loop.project}" == scope]
    return list(scene.tree.walk(scope))


def resume(scene: Scene, scope: str, by: str) -> Iterator[Event]:
    """Lift the hold of a loop, of a project or of the workspace, and with the last one whatever was cleared."""
    if scope == WORKSPACE or scope.startswith("project:"):
        if scope in scene.shared.holds:
            yield w.ScopeLifted(scope, by)
        for loop_id in sorted(scene.tree.held) if scope == WORKSPACE else ():
            hold = scene.loops[loop_id].hold
            if hold is not None and hold.is_clearing:
                yield e.Lifted(loop_id, by)
    elif _loop(scene, scope).hold is not None:
        yield e.Lifted(scope, by)


def clear(scene: Scene, loop_ids: tuple[str, ...], by: str) -> Iterator[Event]:
    """Take pending loops out of the queue: each is held, with that as the reason."""
    for loop in _all_pending(scene, loop_ids, "clear", "only pending loops stand in the queue"):
        if loop.hold is None:
            yield e.Held(loop.id, by, CLEARED)


def cancel(scene: Scene, loop_id: str, by: str, reason: str = "") -> Iterator[Event]:
    """End a loop with all that is unfinished below it; a complete one of which something is left is held."""
    top = _loop(scene, loop_id)
    if top.status is Status.INVALIDATED:
        raise does_not_fit(scene, top, "cancel", GONE)
    for loop in list(scene.tree.walk(loop_id)):
        if loop.status in (Status.CANCELLED, Status.INVALIDATED) or awaits_cancel(loop):
            continue
        if loop.status is not Status.COMPLETE or (loop is top and not (loop.hold or scene.tree.at_rest(loop_id))):
            yield cancel_event(loop, by, reason or f"cancelled by {by}")


def retry(scene: Scene, loop_id: str, by: str, now: int) -> Iterator[Event]:
    """Begin a loop's counting again in the same worktree; a cancelled one brings back what was cancelled below it.

    Of a complete one all begins again that has come to an end below it without completing, or
    backs off. Loops that a cancel holds are let go on.
    """
    loop = _loop(scene, loop_id)
    late = {each.id for each in scene.tree.walk(loop_id) if each.status is Status.PENDING and each.not_before > now}
    stuck = _stuck_below(scene, loop, _STUCK, late)
    if not stuck and loop_id not in late and loop.status not in _STUCK:
        raise nothing_stuck(scene, loop, "retry")
    below = scene.tree.walk(loop_id) if loop.status is Status.CANCELLED else [loop]
    stuck = stuck or [each.id for each in below if each is loop or each.status is Status.CANCELLED]
    yield from (e.Lifted(each, by) for each in held_by_cancel(scene, loop_id, by))
    yield from (e.Retried(each, by) for each in stuck)


def _stuck_below(scene: Scene, loop: Loop, statuses: frozenset[Status], late: Collection[str] = ()) -> list[str]:
    """List the loops of a status, and the `late` ones, below a complete loop; parents come first."""
    if loop.status is not Status.COMPLETE:
        return []
    return [each.id for each in scene.tree.walk(loop.id) if each.status in statuses or each.id in late]


def renew(scene: Scene, loop_id: str, by: str) -> Iterator[Event]:
    """Make a loop anew, as a new generation; of a plan that a person has written, all below it that is over."""
    loop = _loop(scene, loop_id)
    event = e.Renewed(loop_id, by, loop.generation + 1)
    if not allows(loop, event):
        hint = GONE if loop.status is Status.INVALIDATED else NOT_OVER
        raise does_not_fit(scene, loop, "retry --fresh", hint)
    below = worked_below(scene, loop_id) if is_written(scene, loop) else [loop]
    if not below:
        hint = f"`loopr tree {loop_id}` shows how it stands"
        raise UserError(f"cannot retry --fresh {loop_id}: nothing below it has been tried and is over", hint=hint)
    yield from (e.Renewed(each.id, by, each.generation + 1) for each in below)


def unpark(scene: Scene, loop_id: str, by: str) -> Iterator[Event]:
    """Let a parked loop try again, or all that are parked below a complete one."""
    loop = _loop(scene, loop_id)
    if parked := _stuck_below(scene, loop, frozenset({Status.PARKED})):
        yield from (e.Unparked(each, by) for each in parked)
        return
    if loop.status is not Status.PARKED:
        raise nothing_stuck(scene, loop, "reset")
    yield e.Unparked(loop_id, by)


def reset_lane(scene: Scene, lane: str, by: str) -> Iterator[Event]:
    """End a lane's rest, or take it back into use."""
    named = {name for each in scene.policy.types.values() for name in (*each.lanes, *each.judge_lanes)}
    if lane not in {*scene.shared.lanes, *scene.policy.lanes, *named}:
        raise NotFound(f"there is no lane {lane}", hint="`loopr status` lists the lanes")
    yield w.LaneReset(lane, by)


def approve(scene: Scene, loop_id: str, word: Word = NO_WORD) -> Iterator[Event]:
    """Let a loop that waits for a person land; or take an offered file, where that is meant."""
    loop = _loop(scene, loop_id)
    if _means_file(scene, loop, word, "approve"):
        yield from approve_file(scene, loop, word.read(loop, offered_file(scene, loop)))
    else:
        yield _of_awaiting(scene, e.Approved(loop_id), "approve")


def reject(scene: Scene, loop_id: str, reason: str, word: Word = NO_WORD) -> Iterator[Event]:
    """End a loop that waits for a person; or forget an offered file for good, where that is meant."""
    loop = _loop(scene, loop_id)
    if _means_file(scene, loop, word, "reject"):
        before = word.read(loop, loop.offers.before).artifact if loop.offers.before else None
        yield from reject_file(scene, loop, word.by, before)
    else:
        yield _of_awaiting(scene, e.Rejected(loop_id, reason or "rejected"), "reject")


def _means_file(scene: Scene, loop: Loop, word: Word, verb: str) -> bool:
    """Say whether a word is on an offered file: where that is said, or where nothing else waits for one."""
    offered, works = bool(offered_file(scene, loop)), loop.status is Status.AWAITING
    if word.file and not offered:
        raise UserError(f"no file is offered for {loop.id}", hint="`loopr status` lists what is offered")
    if offered and works and not word.file:
        hint = f"the file first: {words_for(loop)}; then the work: `loopr {verb} {loop.id}`"
        raise UserError(f"{loop.id} waits for two words: on its work, and on an offered file", hint=hint)
    return offered and (word.file or not works)


def iterate(scene: Scene, loop_id: str, feedback: str) -> Iterator[Event]:
    """Send a loop that waits for a person round once more, with feedback."""
    yield _of_awaiting(scene, e.IterationAsked(loop_id, feedback), "iterate")


def _of_awaiting(scene: Scene, event: e.LoopEvent, verb: str) -> e.LoopEvent:
    """Return an event that only a loop which waits for approval takes."""
    loop = _loop(scene, event.loop)
    if loop.status is not Status.AWAITING:
        hint = "only a loop that waits for approval can be decided on"
        raise does_not_fit(scene, loop, verb, hint)
    return event


def dispatch(scene: Scene, loop_ids: tuple[str, ...], by: str) -> Iterator[Event]:
    """Put loops ahead of the queue, past no gate."""
    _all_pending(scene, loop_ids, "dispatch", "only pending loops can go next")
    if loop_ids and tuple(dict.fromkeys((*loop_ids, *scene.shared.dispatch))) != scene.shared.dispatch:
        yield w.LoopsDispatched(loop_ids, by)


def forget(scene: Scene, loop_id: str) -> Iterator[Event]:
    """Stop reminding of the landed work of an invalidated loop and of what was below it."""
    loop = _loop(scene, loop_id)
    if loop.status is not Status.INVALIDATED:
        hint = "only a loop that is no longer declared can be forgotten"
        raise does_not_fit(scene, loop, "forget", hint)
    gone = [each for each in scene.tree.by_status[Status.INVALIDATED] if f"{each}/".startswith(f"{loop_id}/")]
    for each in sorted(gone):
        if each == loop_id or scene.loops[each].landed:
            yield e.Forgotten(each)


def deny(scene: Scene, lease: str, wish: str, about: str, tries: int) -> Iterator[Event]:
    """Tell what a loop was refused, if it is new, or twice as often as it was told."""
    loop = _loop(scene, lease.rpartition("#")[0])
    known = scene.shared.denied_to(loop.id, wish)
    if known is None or known.lease != lease or tries >= 2 * known.tries:
        yield w.SteeringRefused(loop.id, lease, wish, about, tries)


def begin_at(scene: Scene, plan: str, commit: str) -> Iterator[Event]:
    """Let a plan whose branch was let go begin at another commit, should it ever begin again."""
    bound = scene.shared.plans.get(plan)
    if bound is not None and commit not in ("", bound.base_commit):
        yield w.PlanBound(plan, *bound._replace(base_commit=commit))
    if scene.shared.tip(plan).begins:
        yield from moving.begin(scene, plan, commit)


def form_convoy(scene: Scene, name: str, members: tuple[str, ...]) -> Iterator[Event]:
    """Make a convoy, or add to one."""
    for member in members:
        _loop(scene, member)
    convoy = scene.shared.convoys.get(name)
    if convoy is not None and convoy.landed_at is not None:
        raise UserError(f"convoy @{name} has landed", hint="make another one")
    if convoy is None or set(members) - set(convoy.members):
        yield w.ConvoyFormed(name, members)


# --- pull workers -------------------------------------------------------------------------------------------------


def leased(scene: Scene, lease: str) -> Loop:
    """Return the loop a lease (`<loop>#<attempt>`) is for, or say that the lease is stale."""
    loop_id, _, attempt = lease.rpartition("#")
    loop = current(scene, loop_id, int(attempt)) if attempt.isdecimal() else None
    if loop is None or loop.status is not Status.RUNNING or loop.lease is None or loop.lease.expires_at is None:
        raise StaleLease(f"stale lease: {lease} is not held any more", hint="take another one: `loopr lease take`")
    return loop


def renew_lease(scene: Scene, lease: str, now: int) -> Iterator[Event]:
    """Keep a pull worker's lease alive."""
    loop = leased(scene, lease)
    yield e.LeaseRenewed(loop.id, loop.attempt, now + scene.policy.lease_ttl_ms)


def handed_over(scene: Scene, lease: str) -> bool:
    """Say whether the work of a pull worker's lease is in the hands of the engine already."""
    loop_id, _, attempt = lease.rpartition("#")
    loop = current(scene, loop_id, int(attempt)) if attempt.isdecimal() else None
    return loop is not None and loop.lease is not None and loop.status in _JUDGED and loop.lease.holder != ENGINE


def complete_lease(
    scene: Scene, lease: str, now: int, used: Usage | None = None, trouble: Trouble | None = None
) -> Iterator[Event]:
    """Take a pull worker's word that it is done: what it used, and what went wrong; where nothing did, it is judged."""
    loop = leased(scene, lease)
    if used is not None:
        yield from interpret(scene, AttemptUsed(loop.id, loop.attempt, used), now)
    yield from interpret(scene, AttemptEnded(loop.id, loop.attempt, trouble), now)


def release_lease(scene: Scene, lease: str, now: int, trouble: Trouble | None, reason: str) -> Iterator[Event]:
    """Take a lease back from a pull worker: free, or with what went wrong."""
    loop = leased(scene, lease)
    if trouble is None:
        yield e.LeaseReleased(loop.id, loop.attempt, reason)
    else:
        yield from interpret(scene, AttemptEnded(loop.id, loop.attempt, trouble), now)


def reclaim_lease(scene: Scene, lease: str, now: int, by: str) -> Iterator[Event]:
    """Take an expired lease back by hand."""
    loop = leased(scene, lease)
    expires = loop.lease.expires_at if loop.lease is not None else None
    if expires is not None and now < expires:
        raise UserError(f"{lease} has not expired yet", hint="its holder is alive; `loopr cancel` ends it all the same")
    yield from reclaim(scene, loop, now, f"its lease expired and was reclaimed by {by}")
