"""Who judges the work of a task, what an agent among them is asked, and what the answer of each comes to.

Knows the passes of a review. Must never know what a verdict costs, nor what a judge looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loopr.core.entries import Command
from loopr.core.model import Failure
from loopr.core.observations import Trouble
from loopr.driving.agents import Heard, hear_review, veil_of
from loopr.driving.kit import OWN_FOLDER, Kit, Task
from loopr.driving.materials import CHECK, RESULT, REVIEW, review_kind
from loopr.driving.outcomes import Said, tail_of, trouble_of
from loopr.world import feedback
from loopr.world.agents import Share
from loopr.world.launcher.words import STREAMS
from loopr.world.processes import Outcome
from loopr.world.prompts import Pass, looks_of
from loopr.world.repo.words import Candidate
from loopr.world.result_file import Advice, read_advice
from loopr.world.runs import OUTPUT
from loopr.world.settings.presets import Preset

YES, NO = "APPROVED:", "REJECTED:"
MOST_CHANGED = 200
_MARKS = "*_`#> \t"


class Judge(NamedTuple):
    """One who judges: a command, or an agent that reviews; a review has a number among its passes."""

    kind: str
    command: Command
    reviewer: Preset | None = None
    number: int = 1
    passes: int = 1

    @property
    def title(self) -> str:
        """What it is called in a sentence."""
        return f"review {self.number} of {self.passes}" if self.passes > 1 else self.kind


def judges_of(task: Task) -> Iterator[Judge]:
    """Name those who judge, in their order: the check, then each pass of the review."""
    if task.check is not None:
        yield Judge(CHECK, task.check)
    command = task.reviewer.command if task.reviewer is not None else task.type.review
    for number in range(1, 1 + task.type.review_passes if command is not None else 0):
        yield Judge(review_kind(number), command or "", task.reviewer, number, task.type.review_passes)


def pass_of(kit: Kit, task: Task, judge: Judge, candidate: Candidate | None) -> Pass:
    """Say what one review of several is about."""
    path = kit.runs.folder(task.name, task.attempt) / OUTPUT
    artifact = path.read_text("utf-8", "replace") if path.is_file() else ""
    changed = candidate.changed[:MOST_CHANGED] if candidate is not None else ()
    since = candidate.plan_tip[:12] if candidate is not None else ""
    return Pass(judge.number, judge.passes, looks_of(judge.number, judge.passes), artifact, changed, since)


class Answer(NamedTuple):
    """What a judge has said, how it ended, and the line that holds its verdict, if it is a review."""

    judge: Judge
    outcome: Outcome
    said: Said
    advice: Advice | None
    heard: Heard | None
    line: str

    @property
    def share(self) -> Share | None:
        """How much of its provider's window an agent has used, where that is told."""
        return self.heard.report.share if self.heard is not None else None


def read_answer(kit: Kit, task: Task, judge: Judge, ran: tuple[str, Path], outcome: Outcome) -> Answer:
    """Read all that a judge has left: what its run is called, and the folder in which it sat."""
    step, folder = ran
    run = kit.runs.folder(task.name, task.attempt, step)
    advice, _ = read_advice(folder / OWN_FOLDER / RESULT)
    veil = veil_of(kit, task, judge.reviewer)
    advice = advice._replace(message=veil.over(advice.message)) if advice is not None else None
    if judge.reviewer is None:
        said = Said(veil.over_bytes(tail_of(run)), folder)
        return Answer(judge, outcome, said, advice, None, _last_line(veil.over_bytes(tail_of(run, STREAMS[:1]))))
    heard = hear_review(kit, task, judge.reviewer, step, outcome)
    said = Said(heard.text.encode(), folder)
    return Answer(judge, outcome, said, advice, heard, _verdict_in(heard) or _last_line(said.tail))


def _last_line(raw: bytes) -> str:
    """Return the last line of what was said."""
    return feedback.bounded(raw).rstrip().rpartition("\n")[2].strip()


def _verdict_in(heard: Heard) -> str:
    """Return the line in which an agent gave its verdict, without what marks it in Markdown; nothing if it did not."""
    lines = (line.strip(_MARKS) for line in reversed(heard.said.splitlines()))
    return next((line for line in lines if line.startswith((YES, NO))), "")


def trouble_in(task: Task, answer: Answer) -> Trouble | None:
    """Say what an answer means: a clock that ran out is a no, unless an agent waited for its provider until then.

    An agent that was denied something, or could not go on, and yet gave a verdict, has given it.
    """
    judge, outcome, said, heard = answer.judge, answer.outcome, answer.said, answer.heard
    report = heard.report if heard is not None else None
    trouble = trouble_of(outcome, answer.advice, said, task.limits, report)
    spoke = report is not None and answer.line.startswith((YES, NO))
    if trouble is None or (trouble.failure is Failure.REFUSED and spoke):
        return _review(answer) if judge.kind.startswith(REVIEW) else None
    mark = feedback.signature(outcome.code, said.tail, said.worktree)
    if trouble.failure is Failure.TIMEOUT:
        limit = task.limits["check_secs"]
        slow = f"the {judge.title} took longer than {limit} s (timeouts.check_secs)"
        return Trouble(Failure.REFUSED, slow, mark, quiet=feedback.is_silent(said.tail))
    reason = f"the {judge.title} said no: {trouble.reason}" if outcome.code else trouble.reason
    return replace(trouble, reason=reason, signature=mark, launch=False)


def _review(answer: Answer) -> Trouble | None:
    """Read the line in which a review gives its verdict: only a clear yes is one."""
    line, said = answer.line, answer.said
    if line.startswith(YES):
        return None
    why = line.removeprefix(NO).strip() if line.startswith(NO) else f"its last line is {line[:80]!r}"
    mark = feedback.signature(0, said.tail, said.worktree)
    return Trouble(Failure.REFUSED, f"the {answer.judge.title} said no: {why}", mark)
