"""One attempt of a loop: its folder is prepared, its command runs, and whatever it left is committed.

Begun again after a crash, it follows the command that runs already, or reads how it ended. Must never judge.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from loopr.core import observations as o
from loopr.core.model import Failure, Usage
from loopr.core.observations import Trouble
from loopr.core.plan_observations import PlanStands, TipsFound
from loopr.driving.acts import Act, Asked, Do, Run, StopAsked, Tell, Until, insist
from loopr.driving.agents import Heard, hear_out, level_of, veil_of
from loopr.driving.checkout_only import with_checkout
from loopr.driving.clashes import NO_CLASH, NOTHING_LEFT, Clashing, found_now, lay_out, left_before, left_now, look_at
from loopr.driving.handovers import keep_output
from loopr.driving.kit import OWN_FOLDER, Kit, Task
from loopr.driving.left_out import put_back, report
from loopr.driving.lookout import blame, tell_changed
from loopr.driving.materials import RESULT, Spot, write_materials
from loopr.driving.outcomes import Said, end_of, listed, refusal, tail_of, trouble_before, trouble_of
from loopr.driving.sentry import NOTHING
from loopr.driving.setting_up import lay_again, set_up
from loopr.driving.sites import HOLDER, plain_name, set_deserted_aside
from loopr.driving.stepping import put_steps_back, run_after_command, run_before
from loopr.driving.use import Span, timed, use_of
from loopr.driving.wording import About, worded
from loopr.errors import LooprError, Problem, WorldError
from loopr.grounds import claim
from loopr.world import feedback
from loopr.world.processes import AttemptSpec, Outcome
from loopr.world.processes.strays import living_in
from loopr.world.repo.branches import ensure_plan, loop_tip
from loopr.world.repo.commits import commit_attempt
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import begin_again, take_over, take_together
from loopr.world.repo.newer import make_landed_newer, make_newer, make_oldest
from loopr.world.repo.plain import ensure_plain
from loopr.world.repo.records import read_record
from loopr.world.repo.tips import alone_with_plans
from loopr.world.repo.words import Committed, Message
from loopr.world.repo.work import work_of
from loopr.world.repo.worktrees import take
from loopr.world.result_file import read_advice
from loopr.world.runs import BASE, CIRCUMSTANCES, FOLDER, OUTPUT, Refusal

TRIES_TOGETHER = 32  # commits that a loop has of its own, at most: git walks them
_VERDICTS = (Failure.REFUSED, Failure.CONFLICT)
Made = TypeVar("Made")


class InputGoneError(WorldError):
    """The artifact that a loop works from is not on disk, although its lease was granted."""


def attempt(kit: Kit, task: Task, *, known: bool, not_before: int = 0) -> Act:
    """Make one attempt when it is time, or go on with the one that is `known` to the launcher."""
    loop, name = task.loop, task.name
    if loop.lease is not None and loop.lease.judge_only:
        return (yield from _skip_command(kit, task))
    spec: AttemptSpec | None = None
    began = max(kit.clock(), not_before)
    try:
        if not known:
            if kit.clock() < not_before:
                yield Until(not_before)
            spec = yield from prepare(kit, task, write_materials)
            yield from timed(kit, task, "setup", began)
    except StopAsked:
        kit.let_go(task)
        return o.StopSeen(loop.id, task.attempt)
    except (LooprError, OSError) as error:
        kit.let_go(task)
        if isinstance(error, InputGoneError):
            return o.InputGone(loop.id, task.attempt)
        yield from timed(kit, task, "setup", began)
        return o.AttemptEnded(loop.id, task.attempt, trouble_before(error))
    base = kit.runs.circumstances(name, task.attempt).get(BASE, "")
    if known:
        yield Tell(o.AttemptBegan(loop.id, task.attempt, base))
    try:
        outcome = yield Run(kit.runs.id_of(name, task.attempt), spec, o.AttemptBegan(loop.id, task.attempt, base))
    except StopAsked:
        outcome = Outcome("killed", message="it was told to stop")
    with suppress(StopAsked, LooprError, OSError):
        yield from run_after(kit, task, base)
    kit.free_ports(loop.lease_id)
    return (yield from _conclude(kit, task, outcome))


def run_after(kit: Kit, task: Task, base: str) -> Generator[Asked, Any, None]:
    """Run what is to run after a command, before its work is committed; how that ends changes nothing."""
    spot = Spot(folder_of(kit, task), base)
    yield from run_after_command(kit, task, spot, lambda: _commit(kit, task, spot.folder))


def _skip_command(kit: Kit, task: Task) -> Act:
    """Let the judge go on with what the last attempt left."""
    loop = task.loop
    with suppress(StopAsked):
        yield Do(lambda: _carry_over(kit, task))
        yield from lay_again(kit, task)
        yield Tell(o.AttemptBegan(loop.id, task.attempt, loop.base_commit))
        return o.AttemptEnded(loop.id, task.attempt)
    return o.StopSeen(loop.id, task.attempt)


def _carry_over(kit: Kit, task: Task) -> None:
    """Take over what the last attempt has handed over, and where it did."""
    folder = kit.runs.ensure(task.name, task.attempt)
    last = kit.runs.last_with(task.name, task.attempt, CIRCUMSTANCES)
    if last is not None and (last.parent / OUTPUT).is_file():
        (folder / OUTPUT).touch(0o600)
        (folder / OUTPUT).write_bytes((last.parent / OUTPUT).read_bytes())
    before = kit.runs.circumstances(task.name, int(last.parent.name)) if last is not None else {}
    kit.runs.note_circumstances(task.name, task.attempt, **before | {"iteration": str(task.loop.iteration)})


# --- before ---------------------------------------------------------------------------------------------------------


def prepare(kit: Kit, task: Task, write: Callable[[Kit, Task, Spot], Made]) -> Generator[Asked, Any, Made]:
    """Make the folder of an attempt and all that is in it; `write` does the latter, and what it returns comes back."""
    _ensure_input(task)
    ground = kit.ground_of(task)
    _drop_old_runs(kit, task)
    if ground is None:
        folder = ensure_plain(kit.worktrees, plain_name(kit.runs, kit.worktrees, task.name, task.attempt))
        _note_spot(kit, task, Spot(folder))
        plain = write(kit, task, Spot(folder))
        yield from run_before(kit, task, Spot(folder), {"pre_run": kit.settings.hooks.get("pre_run")})
        return plain
    if task.begins:
        task = yield from _begin_plan(kit, task, ground)
    spot: Spot = yield Do(lambda: _make_folder(kit, task, ground))
    yield from set_up(kit, task, ground, spot)
    written: Made = yield Do(lambda: write(kit, task, spot))
    yield from run_before(kit, task, spot, {"pre_run": kit.settings.hooks.get("pre_run")})
    return written


def _ensure_input(task: Task) -> None:
    """Refuse to begin without the artifact that the loop works from: it may have gone since the lease."""
    if task.above is not None and not os.path.lexists(task.input):
        raise InputGoneError(f"its input {task.input} is not on disk", hint="`loopr doctor --fix` puts it back")


def _drop_old_runs(kit: Kit, task: Task) -> None:
    """Take away run folders of a loop that are too many, so that a try costs what the last did."""
    old = kit.runs.old(task.name, task.attempt, kit.settings.logs.keep_attempts)
    if old:
        kit.hands.rescue(old, {task.loop.artifact})
        for each in old:
            shutil.rmtree(each, ignore_errors=True)


def _begin_plan(kit: Kit, task: Task, ground: Ground) -> Generator[Asked, Any, Task]:
    """Make the branch of a plan for its first work, and tell where it stands."""
    plan = task.loop.plan

    def begun() -> str:
        with alone_with_plans(ground):  # others may prepare the first work of a plan at this moment
            return ensure_plan(ground, plan, task.tip)

    at: str = yield Do(begun)
    yield Tell(PlanStands(plan, at) if at == task.tip else TipsFound({plan: at}))
    return task._replace(tip=at)


def _make_folder(kit: Kit, task: Task, ground: Ground) -> Spot:
    """Take the loop's worktree, with the newest of its plan's work in it."""
    claim(kit.place, ground)
    sentry = kit.sentry_of(task)
    if sentry is not None:  # before git touches anything that a loop may have left
        sentry.begin(task.loop.lease_id)
    set_deserted_aside(kit.runs, ground, task.name, task.attempt)
    worktree = take(ground, task.name, task.tip, living_in, known=bool(task.loop.base_commit))
    record = read_record(ground, task.name)
    if not worktree.fresh and record is None:  # what is there may be all there is of it
        commit_attempt(ground, task.name, task.attempt - 1, message_of(kit, task))
    base, folder = worktree.tip, worktree.folder
    left = left_before(kit, task, ground, folder) if record is None else NOTHING_LEFT
    if left.clashing.files and not left.untouched:
        return _note_spot(kit, task, Spot(folder, loop_tip(ground, task.name)), left.clashing)
    clash = record.clash if record is not None else None
    if clash is None and not left.untouched:
        clash = found_now(kit, task, ground)
    if clash is not None:
        lay_out(kit, task, ground, clash)
        return _note_spot(kit, task, Spot(folder, clash.plan_tip), look_at(ground, task, folder, clash.files))
    if left.untouched:
        make_oldest(ground, folder, begin_again(ground, task.name, task.tip), task.tip)
        base = task.tip
    elif not (worktree.fresh and worktree.tip == task.tip):
        if task.attempt % TRIES_TOGETHER == 0 and kit.settings.land.history != "merge":
            take_together(ground, task.name, task.tip, kit.clock())
        put_steps_back(kit, task, ground, lambda: None)  # all is committed
        base = take_over(ground, task.name, task.tip, kit.clock()).tip
    if worktree.fresh and task.loop.landed:  # it is done again
        make_newer(ground, folder, task.loop.landed, base)
    elif worktree.new:
        make_landed_newer(ground, folder, task.base_commit, base)
    return _note_spot(kit, task, Spot(folder, base))


def _note_spot(kit: Kit, task: Task, spot: Spot, given: Clashing = NO_CLASH) -> Spot:
    """Write down where an attempt works, its iteration, and the conflict that it is given."""
    folder = os.path.relpath(spot.folder, kit.place.root)
    said = {FOLDER: folder, BASE: spot.base_commit, "iteration": str(task.loop.iteration)}
    said |= given.noted
    if task.loop.lease is not None and task.loop.lease.expires_at is not None:
        said[HOLDER] = task.loop.lease.holder
    elif task.preset is not None:
        said |= {"agent": task.preset.name, "reader": task.preset.reader}
    kit.runs.note_circumstances(task.name, task.attempt, **said)
    return spot


# --- afterwards -----------------------------------------------------------------------------------------------------


def _conclude(kit: Kit, task: Task, outcome: Outcome) -> Act:
    """Commit what is there, whatever the end was, and say how the attempt ended."""
    loop, sentry = task.loop, kit.sentry_of(task)
    changed = NOTHING
    try:
        if sentry is not None:  # looks first: what a command has planted must not run as the engine
            changed = yield from insist(lambda: sentry.changed(loop.lease_id))
        yield from tell_changed(task, changed)
        taken: _Taken = yield from insist(partial(_take_in, kit, task, outcome, blame(changed)))
    except (LooprError, OSError) as error:
        trouble = blame(changed) or replace(trouble_before(error), launch=False)
        return o.AttemptEnded(loop.id, task.attempt, trouble)
    if taken.used is not None:
        yield Tell(o.AttemptUsed(loop.id, task.attempt, taken.used))
    if taken.ignored or task.attempt > 1:  # an earlier one may have been told of
        yield Tell(o.Noticed(f"{loop.id} {RESULT}", taken.ignored))
    left = report(kit, task)
    if left.text or task.attempt > 1:
        yield Tell(left)
    if taken.heard is not None and taken.heard.report.share is not None and loop.lane is not None:
        yield Tell(level_of(loop.lane, taken.heard.report.share))
    return end_of(loop.id, task.attempt, taken.trouble, outcome)


class _Taken(NamedTuple):
    """What an attempt came to; `ignored` says why its result file counts for nothing."""

    used: Usage | None
    trouble: Trouble | None
    heard: Heard | None
    ignored: str


def _take_in(kit: Kit, task: Task, outcome: Outcome, harm: Trouble | None) -> _Taken:
    """Commit the files, keep the output, and return use and trouble; a harm comes first."""
    folder = folder_of(kit, task)
    run = kit.runs.ensure(task.name, task.attempt)
    problems = _commit(kit, task, folder)
    keep_output(folder / OWN_FOLDER / OUTPUT, run / OUTPUT)
    advice, ignored = read_advice(folder / OWN_FOLDER / RESULT)
    heard = hear_out(kit, task, outcome) if task.preset is not None else None
    veil = veil_of(kit, task, task.preset)
    advice = advice._replace(message=veil.over(advice.message)) if advice is not None else None
    said = Said(veil.over_bytes(tail_of(run)) if heard is None else heard.text.encode(), folder)
    trouble = trouble_of(outcome, advice, said, task.limits, heard.report if heard is not None else None)
    trouble = with_checkout(kit, task, task.command, trouble, said)
    owner = task.loop.lease or task.loop.ending
    span = Span(run, owner.started_at if owner is not None else None, kit.clock())
    used = use_of(outcome, advice, heard, span)
    text = feedback.bounded(said.tail) if trouble is not None else ""
    if problems and (trouble is None or trouble.failure is Failure.REFUSED):
        text = "\n\n".join(filter(None, [listed(problems), text]))
        trouble = refusal(f"{problems[0]}", listed(problems), folder)
    if harm is not None:
        return _Taken(used, harm, None, ignored)
    trouble = with_work(kit, task, trouble)
    if trouble is not None and trouble.failure is Failure.REFUSED:
        text = text or f"The command ended with {trouble.reason} and said nothing."
        kit.runs.note_refusal(task.name, task.attempt, Refusal(task.loop.iteration, trouble.reason, text))
    return _Taken(used, trouble, heard, ignored)


def with_work(kit: Kit, task: Task, found: Made) -> Made | Trouble:
    """Add to a verdict of no what the loop has made of its plan so far; without git nothing tells."""
    ground = kit.ground_of(task)
    if ground is None or not isinstance(found, Trouble) or found.failure not in _VERDICTS:
        return found
    output = kit.runs.folder(task.name, task.attempt) / OUTPUT
    with suppress(LooprError, OSError):
        handed_over = output.read_bytes() if output.is_file() else b""
        work = work_of(ground, task.name, task.tip, handed_over)
        return replace(found, work=work.digest, touched=work.paths)
    return found


def receive(kit: Kit, task: Task) -> list[Problem]:
    """Take in what a pull worker has handed over, as after a command, and say what of it cannot stay so."""
    folder = folder_of(kit, task)
    problems = _commit(kit, task, folder)
    keep_output(folder / OWN_FOLDER / OUTPUT, kit.runs.folder(task.name, task.attempt) / OUTPUT)
    return problems


def _commit(kit: Kit, task: Task, folder: Path) -> list[Problem]:
    """Commit what an attempt left, and say what of it cannot stay so."""
    ground = kit.ground_of(task)
    if ground is None:
        return []
    base = kit.runs.circumstances(task.name, task.attempt).get(BASE, "")
    message = message_of(kit, task)
    committed: Committed = commit_attempt(ground, task.name, task.attempt, message, base)
    put_back(kit, task, ground, base, committed)
    return [*committed.refused, *left_now(kit, task, ground, folder)]


def message_of(kit: Kit, task: Task) -> Message:
    """Word a commit about a loop."""
    loop = task.loop
    trailers = (
        ("Loopr-Loop", loop.id),
        ("Loopr-Attempt", str(loop.attempt)),
        ("Loopr-Iteration", str(loop.iteration)),
    )
    about = About(task.title, loop, f"{loop.id}, iteration {loop.iteration}")
    return worded(kit.settings.commit, about, trailers, kit.clock())


def folder_of(kit: Kit, task: Task) -> Path:
    """Return where the attempt works."""
    return kit.runs.place_of(task.name, task.attempt) or kit.worktrees / task.name
