"""The verdict on what an attempt left: its form, then the word of those who judge the tree.

Must never land anything.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from loopr.core import observations as o
from loopr.core.entries import Artifact, Entry, just_works
from loopr.core.model import Failure
from loopr.core.observations import Trouble
from loopr.core.policy import TypePolicy
from loopr.driving.acts import Act, Asked, Do, Later, StopAsked, Tell
from loopr.driving.asking import Memory, ask_judges, base_of, hear_out, is_pulled, made_of, rise
from loopr.driving.attempting import folder_of, receive, run_after, with_work
from loopr.driving.guarding import protect_of
from loopr.driving.kit import Kit, Task
from loopr.driving.left_out import in_candidate, report
from loopr.driving.lookout import end_watch
from loopr.driving.outcomes import listed, refusal, trouble_before
from loopr.driving.reviewing import judges_of
from loopr.errors import LooprError, PlanError, Problem
from loopr.world import feedback
from loopr.world.artifacts import parse_artifact
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import Onto, build_candidate
from loopr.world.repo.words import Candidate, Clash
from loopr.world.repo.words import Refusal as NotNow
from loopr.world.runs import OUTPUT, Refusal

MOST_NAMED = 3

Fits = Callable[[Artifact, str], list[Problem]]
"""Says what keeps an outline from counting in the tree as it is now."""


def judge(kit: Kit, task: Task, fits: Fits, left: Sequence[str] = ()) -> Act:
    """Judge what an attempt left; a yes leads on, anything else says why. `left` are judges of an earlier engine."""
    loop, ground = task.loop, kit.ground_of(task)
    try:
        memory = yield from hear_out(kit, task, left)
        trouble = (yield from _receive(kit, task)) if is_pulled(task) else None
        task = as_judged(kit, task)
        if trouble is None:
            _, trouble = read_output(kit, task, fits)
        if trouble is None:
            trouble = yield from _look_at_tree(kit, task, memory)
        if trouble is not None:
            trouble = yield Do(partial(with_work, kit, task, trouble))
    except StopAsked:
        if ground is not None:
            yield Do(lambda: rise(kit, task))
        return o.StopSeen(loop.id, task.attempt)
    except (LooprError, OSError) as error:
        trouble = replace(trouble_before(error), launch=False)
    return o.Judged(loop.id, task.attempt, trouble, task.leaf)


def _receive(kit: Kit, task: Task) -> Generator[Asked, Any, Trouble | None]:
    """Take in what a pull worker has handed over; what cannot stay so is a no."""
    with suppress(LooprError, OSError):
        yield from run_after(kit, task, base_of(kit, task))
    harm = yield from end_watch(kit, task)
    problems: list[Problem] = yield Do(lambda: receive(kit, task))
    yield Tell(report(kit, task))
    return harm or (refused(kit, task, problems) if problems else None)


def _look_at_tree(kit: Kit, task: Task, memory: Memory) -> Generator[Asked, Any, Trouble | None]:
    """Have the tree judged that would land; where nobody looks at it before, landing finds what is in its way."""
    ground = kit.ground_of(task)
    if ground is None or not (task.type.approve or any(judges_of(task))):
        return (yield from ask_judges(kit, task, None, memory))
    candidate = yield from candidate_of(kit, task, ground)
    return candidate if isinstance(candidate, Trouble) else (yield from ask_judges(kit, task, candidate, memory))


def read_output(kit: Kit, task: Task, fits: Fits) -> tuple[Artifact | None, Trouble | None]:
    """Read what was handed over, or say what is wrong with its form; a leaf need not hand anything over."""
    try:
        artifact = _handed_over(kit, task)
    except PlanError as error:
        return None, refused(kit, task, list(error.problems))
    if artifact is None and not task.leaf:
        hint = f"write it to $LOOPR_OUTPUT, with its {task.type.child} children in it"
        no = refused(kit, task, [Problem("no artifact was handed over", OUTPUT, hint)])
        return None, replace(no, remedy=_to_just_work(task))
    if artifact is None or _is_note(task, artifact):
        return None, None
    problems = _says_nothing(task, artifact) or fits(artifact, OUTPUT)
    return (None, refused(kit, task, problems)) if problems else (artifact, None)


def _to_just_work(task: Task) -> str:
    """Say what a person does to have a loop just do the work that has to hand over an outline."""
    loop = task.loop
    if loop.command and just_works(run=not loop.agent, agent=bool(loop.agent), leaf=loop.leaf):
        return "it has children by now: take them out of its file to have it just do the work"
    if loop.command:
        how = "give its entry `leaf: true`" if loop.agent else "take `leaf: false` out of its entry"
    else:
        how = "give its entry a `run`, or an `agent` with `leaf: true`"
    return f"to have it just do the work {how}; or name its {task.type.child} children there"


def _says_nothing(task: Task, artifact: Artifact) -> list[Problem]:
    """Refuse the word of an agent, or of a type's command, that nothing is below: they are there to say what is."""
    if task.loop.command and not task.loop.agent:
        return []
    if not artifact.empty:
        kind = task.policy.type_of(task.loop.type)
        return list(_empty_below(task, artifact.entries, kind))
    hint = "name them, or hand over nothing" if task.leaf else "name them"
    child = task.policy.type_of(task.loop.type).child
    return [Problem(f"a {task.loop.type} must declare its {child} children", OUTPUT, hint)]


