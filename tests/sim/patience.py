"""What must hold of loops that are told no: they go on, go to another agent or end, counted anew from their events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from loopr.core import events as e
from loopr.core.forest import Forest
from loopr.core.judge_events import Conflicted, Refused
from loopr.core.model import Loop, Status
from loopr.core.redo_events import RedoAsked

MET = ("nothing had changed", "equal answers in a row", "an agent took over early", "a conflict with another tip")
_ANEW = (e.Retried, e.Renewed, e.InputChanged, e.ArtifactAccepted, e.DeclaredAgain, RedoAsked)


class _Answer(NamedTuple):
    """A no: to whom, in which words, to which work."""

    agent: str
    signature: str
    work: str


class Patience:
    """All answers that loops were given since their counters last began."""

    def __init__(self, met: Callable[[str], None]) -> None:
        """Begin with none."""
        self.met = met
        self.early: set[str] = set()
        self._answers: dict[str, list[_Answer]] = {}
        self._tips: dict[str, str] = {}

    def problems(self, forest: Forest, event: e.Event) -> Iterator[str]:
        """Take in an event, and say what is wrong with it as a verdict, in the state before it."""
        if isinstance(event, (*_ANEW, e.Unparked)):
            self._tips.pop(event.loop, None)
        if isinstance(event, _ANEW) and getattr(event, "to", None) is not Status.COMPLETE:
            self._answers.pop(event.loop, None)
            self.early.discard(event.loop)
        if isinstance(event, Refused | Conflicted):
            yield from self._verdict(forest, forest.loops[event.loop], event)

    def _verdict(self, forest: Forest, loop: Loop, event: Refused | Conflicted) -> Iterator[str]:
        """Say what is wrong with a verdict of no."""
        tip, last = getattr(event, "tip", ""), self._tips.get(loop.id, "")
        self._tips[loop.id] = tip or last
        if tip and last and tip != last:
            self.met("luck: a conflict with another tip")
            if event.to is Status.PARKED or event.takes_over:
                yield "although it is a conflict with another tip"
            return
        answers = self._answers.setdefault(loop.id, [])
        answers.append(_Answer(event.agent, event.signature, event.work))
        limits, row = forest.policy.retry, self._row(answers)
        told = event.signature and event.work and limits.no_progress
        stuck = bool(told) and answers.count(answers[-1]) >= limits.no_progress
        most = limits.same_answer or 1_000
        full = self._is_full(forest, loop, event)
        if event.to is Status.PENDING and not (event.takes_over or full) and (stuck or row >= 2 * most):
            yield f"although its answers are {answers}"
        ends = event.to is Status.FAILED and not event.reason.startswith("refused ")
        if (ends or event.takes_over) and not (stuck or row >= most):
            yield f"although its answers are {answers}"
        if event.takes_over:
            step = forest.policy.type_of(loop.type).escalate.get("refused")
            if step is None or step.agent != event.takes_over or full or loop.id in self.early or loop.command:
                yield f"although the settings say {step}"
            self.early.add(loop.id)
            self.met("luck: an agent took over early")
        if ends:
            self.met("luck: nothing had changed" if stuck else "luck: equal answers in a row")

    def _row(self, answers: list[_Answer]) -> int:
        """Count the last answers that are equal, to the same agent."""
        last, row = answers[-1], 0
        for each in reversed(answers):
            if not last.signature or each[:2] != last[:2]:
                break
            row += 1
        return row

    def _is_full(self, forest: Forest, loop: Loop, event: Refused | Conflicted) -> bool:
        """Say whether the number of an escalation becomes full with this one."""
        name = "conflict" if isinstance(event, Conflicted) else "refused"
        step = forest.policy.type_of(loop.type).escalate.get(name)
        return step is not None and dict(loop.tally).get(name, 0) + 1 == step.after
