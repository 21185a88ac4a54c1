"""The verdict on what an attempt left: its form, then the commands that judge the tree that would land.

Every verdict of yes is remembered for the very tree and command, so that landing asks again only for another tree. Must
never land anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from loopr.core import observations as o
from loopr.core.entries import Artifact, Command
from loopr.core.model import Failure
from loopr.core.observations import Trouble
from loopr.driving.acts import Act, Asked, Do, Later, Run, StopAsked
from loopr.driving.attempting import folder_of, limits_of, message_of, tail_of
from loopr.driving.kit import Kit, Task
from loopr.driving.materials import Spot, step_spec
from loopr.driving.outcomes import Said, listed, refusal, trouble_before, trouble_of
from loopr.errors import LooprError, PlanError, Problem
from loopr.world import feedback
from loopr.world.artifacts import digest, parse_artifact
from loopr.world.launcher.words import STREAMS
from loopr.world.place import SETTINGS_FILE
from loopr.world.processes import Outcome
from loopr.world.repo.commits import commit_attempt
from loopr.world.repo.conflicts import lay_clash
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import build_candidate, end_judging, lay_candidate, verdict_key
from loopr.world.repo.protection import Protect
from loopr.world.repo.words import Candidate, Clash, LaidClash
from loopr.world.repo.words import Refusal as NotNow
from loopr.world.runs import OUTPUT, Refusal

Fits = Callable[[Artifact, str], list[Problem]]
"""Says what keeps an outline from counting in the tree as it is now."""

_BETWEEN = re.compile(r"[\s;&|()<>\"'`]+")
Outcomes = Mapping[str, Outcome]
PULLED = "engine"


def judge(kit: Kit, task: Task, fits: Fits, left: Sequence[str] = ()) -> Act:
    """Judge what an attempt left; a yes leads on, anything else says why. `left` are judges of an earlier engine."""
    loop, ground = task.loop, kit.ground_of(task)
    try:
        known = yield from hear_out(left)
        if ground is not None and loop.lease is not None and loop.lease.holder != PULLED:
            yield Do(lambda: commit_attempt(ground, task.name, task.attempt, message_of(kit, task)))
        _, trouble = read_output(kit, task, fits)
        if trouble is None and ground is not None:
            candidate = yield from candidate_of(kit, task, ground)
            trouble = (
                candidate if isinstance(candidate, Trouble) else (yield from ask_judges(kit, task, candidate, known))
            )
        elif trouble is None:
            trouble = yield from ask_judges(kit, task, None, known)
    except StopAsked:
        if ground is not None:
            yield Do(lambda: end_judging(ground, task.name))
        return o.StopSeen(loop.id, task.attempt)
    except (LooprError, OSError) as error:
        trouble = replace(trouble_before(error), launch=False)
    return o.Judged(loop.id, task.attempt, trouble)


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
        artifact = parse_artifact(
            path.read_bytes(),
            where,
            type_name=task.loop.type,
            types=task.policy.types,
            fallback_id=task.loop.id.rpartition("/")[2],
            depth=task.loop.depth,
            written_by_loop=not task.type.trust_outline,
        )
    except PlanError as error:
        return None, refused(kit, task, list(error.problems))
    problems = fits(artifact, where)
    return (None, refused(kit, task, problems)) if problems else (artifact, None)


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
    return refused(kit, task, list(candidate.refused)) if candidate.refused else candidate


def _build(kit: Kit, task: Task, ground: Ground) -> Candidate | LaidClash | NotNow:
    """Merge a loop's work with its plan's; lay a conflict where it can be mended."""
    made = build_candidate(ground, task.name, task.loop.plan, task.attempt, protect_of(kit, task, ground))
    return lay_clash(ground, made) if isinstance(made, Clash) else made


def protect_of(kit: Kit, task: Task, ground: Ground) -> Protect:
    """Say which paths a loop may not change: the settings, files that its judges name, and what its type protects."""
    words = tuple(sorted({word for command in (task.check, task.type.review) for word in _words(command)}))
    named = kit.named_files(ground, task.base_commit, words) if words else ()
    return Protect((SETTINGS_FILE, *named, *task.type.protect), task.type.protect_added == "keep")


def _words(command: Command | None) -> list[str]:
    """Return the words of a command that may be files of the repository."""
    texts = [command] if isinstance(command, str) else list(command or ())
    parts = [part for text in texts for part in _BETWEEN.split(text)]
    bare = [part.removeprefix("$LOOPR_WORKTREE/").removeprefix("./") for part in parts]
    return [part for part in bare if part and not part.startswith(("-", "/", "$", "{", ":")) and ".." not in part]


def _clashed(kit: Kit, task: Task, laid: LaidClash) -> Trouble:
    """Word a conflict, and keep all that helps to mend it."""
    files = ", ".join(each.path for each in laid.files[:3]) + (", …" if len(laid.files) > 3 else "")
    reason, text = f"conflict in {files}", laid.feedback()
    kit.runs.note_refusal(task.name, task.attempt, Refusal(task.loop.iteration, reason, text))
    mark = feedback.signature(None, reason.encode(), folder_of(kit, task))
    return Trouble(Failure.CONFLICT, reason, mark)


# --- the judges -----------------------------------------------------------------------------------------------------


def hear_out(left: Sequence[str]) -> Generator[Asked, Any, Outcomes]:
    """Wait for judges that an earlier engine has asked: two would be in each other's way in one worktree."""
    known: dict[str, Outcome] = {}
    for run in left:
        known[run] = yield Run(run)
    return known


