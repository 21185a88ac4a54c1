"""What files under `specs/` and plan files mean: the part of `intake.py` without attempts.

Forgives as that does: what is known already leads to nothing. Knows what a file says and whose word it
is. Must never know a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core import workspace_events as w
from loopr.core.declaring import (
    change_entry,
    declare_children,
    hand_down_project,
    outline_problems,
)
from loopr.core.entries import Artifact, plan_identity
from loopr.core.events import Event
from loopr.core.model import Loop, Status, Terms
from loopr.core.moving import begin
from loopr.core.offering import offered_file
from loopr.core.redoing import begin_round
from loopr.core.scene import Scene
from loopr.core.trust import (
    approve_file,
    cleared,
    doubted,
    may_take_file,
    plan_terms,
    unkept,
    unread,
    when,
)

_LIVE = frozenset({Status.LEASED, Status.RUNNING, Status.CHECKING})
_TAKES_A_FILE = frozenset({Status.PENDING, Status.PARKED, Status.FAILED, Status.COMPLETE}) | _LIVE


def _plan_offered(scene: Scene, seen: o.PlanOffered, now: int) -> Iterator[Event]:
    """A plan is new, or the same, or its file has changed."""
    terms = Terms(
        seen.artifact.title,
        project=seen.artifact.project,
        identity=plan_identity(seen.artifact),
        budget=seen.artifact.budget,
        priority=seen.artifact.priority,
    )
    known = scene.loops.get(seen.plan)
    bound = scene.shared.plans.get(seen.plan)
    file = o.FileSeen(seen.plan, seen.digest, seen.artifact, seen.source)
    if known is not None and (bound is None or bound.digest != seen.digest) and _is_taken(scene, known, seen):
        may_take_file(scene, known, file)  # or nothing of it is decided
    if known is None:
        yield e.Declared(seen.plan, scene.policy.root_type, None, terms)
    elif known.status is Status.INVALIDATED:  # it was let go
        yield e.DeclaredAgain(seen.plan, Status.PENDING, terms)
        known = None
    yield from begin_round(scene, seen.plan)
    if bound is None:
        yield w.PlanBound(seen.plan, seen.source, seen.digest, seen.base_branch, seen.base_commit, seen.repo)
        yield from begin(scene, seen.plan, seen.base_commit)
    elif (bound.source, bound.digest) != (seen.source, seen.digest):
        yield w.PlanBound(seen.plan, seen.source, seen.digest, bound.base_branch, bound.base_commit, bound.repo)
    if known is not None and bound is not None and bound.digest == seen.digest:
        return
    yield from unkept(scene, seen.source)
    loop = scene.loops[seen.plan]
    if plan_declares(scene, seen.artifact):
        yield from _take_plan_terms(scene, loop, terms)
        if _is_taken(scene, loop, seen):
            yield from approve_file(scene, scene.loops[loop.id], file)
        elif loop.status is Status.PENDING and loop.artifact == seen.digest:
            yield from _accept_again(scene, loop, file)
        else:
            yield from _file_seen(scene, file, now)
    elif known is not None:
        yield from change_entry(scene, loop, terms, "")


def _accept_again(scene: Scene, loop: Loop, seen: o.FileSeen) -> Iterator[Event]:
    """The plan comes back with the very file that it had: what that declares is declared again."""
    problems = outline_problems(scene, loop, seen.artifact, seen.place)
    if problems:
        yield from problem(scene, seen.place, "\n".join(map(str, problems)))
        return
    yield e.ArtifactAccepted(loop.id, seen.digest)
    yield from declare_children(scene, loop.id, seen.artifact)


def _is_taken(scene: Scene, loop: Loop, seen: o.PlanOffered) -> bool:
    """Say whether a plan file is one that was offered or rejected: whoever starts it takes it as a person's."""
    known = offered_file(scene, loop) == seen.digest or seen.digest in loop.offers.rejected
    return known and plan_declares(scene, seen.artifact)


def plan_declares(scene: Scene, artifact: Artifact) -> bool:
    """Say whether a plan file is the plan's artifact: it declares children, or implies one and no command makes any."""
    has_command = scene.policy.type_of(scene.policy.root_type).has_command
    return artifact.declares or (bool(artifact.entries) and not has_command)


def _take_plan_terms(scene: Scene, loop: Loop, terms: Terms) -> Iterator[Event]:
    """A plan's own file changes its title, project, budget and priority at once; its children are compared apart."""
    if loop.status is not Status.INVALIDATED and loop.terms != terms:
        yield e.EntryChanged(loop.id, terms)
        yield from hand_down_project(scene, loop.id)


