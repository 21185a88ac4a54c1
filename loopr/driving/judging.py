"""The verdict on what an attempt left: its form, then the commands that judge the tree that would land.

Every verdict of yes is remembered for the very tree and command, so that landing asks again only for another tree. Must
never land anything.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from loopr.core import observations as o
from loopr.core.choose import ENGINE
from loopr.core.entries import Artifact
from loopr.core.ledger import cost_of, usd_of
from loopr.core.model import Failure, Usage
from loopr.core.observations import Trouble
from loopr.driving.acts import Act, Asked, Do, Later, Run, StopAsked, Tell
from loopr.driving.agents import level_of
from loopr.driving.attempting import folder_of, receive, run_after, used_by
from loopr.driving.kit import Kit, Task
from loopr.driving.lookout import begin_watch, end_watch
from loopr.driving.materials import RESULT, Asks, Spot, own_folder, review_spec, step_spec, take_away
from loopr.driving.outcomes import Said, found_nothing_to_do, listed, refusal, trouble_before, was_stopped
from loopr.driving.reviewing import Judge, judges_of, pass_of, read_answer, trouble_in
from loopr.errors import LooprError, PlanError, Problem
from loopr.world import feedback
from loopr.world.artifacts import digest, parse_artifact
from loopr.world.environment import paths_in
from loopr.world.place import SETTINGS_FILE
from loopr.world.processes import AttemptSpec, Outcome
from loopr.world.repo.conflicts import lay_clash
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import build_candidate, end_judging, lay_candidate, verdict_key
from loopr.world.repo.named import contents_of
from loopr.world.repo.protection import Protect
from loopr.world.repo.words import Candidate, Clash, LaidClash
from loopr.world.repo.words import Refusal as NotNow
from loopr.world.runs import OUTPUT, Refusal

Fits = Callable[[Artifact, str], list[Problem]]
"""Says what keeps an outline from counting in the tree as it is now."""

Outcomes = Mapping[str, Outcome]


def judge(kit: Kit, task: Task, fits: Fits, left: Sequence[str] = ()) -> Act:
    """Judge what an attempt left; a yes leads on, anything else says why. `left` are judges of an earlier engine."""
    loop, ground = task.loop, kit.ground_of(task)
    try:
        known = yield from hear_out(kit, left)
        trouble = (yield from _receive(kit, task)) if _is_pulled(task) else None
        if trouble is None:
            _, trouble = read_output(kit, task, fits)
        if trouble is None:
            trouble = yield from _look_at_tree(kit, task, known)
    except StopAsked:
        if ground is not None:
            yield Do(lambda: end_judging(ground, task.name))
        return o.StopSeen(loop.id, task.attempt)
    except (LooprError, OSError) as error:
        trouble = replace(trouble_before(error), launch=False)
    return o.Judged(loop.id, task.attempt, trouble)


def _is_pulled(task: Task) -> bool:
    """Say whether the work of this attempt is a pull worker's."""
    return task.loop.lease is not None and task.loop.lease.holder != ENGINE


def _receive(kit: Kit, task: Task) -> Generator[Asked, Any, Trouble | None]:
    """Take in what a pull worker has handed over; what cannot stay so is a no."""
    with suppress(LooprError, OSError):
        yield from run_after(kit, task, _base_of(kit, task))
    harm = yield from end_watch(kit, task)
    problems: list[Problem] = yield Do(lambda: receive(kit, task))
    return harm or (refused(kit, task, problems) if problems else None)


def _base_of(kit: Kit, task: Task) -> str:
    """Return the commit that the work began at; of a pull worker's only its run folder tells."""
    noted = kit.runs.circumstances(task.name, task.attempt) if _is_pulled(task) else {}
    return noted.get("base_commit", task.loop.base_commit)


def _look_at_tree(kit: Kit, task: Task, known: Outcomes) -> Generator[Asked, Any, Trouble | None]:
    """Have the tree judged that would land; where nobody looks at it before, landing finds what is in its way."""
    ground = kit.ground_of(task)
    if ground is None or not (task.type.approve or any(judges_of(task))):
        return (yield from ask_judges(kit, task, None, known))
    candidate = yield from candidate_of(kit, task, ground)
    return candidate if isinstance(candidate, Trouble) else (yield from ask_judges(kit, task, candidate, known))


def read_output(kit: Kit, task: Task, fits: Fits) -> tuple[Artifact | None, Trouble | None]:
    """Read what was handed over, or say what is wrong with its form; a leaf need not hand anything over."""
    path = kit.runs.folder(task.name, task.attempt) / OUTPUT
    where = f"{OUTPUT}"
    if not path.is_file():
        if task.type.child is None:
            return None, None
        hint = f"write it to $LOOPR_OUTPUT, with its {task.type.child} children in it"
        return None, refused(kit, task, [Problem("no artifact was handed over", where, hint)])
    try:
        artifact = _parsed(kit, task, path.read_bytes(), where)
    except PlanError as error:
        return None, refused(kit, task, list(error.problems))
    problems = fits(artifact, where)
    return (None, refused(kit, task, problems)) if problems else (artifact, None)


