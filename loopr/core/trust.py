"""Whose word a file under `specs/` is: a person's, or no more than a loop's, since loops were at work when it came.

With a loop's trust a file may add children, and complete a loop that has no command and no judge. It is
offered if it takes away or changes, stands in for a judge, or says what only a person may say.
Knows the loop and what the file says. Must never know a disk.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core import events as e
from loopr.core import offer_events as f
from loopr.core import workspace_events as w
from loopr.core.declaring import declare_children, outline_problems, undeclare, wanted_children
from loopr.core.entries import Artifact
from loopr.core.events import Event
from loopr.core.lifecycle import allows
from loopr.core.model import Loop, Status, Terms
from loopr.core.observations import FileSeen
from loopr.core.offering import children_on_offer, offered_file
from loopr.core.offers import FILE, MOST_NAMED
from loopr.core.scene import Scene
from loopr.core.states import people_say
from loopr.errors import UserError

_COMPLETES = frozenset({Status.PENDING, Status.PARKED, Status.FAILED})


def came_during(scene: Scene, changed_at: int, last_at: int) -> tuple[str, ...] | None:
    """Say who was at work when a file changed, as far as the journal tells; None if it is a person's.

    For a process that has not looked itself: `last_at` is when the journal was written to last.
    Work approved after an engine had ended in order lands with the next one, and none of it runs
    before.
    """
    shared = scene.shared
    if changed_at < shared.engine.started_at:
        return None  # the engine has looked at it since
    lands = Status.LANDING if not shared.engine.serving else None
    if at_work := tuple(each for each in scene.occupancy.loops if scene.loops[each].status is not lands):
        return at_work
    return () if shared.files_looked != shared.grants and changed_at <= last_at else None


def when(scene: Scene, seen: FileSeen) -> tuple[str, ...] | None:
    """Say who was at work when a file came, also one that came before its loop was declared; None: it is a person's."""
    kept = scene.shared.kept.get(seen.place)
    return kept.during if kept is not None and kept.digest == seen.digest else seen.during


def is_judged(scene: Scene, loop: Loop) -> bool:
    """Say whether the settings or a loop's entry name a command, an agent, a check, a review or an approval for it."""
    own = scene.policy.type_of(loop.type)
    of_type = own.has_command or own.judged or own.reviewed or own.approve
    return loop.command or loop.checked or of_type


def doubted(scene: Scene, loop: Loop, seen: FileSeen, during: tuple[str, ...]) -> Iterator[Event]:
    """Say what a sound file means that has a loop's trust; `during` are those that were at work when it came."""
    names = during[:MOST_NAMED]
    if loop.status is Status.COMPLETE:
        counts = not changes(scene, loop, seen.artifact)
    else:
        counts = loop.status in _COMPLETES and not is_judged(scene, loop)
    if counts:
        yield from _count(scene, loop, seen, names)
    elif loop.offers.offered != seen.digest:
        yield f.ArtifactOffered(loop.id, seen.digest, names)


def _count(scene: Scene, loop: Loop, seen: FileSeen, during: tuple[str, ...]) -> Iterator[Event]:
    """Let a file count as a loop's outline does; children with what only a person may say are on offer."""
    offers, complete = loop.offers, loop.status is Status.COMPLETE
    before = offers.before if offers.offered == loop.artifact else loop.artifact if complete else ""
    yield e.ArtifactAccepted(loop.id, seen.digest, FILE, during)
    yield from declare_children(scene, loop.id, seen.artifact, trusted=False)
    if any(children_on_offer(scene, loop.id)):
        yield f.ArtifactOffered(loop.id, seen.digest, during, before)


def changes(scene: Scene, loop: Loop, artifact: Artifact) -> bool:
    """Say whether an outline takes away or changes what is there, instead of only adding to it."""
    if loop.parent is None and plan_terms(loop, artifact) != loop.terms:
        return True
    wanted = {each.id: each.terms for each in wanted_children(scene, loop, artifact)}
    there = [each for each in map(scene.loops.__getitem__, scene.tree.children(loop.id)) if not each.on_offer]
    if any(each.id not in wanted or _said(wanted[each.id]) != _said(each.terms) for each in there):
        return True
    names = {each.id for each in there}
    return [each for each in wanted if each in names] != [each.id for each in there]


