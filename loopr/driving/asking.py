"""Those who judge are asked about the tree that would land, each at most once.

A yes is told for the journal with the digest of that very tree and of how it was judged, so
that landing asks again only for another tree. Must never know what a verdict leads to.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from loopr.core import observations as o
from loopr.core.choose import ENGINE
from loopr.core.ledger import usd_of
from loopr.core.model import Failure, Usage
from loopr.core.naming import judge_room
from loopr.core.observations import Trouble
from loopr.core.policy import TypePolicy
from loopr.driving.acts import Asked, Do, Run, Tell
from loopr.driving.agents import level_of
from loopr.driving.attempting import folder_of
from loopr.driving.checkout_only import with_checkout
from loopr.driving.guarding import settings_of
from loopr.driving.kit import Kit, Task
from loopr.driving.lookout import begin_watch, end_watch
from loopr.driving.materials import (
    CHECK,
    RESULT,
    Asks,
    Spot,
    own_folder,
    review_spec,
    step_spec,
    take_away,
    write_copies,
)
from loopr.driving.outcomes import Said, found_nothing_to_do, was_stopped
from loopr.driving.reviewing import Judge, judges_of, pass_of, read_answer, trouble_in
from loopr.driving.stepping import run_to_its_end
from loopr.driving.use import timed, used_by
from loopr.world import feedback
from loopr.world.artifacts import digest
from loopr.world.judges import judges_in
from loopr.world.processes import AttemptSpec, Outcome
from loopr.world.processes.strays import living_in
from loopr.world.repo.landing import end_judging, lay_candidate, verdict_key
from loopr.world.repo.named import contents_of
from loopr.world.repo.rooms import leave_room, room_of, take_room
from loopr.world.repo.words import Candidate
from loopr.world.runs import BASE, OUTPUT, Refusal

MOST_NAMED = 3

Outcomes = Mapping[str, Outcome]


class Memory(NamedTuple):
    """What judges have said before: to an earlier engine, and the last yes of each."""

    left: Outcomes
    yes: dict[str, str]


def hear_out(kit: Kit, task: Task, left: Sequence[str]) -> Generator[Asked, Any, Memory]:
    """Wait for judges that an earlier engine has asked: two would be in each other's way.

    One that was ended together with that engine has said nothing, and is asked anew.
    """
    known: dict[str, Outcome] = {}
    for run in left:
        known[run] = yield Run(run)
        if was_stopped(known[run]):
            del known[run]
            yield Do(partial(take_away, kit.runs.root / run))
    return Memory(known, dict(task.loop.yes))


def ask_judges(
    kit: Kit, task: Task, candidate: Candidate | None, memory: Memory
) -> Generator[Asked, Any, Trouble | None]:
    """Let each judge see the tree that would land, once, and return the first no."""
    judges = list(judges_of(task))
    if judges and _is_as_before(kit, task, candidate) and found_nothing_to_do(kit.runs.folder(task.name, task.attempt)):
        return None
    for judge in judges:
        key = yield from _key(kit, task, candidate, judge)
        if memory.yes.get(judge.kind) == key:
            continue
        said = memory.left.get(kit.runs.id_of(task.name, task.attempt, _step(judge, key)))
        began = kit.clock()
        trouble, used = yield from _ask(kit, task, candidate, _Question(judge, key, said))
        yield from timed(kit, task, judge.title, began)
        if used is not None:
            task = _with_use(task, used)
            yield Tell(o.AttemptUsed(task.loop.id, task.attempt, task.loop.live))
        if trouble is not None:
            return trouble
        memory.yes[judge.kind] = key
        yield Tell(o.SaidYes(task.loop.id, task.attempt, judge.kind, key))
    return None


def _is_as_before(kit: Kit, task: Task, candidate: Candidate | None) -> bool:
    """Say whether a loop has changed nothing since it parted from its plan, or had nothing to change."""
    return candidate is None or (candidate.empty and not candidate.put_back and not _left(kit, task))


def _left(kit: Kit, task: Task) -> list[str]:
    """List the files that an attempt has changed, and that never land."""
    return [*kit.runs.left_out(task.name, task.attempt).get("files", {})]


def _key(kit: Kit, task: Task, candidate: Candidate | None, judge: Judge) -> Generator[Asked, Any, str]:
    """Return under what a verdict is remembered: the tree, or the attempt where there is none, and who judges what.

    An agent reviews the work itself: what others have landed beside it meanwhile is no reason to pay it once more.
    """
    tree, ground = candidate.tree if candidate is not None else f"{task.name}#{task.attempt}", kit.ground_of(task)
    if judge.reviewer is not None and candidate is not None and ground is not None:
        tree = yield Do(lambda: contents_of(ground, candidate.tree, candidate.changed))
    path = kit.runs.folder(task.name, task.attempt) / OUTPUT
    said = digest(path.read_bytes()) if path.is_file() else ""
    clean = [repr(settings_of(kit, task).worktrees.setup)] if task.type.clean else []
    return verdict_key(tree, "\0".join([judge.kind, repr(judge.command), task.name, said, *clean]))


def _step(judge: Judge, key: str) -> str:
    """Return what the run of a judge is called."""
    return f"{judge.kind}.{key[:12]}"


class _Question(NamedTuple):
    """Who judges, under what a yes is remembered, and what came of it if it was asked before."""

    judge: Judge
    key: str
    known: Outcome | None = None


def _ask(
    kit: Kit, task: Task, candidate: Candidate | None, asked: _Question
) -> Generator[Asked, Any, tuple[Trouble | None, Usage | None]]:
    """Let one judge see the tree; return what is wrong, and what the judge says it has used."""
    judge, step = asked.judge, _step(asked.judge, asked.key)
    yield from begin_watch(kit, task)
    if asked.known is not None:
        folder, outcome = _seat_of(kit, task), asked.known
    else:
        folder = folder_of(kit, task) if candidate is None else (yield Do(partial(_seat, kit, task, candidate)))
        judge, step, outcome = yield from _hear(kit, task, candidate, asked, folder)
    harm = yield from end_watch(kit, task)
    read = partial(read_answer, kit, task, judge, (step, folder), outcome)
    answer = read() if judge.reviewer is None else (yield Do(read))  # all that an agent has said may be much
    if candidate is not None:
        yield Do(lambda: rise(kit, task))
    kit.free_ports(task.loop.lease_id)
    if answer.share is not None and task.loop.lane is not None:
        yield Tell(level_of(task.loop.lane, answer.share))
    trouble = harm or trouble_in(task, answer)
    if trouble is not None and harm is None and judge.reviewer is None:
        trouble = yield Do(partial(with_checkout, kit, task, judge.command, trouble, answer.said))
    if trouble is not None and trouble.failure is Failure.REFUSED:
        trouble = replace(trouble, reason=trouble.reason + _first_put_back(kit, task, candidate))
        words = _told(judge, answer.said, {**made_of(candidate)}, _left(kit, task))
        kit.runs.note_refusal(task.name, task.attempt, Refusal(task.loop.iteration, trouble.reason, words))
    return trouble, used_by(answer.advice, answer.heard, outcome.wall_ms)


def _hear(
    kit: Kit, task: Task, candidate: Candidate | None, asked: _Question, folder: Path
) -> Generator[Asked, Any, tuple[Judge, str, Outcome]]:
    """Run one judge and return who spoke; setup speaks first where the folder is clean."""
    judge, step, spot = asked.judge, _step(asked.judge, asked.key), Spot(folder, base_of(kit, task))
    kit.runs.clear(task.name, task.attempt, step)  # it was not asked: what lies there is no answer
    setup = settings_of(kit, task).worktrees.setup if task.type.clean and candidate is not None else None
    if setup is not None:
        before = f"{CHECK}.{asked.key[:12]}.setup"  # like a judge: it runs what would land
        kit.runs.clear(task.name, task.attempt, before)
        prepared, outcome = yield from run_to_its_end(kit, task, spot, setup, before)
        if outcome.code != 0:
            return Judge("setup in the judges' folder", setup), prepared.id.rpartition("/")[2], outcome
    take_away(own_folder(folder) / RESULT)  # it is the command's; a judge's is its own word
    spec = _spec(kit, task, candidate, asked, spot)
    outcome = yield Run(spec.id, spec)
    return judge, step, outcome


def _spec(kit: Kit, task: Task, candidate: Candidate | None, asked: _Question, spot: Spot) -> AttemptSpec:
    """Say how a judge is run."""
    judge, step = asked.judge, _step(asked.judge, asked.key)
    if judge.reviewer is None:
        return step_spec(kit, task, spot, judge.command, step)
    return review_spec(kit, task, spot, Asks(judge.reviewer, pass_of(kit, task, judge, candidate), step))


# --- where a judge sits ---------------------------------------------------------------------------------------------


def _room(task: Task) -> str:
    """Return what the clean folder is called in which a task is judged."""
    return judge_room(task.name, task.attempt)


def _seat(kit: Kit, task: Task, candidate: Candidate) -> Path:
    """Lay the tree that would land into the loop's folder, or into a clean one."""
    ground = kit.ground_of(task)
    if ground is None:
        return folder_of(kit, task)
    if not task.type.clean:
        lay_candidate(ground, candidate, kit.clock())
        return folder_of(kit, task)
    folder = take_room(ground, _room(task), candidate, living_in, kit.clock())
    write_copies(kit, task, Spot(folder, base_of(kit, task)))
    return folder


