"""How a loop's work comes home: onto the plan branch first, then its artifact among the others.

First its commit is made and judged. What it is about to do then is announced in the journal before it is done; from
there on it is done, however often that is begun. One landing a plan at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from loopr.core import observations as o
from loopr.core.attempt import lands
from loopr.core.entries import Artifact, Entry
from loopr.core.model import Failure
from loopr.core.observations import Trouble
from loopr.core.overlap import covers
from loopr.core.plan_observations import ForeignSeen
from loopr.core.rendering import Left, leaf_artifact
from loopr.core.tips import Moving
from loopr.driving.acts import Act, Asked, Do, Later, StopAsked, Tell
from loopr.driving.asking import Memory, ask_judges, hear_out, put_back_words, rise
from loopr.driving.attempting import message_of, with_work
from loopr.driving.guarding import named_by_judges
from loopr.driving.judging import Fits, as_judged, candidate_of, note_of, read_output
from loopr.driving.kit import Kit, Task
from loopr.driving.outcomes import trouble_before
from loopr.driving.setting_up import lay_again
from loopr.errors import LooprError, PlanError, Problem, WorldError
from loopr.world.artifacts import artifact_path, digest, parse_artifact
from loopr.world.publishing import publishing
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import is_there, keep_own, land, make_intent
from loopr.world.repo.scanning import NOTHING, changed_entries
from loopr.world.repo.words import Brought, Candidate, Intent
from loopr.world.runs import OUTPUT
from loopr.world.swapping import content

MOST_NAMED = 10


class _Published(NamedTuple):
    """The artifact that counts now, by digest and as read; a file there gave way, or stays."""

    digest: str
    artifact: Artifact | None
    gave_way: str = ""
    stays: bool = False


Held = Callable[[Iterable[str]], object]
"""Says whether another loop has its turn to mend a conflict in some files."""


class Course(NamedTuple):
    """What a landing is told when it begins or goes on: what was announced of its move, and who is at work beside it.

    `fits` says what keeps an outline from counting, `held` what it lets pass; `left` are judges of an earlier engine.
    `lags` is true where it is told that the plan's branch does.
    """

    fits: Fits
    held: Held
    left: Sequence[str] = ()
    moving: Moving | None = None
    during: tuple[str, ...] = ()
    lags: bool = False


def bring_home(kit: Kit, task: Task, course: Course) -> Act:
    """Land a loop's commits and publish its artifact; until that has begun, whatever stops a judge stops it too."""
    return (yield from (_end if lands(task.loop) else _make_ready)(kit, as_judged(kit, task), course))


def _make_ready(kit: Kit, task: Task, course: Course) -> Act:
    """Make the commit that would land and have it judged; it moves nothing, and is begun anew after a crash."""
    loop, ground = task.loop, kit.ground_of(task)
    try:
        yield from lay_again(kit, task)
        memory = yield from hear_out(kit, task, course.left)
        _, trouble = read_output(kit, task, course.fits)
        made: Intent | Trouble | o.LandingTouches | None = trouble
        if trouble is None and ground is not None:
            made = yield from _judged_commit(kit, task, ground, memory, course.held)
        if isinstance(made, Trouble):
            made = yield Do(partial(with_work, kit, task, made))
    except StopAsked:
        if ground is not None:
            yield Do(lambda: rise(kit, task))
        return o.StopSeen(loop.id, task.attempt)
    except (LooprError, OSError) as error:
        made = replace(trouble_before(error), launch=False)
    if isinstance(made, Trouble):
        return o.LandingFailed(loop.id, task.attempt, made)
    if isinstance(made, o.LandingTouches):
        return made
    if made is None:
        return o.LandingReady(loop.id, task.attempt)
    return o.LandingReady(loop.id, task.attempt, made.old, made.new, made.loop_tip, made.touched)