def ask_judges(
    kit: Kit, task: Task, candidate: Candidate | None, known: Outcomes
) -> Generator[Asked, Any, Trouble | None]:
    """Let each judge see the tree that would land, and return the first no; what one has said already is `known`."""
    for kind, command in _judges(task):
        key = _key(kit, task, candidate, kind, command)
        if kit.is_yes(key):
            continue
        said = known.get(kit.runs.id_of(task.name, task.attempt, f"{kind}.{key[:12]}"))
        trouble = yield from _ask(kit, task, candidate, _Question(kind, command, key, said))
        if trouble is not None:
            return trouble
        kit.note_yes(key)
    return None


def _judges(task: Task) -> Iterator[tuple[str, Command]]:
    """Name the commands that judge, in their order: the check, then each pass of the review."""
    if task.check is not None:
        yield "check", task.check
    for number in range(task.type.review_passes if task.type.review is not None else 0):
        yield f"review{number + 1}" if number else "review", task.type.review or ""


def _key(kit: Kit, task: Task, candidate: Candidate | None, kind: str, command: Command) -> str:
    """Return under what a verdict is remembered: the tree, or the attempt where there is none, and who judges what."""
    tree = candidate.tree if candidate is not None else f"{task.name}#{task.attempt}"
    path = kit.runs.folder(task.name, task.attempt) / OUTPUT
    said = digest(path.read_bytes()) if path.is_file() else ""
    return verdict_key(tree, "\0".join([kind, repr(command), task.name, said]))


class _Question(NamedTuple):
    """Who judges, how, under what a yes is remembered, and what came of it if it was asked before."""

    kind: str
    command: Command
    key: str
    answer: Outcome | None = None


def _ask(kit: Kit, task: Task, candidate: Candidate | None, asked: _Question) -> Generator[Asked, Any, Trouble | None]:
    """Let one judge see the tree."""
    kind, command, key, answer = asked
    ground = kit.ground_of(task)
    if candidate is not None and ground is not None and answer is None:
        yield Do(lambda: lay_candidate(ground, candidate, kit.clock()))
    folder = folder_of(kit, task)
    spec = step_spec(kit, task, Spot(folder, task.loop.base_commit), command, f"{kind}.{key[:12]}")
    outcome: Outcome = answer or (yield Run(spec.id, spec))
    if candidate is not None and ground is not None:
        yield Do(lambda: end_judging(ground, task.name))
    kit.free_ports(task.loop.lease_id)
    said = Said(tail_of(spec.folder), folder)
    trouble = _verdict(kind, outcome, said, task)
    if trouble is None and kind.startswith("review"):
        trouble = _review(Said(tail_of(spec.folder, STREAMS[:1]), folder))
    if trouble is not None and trouble.failure is Failure.REFUSED:
        kit.runs.note_refusal(
            task.name, task.attempt, Refusal(task.loop.iteration, trouble.reason, _told(kind, said, candidate))
        )
    return trouble


def _verdict(kind: str, outcome: Outcome, said: Said, task: Task) -> Trouble | None:
    """Say what the end of a judge means: its own clock running out is a no."""
    mark = feedback.signature(outcome.code, said.tail, said.worktree)
    if outcome.reason == "wall":
        limit = limits_of(task)["check_secs"]
        return Trouble(Failure.REFUSED, f"the {kind} took longer than {limit} s (timeouts.check_secs)", mark)
    trouble = trouble_of(outcome, None, said, limits_of(task))
    if trouble is not None:
        return Trouble(
            trouble.failure, f"the {kind} said no: {trouble.reason}" if outcome.code else trouble.reason, mark
        )
    return None


def _review(said: Said) -> Trouble | None:
    """Read the last line that a review wrote to its standard output: only a clear yes is one."""
    mark = feedback.signature(0, said.tail, said.worktree)
    last = feedback.bounded(said.tail).rstrip().rpartition("\n")[2].strip()
    if last.startswith("APPROVED:"):
        return None
    why = last.removeprefix("REJECTED:").strip() if last.startswith("REJECTED:") else f"its last line is {last[:80]!r}"
    return Trouble(Failure.REFUSED, f"the review said no: {why}", mark)


def _told(kind: str, said: Said, candidate: Candidate | None) -> str:
    """Word a no for the next try: what the judge said, and what was put back before it looked."""
    text = f"The {kind} said no:\n\n{feedback.bounded(said.tail) or '(it said nothing)'}"
    return "\n\n".join(filter(None, [text, put_back_words(candidate)]))


def put_back_words(candidate: Candidate | None) -> str:
    """Name the protected files that were put back."""
    if candidate is None or not candidate.put_back:
        return ""
    lines = [f"- {each.path} ({each.how})" for each in candidate.put_back]
    return "\n".join(["Protected files were put back as the plan has them, whatever was made of them:", *lines])
