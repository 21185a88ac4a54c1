"""What each event changes in a loop beside its status: its entry, its artifact, what a person says.

One small function an event, in `STEPS`; those of an attempt are in `attempt.py`. Knows one loop at a time; whether the
event is allowed at all was asked before (`lifecycle.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loopr.core import events as e
from loopr.core import offer_events as f
from loopr.core import redo_events as r
from loopr.core import workspace_events as w
from loopr.core import worktree_events as v
from loopr.core.attempt import ATTEMPT_STEPS, finish, let_go, over
from loopr.core.clash import NO_CLASH
from loopr.core.housing import KEPT, PACKED, PACKING
from loopr.core.model import DROPPED, LEFT, Failure, Hold, Loop, Status
from loopr.core.redo import Ask

S = Status
_LIVE = frozenset({S.LEASED, S.RUNNING, S.CHECKING})


def stays_engaged(loop: Loop) -> bool:
    """Keep the serial lock until the loop is over or a person holds it while it waits."""
    if loop.status in {S.COMPLETE, S.FAILED, S.PARKED, S.CANCELLED, S.INVALIDATED}:
        return False
    return loop.engaged and not (loop.hold is not None and loop.status is S.PENDING)


def declared(event: e.Declared, at: int) -> Loop:
    """Make the loop."""
    depth = event.loop.count("/")
    made = Loop(event.loop, event.type, event.terms.title, event.parent, 0, depth, event.terms.project)
    return made._replace(**event.terms._asdict(), created=at, since=at, updated=at)


def _declared_again(loop: Loop, event: e.DeclaredAgain, at: int) -> Loop:
    """Come back: as finished work with the same input, or to do it."""
    if event.to is S.COMPLETE:
        return loop._replace(**event.terms._asdict(), status=event.to, reason="")
    return _anew(loop._replace(**event.terms._asdict()), _next_generation(loop))._replace(status=event.to)


def _next_generation(loop: Loop) -> int:
    """Count a new generation only if the present one was ever leased."""
    return loop.generation + 1 if loop.leased else loop.generation


def _anew(loop: Loop, generation: int) -> Loop:
    """Begin again as the given generation; a live attempt is let go."""
    return _fresh_counters(let_go(loop))._replace(
        status=S.PENDING,
        generation=generation,
        leased=loop.leased and generation == loop.generation,
        base_commit="",
        packed=loop.packed if generation == loop.generation else "",
        yes=(),
        clash=NO_CLASH,
    )


def _fresh_counters(loop: Loop) -> Loop:
    """Put every counter but the attempt number back to its beginning."""
    return loop._replace(
        iteration=1,
        granted_iterations=0,
        failures=0,
        launch_failures=0,
        conflicts=0,
        signature="",
        repeats=0,
        answers=(),
        answered="",
        taken_early=False,
        conflict_tip="",
        tally=(),
        in_vain=0,
        vain_on="",
        not_before=0,
        judge_only=False,
        reason="",
    )


def _entry_changed(loop: Loop, event: e.EntryChanged, at: int) -> Loop:
    """Take what the entry says now."""
    return loop._replace(**event.terms._asdict())


def _input_changed(loop: Loop, event: e.InputChanged, at: int) -> Loop:
    """Take the new input and begin again."""
    return _anew(loop._replace(**event.terms._asdict()), event.generation)


def _outline_changed(loop: Loop, event: e.OutlineChanged, at: int) -> Loop:
    """Wait to be settled again from the new outline."""
    return let_go(loop)._replace(**event.terms._asdict(), status=S.PENDING, finished="", reason="")


def _settled(loop: Loop, event: e.Settled, at: int) -> Loop:
    """Complete by declaration."""
    return finish(loop, event.digest, at)


def _accepted(loop: Loop, event: e.ArtifactAccepted, at: int) -> Loop:
    """Take a person's file as the result."""
    done = _fresh_counters(finish(let_go(loop), event.digest, at))
    if loop.status is not S.COMPLETE and done.past.made:  # what counts is a person's, or another's
        done = done._replace(past=done.past._replace(made=0))
    return done._replace(offers=done.offers.without()._replace(counts=event.digest if event.theirs else ""))