def _parsed(kit: Kit, task: Task, raw: bytes, where: str) -> Artifact:
    """Parse what was handed over; what was parsed to be judged is not parsed again to be landed."""
    circumstances = (raw, task.policy)
    known = kit.outlines.pop(task.name, None)
    if known is not None and known[0] == circumstances:
        return known[1]
    artifact = parse_artifact(
        raw,
        where,
        type_name=task.loop.type,
        types=task.policy.types,
        fallback_id=task.loop.id.rpartition("/")[2],
        depth=task.loop.depth,
        written_by_loop=not task.type.trust_outline,
    )
    kit.outlines[task.name] = circumstances, artifact
    return artifact


def refused(kit: Kit, task: Task, problems: list[Problem], text: str = "") -> Trouble:
    """Word a verdict of no about problems, and keep it for the next try."""
    words = "\n\n".join(filter(None, [listed(problems), text]))
    kit.runs.note_refusal(task.name, task.attempt, Refusal(task.loop.iteration, str(problems[0]), words))
    return refusal(str(problems[0]), listed(problems), folder_of(kit, task))


# --- the tree -------------------------------------------------------------------------------------------------------


def candidate_of(kit: Kit, task: Task, ground: Ground) -> Generator[Asked, Any, Candidate | Trouble]:
    """Make the tree that would land, or say why there is none."""
    while isinstance(made := (yield Do(lambda: _build(kit, task, ground))), NotNow):
        yield Later(made.problems[0])
    if isinstance(made, LaidClash):
        return _clashed(kit, task, made)
    candidate: Candidate = made
    if candidate.put_back:  # once they are put back on the loop's own branch, no later look finds them
        yield Do(lambda: kit.runs.note_put_back(task.name, _put_back(candidate)))
    return refused(kit, task, list(candidate.refused)) if candidate.refused else candidate


def _build(kit: Kit, task: Task, ground: Ground) -> Candidate | LaidClash | NotNow:
    """Merge a loop's work with its plan's; lay a conflict where it can be mended."""
    made = build_candidate(ground, task.name, task.loop.plan, task.attempt, protect_of(kit, task, ground))
    return lay_clash(ground, made) if isinstance(made, Clash) else made


def protect_of(kit: Kit, task: Task, ground: Ground) -> Protect:
    """Say which paths a loop may not change: the settings, files that its judges name, and what its type protects."""
    words = tuple(sorted({path for command in (task.check, task.type.review) for path in paths_in(command)}))
    named = kit.named_files(ground, task.base_commit, words) if words else ()
    return Protect((SETTINGS_FILE, *named, *task.type.protect), task.type.protect_added == "keep")


def _clashed(kit: Kit, task: Task, laid: LaidClash) -> Trouble:
    """Word a conflict, and keep all that helps to mend it."""
    files = ", ".join(each.path for each in laid.files[:3]) + (", …" if len(laid.files) > 3 else "")
    reason, text = f"conflict in {files}", laid.feedback()
    kit.runs.note_refusal(task.name, task.attempt, Refusal(task.loop.iteration, reason, text))
    mark = feedback.signature(None, reason.encode(), folder_of(kit, task))
    return Trouble(Failure.CONFLICT, reason, mark)


# --- the judges -----------------------------------------------------------------------------------------------------


def hear_out(kit: Kit, left: Sequence[str]) -> Generator[Asked, Any, Outcomes]:
    """Wait for judges that an earlier engine has asked: two would be in each other's way.

    One that was ended together with that engine has said nothing, and is asked anew.
    """
    known: dict[str, Outcome] = {}
    for run in left:
        known[run] = yield Run(run)
        if was_stopped(known[run]):
            del known[run]
            yield Do(partial(take_away, kit.runs.root / run))
    return known


def ask_judges(
    kit: Kit, task: Task, candidate: Candidate | None, known: Outcomes
) -> Generator[Asked, Any, Trouble | None]:
    """Let each judge see the tree that would land, and return the first no; what one has said already is `known`."""
    judges = list(judges_of(task))
    if judges and _is_as_before(candidate) and found_nothing_to_do(kit.runs.folder(task.name, task.attempt)):
        return None
    for judge in judges:
        key = yield from _key(kit, task, candidate, judge)
        if kit.is_yes(key):
            continue
        said = known.get(kit.runs.id_of(task.name, task.attempt, f"{judge.kind}.{key[:12]}"))
        trouble, used = yield from _ask(kit, task, candidate, _Question(judge, key, said))
        if used is not None:
            task = _with_use(task, used)
            yield Tell(o.AttemptUsed(task.loop.id, task.attempt, task.loop.live))
        if trouble is not None:
            return trouble
        kit.note_yes(key)
    return None


