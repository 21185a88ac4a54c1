"""How a loop's work comes home: onto the plan branch first, then its artifact among the others.

What a landing is about to do is written down before it is done, so that one begun again after a crash finds what it has
done already. One landing a plan at a time.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from loopr.core import observations as o
from loopr.core.entries import Artifact, Entry
from loopr.core.observations import Trouble
from loopr.core.overlap import covers
from loopr.core.rendering import leaf_artifact
from loopr.driving.acts import Act, Asked, Do, Later
from loopr.driving.asking import Memory, ask_judges, hear_out, put_back_words
from loopr.driving.attempting import message_of
from loopr.driving.judging import Fits, candidate_of, read_output
from loopr.driving.kit import Kit, Task
from loopr.driving.outcomes import trouble_before
from loopr.errors import LooprError, PlanError, Problem, WorldError
from loopr.world.artifacts import artifact_path, digest, parse_artifact
from loopr.world.publishing import publishing
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import has_landed, land, make_intent
from loopr.world.repo.words import Candidate, Intent, Landed, Overtaken, Waits
from loopr.world.runs import OUTPUT

INTENT = "landing.json"
MOST_NAMED = 10


class _Published(NamedTuple):
    """What stands among the artifacts now, and what it declares."""

    digest: str
    artifact: Artifact | None


def bring_home(kit: Kit, task: Task, fits: Fits, left: Sequence[str] = ()) -> Act:
    """Land a loop's commits and publish its artifact; `left` are judges of an earlier engine."""
    loop, ground = task.loop, kit.ground_of(task)
    try:
        memory = yield from hear_out(kit, task, left)
        artifact, trouble = read_output(kit, task, fits)
        commit = ""
        if trouble is None and ground is not None:
            landed = yield from _land(kit, task, ground, memory)
            commit, trouble = (landed, None) if isinstance(landed, str) else ("", landed)
        if trouble is not None:
            return o.LandingFailed(loop.id, task.attempt, trouble)
        published = yield from _until_published(kit, task, artifact, commit)
    except (LooprError, OSError) as error:
        return o.LandingFailed(loop.id, task.attempt, replace(trouble_before(error), launch=False))
    return o.LandingDone(loop.id, task.attempt, commit, published.digest, published.artifact)


def _land(kit: Kit, task: Task, ground: Ground, memory: Memory) -> Generator[Asked, Any, str | Trouble]:
    """Move the plan branch; a tip that has moved meanwhile is taken in, and judged again if that makes another tree.

    Returns the commit that landed, nothing where the plan has all of it already: that commit is somebody else's.
    """
    intent = _noted(kit, task)
    if intent is not None and (yield Do(lambda: _has_landed(ground, task.name, intent))):
        return intent.new if intent.new != intent.old else ""
    while True:
        candidate = yield from candidate_of(kit, task, ground)
        if isinstance(candidate, Trouble):
            return candidate
        trouble = yield from ask_judges(kit, task, candidate, memory)
        if trouble is not None:
            return trouble
        done = yield Do(partial(_move, kit, task, ground, candidate))
        if isinstance(done, Landed):
            return "" if candidate.empty else done.commit
        if not isinstance(done, Overtaken):
            yield Later(done)


def _has_landed(ground: Ground, name: str, intent: Intent) -> bool:
    """Say whether an earlier engine has moved the branch; if so, whatever it did not come to is done."""
    return has_landed(ground, name, intent) and isinstance(land(ground, intent), Landed)


def _move(kit: Kit, task: Task, ground: Ground, candidate: Candidate) -> Landed | Overtaken | Problem:
    """Write down what is about to be done, and do it."""
    message = message_of(kit, task)
    remarks = [put_back_words(kit.runs.put_back(task.name)), _beyond_words(task, candidate)]
    body = "\n\n".join(filter(None, [message.body, *remarks]))
    intent = make_intent(ground, candidate, message._replace(body=body), _history(kit))
    path = kit.runs.folder(task.name, task.attempt) / INTENT
    fresh = path.with_name(f".{INTENT}.new")
    fresh.write_text(json.dumps(intent._asdict()), encoding="utf-8")
    fresh.replace(path)
    done = land(ground, intent)
    if isinstance(done, Landed | Overtaken):
        return done
    return done.problem if isinstance(done, Waits) else done.problems[0]


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


def _noted(kit: Kit, task: Task) -> Intent | None:
    """Read what an earlier engine was about to do."""
    try:
        return Intent(**json.loads((kit.runs.folder(task.name, task.attempt) / INTENT).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


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
    """Put the artifact in its place; a person's file that stands there is never written over."""
    raw = _own_text(kit, task, commit)
    path = artifact_path(kit.specs, task.loop.id, task.loop.type)
    there = path.read_bytes() if path.is_file() else None
    known, ours = task.loop.artifact, digest(raw)
    if there is not None and digest(there) == known and _replaced_by_person(task):
        return _Published(known, _read(task, there, path))
    if there is None or digest(there) in (known, ours):
        if there is not None and digest(there) != ours:
            yield Do(lambda: kit.hands.archive.keep(known, there))
        yield Do(publishing(path, raw))
    return _Published(ours, artifact)


def _own_text(kit: Kit, task: Task, commit: str) -> bytes:
    """Return what the loop hands over: what its command wrote, else a few words about a leaf."""
    output = kit.runs.folder(task.name, task.attempt) / OUTPUT
    if output.is_file():
        return output.read_bytes()
    entry = task.entry or Entry(task.loop.id.rpartition("/")[2], task.title)
    said = {"project": task.loop.project, "commit": commit, "title": task.title}
    return leaf_artifact(entry, task.loop.type, task.policy.types, **said).encode()


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
