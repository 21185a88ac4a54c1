"""What a command is given: the files under `.loopr/` of its folder, its environment, its arguments, its clocks.

Knows how each is made from a task. Must never know what becomes of the command.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loopr.core.entries import Command, Entry
from loopr.core.forest import Forest
from loopr.core.ladder import Ladder
from loopr.core.model import Loop, Status
from loopr.core.offering import words_for
from loopr.driving.agents import changes_for
from loopr.driving.kit import OWN_FOLDER, Kit, Task, siblings_of
from loopr.driving.told import feedback_of
from loopr.errors import UserError, WorldError
from loopr.world import prompts
from loopr.world.activated import seen_from
from loopr.world.artifacts import digest
from loopr.world.environment import Changes, Setting, arguments, reads_prompt_file, variables
from loopr.world.processes import AttemptSpec
from loopr.world.runs import OUTPUT
from loopr.world.settings.presets import Preset

RESULT, ASKED = "result.json", "review.md"
CHECK, REVIEW = "check", "review"
"""What the steps begin with that judge."""
MAX_INPUT_BYTES = 1 << 20
_NO_WAIT = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
NOWHERE = Path(os.devnull)
_MAKING = frozenset({"setup", "post_create"})


class Spot(NamedTuple):
    """Where an attempt works, and the commit that its work begins at; none where there is no repository."""

    folder: Path
    base_commit: str = ""


def write_materials(kit: Kit, task: Task, spot: Spot) -> AttemptSpec:
    """Write all that an attempt's command is given, and say how it is to be run."""
    setting, command, clocks = write_papers(kit, task, spot), task.command, task.type.timeouts
    stdin = NOWHERE if reads_prompt_file(command) else kit.runs.folder(task.name, task.attempt) / prompts.PROMPT
    return _spec(kit, task, setting, command, first=changes_for(task.preset, own_folder(spot.folder)))._replace(
        stdin=stdin,
        wall_ms=clocks.wall_ms,
        idle_ms=clocks.idle_ms,
        first_byte_ms=clocks.first_byte_of(agent=task.preset is not None),
    )


def write_papers(kit: Kit, task: Task, spot: Spot) -> Setting:
    """Write the files that the work of an attempt begins with, whoever does it, and say as what and where that is."""
    run = kit.runs.ensure(task.name, task.attempt)
    setting = setting_of(kit, task, spot)
    _clear(own_folder(spot.folder))
    prompts.write_files(run, _write_own(kit, task, setting), mode=0o600)
    return setting


def _write_own(kit: Kit, task: Task, setting: Setting) -> dict[str, str]:
    """Write the files of an attempt into loopr's own folder; return those that are kept."""
    iteration = _iteration(kit, task, setting)
    given = {prompts.PROMPT: kit.prompts.render(iteration), prompts.FEEDBACK: iteration.feedback}
    context = {prompts.INPUT: iteration.parent_artifact, prompts.CONTEXT: prompts.render_context(iteration)}
    prompts.write_files(own_folder(setting.worktree), given | context)
    return given


def write_copies(kit: Kit, task: Task, spot: Spot) -> None:
    """Write what an attempt was given and has handed over, for a judge in another folder."""
    _write_own(kit, task, setting_of(kit, task, spot))
    output = kit.runs.folder(task.name, task.attempt) / OUTPUT
    if output.is_file():
        (own_folder(spot.folder) / OUTPUT).write_bytes(output.read_bytes())


def step_spec(kit: Kit, task: Task, spot: Spot, command: Command, step: str) -> AttemptSpec:
    """Say how a command beside the attempt's own is to be run; a review reads what was handed over."""
    run = kit.runs.folder(task.name, task.attempt)
    reads = step.startswith(REVIEW) and (run / OUTPUT).is_file()
    kit.runs.ensure(task.name, task.attempt, step)
    spec = _spec(kit, task, setting_of(kit, task, spot), command, step)
    return spec._replace(stdin=run / OUTPUT if reads else NOWHERE, wall_ms=task.type.timeouts.check_ms)


class Asks(NamedTuple):
    """What an agent is asked that reviews, and what its run is called."""

    reviewer: Preset
    about: prompts.Pass
    step: str


def review_spec(kit: Kit, task: Task, spot: Spot, asks: Asks) -> AttemptSpec:
    """Say how an agent is run that reviews, and write down for it what it is asked and what was handed over."""
    reviewer, about, step = asks
    run, setting = kit.runs.ensure(task.name, task.attempt, step), setting_of(kit, task, spot)
    own, text = own_folder(spot.folder), kit.prompts.render_review(_iteration(kit, task, setting), about)
    prompts.write_files(own, {ASKED: text} | ({OUTPUT: about.artifact} if about.artifact else {}))
    prompts.write_files(run, {prompts.PROMPT: text}, mode=0o600)
    kit.runs.note_agent(task.name, task.attempt, step, agent=reviewer.name, reader=reviewer.reader)
    setting = replace(setting, prompt_file=Path(f"{setting.worktree}/{OWN_FOLDER}/{ASKED}"))
    spec = _spec(kit, task, setting, reviewer.command, step, first=changes_for(reviewer, own))
    stdin = NOWHERE if reads_prompt_file(reviewer.command) else run / prompts.PROMPT
    return spec._replace(stdin=stdin, wall_ms=task.type.timeouts.check_ms)