def _candidate(loop: Loop, event: e.CandidateReplaced, at: int) -> Loop:
    """Take a person's file as the candidate."""
    offers = loop.offers.without()._replace(counts=event.digest)
    return loop._replace(artifact=event.digest, on_disk=True, seen=at, offers=offers)


def _offered(loop: Loop, event: f.ArtifactOffered, at: int) -> Loop:
    """Remember which file a person is asked for a word on."""
    fresh = loop.offers._replace(offered=event.digest, during=event.during, before=event.before, unread="")
    return loop._replace(offers=fresh)


def _unread(loop: Loop, event: f.ArtifactUnread, at: int) -> Loop:
    """Remember that what lies at its place is no artifact; one that counts in part goes on being on offer."""
    kept = loop.offers if loop.offers.offered == loop.artifact else loop.offers.without()
    return loop._replace(offers=kept._replace(unread=event.digest))


def _offer_over(loop: Loop, event: f.OfferGone | f.OfferReplaced, at: int) -> Loop:
    """Forget what lay at its place; one that counts in part goes on being on offer."""
    if loop.offers.offered and loop.offers.offered == loop.artifact:
        return loop._replace(offers=loop.offers._replace(unread=""))
    return loop._replace(offers=loop.offers.without())


def _offer_rejected(loop: Loop, event: f.OfferRejected, at: int) -> Loop:
    """Go back to the text that counted before a part of the offered one did."""
    fresh = loop._replace(offers=loop.offers.refuse(event.digest))
    if loop.offers.offered == loop.artifact and loop.offers.before:
        return fresh._replace(artifact=loop.offers.before)
    if event.digest == loop.artifact and loop.status is S.PENDING:  # its own is to be written
        return fresh._replace(artifact="", on_disk=False)
    return fresh


def _undone(loop: Loop, event: f.CompletionUndone, at: int) -> Loop:
    """Wait as if the file had never come."""
    return loop._replace(status=S.PENDING, artifact="", on_disk=False, finished="", reason="")


def _approved(loop: Loop, event: e.Approved, at: int) -> Loop:
    """Go on to the plan branch; a worktree that was packed is laid again."""
    return loop._replace(status=S.LANDING, packed="" if loop.packed == PACKED else loop.packed)


def _rejected(loop: Loop, event: e.Rejected, at: int) -> Loop:
    """End with a person's no."""
    return over(loop)._replace(status=S.FAILED, reason=event.reason)


def _iterate(loop: Loop, event: e.IterationAsked, at: int) -> Loop:
    """Try again with a person's feedback, outside the count."""
    return over(loop)._replace(
        status=S.PENDING,
        iteration=loop.iteration + 1,
        granted_iterations=loop.granted_iterations + 1,
        reason=event.reason,
    )


def _undeclared(loop: Loop, event: e.Undeclared, at: int) -> Loop:
    """Leave the tree; a live attempt is stopped."""
    gone = let_go(loop)._replace(status=S.INVALIDATED, reason=DROPPED if event.alone else LEFT)
    return gone._replace(past=gone.past._replace(ask=None)) if gone.past.ask else gone


def _deferred(loop: Loop, event: e.Deferred, at: int) -> Loop:
    """Remember what has to be done once the landing is over."""
    return loop._replace(deferred=(event.change, event.data))


def _cancelled(loop: Loop, event: e.Cancelled, at: int) -> Loop:
    """End by a person's word."""
    return let_go(loop)._replace(status=S.CANCELLED, reason=event.reason)


def _unparked(loop: Loop, event: e.Unparked, at: int) -> Loop:
    """Try again where it stood, with its failures forgiven; its iterations are not, nor what refused them."""
    kept = tuple(each for each in loop.tally if each[0] == Failure.REFUSED)
    forgiven = loop._replace(failures=0, launch_failures=0, conflicts=0, conflict_tip="", tally=kept)
    return forgiven._replace(status=S.PENDING, in_vain=0, vain_on="", not_before=0, reason="")


