"""Which output is meant: from what somebody types to a loop, one of its attempts, and the runs that wrote it.

Knows the journal and the folders of runs, for reading. Must never know how output is shown.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loopr import wiring
from loopr.core.model import OCCUPYING, Loop, Status, decode_loop
from loopr.core.naming import generation_name
from loopr.core.scene import Scene
from loopr.core.states import people_say
from loopr.errors import LooprError, NotFound, UserError
from loopr.ui import logs, tries, views
from loopr.ui.names import find_id
from loopr.ui.preparing import outputs_of
from loopr.ui.saying import stream_of
from loopr.ui.verdicts import judge_in, last_no, output_of
from loopr.wiring import Workspace
from loopr.world.launcher.words import STREAMS
from loopr.world.runs import Runs
from loopr.world.veil import Veil

RUNNING = frozenset({Status.LEASED, Status.RUNNING})
LAST_LINES = 10


class Wanted(NamedTuple):
    """Which output is asked for."""

    attempt: int | None = None
    iteration: int | None = None
    step: str = ""
    names: tuple[str, ...] = STREAMS
    tail: int | None = None
    following: bool = False
    raw: bool = False


class Chosen(NamedTuple):
    """What is meant: a loop, one of its attempts, and the runs of it whose output is wanted."""

    loop: Loop
    attempt: int
    generation: int
    folders: list[Path]
    step: str


def one_loop(workspace: Workspace, text: str) -> Loop:
    """Return the one loop that is meant; no other is read."""
    try:
        with workspace.journal() as journal:
            bodies = dict(journal.rows("loops"))
    except NotFound:
        bodies = {}
    loop: Loop = json.loads(bodies[find_id(bodies, text)], object_pairs_hook=decode_loop)
    return loop


def choose_output(workspace: Workspace, text: str, wanted: Wanted) -> Chosen:
    """Find the loop, the attempt and the runs that are meant."""
    if wanted.attempt is not None and wanted.iteration is not None:
        raise UserError("--try and --iteration name two tries", hint="leave one of the two out")
    loop, runs = one_loop(workspace, text), Runs(workspace.place.state)
    attempt, step = wanted.attempt, wanted.step
    if wanted.iteration is not None:
        attempt = _attempt_of(workspace, loop, wanted.iteration)
    if attempt is None and wanted.following and loop.lease is not None and loop.status in RUNNING and not step:
        folder = runs.folder(loop.name, loop.lease.attempt)  # it may not be there yet
        return Chosen(loop, loop.lease.attempt, loop.generation, [folder], "")
    found = logs.find_attempt(runs, loop, attempt)
    if found is None:
        raise _none_yet(runs, loop, attempt)
    folders = logs.steps_of(found.folder, step) if step else outputs_of(found.folder)
    if not folders:
        raise _no_step(runs, loop, found.attempt, step)
    return Chosen(loop, found.attempt, found.generation, folders, step)


def choose_below(workspace: Workspace, scene: Scene, top: Loop, wanted: Wanted) -> list[Chosen]:
    """Find the latest attempt of each loop below another one that has any, in tree order."""
    runs, found = Runs(workspace.place.state), []
    for loop in scene.tree.walk(top.id):
        known = logs.find_attempt(runs, loop) if loop.attempt else None
        if known is not None:
            step, folder = wanted.step, known.folder
            folders = logs.steps_of(folder, step) if step else outputs_of(folder)
            found.append(Chosen(loop, known.attempt, known.generation, folders, wanted.step))
    return found


def judge_of(workspace: Workspace, chosen: Chosen) -> str:
    """Name the kind of judge that has refused an attempt and has a run of its own there."""
    loop, generation = chosen.loop, generation_name(chosen.loop.id, chosen.generation)
    runs = Runs(workspace.place.state)
    refusal = runs.refusal(generation, chosen.attempt)
    folder = runs.folder(generation, chosen.attempt)
    latest = (chosen.generation, chosen.attempt) == (loop.generation, loop.attempt)
    judge = judge_in(refusal.reason) if refusal is not None else last_no(loop) if latest else ""
    return judge if judge and logs.steps_of(folder, judge) else ""


def last_of(folder: Path, name: str, wanted: Wanted) -> bytes:
    """Return the last lines of an output."""
    tail = LAST_LINES if wanted.tail is None else wanted.tail
    text = logs.last_lines(stream_of(folder, name, raw=wanted.raw).read(), tail)
    return text if text.endswith(b"\n") or not text else text + b"\n"


def is_about_all(scene: Scene, loop: Loop, wanted: Wanted) -> bool:
    """Say whether all below a loop is meant: it has others below it, and no try of its own is named."""
    return wanted.attempt is None and wanted.iteration is None and scene.tree.has_children(loop.id)


def veil_for(workspace: Workspace, loop: Loop) -> Veil:
    """Return what hides keys in the output of a loop; what its base commit contains is no key."""

    def is_public(key: str) -> bool:
        from loopr.grounds import ground_of_plan  # slow to import, and few outputs have a key in them
        from loopr.world.repo.contents import has_text

        with suppress(LooprError):
            scene = workspace.look().scene
            ground, bound = ground_of_plan(workspace, scene, loop.plan), scene.shared.plans.get(loop.plan)
            return ground is not None and bound is not None and has_text(ground.door, bound.base_commit, key)
        return False

    return workspace.veil(is_public)


def _attempt_of(workspace: Workspace, loop: Loop, iteration: int) -> int:
    """Return the latest attempt of an iteration."""
    with workspace.journal() as journal:
        rows = tries.attempts(journal.story(loop.id))
    found = [row["attempt"] for row in rows if row["iteration"] == iteration]
    if not found:
        times = f"{iteration - 1} refusal{'s' * (iteration != 2)}"
        hint = f"`loopr show {loop.id}` lists its tries"
        if any(row["attempt"] == iteration for row in rows):
            hint = f"`loopr logs --try {iteration} {loop.id}` prints its try {iteration}"
        raise NotFound(f"{loop.id} has no try that came after {times}", hint=hint)
    return int(found[-1])


def _no_step(runs: Runs, loop: Loop, attempt: int, step: str) -> NotFound:
    """Say that an attempt has no run of a step, and which one had one last."""
    judged = (
        each
        for each in reversed(logs.known_attempts(runs, loop))
        if (found := logs.find_attempt(runs, loop, each)) and logs.steps_of(found.folder, step)
    )
    last = next(judged, None)
    hint = f"`loopr logs {loop.id}` shows what its command has written"
    if last is not None:
        hint = f"{output_of(step, loop.id, '--try', str(last))} prints the {step} of try {last}"
    lease = loop.lease
    to_come = lease is not None and lease.attempt == attempt and loop.status in OCCUPYING
    yet = " yet" if to_come or (loop.judge_only and attempt == loop.attempt) else ""
    return NotFound(f"try {attempt} of {loop.id} has no {step}{yet}", hint=hint)


def _none_yet(runs: Runs, loop: Loop, attempt: int | None) -> NotFound:
    """Say that there is no such attempt, or none at all."""
    known = logs.known_attempts(runs, loop)
    if attempt is not None and known:
        return NotFound(
            f"there is no output of try {attempt} of {loop.id}", hint=f"there is of {', '.join(map(str, known))}"
        )
    if attempt is not None and attempt <= loop.attempt:
        return NotFound(
            f"there is no output of try {attempt} of {loop.id}",
            hint="logs.keep_attempts and logs.keep_days say how long it is kept",
        )
    return NotFound(
        f"{loop.id} has no output yet: it is {people_say(loop)}", hint=f"`loopr why {loop.id}` says what it waits for"
    )


def outputs_document(workspace: Workspace, text: str, wanted: Wanted) -> views.Row:
    """Return the output as a document, of a loop without any the last lines of those below it."""
    try:
        found = choose_output(workspace, text, wanted)
    except NotFound:
        scene = workspace.look().scene
        top = scene.loops[find_id(scene.loops, text)]
        if not is_about_all(scene, top, wanted):
            raise
        some = wanted._replace(tail=LAST_LINES if wanted.tail is None else wanted.tail)
        below = [_body(workspace, each, some) for each in choose_below(workspace, scene, top, wanted)]
        return views.document(wiring.wall_clock(), {"id": top.id, "below": below})
    return views.document(wiring.wall_clock(), _body(workspace, found, wanted))


def _body(workspace: Workspace, found: Chosen, wanted: Wanted) -> views.Row:
    """Return the output of an attempt as data; what is not UTF-8 in it is replaced."""
    veil, rows = veil_for(workspace, found.loop), []
    for folder in found.folders:
        outcome = logs.outcome_of(folder)
        texts = {}
        for name in wanted.names:
            pieces = logs.Stream(folder, name).read()
            raw = b"".join(pieces) if wanted.tail is None else logs.last_lines(pieces, wanted.tail)
            texts[Path(name).stem] = veil.over_bytes(raw).decode("utf-8", "replace")
        rows.append(
            {
                "step": "run" if folder.name.isdigit() else folder.name,
                "folder": str(folder),
                "ended": outcome is not None,
                "reason": outcome.reason if outcome else None,
                "exit": outcome.code if outcome else None,
                "stdout": texts.get("stdout"),
                "stderr": texts["stderr"],
            }
        )
    return {"id": found.loop.id, "attempt": found.attempt, "generation": found.generation, "outputs": rows}