def _judged_commit(
    kit: Kit, task: Task, ground: Ground, memory: Memory, held: Held
) -> Generator[Asked, Any, Intent | Trouble | o.LandingTouches]:
    """Make the commit that lands upon where the plan stands, if nothing is to go first and its judges say yes."""
    candidate = yield from candidate_of(kit, task, ground)
    if isinstance(candidate, Trouble):
        return candidate
    if held(candidate.changed):
        return o.LandingTouches(task.loop.id, task.attempt, candidate.changed)
    trouble = yield from ask_judges(kit, task, candidate, memory)
    if trouble is not None:
        return trouble
    intent: Intent = yield Do(partial(_intent, kit, task, ground, candidate))
    return intent


def _intent(kit: Kit, task: Task, ground: Ground, candidate: Candidate) -> Intent:
    """Make the commit, and say what is about to be done with it."""
    message = message_of(kit, task)
    remarks = [put_back_words(kit.runs.put_back(task.name)), _beyond_words(task, candidate)]
    body = "\n\n".join(filter(None, [message.body, *remarks]))
    return make_intent(ground, candidate, message._replace(body=body), _history(kit))


def _end(kit: Kit, task: Task, course: Course) -> Act:
    """Do what was announced, however often it is begun: there is no way back but where the commit itself is gone."""
    loop, ground, moving = task.loop, kit.ground_of(task), course.moving
    while ground is not None:
        try:
            done = yield Do(partial(_move, ground, task, moving, kit.clock()))
            break
        except (WorldError, OSError) as error:
            yield Later(Problem(f"cannot land yet: {error}", loop.id))
    else:
        done = None
    if isinstance(done, Trouble):
        return o.LandingFailed(loop.id, task.attempt, done)
    behind = done is not None and done.behind and (course.lags or done.outcome == "lags")
    if done is not None and done.foreign is not None and moving is not None and not behind:
        back = moving.new if done.outcome == "moved" else ""
        yield Tell(ForeignSeen(loop.plan, done.foreign, done.kept, back, course.during))
    artifact, _ = read_output(kit, task, lambda *_: [])
    kit.outlines.pop(task.name, None)
    commit = moving.new if moving is not None else ""
    published = yield from _until_published(kit, task, artifact, commit)
    undone = tuple(kit.runs.put_back(task.name))[:MOST_NAMED] if ground is not None else ()
    own = (
        (yield Do(partial(_own_files, kit, task, ground, moving))) if ground is not None and moving is not None else ()
    )
    return o.LandingDone(loop.id, task.attempt, commit, *published, put_back=undone, own=own)


def _own_files(kit: Kit, task: Task, ground: Ground, moving: Moving) -> tuple[str, ...]:
    """List the files that judges of a loop name and that it has added: what it makes is no judge of it later."""
    words = named_by_judges(kit, task) - {*task.loop.own}
    if not words or not moving.old:
        return ()
    try:
        entries = changed_entries(ground.door, moving.old, moving.new)
    except (WorldError, OSError):  # it has landed, and a file more that is guarded does no harm
        return ()
    return tuple(each.path for each in entries if each.path in words and each.was == NOTHING)


def _move(ground: Ground, task: Task, moving: Moving | None, now: int) -> Brought | Trouble | None:
    """Move the plan's branch as was announced; a loop that has changed nothing only keeps its own tip."""
    if moving is None:
        keep_own(ground, task.name)
        return None
    if not is_there(ground, moving.new):
        return Trouble(Failure.INFRA, f"the commit {moving.new} that was to land is gone; it is made anew")
    return land(ground, Intent(task.name, task.loop.plan, moving.old, moving.new, moving.loop_tip), now)


def _beyond_words(task: Task, candidate: Candidate) -> str:
    """Name the files that a loop has changed beside those it meant to touch."""
    files = task.loop.files
    beyond = [each for each in candidate.changed if not covers(files, each)] if files else []
    if not beyond:
        return ""
    more = [f"- and {len(beyond) - MOST_NAMED} more"] if len(beyond) > MOST_NAMED else []
    return "\n".join(["Changed beside the files that it names:", *(f"- {each}" for each in beyond[:MOST_NAMED]), *more])


