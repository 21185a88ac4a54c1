"""Which answers a loop was given to which work: what is counted of a no, and when there have been enough of it.

The same answer to the same work is no progress; so are many equal answers, whatever the work. Knows numbers of the
policy; must never know what a work is made of, nor what follows from a loop that stands still.
"""

from __future__ import annotations

import hashlib

from loopr.core.judge_events import Conflicted, Refused
from loopr.core.model import Loop
from loopr.core.policy import Retry

MOST_KEPT = 32
"""So many different answers to different works are remembered of a loop, the latest ones."""
_MARK_LENGTH = 12


def answered(loop: Loop, said: Refused | Conflicted) -> Loop:
    """Count a no; a conflict with another tip than the last says nothing of what the loop has done since."""
    if isinstance(said, Conflicted):
        if is_news(loop, said.tip):
            return loop._replace(conflict_tip=said.tip)
        loop = loop._replace(conflict_tip=said.tip or loop.conflict_tip, conflicts=loop.conflicts + 1)
    same = said.signature and said.signature == loop.signature and said.agent == loop.answered
    answers = loop.answers
    if said.signature and said.work:
        known = dict(answers)
        mark = _mark(said)
        times = known.pop(mark, 0) + 1
        answers = (*known.items(), (mark, times))[-MOST_KEPT:]
    return loop._replace(
        signature=said.signature, answered=said.agent, repeats=loop.repeats + 1 if same else 1, answers=answers
    )


def is_news(loop: Loop, tip: str) -> bool:
    """Say whether a conflict with this tip of the plan's is one with another than the last."""
    return bool(tip and loop.conflict_tip) and tip != loop.conflict_tip


def enough(retry: Retry, loop: Loop, said: Refused | Conflicted, *, quiet: bool) -> str:
    """Say in words that a loop stands still after a no that is counted already, nothing if it may go on.

    An answer without any words is weak evidence: it takes twice as many.
    """
    times = dict(loop.answers).get(_mark(said), 0) if said.work else 0
    if retry.no_progress and times >= retry.no_progress:
        return f"{times} time{'s' * (times != 1)}, nothing changed (retry.no_progress)"
    most = (retry.same_answer or 0) * (2 if quiet else 1)
    if said.signature and most and loop.repeats >= most:
        return f"{loop.repeats} time{'s' * (loop.repeats != 1)} in a row (retry.same_answer)"
    return ""


def _mark(said: Refused | Conflicted) -> str:
    """Return the mark of an answer to a work, by whom it was made."""
    words = "\0".join((said.agent, said.signature, said.work))
    return hashlib.sha256(words.encode()).hexdigest()[:_MARK_LENGTH]