def plan_terms(plan: Loop, said: Artifact) -> Terms:
    """Return the terms of a plan as its file has them: none of these makes other work of it."""
    return plan.terms._replace(title=said.title, project=said.project, budget=said.budget, priority=said.priority)


def _said(terms: Terms) -> Terms:
    """Return what an entry says, without its place, which others move, and who pays, which is its parent's."""
    return terms._replace(place=0, project="", checked=False, on_offer=False)


def unread(loop: Loop, digest: str) -> Iterator[Event]:
    """Say that a file which is no artifact lies at a loop's place."""
    if loop.status is not Status.INVALIDATED and loop.offers.unread != (digest or NAMELESS):
        yield f.ArtifactUnread(loop.id, digest or NAMELESS)


NAMELESS = "?"
"""The digest of what cannot be opened."""


def unkept(scene: Scene, place: str) -> Iterator[Event]:
    """Remember no longer that a file came while loops were at work: a person has had a word on it."""
    if place in scene.shared.kept:
        yield w.FileKept(place, "")


def cleared(scene: Scene, loop: Loop) -> Iterator[Event]:
    """Say that what lies at a loop's place is what counts, or nothing; the file of a plan lies elsewhere."""
    bound, offered = scene.shared.plans.get(loop.id), loop.offers.offered
    kept = scene.shared.kept.get(bound.source) if bound is not None else None
    waits = offered not in ("", loop.artifact, kept.digest if kept is not None else "")
    if waits or loop.offers.unread:
        yield f.OfferGone(loop.id)


def offer_plan(scene: Scene, plan: str, source: str, digest: str, during: tuple[str, ...]) -> Iterator[Event]:
    """Offer the changed file of a plan: all of it, whatever it changes."""
    names = during[:MOST_NAMED]
    kept = scene.shared.kept.get(source)
    if kept is None or kept.digest != digest:
        yield w.FileKept(source, digest, names)
    if scene.loops[plan].offers.offered != digest:
        yield f.ArtifactOffered(plan, digest, names)


# --- a person's word ------------------------------------------------------------------------------------------------


def may_take_file(scene: Scene, loop: Loop, file: FileSeen) -> None:
    """Refuse a file that cannot be taken as a person's now."""
    if loop.status is not Status.AWAITING and not allows(loop, e.ArtifactAccepted(loop.id, file.digest)):
        hint = "wait until it has landed" if loop.status is Status.LANDING else f"`loopr retry {loop.id}` first"
        raise UserError(f"cannot take a file for {loop.id}: it is {people_say(loop)}", hint=hint)
    problems = outline_problems(scene, loop, file.artifact, file.place)
    if problems:
        raise UserError("", problems=problems)


def approve_file(scene: Scene, loop: Loop, file: FileSeen) -> Iterator[Event]:
    """Take an offered file as a person's."""
    may_take_file(scene, loop, file)
    yield from unkept(scene, file.place)
    bound = scene.shared.plans.get(loop.id)
    if bound is not None and (kept := scene.shared.kept.get(bound.source)) and kept.digest == file.digest:
        yield from unkept(scene, bound.source)
        yield w.PlanBound(loop.id, *bound._replace(digest=file.digest))
    if loop.status is Status.AWAITING:
        yield e.CandidateReplaced(loop.id, file.digest)
        return
    yield e.ArtifactAccepted(loop.id, file.digest)
    if loop.parent is None:
        terms = plan_terms(loop, file.artifact)
        if terms != loop.terms:
            yield e.EntryChanged(loop.id, terms)
    yield from declare_children(scene, loop.id, file.artifact)


def reject_file(scene: Scene, loop: Loop, by: str, before: Artifact | None) -> Iterator[Event]:
    """Forget an offered file for good; where a part of it counted, what counted `before` does again."""
    digest, counted = offered_file(scene, loop), loop.offers.offered in ("", loop.artifact)
    problems = outline_problems(scene, loop, before, loop.id) if counted and before is not None else []
    if problems:
        raise UserError("", problems=problems)
    yield f.OfferRejected(loop.id, digest, by)
    if not counted:
        return
    if before is not None:
        yield from declare_children(scene, loop.id, before)
    elif loop.offers.offered and not loop.offers.before and loop.status is Status.COMPLETE:
        for child in scene.tree.children(loop.id):
            yield from undeclare(scene, child)
        yield f.CompletionUndone(loop.id, by)
    else:
        for child in list(children_on_offer(scene, loop.id)):
            yield from undeclare(scene, child)
