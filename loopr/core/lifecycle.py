"""The law: from which state which event leads where, and what else it changes in a loop.

`LIFECYCLE` is the table, `evolve` its only reader. What is not in the table is refused and changes nothing. Knows one
loop at a time: no tree, no policy, no clock; whatever depends on those was decided before and stands in the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from loopr.core import events as e
from loopr.core import offer_events as f
from loopr.core import redo_events as r
from loopr.core import workspace_events as w
from loopr.core.attempt import lands
from loopr.core.codec import NAMES
from loopr.core.judge_events import Conflicted, JudgeWaits, LandingWaits, MergeTurnEnded, Refused, VerdictGiven
from loopr.core.model import Loop, Status
from loopr.core.plan_events import InputsMoved, LandingBegan
from loopr.core.steps import STEPS, declared, stays_engaged
from loopr.core.worktree_events import WorktreeKept, WorktreePacked, WorktreePacking
from loopr.errors import Impossible

S = Status
_LIVE = frozenset({S.LEASED, S.RUNNING, S.CHECKING})
_ALL = frozenset(Status)
_WAITING = frozenset({S.PENDING, S.PARKED, S.FAILED})
_STOOD = frozenset({S.PARKED, S.FAILED})
_TURNLESS = _STOOD | {S.COMPLETE, S.CANCELLED, S.INVALIDATED}


class Rule(NamedTuple):
    """One row of the table; `tos` None means that the status stays as it is.

    `gives_way` is true where a landing gives way only until it has begun: until its branch is about to move.
    """

    froms: frozenset[Status]
    tos: frozenset[Status] | None
    remark: str
    gives_way: bool = False


def _row(
    froms: frozenset[Status] | Status, tos: frozenset[Status] | Status | None, remark: str, *, gives_way: bool = False
) -> Rule:
    """Write a row with single states or sets of them."""
    left = frozenset({froms}) if isinstance(froms, Status) else froms
    right = frozenset({tos}) if isinstance(tos, Status) else tos
    return Rule(left, right, remark, gives_way)


LIFECYCLE: Mapping[type[e.LoopEvent], Rule] = {
    e.Declared: _row(frozenset(), S.PENDING, "the outline is valid as a whole, or none of it counts"),
    e.LeaseGranted: _row(S.PENDING, frozenset({S.LEASED, S.RUNNING}), "no gate is closed; a pull worker runs at once"),
    e.Settled: _row(S.PENDING, S.COMPLETE, "by declaration: no lease, slot or worktree"),
    e.AttemptStarted: _row(S.LEASED, S.RUNNING, "the process runs"),
    e.LeaseReleased: _row(frozenset({S.LEASED, S.RUNNING}), S.PENDING, "free: given back, or never started"),
    e.LeaseExpired: _row(frozenset({S.LEASED, S.RUNNING}), frozenset({S.PENDING, S.PARKED}), "reclaimed: failures + 1"),
    e.LeaseRenewed: _row(S.RUNNING, None, "a pull worker is alive"),
    e.UsageSeen: _row(_ALL, None, "what the attempt has used so far, also while it is told to stop"),
    e.StepTimed: _row(_LIVE | {S.LANDING}, None, "its setup or a judge took a second or more"),
    e.WorkEnded: _row(S.RUNNING, S.CHECKING, "the command ended well; what is there has been committed"),
    VerdictGiven: _row(frozenset({S.CHECKING, S.LANDING}), None, "a judge said yes; not asked again about this tree"),
    JudgeWaits: _row(S.RUNNING, S.PENDING, "free: as above, and no lane takes its judges now"),
    Refused: _row(
        frozenset({S.RUNNING, S.CHECKING, S.LANDING}), frozenset({S.PENDING, S.FAILED}), "iteration + 1, failures 0"
    ),
    e.Limited: _row(_LIVE | {S.LANDING}, S.PENDING, "free: limited, host refused, lane parked"),
    e.Broke: _row(_LIVE | {S.LANDING}, frozenset({S.PENDING, S.PARKED}), "failures + 1, backoff"),
    e.SetAside: _row(_LIVE | {S.LANDING}, S.PARKED, "config, blocked, own budget"),
    e.Passed: _row(S.CHECKING, frozenset({S.AWAITING, S.LANDING}), "the check said yes"),
    e.Approved: _row(S.AWAITING, S.LANDING, "a person said yes"),
    e.Rejected: _row(S.AWAITING, S.FAILED, "a person said no"),
    e.IterationAsked: _row(S.AWAITING, S.PENDING, "iteration + 1, not counted against the maximum"),
    e.CandidateReplaced: _row(S.AWAITING, None, "a person edited the candidate; it still needs the approval"),
    LandingWaits: _row(S.LANDING, None, "it changes files in which another mends a conflict: others pass it by"),
    MergeTurnEnded: _row(_ALL, None, "merge.turn_secs are over: others land again, and it waits as any loop"),
    LandingBegan: _row(S.LANDING, None, "the plan branch is about to move: from here on it is never interrupted"),
    InputsMoved: _row(
        _LIVE | {S.PENDING, S.AWAITING, S.LANDING}, None, "it works from files of an older base; done again afterwards"
    ),
    e.Landed: _row(S.LANDING, S.COMPLETE, "branch moved, artifact published, event recorded, in this order"),
    Conflicted: _row(
        frozenset({S.CHECKING, S.LANDING}),
        frozenset({S.PENDING, S.PARKED, S.FAILED}),
        "as refused, and conflicts + 1; a check that merges first may find it too",
    ),
    e.Stopped: _row(_LIVE | {S.LANDING}, S.PENDING, "free: somebody asked for a stop now", gives_way=True),
    e.AttemptGone: _row(_ALL, None, "a stopped attempt is known to have ended"),
    e.ArtifactAccepted: _row(
        _WAITING | _LIVE | {S.COMPLETE}, S.COMPLETE, "a person's file passed the format check; a live attempt stops"
    ),
    f.ArtifactOffered: _row(_ALL, None, "a file that came while loops were at work waits for a person's word"),
    f.ArtifactUnread: _row(_ALL, None, "what lies at its place is no artifact, and is left alone"),
    f.OfferGone: _row(_ALL, None, "it does not lie there any more, or is mended"),
    f.OfferReplaced: _row(_ALL, None, "the loop has handed over its own"),
    f.OfferRejected: _row(_ALL, None, "a person said no to the file"),
    f.CompletionUndone: _row(S.COMPLETE, S.PENDING, "the file that had completed it was rejected"),
    e.InputChanged: _row(
        _ALL - {S.CANCELLED, S.INVALIDATED}, S.PENDING, "generation + 1 if it was ever leased", gives_way=True
    ),
    e.OutlineChanged: _row(
        _ALL - {S.CANCELLED, S.INVALIDATED},
        S.PENDING,
        "its entry declares other children: settled anew",
        gives_way=True,
    ),
    e.EntryChanged: _row(
        _ALL - {S.INVALIDATED}, None, "place, needs, budget and the like: at once, nothing is run again"
    ),
    e.Undeclared: _row(_ALL - {S.INVALIDATED}, S.INVALIDATED, "with its subtree", gives_way=True),
    e.DeclaredAgain: _row(
        S.INVALIDATED, frozenset({S.PENDING, S.COMPLETE}), "complete if its finished work has the same input"
    ),
    e.Deferred: _row(S.LANDING, None, "a landing that has begun is never interrupted: applied once it is over"),
    e.Cancelled: _row(
        _WAITING | _LIVE | {S.AWAITING, S.LANDING},
        S.CANCELLED,
        "a complete loop stays complete and gets a hold",
        gives_way=True,
    ),
    e.Unparked: _row(S.PARKED, S.PENDING, "failures 0, iteration kept"),
    e.Retried: _row(
        frozenset({S.PARKED, S.FAILED, S.CANCELLED, S.PENDING}), S.PENDING, "all counters 0, same worktree"
    ),
    e.Renewed: _row(
        frozenset({S.COMPLETE, S.PARKED, S.FAILED, S.CANCELLED}), S.PENDING, "retry --fresh: a new generation"
    ),
    r.RedoAsked: _row(S.COMPLETE, None, "its work is to be done again; it stays complete until that is granted"),
    r.RedoBegan: _row(S.COMPLETE, S.PENDING, "its redoing is granted with the next event: generation + 1"),
    e.Held: _row(_ALL, None, "a person's pause; a second keeps the first, but a clearing"),
    e.Lifted: _row(_ALL, None, "the pause is over"),
    e.ArtifactSeen: _row(_ALL, None, "the artifact is on disk"),
    e.ArtifactGone: _row(_ALL, None, "the artifact is missing: pending children wait"),
    WorktreePacking: _row(
        _WAITING | {S.AWAITING, S.CANCELLED}, None, "others need the room; it waits until that is done"
    ),
    WorktreePacked: _row(_ALL, None, "its work is committed and its folder free; laid again for the next try"),
    WorktreeKept: _row(_ALL, None, "something in it would be lost: it stays, and counts no more"),
    e.Forgotten: _row(S.INVALIDATED, None, "gc --forget"),
    w.SteeringRefused: _row(_ALL, None, "told, and nothing else: a loop wished for what is not for it"),
}


_FENCED = frozenset(cls for cls in LIFECYCLE if "attempt" in cls.__dataclass_fields__) - {e.LeaseGranted}
"""The events that are about one attempt, and must quote the present one."""


def allows(loop: Loop, event: e.LoopEvent) -> bool:
    """Say whether the table has a row for this event in the loop's present state."""
    rule = LIFECYCLE[type(event)]
    return loop.status in rule.froms and not (rule.gives_way and lands(loop))


