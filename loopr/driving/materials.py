"""What a command is given: the files under `.loopr/` of its folder, its environment, its arguments, its clocks.

Knows how each is made from a task. Must never know what becomes of the command.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loopr.core.entries import Command
from loopr.core.ladder import Ladder
from loopr.driving.kit import OWN_FOLDER, Kit, Task
from loopr.errors import WorldError
from loopr.world import prompts
from loopr.world.environment import Changes, Setting, arguments, reads_prompt_file, variables
from loopr.world.feedback import Earlier, render_feedback
from loopr.world.processes import AttemptSpec
from loopr.world.runs import OUTPUT, Refusal

RESULT = "result.json"
MAX_INPUT_BYTES = 1 << 20
NOWHERE = Path(os.devnull)


class Spot(NamedTuple):
    """Where an attempt works, and the commit that its work begins at; none where there is no repository."""

    folder: Path
    base_commit: str = ""


def write_materials(kit: Kit, task: Task, spot: Spot) -> AttemptSpec:
    """Write all that an attempt's command is given, and say how it is to be run."""
    run = kit.runs.ensure(task.name, task.attempt)
    setting = setting_of(kit, task, spot)
    own = own_folder(spot.folder)
    _clear(own)
    iteration = _iteration(kit, task, setting)
    prompts.write_input(own, iteration.parent_artifact)
    prompts.write_context(own, prompts.render_context(iteration))
    text = kit.prompts.render(iteration)
    for place in (own, run):
        prompts.write_feedback(place, iteration.feedback)
        prompts.write_prompt(place, text)
    command = task.command
    stdin = NOWHERE if reads_prompt_file(command) else run / prompts.PROMPT
    clocks = task.type.timeouts
    return _spec(kit, task, setting, command)._replace(
        stdin=stdin,
        wall_ms=clocks.wall_ms,
        idle_ms=clocks.idle_ms,
        first_byte_ms=clocks.first_byte_ms,
    )


def step_spec(kit: Kit, task: Task, spot: Spot, command: Command, step: str) -> AttemptSpec:
    """Say how a command beside the attempt's own is to be run; a review reads what was handed over."""
    run = kit.runs.folder(task.name, task.attempt)
    reads = step.startswith("review") and (run / OUTPUT).is_file()
    kit.runs.ensure(task.name, task.attempt, step)
    spec = _spec(kit, task, setting_of(kit, task, spot), command, step)
    return spec._replace(stdin=run / OUTPUT if reads else NOWHERE, wall_ms=task.type.timeouts.check_ms)


def _spec(kit: Kit, task: Task, setting: Setting, command: Command, step: str = "") -> AttemptSpec:
    """Say how any command of a task is run."""
    lane = kit.settings.lanes.get(task.loop.lane or "")
    changes = [Changes(each.env.set, each.env.unset) for each in (lane, task.type) if each is not None]
    share = kit.settings.logs.max_bytes_per_attempt // 8  # two streams, each with a head and at most three tails
    return AttemptSpec(
        kit.runs.id_of(task.name, task.attempt, step),
        kit.runs.folder(task.name, task.attempt, step),
        arguments(command, setting, None if step else task.type.wrap),
        setting.worktree,
        variables(setting, kit.inherited, ceiling=kit.worktrees, changes=changes),
        NOWHERE,
        grace_ms=task.type.timeouts.grace_ms,
        head_bytes=share,
        tail_bytes=share,
    )


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
        tokens_left=None,
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
        path = own / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _iteration(kit: Kit, task: Task, setting: Setting) -> prompts.Iteration:
    """Say what the prompt is made from."""
    loop, entry, ladder = task.loop, task.entry, Ladder(task.policy.types)
    above = _read_input(task)
    return prompts.Iteration(
        loop_id=loop.id,
        type=loop.type,
        title=task.title,
        body=entry.body if entry is not None else above,
        child=task.type.child,
        children_key=ladder.keys(loop.type)[0] if task.type.child else "",
        implies_child=bool(task.type.child) and ladder.implies(loop.type),
        iteration=loop.iteration,
        max_iterations=task.type.max_iterations,
        generation=loop.generation,
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
        review=_shown(task.type.review),
        protected=task.type.protect,
    )


def _shown(command: Command | None) -> str:
    """Return a command as a person would type it."""
    return command if isinstance(command, str) else " ".join(command or ())


def _read_input(task: Task) -> str:
    """Read what the loop above has handed over; the file may have gone since the lease was granted."""
    with suppress(FileNotFoundError, NotADirectoryError):
        with task.input.open("rb") as file:
            raw = file.read(MAX_INPUT_BYTES + 1)
        if len(raw) > MAX_INPUT_BYTES:
            raise WorldError(f"{task.input} is larger than {MAX_INPUT_BYTES >> 20} MiB", hint="make it shorter")
        return raw.decode("utf-8", "replace")
    return ""


def feedback_of(kit: Kit, task: Task) -> str:
    """Say why the last try was refused, and in a line each why those before it were."""
    if task.loop.iteration == 1:
        return ""
    past = list(_of_this_count(kit, task))
    if past and past[-1].iteration == task.loop.iteration - 1:
        last, earlier = past[-1].text or past[-1].reason, past[:-1]
    else:
        last, earlier = task.loop.reason, past  # a person asked for another try
    return render_feedback(last, [Earlier(each.iteration, each.reason) for each in earlier])


def _of_this_count(kit: Kit, task: Task) -> Iterator[Refusal]:
    """Give the refusals since the iterations were last counted from one."""
    past = list(kit.runs.refusals(task.name, task.attempt))
    begin = max((place for place, each in enumerate(past) if each.iteration == 1), default=0)
    yield from past[begin:]