def _history(kit: Kit) -> Any:
    """Return whether a loop's own commits stay visible on the plan branch."""
    return "merge" if kit.settings.land.history == "merge" else "squash"


# --- the artifact ---------------------------------------------------------------------------------------------------


def _until_published(kit: Kit, task: Task, artifact: Artifact | None, commit: str) -> Generator[Asked, Any, _Published]:
    """Publish as soon as the disk lets us: the commits have landed, so there is no way back."""
    while True:
        try:
            return (yield from _publish(kit, task, artifact, commit))
        except (WorldError, OSError) as error:
            place = f"{kit.settings.artifacts.dir}/{task.loop.id}/{task.loop.type}.md"
            yield Later(Problem(f"cannot be published: {error}", place))


def _publish(kit: Kit, task: Task, artifact: Artifact | None, commit: str) -> Generator[Asked, Any, _Published]:
    """Put the artifact in its place; a file of others gives way only to one that is handed over."""
    loop, hands_over, raw = task.loop, _hands_over(kit, task), _own_text(kit, task, commit)
    path = artifact_path(kit.specs, loop.id, loop.type)
    there = content(path)
    ours, lies = digest(raw), digest(there) if there is not None else ""
    theirs = frozenset({loop.offers.offered, loop.offers.counts}) - {""}
    if there is not None and lies == loop.artifact:
        if _replaced_by_person(task):
            return _Published(lies, _read(task, there, path))
        if lies == loop.offers.counts != loop.offers.offered and not hands_over:
            return _Published(lies, _read(task, there, path), stays=True)  # it still counts
    may_go = frozenset({loop.artifact, *theirs} if hands_over else {loop.artifact} - theirs)
    may_go = (may_go | {ours, *loop.offers.rejected}) - {""}
    if there is not None and lies in may_go and (lies != ours or lies in theirs):
        yield Do(lambda: kit.hands.archive.keep(lies, there))
    text = kit.hands.as_published(raw, there)
    if not (yield Do(publishing(path, text, lambda each: digest(each) in may_go))):
        yield Do(lambda: kit.hands.archive.keep(ours, raw))
        return _Published(ours, artifact, stays=True)
    return _Published(ours, artifact, lies if lies in theirs else "")


def _hands_over(kit: Kit, task: Task) -> bool:
    """Say whether the loop's command has written anything for others to read."""
    return (kit.runs.folder(task.name, task.attempt) / OUTPUT).is_file()


def _own_text(kit: Kit, task: Task, commit: str) -> bytes:
    """Return what the loop hands over: what its command wrote, else a few words about a leaf."""
    output = kit.runs.folder(task.name, task.attempt) / OUTPUT
    note = note_of(kit, task)
    if output.is_file() and not note:
        return output.read_bytes()
    entry = task.entry or Entry(task.loop.id.rpartition("/")[2], task.title)
    left = Left(commit, task.title, note)
    raw = leaf_artifact(entry, task.loop.type, task.policy.types, left, project=task.loop.project).encode()
    if note:
        kit.hands.archive.keep(digest(raw), raw)  # neither the entry nor its run has the whole of it
    return raw


def _replaced_by_person(task: Task) -> bool:
    """Say whether a person has edited the candidate while it waited for approval."""
    lease = task.loop.lease
    return task.type.approve and lease is not None and task.loop.on_disk and task.loop.seen >= lease.at


def _read(task: Task, raw: bytes, path: Path) -> Artifact | None:
    """Read a person's candidate, which was found sound when it was seen."""
    fallback = task.loop.id.rpartition("/")[2]
    try:
        return parse_artifact(
            raw,
            path.name,
            type_name=task.loop.type,
            types=task.policy.types,
            fallback_id=fallback,
            depth=task.loop.depth,
        )
    except PlanError:
        return None