def _file_seen(scene: Scene, seen: o.FileSeen, now: int) -> Iterator[Event]:
    """A file that is not the one we published or took is a person's."""
    loop = scene.loops.get(seen.loop)
    if loop is None or loop.status is Status.INVALIDATED:
        return
    if seen.digest == loop.artifact:
        yield from _known_file(scene, loop, seen)
        return
    if seen.digest in (loop.offers.offered, *loop.offers.rejected):
        yield from clear_problem(scene, seen.place)
        return
    problems = outline_problems(scene, loop, seen.artifact, seen.place)
    if problems:
        yield from problem(scene, seen.place, "\n".join(map(str, problems)))
        yield from unread(loop, seen.digest)
    elif loop.status in _TAKES_A_FILE | {Status.AWAITING} and (during := when(scene, seen)) is not None:
        yield from clear_problem(scene, seen.place)
        yield from doubted(scene, loop, seen, during)
    elif loop.status in _TAKES_A_FILE:
        yield from clear_problem(scene, seen.place)
        yield e.ArtifactAccepted(loop.id, seen.digest)
        if loop.parent is None:
            yield from _take_plan_terms(scene, loop, plan_terms(loop, seen.artifact))
        yield from declare_children(scene, loop.id, seen.artifact)
    elif loop.status is Status.AWAITING:
        yield from clear_problem(scene, seen.place)
        yield e.CandidateReplaced(loop.id, seen.digest)
    elif loop.status is Status.CANCELLED:
        words = f"{loop.id} is cancelled, so this file is not read: `loopr retry {loop.id}`"
        yield from problem(scene, seen.place, words)


def _file_unchanged(scene: Scene, seen: o.FileUnchanged, now: int) -> Iterator[Event]:
    """The file that is known is there again."""
    loop = scene.loops.get(seen.loop)
    if loop is None or loop.status is Status.INVALIDATED:
        return
    if loop.artifact and not loop.on_disk:
        yield e.ArtifactSeen(loop.id, loop.artifact)
    yield from cleared(scene, loop)


def _known_file(scene: Scene, loop: Loop, seen: o.FileSeen) -> Iterator[Event]:
    """A file that we published or took is no news; an outline that could not count when it landed may do so by now."""
    if not loop.on_disk:
        yield e.ArtifactSeen(loop.id, seen.digest)
    yield from cleared(scene, loop)
    if seen.place not in scene.shared.problems:
        return
    if loop.status is Status.COMPLETE or scene.settles(loop):
        if outline_problems(scene, loop, seen.artifact, seen.place):
            return
        if loop.status is Status.COMPLETE:
            yield from declare_children(scene, loop.id, seen.artifact)
    yield from clear_problem(scene, seen.place)


def _file_refused(scene: Scene, seen: o.FileRefused, now: int) -> Iterator[Event]:
    """A malformed file is reported, and the tree stays as it was; nothing is written over it."""
    yield from problem(scene, seen.place, seen.text)
    loop = scene.loops.get(seen.loop)
    if loop is not None:
        yield from unread(loop, seen.digest)


def problem(scene: Scene, place: str, text: str) -> Iterator[Event]:
    """Report a problem, once."""
    if scene.shared.problems.get(place) != text:
        yield w.ProblemSeen(place, text)


def clear_problem(scene: Scene, place: str) -> Iterator[Event]:
    """Take a report back."""
    if place in scene.shared.problems:
        yield w.ProblemGone(place)


def _file_gone(scene: Scene, seen: o.FileGone, now: int) -> Iterator[Event]:
    """A missing file closes a gate of the pending children and does nothing else; nor is it wrong any more.

    The problem of an outline that never counted stays: its children are still to be declared.
    """
    loop = scene.loops.get(seen.loop)
    if loop is None:
        return
    if loop.on_disk:
        yield e.ArtifactGone(loop.id)
    yield from cleared(scene, loop)
    if loop.status is not Status.COMPLETE or loop.offers.unread:
        yield from clear_problem(scene, place_of(scene, loop))


def place_of(scene: Scene, loop: Loop) -> str:
    """Return where a loop's artifact belongs."""
    return scene.policy.place_of(loop.id, loop.type)


def _declared_written(scene: Scene, seen: o.DeclaredWritten, now: int) -> Iterator[Event]:
    """The artifact of a declared loop is on disk: it is complete, and its children are declared with it."""
    loop = scene.loops.get(seen.loop)
    if loop is None or loop.status is not Status.PENDING or not scene.settles(loop):
        return
    problems = outline_problems(scene, loop, seen.artifact, seen.place)
    if problems:
        if loop.artifact != seen.digest:
            yield e.ArtifactSeen(loop.id, seen.digest)  # the file is ours, and known to be
        yield from problem(scene, seen.place, "\n".join(map(str, problems)))
        return
    yield from cleared(scene, loop)  # nothing else can lie there now
    yield from clear_problem(scene, seen.place)
    yield e.Settled(loop.id, seen.digest)
    yield from declare_children(scene, loop.id, seen.artifact)


FILING: Mapping[type[o.Observation], Callable[[Scene, Any, int], Iterator[Event]]] = {
    o.PlanOffered: _plan_offered,
    o.FileSeen: _file_seen,
    o.FileUnchanged: _file_unchanged,
    o.FileRefused: _file_refused,
    o.FileGone: _file_gone,
    o.DeclaredWritten: _declared_written,
}
"""What each of these observations means."""