def _seat_of(kit: Kit, task: Task) -> Path:
    """Return where a judge sat that an earlier engine has asked."""
    ground = kit.ground_of(task)
    room = room_of(ground, _room(task)) if ground is not None and task.type.clean else None
    return room or folder_of(kit, task)


def rise(kit: Kit, task: Task) -> None:
    """Take away what a judge has left; nothing happens where none was at work."""
    ground = kit.ground_of(task)
    if ground is None:
        return
    if task.type.clean:
        leave_room(ground, _room(task), living_in)
    else:
        end_judging(ground, task.name)


def is_pulled(task: Task) -> bool:
    """Say whether the work of this attempt is a pull worker's."""
    return task.loop.lease is not None and task.loop.lease.holder != ENGINE


def base_of(kit: Kit, task: Task) -> str:
    """Return the commit that the work began at; of a pull worker's only its run folder tells."""
    noted = kit.runs.circumstances(task.name, task.attempt) if is_pulled(task) else {}
    return noted.get(BASE, task.loop.base_commit)


# --- what came of it ------------------------------------------------------------------------------------------------


def _with_use(task: Task, used: Usage) -> Task:
    """Add what a judge has used to its attempt; its time counts where judges have a lane of their own."""
    live, known = task.loop.live, task.loop.live.tokens
    tokens = used.tokens if known is None else known + (used.tokens or 0)
    usd = None
    if live.micro_usd is not None or used.micro_usd is not None:  # else all of it is priced as one
        sides = (usd_of(task.policy, each, task.loop.lane or "") for each in (live, used))
        usd = sum(each or 0 for each in sides)
    ms = live.ms + (used.ms if _policy_of(task).judge_lanes else 0)
    rough = live.estimated or used.estimated
    return task._replace(loop=task.loop._replace(live=Usage(tokens, usd, ms, rough)))