def _empty_below(task: Task, entries: tuple[Entry, ...], above: TypePolicy) -> Iterator[Problem]:
    """Refuse the same word in entries of an outline, at any depth."""
    kind = task.policy.type_of(above.child) if above.child is not None else above
    for entry in entries:
        if entry.empty and kind.child is not None:
            words = f"{entry.id}: a {above.child} must declare its {kind.child} children"
            yield Problem(words, OUTPUT, "name them, or take out the empty list")
        yield from _empty_below(task, entry.children, kind)


def _is_note(task: Task, artifact: Artifact) -> bool:
    """Say whether a loop of a type with children that just does the work has handed over words, and no outline."""
    return task.leaf and not artifact.declares and task.policy.type_of(task.loop.type).child is not None


def note_of(kit: Kit, task: Task) -> str:
    """Return the words that a loop has handed over which just did the work of a type with children; or nothing."""
    with suppress(PlanError):  # it was sound when it was judged
        artifact = _handed_over(kit, task) if task.leaf else None
        if artifact is not None and _is_note(task, artifact) and artifact.text.strip():
            return artifact.text
    return ""


def as_judged(kit: Kit, task: Task) -> Task:
    """Return a task as it is judged: where a loop that may just do the work has children to declare, as any other."""
    with suppress(PlanError):  # which is told by whoever reads it to the end
        artifact = _handed_over(kit, task) if task.leaf else None
        if artifact is not None and artifact.declares and artifact.entries:
            return kit.with_outline(task)
    return task


def _handed_over(kit: Kit, task: Task) -> Artifact | None:
    """Read what was handed over, None where nothing was; raise where it is none."""
    path = kit.runs.folder(task.name, task.attempt) / OUTPUT
    return _parsed(kit, task, path.read_bytes(), OUTPUT) if path.is_file() else None


def _parsed(kit: Kit, task: Task, raw: bytes, where: str) -> Artifact:
    """Parse what was handed over; what was parsed to be judged is not parsed again to be landed."""
    circumstances = (raw, task.policy)
    known = kit.outlines.get(task.name)
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
    if isinstance(made, Clash):
        return _clashed(kit, task, made)
    candidate: Candidate = made
    if candidate.put_back:  # once they are put back on the loop's own branch, no later look finds them
        yield Do(lambda: kit.runs.note_put_back(task.name, made_of(candidate)))
        left = in_candidate(kit, task, ground, candidate)
        if left is not None:
            yield Tell(left)
    return refused(kit, task, list(candidate.refused)) if candidate.refused else candidate


def _build(kit: Kit, task: Task, ground: Ground) -> Candidate | Clash | NotNow:
    """Merge a loop's work with its plan's."""
    onto = Onto(task.loop.plan, task.tip)
    return build_candidate(ground, task.name, onto, task.attempt, protect_of(kit, task, ground))


def _clashed(kit: Kit, task: Task, clash: Clash) -> Trouble:
    """Word a conflict; where it can be mended, upon what has landed by then, is for the next try."""
    reason = f"conflict in {', '.join(clash.files[:MOST_NAMED])}" + (", …" if len(clash.files) > MOST_NAMED else "")
    kit.runs.note_refusal(task.name, task.attempt, Refusal(task.loop.iteration, reason, ""))
    mark = feedback.signature(None, reason.encode(), folder_of(kit, task))
    return Trouble(Failure.CONFLICT, reason, mark, tip=task.tip, paths=clash.files)