def evolve(loop: Loop | None, event: e.LoopEvent, at: int) -> Loop:
    """Return what the loop is after the event; an event that the table does not know raises and changes nothing."""
    rule = LIFECYCLE[type(event)]
    if isinstance(event, e.Declared):
        if loop is not None:
            raise Impossible(f"{event.loop} is declared twice")
        return declared(event, at)
    if loop is None:
        raise Impossible(f"{NAMES[type(event)]} for {event.loop}, which was never declared")
    if not allows(loop, event):
        raise Impossible(f"{NAMES[type(event)]} for {loop.id}, which is {loop.status}")
    _fence(loop, event)
    after = STEPS[type(event)](loop, event, at)
    if loop.status is S.LANDING and after.status is not S.LANDING:
        after = after._replace(deferred=None)
    if rule.tos is None:
        return after._replace(updated=at) if after.status is loop.status else _refuse_target(loop, event, after)
    if after.status not in rule.tos:
        return _refuse_target(loop, event, after)
    if after.past.ask is not None and after.landed and after.status in _STOOD and loop.status is not after.status:
        after = after._replace(reason=f"{after.reason}; the old work stands")
    if after.status in _TURNLESS and after.clash.number:
        after = after._replace(clash=after.clash.over)
    return after._replace(since=at, updated=at, engaged=stays_engaged(after))


def _refuse_target(loop: Loop, event: e.LoopEvent, after: Loop) -> Loop:
    """Refuse an event that names a target the table does not allow."""
    raise Impossible(f"{NAMES[type(event)]} would take {loop.id} from {loop.status} to {after.status}")


def _fence(loop: Loop, event: e.LoopEvent) -> None:
    """Refuse a result that quotes another attempt than the present one."""
    if type(event) not in _FENCED:
        return
    attempt: int | None = getattr(event, "attempt", None)
    owner = loop.ending if isinstance(event, e.AttemptGone) else loop.lease
    if isinstance(event, e.UsageSeen):
        owner = loop.lease or loop.ending
    present = owner.attempt if owner is not None else None
    if attempt is None or attempt != present:
        raise Impossible(f"{NAMES[type(event)]} for {loop.id}#{attempt}, but the lease is #{present}")