def _retried(loop: Loop, event: e.Retried, at: int) -> Loop:
    """Try again from the first iteration."""
    return _fresh_counters(loop)._replace(status=S.PENDING)


def _renewed(loop: Loop, event: e.Renewed, at: int) -> Loop:
    """Do it all again; for a reason of its own, with the loops that rest on it."""
    anew = _anew(loop, event.generation)
    if not event.reason or anew.past.ask is not None:
        return anew
    ask = Ask(event.reason, "", at, cascades=True)
    return anew._replace(past=anew.past._replace(ask=ask))


def _redo_asked(loop: Loop, event: r.RedoAsked, at: int) -> Loop:
    """Stay complete, and wait for a turn with counters that begin again."""
    ask = Ask(event.cause, event.by, at, event.cascades, event.landed)
    return _fresh_counters(loop)._replace(past=loop.past._replace(ask=ask, round=event.round))


def _redo_began(loop: Loop, event: r.RedoBegan, at: int) -> Loop:
    """Begin again; its own budget is that of the new generation."""
    paid = (loop.spent.cost, loop.spent.usd, loop.spent.ms)
    return _anew(loop, event.generation)._replace(past=loop.past._replace(paid=paid))


def _held(loop: Loop, event: e.Held, at: int) -> Loop:
    """Take the hold; a waiting loop gives up its serial lock."""
    first = None if loop.hold is not None and loop.hold.is_clearing else loop.hold
    held = loop._replace(hold=first or Hold(event.by, at, event.reason))
    return held._replace(engaged=stays_engaged(held))


def _lifted(loop: Loop, event: e.Lifted, at: int) -> Loop:
    """Drop the hold."""
    return loop._replace(hold=None, lifted=at)


def _seen(loop: Loop, event: e.ArtifactSeen, at: int) -> Loop:
    """Note that the artifact is there."""
    return loop._replace(artifact=event.digest, on_disk=True, seen=at)


def _artifact_gone(loop: Loop, event: e.ArtifactGone, at: int) -> Loop:
    """Note that the artifact is missing."""
    return loop._replace(on_disk=False)


def _forgotten(loop: Loop, event: e.Forgotten, at: int) -> Loop:
    """Say nothing more of what has landed; the number of its last attempt is never used again, so the loop stays."""
    return loop._replace(landed="")


def _packed(loop: Loop, event: v.WorktreePacked, at: int) -> Loop:
    """Have no worktree until the next try; work that lands by now has it laid again for its judges."""
    return loop._replace(packed="" if loop.status is S.LANDING else PACKED)


STEPS: Mapping[type[e.LoopEvent], Callable[[Loop, Any, int], Loop]] = {
    **ATTEMPT_STEPS,
    e.Settled: _settled,
    e.Approved: _approved,
    e.Rejected: _rejected,
    e.IterationAsked: _iterate,
    e.CandidateReplaced: _candidate,
    e.ArtifactAccepted: _accepted,
    f.ArtifactOffered: _offered,
    f.ArtifactUnread: _unread,
    f.OfferGone: _offer_over,
    f.OfferReplaced: _offer_over,
    f.OfferRejected: _offer_rejected,
    f.CompletionUndone: _undone,
    e.InputChanged: _input_changed,
    e.OutlineChanged: _outline_changed,
    e.EntryChanged: _entry_changed,
    e.Undeclared: _undeclared,
    e.DeclaredAgain: _declared_again,
    e.Deferred: _deferred,
    e.Cancelled: _cancelled,
    e.Unparked: _unparked,
    e.Retried: _retried,
    e.Renewed: _renewed,
    r.RedoAsked: _redo_asked,
    r.RedoBegan: _redo_began,
    e.Held: _held,
    e.Lifted: _lifted,
    e.ArtifactSeen: _seen,
    e.ArtifactGone: _artifact_gone,
    e.Forgotten: _forgotten,
    v.WorktreePacking: lambda loop, event, at: loop._replace(packed=PACKING),
    v.WorktreePacked: _packed,
    v.WorktreeKept: lambda loop, event, at: loop._replace(packed=KEPT),
    w.SteeringRefused: lambda loop, event, at: loop,
}