def _policy_of(task: Task) -> TypePolicy:
    """Return what is decided by of how a loop is judged."""
    return task.policy.leaf_of(task.loop.type) if task.leaf else task.policy.type_of(task.loop.type)


def _told(judge: Judge, said: Said, made: Mapping[str, str], left: Sequence[str]) -> str:
    """Word a no for the next try: what the judge said, and what was put back before it looked.

    Of what never lands the next try is told in any case.
    """
    made = {path: how for path, how in made.items() if path not in left}
    text = f"The {judge.title} said no:\n\n{feedback.bounded(said.tail) or '(it said nothing)'}"
    return "\n\n".join(filter(None, [text, put_back_words(made)]))


def made_of(candidate: Candidate | None) -> dict[str, str]:
    """Map the protected files that are put back in a candidate to what had been made of them."""
    return {each.path: each.how for each in candidate.put_back} if candidate is not None else {}


def _first_put_back(kit: Kit, task: Task, candidate: Candidate | None) -> str:
    """Name the files of a refused work that judges did not see, and the key that helps."""
    left = _left(kit, task)
    paths = [*dict.fromkeys([*made_of(candidate), *left])]
    if not paths:
        return ""
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    names = ", ".join(paths[:MOST_NAMED])
    has_check = task.entry is not None and task.entry.check is not None
    own = has_check and not left and not any(each in judges_in([task.check], {each}) for each in paths)
    cure = f" (`files: [{names}]` in its entry says that this is its work)" if own else ""
    return f"; put back before that: {names}{more}{cure}"


def put_back_words(paths: Mapping[str, str]) -> str:
    """Name the protected files that were put back."""
    if not paths:
        return ""
    lines = [f"- {path} ({how})" for path, how in paths.items()]
    return "\n".join(["Protected files were put back as the plan has them, whatever was made of them:", *lines])