def is_judge(step: str) -> bool:
    """Say whether a step judges what an attempt has left."""
    return step.startswith((CHECK, REVIEW))


def _spec(
    kit: Kit, task: Task, setting: Setting, command: Command, step: str = "", *, first: Sequence[Changes] = ()
) -> AttemptSpec:
    """Say how any command of a task is run; `first` is changed in its environment before the settings do."""
    environment = _inherited(kit, task, setting.worktree, step)
    share = kit.settings.logs.max_bytes_per_attempt // 8  # two streams, each with a head and at most three tails
    return AttemptSpec(
        kit.runs.id_of(task.name, task.attempt, step),
        kit.runs.folder(task.name, task.attempt, step),
        arguments(command, setting, task.type.wrap if not step or is_judge(step) else None),
        setting.worktree,
        variables(setting, environment, ceiling=kit.worktrees, changes=[*first, *changes_of(kit, task)]),
        NOWHERE,
        grace_ms=task.type.timeouts.grace_ms,
        head_bytes=share,
        tail_bytes=share,
    )


def _inherited(kit: Kit, task: Task, folder: Path, step: str) -> dict[str, str]:
    """Return loopr's variables at its start, an active virtual environment as in a worktree."""
    ground = kit.ground_of(task)
    if ground is None or ground.top is None:
        return dict(kit.inherited)
    makes = step.partition(".")[0] in _MAKING
    return seen_from(kit.inherited, ground.top, folder, strict=not makes)


def changes_of(kit: Kit, task: Task) -> list[Changes]:
    """List what the settings of its lane and its type change in the environment of an attempt."""
    lane = kit.settings.lanes.get(task.loop.lane or "")
    return [Changes(*each.env) for each in (lane, task.type) if each is not None]


def setting_of(kit: Kit, task: Task, spot: Spot) -> Setting:
    """Say as what and where an attempt runs."""
    loop, own = task.loop, f"{spot.folder}/{OWN_FOLDER}"
    prefix = kit.settings.git.branch_prefix
    return Setting(
        workspace=kit.place.root,
        plan=loop.plan,
        loop=loop.id,
        type=loop.type,
        parent=loop.parent,
        depth=loop.depth,
        project=loop.project,
        iteration=loop.iteration,
        max_iterations=task.type.max_iterations,
        attempt=loop.attempt,
        lease=loop.lease_id,
        worktree=spot.folder,
        branch=f"{prefix}{loop.name}" if kit.ground_of(task) else "",
        base_commit=spot.base_commit,
        plan_branch=f"{prefix}{loop.plan}" if kit.ground_of(task) else "",
        input=Path(f"{own}/{prompts.INPUT}"),
        output=Path(f"{own}/{OUTPUT}"),
        prompt_file=Path(f"{own}/{prompts.PROMPT}"),
        feedback_file=Path(f"{own}/{prompts.FEEDBACK}"),
        context_file=Path(f"{own}/{prompts.CONTEXT}"),
        result_file=Path(f"{own}/{RESULT}"),
        log_dir=kit.runs.folder(loop.name, loop.attempt),
        deadline_ms=kit.clock() + task.type.timeouts.wall_ms if task.type.timeouts.wall_ms else None,
        tokens_left=task.tokens_left,
        port_base=kit.ports(loop.lease_id),
    )


def own_folder(folder: Path) -> Path:
    """Make loopr's folder in a loop's one; whatever else stands there goes."""
    own = folder / OWN_FOLDER
    try:
        if not stat.S_ISDIR(own.lstat().st_mode):
            own.unlink()
    except FileNotFoundError:
        own.mkdir(parents=True, exist_ok=True)
        return own
    own.mkdir(exist_ok=True)
    return own


def _clear(own: Path) -> None:
    """Take away what the last attempt handed over."""
    for name in (OUTPUT, RESULT):
        take_away(own / name)


