"""Which answers a loop was given to which work: what is counted of a no, and when there have been enough of it.

The same answer to the same work is no progress; so are many equal answers, whatever the work, and
many to the same work that differ in numbers alone. Knows numbers of the policy; must never know
the parts of a work, nor the fate of a loop that stands still.
"""

from __future__ import annotations

import hashlib

from loopr.core.entries import ALIKE
from loopr.core.judge_events import Conflicted, Refused
from loopr.core.model import Loop
from loopr.core.policy import Retry

MOST_KEPT = 64
"""So many marks of answers to works are remembered of a loop, the latest ones: two for each answer."""
_MARK_LENGTH = 12


def answered(loop: Loop, said: Refused | Conflicted) -> Loop:
    """Count a no; a conflict with another tip than the last says nothing of what the loop has done since."""
    if isinstance(said, Conflicted):
        if is_news(loop, said.tip):
            return loop._replace(conflict_tip=said.tip)
        loop = loop._replace(conflict_tip=said.tip or loop.conflict_tip, conflicts=loop.conflicts + 1)
    same = said.signature and said.signature == loop.signature and said.agent == loop.answered
    answers = dict(loop.answers)
    for mark in _marks(said):
        answers[mark] = answers.pop(mark, 0) + 1  # the latest is the last
    return loop._replace(
        signature=said.signature,
        answered=said.agent,
        repeats=loop.repeats + 1 if same else 1,
        answers=tuple(answers.items())[-MOST_KEPT:],
    )


def is_news(loop: Loop, tip: str) -> bool:
    """Say whether a conflict with this tip of the plan's is one with another than the last."""
    return bool(tip and loop.conflict_tip) and tip != loop.conflict_tip


def enough(retry: Retry, loop: Loop, said: Refused | Conflicted, *, quiet: bool) -> str:
    """Say in words that a loop stands still after a no that is counted already, nothing if it may go on.

    Answers to the same work that differ in numbers alone, such as a sum of tokens, count as equal
    ones do whatever the work. An answer without any words is weak evidence: it takes twice as many.
    """
    known = dict(loop.answers)
    same, alike = ([known.get(mark, 0) for mark in _marks(said)] + [0, 0])[:2]
    if retry.no_progress and same >= retry.no_progress:
        return f"{_times(same)}, nothing changed (retry.no_progress)"
    most = (retry.same_answer or 0) * (2 if quiet else 1)
    if said.signature and most and loop.repeats >= most:
        return f"{_times(loop.repeats)} in a row (retry.same_answer)"
    if most and alike >= most:
        return f"{_times(alike)}, nothing changed but numbers (retry.same_answer)"
    return ""


def _times(count: int) -> str:
    """Word how often an answer came."""
    return f"{count} time{'s' * (count != 1)}"


def _marks(said: Refused | Conflicted) -> list[str]:
    """Return the marks of an answer to a known work: of the whole answer, and without its numbers."""
    if not (said.signature and said.work):
        return []
    alike = said.signature.partition(ALIKE)[2]
    texts = [said.signature, *([f"{ALIKE}{alike}"] if alike else [])]
    return [_mark(said.agent, each, said.work) for each in texts]


def _mark(agent: str, signature: str, work: str) -> str:
    """Return the short mark of an answer to a work."""
    words = "\0".join((agent, signature, work))
    return hashlib.sha256(words.encode()).hexdigest()[:_MARK_LENGTH]