def _is_as_before(candidate: Candidate | None) -> bool:
    """Say whether a loop has changed nothing since it parted from its plan, or had nothing to change."""
    return candidate is None or (candidate.empty and not candidate.put_back)


def _key(kit: Kit, task: Task, candidate: Candidate | None, judge: Judge) -> Generator[Asked, Any, str]:
    """Return under what a verdict is remembered: the tree, or the attempt where there is none, and who judges what.

    An agent reviews the work itself: what others have landed beside it meanwhile is no reason to pay it once more.
    """
    tree, ground = candidate.tree if candidate is not None else f"{task.name}#{task.attempt}", kit.ground_of(task)
    if judge.reviewer is not None and candidate is not None and ground is not None:
        tree = yield Do(lambda: contents_of(ground, candidate.tree, candidate.changed))
    path = kit.runs.folder(task.name, task.attempt) / OUTPUT
    said = digest(path.read_bytes()) if path.is_file() else ""
    return verdict_key(tree, "\0".join([judge.kind, repr(judge.command), task.name, said]))


class _Question(NamedTuple):
    """Who judges, under what a yes is remembered, and what came of it if it was asked before."""

    judge: Judge
    key: str
    known: Outcome | None = None


def _ask(
    kit: Kit, task: Task, candidate: Candidate | None, asked: _Question
) -> Generator[Asked, Any, tuple[Trouble | None, Usage | None]]:
    """Let one judge see the tree; return what is wrong, and what the judge says it has used."""
    judge, key, known = asked
    step, ground = f"{judge.kind}.{key[:12]}", kit.ground_of(task)
    yield from begin_watch(kit, task)
    if candidate is not None and ground is not None and known is None:
        yield Do(lambda: lay_candidate(ground, candidate, kit.clock()))
    if known is None:
        take_away(own_folder(folder_of(kit, task)) / RESULT)  # it is the command's; a judge's is its own word
        spec = _spec(kit, task, candidate, judge, step)
    outcome: Outcome = known or (yield Run(spec.id, spec))
    harm = yield from end_watch(kit, task)
    if candidate is not None and ground is not None:
        yield Do(lambda: end_judging(ground, task.name))
    kit.free_ports(task.loop.lease_id)
    read = partial(read_answer, kit, task, judge, step, outcome)
    answer = read() if judge.reviewer is None else (yield Do(read))  # all that an agent has said may be much
    if answer.share is not None and task.loop.lane is not None:
        yield Tell(level_of(task.loop.lane, answer.share))
    trouble = harm or trouble_in(task, answer)
    if trouble is not None and trouble.failure is Failure.REFUSED:
        words = _told(judge, answer.said, candidate)
        kit.runs.note_refusal(task.name, task.attempt, Refusal(task.loop.iteration, trouble.reason, words))
    return trouble, used_by(answer.advice, answer.heard, outcome.wall_ms)


def _spec(kit: Kit, task: Task, candidate: Candidate | None, judge: Judge, step: str) -> AttemptSpec:
    """Say how a judge is run."""
    spot = Spot(folder_of(kit, task), _base_of(kit, task))
    if judge.reviewer is None:
        return step_spec(kit, task, spot, judge.command, step)
    return review_spec(kit, task, spot, Asks(judge.reviewer, pass_of(kit, task, judge, candidate), step))


def _with_use(task: Task, used: Usage) -> Task:
    """Add what a judge has used to its attempt; its time counts where judges have a lane of their own."""
    live, known = task.loop.live, task.loop.live.tokens
    if known is None and live.ms:
        known = cost_of(task.policy, live) // 1000
    tokens = used.tokens if known is None else known + (used.tokens or 0)
    usd = None
    if live.micro_usd is not None or used.micro_usd is not None:  # else all of it is priced as one
        sides = (usd_of(task.policy, each, task.loop.lane or "") for each in (live, used))
        usd = sum(each or 0 for each in sides)
    ms = live.ms + (used.ms if task.policy.type_of(task.loop.type).judge_lanes else 0)
    rough = live.estimated or used.estimated or (live.tokens is None and known is not None)
    return task._replace(loop=task.loop._replace(live=Usage(tokens, usd, ms, rough)))


def _told(judge: Judge, said: Said, candidate: Candidate | None) -> str:
    """Word a no for the next try: what the judge said, and what was put back before it looked."""
    text = f"The {judge.title} said no:\n\n{feedback.bounded(said.tail) or '(it said nothing)'}"
    return "\n\n".join(filter(None, [text, put_back_words(_put_back(candidate))]))


def _put_back(candidate: Candidate | None) -> dict[str, str]:
    """Map the protected files that are put back in a candidate to what had been made of them."""
    return {each.path: each.how for each in candidate.put_back} if candidate is not None else {}


def put_back_words(paths: Mapping[str, str]) -> str:
    """Name the protected files that were put back."""
    if not paths:
        return ""
    lines = [f"- {path} ({how})" for path, how in paths.items()]
    return "\n".join(["Protected files were put back as the plan has them, whatever was made of them:", *lines])