def take_away(path: Path) -> None:
    """Take away what a command may have left under a name, whatever it is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _iteration(kit: Kit, task: Task, setting: Setting) -> prompts.Iteration:
    """Say what the prompt is made from."""
    loop, entry, ladder = task.loop, task.entry, Ladder(task.policy.types)
    above = _read_input(kit, task)
    return prompts.Iteration(
        loop_id=loop.id,
        type=task.type.name,
        title=task.title,
        body=entry.body if entry is not None else above,
        child=task.type.child,
        children_key=ladder.keys(loop.type)[0] if task.type.child else "",
        implies_child=bool(task.type.child) and ladder.implies(loop.type),
        iteration=loop.iteration,
        max_iterations=task.type.max_iterations,
        generation=loop.generation,
        has_landed=bool(loop.landed or loop.past.changed),
        input_path=str(setting.input),
        output_path=str(setting.output),
        context_path=str(setting.context_file),
        feedback_path=str(setting.feedback_file),
        result_path=str(setting.result_file),
        siblings=task.siblings,
        parent=loop.parent or "",
        parent_title=task.parent_title,
        parent_artifact=above,
        feedback=feedback_of(kit, task),
        files=loop.files,
        check=_shown(task.check),
        review=task.reviewer.name if task.reviewer is not None else _shown(task.type.review),
        protected=task.type.protect,
    )


def would_be_reviewed(kit: Kit, forest: Forest, loop: Loop, entry: Entry | None, number: int) -> Asked:
    """Say what an agent that reviews a loop was asked last in this attempt, else what it would be; writes nothing."""
    for step in kit.runs.steps(loop.name, loop.attempt):
        if step.rpartition("/")[2].partition(".")[0] == review_kind(number):
            with suppress(OSError):
                text = (kit.runs.root / step / prompts.PROMPT).read_text(encoding="utf-8")
                return Asked(loop.attempt, text, True)
    task = kit.task(forest, loop, entry)
    passes = task.type.review_passes
    if task.reviewer is None:
        hint = f"set types.{loop.type}.review to {{agent: NAME}}"
        raise UserError(f"no agent reviews a {loop.type}", hint=hint)
    if not 1 <= number <= passes:
        raise UserError(f"a {loop.type} has {passes} review{'s' * (passes > 1)}, not {number}")
    about = prompts.Pass(number, passes, prompts.looks_of(number, passes), "(what it will have handed over)")
    spot = Spot(kit.runs.place_of(loop.name, loop.attempt) or kit.worktrees / loop.name)
    text = kit.prompts.render_review(_iteration(kit, task, setting_of(kit, task, spot)), about)
    return Asked(loop.attempt, text, False)


def review_kind(number: int) -> str:
    """Return what the runs of one review of several are called."""
    return REVIEW if number == 1 else f"{REVIEW}{number}"


class Asked(NamedTuple):
    """What a command is asked in an attempt, and whether it was asked already."""

    attempt: int
    text: str
    sent: bool


def would_be_asked(kit: Kit, forest: Forest, loop: Loop, entry: Entry | None, at_work: Collection[Status]) -> Asked:
    """Say what a loop's command was given, if it is at work, else what it would be given now; writes nothing."""
    if loop.status in at_work:
        with suppress(OSError):
            text = (kit.runs.folder(loop.name, loop.attempt) / prompts.PROMPT).read_text(encoding="utf-8")
            return Asked(loop.attempt, text, True)
    ahead = loop if loop.lease is not None else loop._replace(attempt=loop.attempt + 1)
    task = kit.task(forest, ahead, entry)._replace(siblings=siblings_of(forest, loop))
    spot = Spot(kit.runs.place_of(loop.name, loop.attempt) or kit.worktrees / loop.name)
    return Asked(ahead.attempt, kit.prompts.render(_iteration(kit, task, setting_of(kit, task, spot))), False)


def _shown(command: Command | None) -> str:
    """Return a command as a person would type it."""
    return command if isinstance(command, str) else " ".join(command or ())


def _read_input(kit: Kit, task: Task) -> str:
    """Read what the loop above has handed over, the text of it that counts; it may have gone since the lease."""
    raw = b""
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISREG(task.input.stat().st_mode):  # a folder cannot be read, a pipe would have us wait for ever
            with os.fdopen(os.open(task.input, _NO_WAIT), "rb") as file:
                raw = file.read(MAX_INPUT_BYTES + 1)
        if len(raw) > MAX_INPUT_BYTES:
            raise WorldError(f"{task.input} is larger than {MAX_INPUT_BYTES >> 20} MiB", hint="make it shorter")
    if task.above is not None and task.above.loop.artifact not in ("", digest(raw)):
        raw = kit.hands.copy_of(*task.above) or _uncounted(task.above.loop, raw)
    return raw.decode("utf-8", "replace")


def _uncounted(parent: Loop, raw: bytes) -> bytes:
    """Take a text that is not the one which counts for one that has gone; one on offer is nobody's input."""
    if raw and parent.offers.offered:
        hint = words_for(parent)
        raise WorldError(f"the text of {parent.id} that counts is kept nowhere, and another is offered", hint=hint)
    if not raw:
        hint = "put its file there"
        raise WorldError(f"the text of {parent.id} that counts is kept nowhere, and no other is there", hint=hint)
    return raw
