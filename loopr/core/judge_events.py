"""What those who judge an attempt have said, one event each.

Past tense, like all events. Knows neither who judges nor what they look at.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopr.core.events import LoopEvent


@dataclass(frozen=True, slots=True)
class VerdictGiven(LoopEvent):
    """A judge said yes; `key` is the digest of the tree it saw and of how it judges."""

    attempt: int
    judge: str
    key: str


@dataclass(frozen=True, slots=True)
class JudgeWaits(LoopEvent):
    """The command ended well, and no lane takes its judges now: the next attempt is for them alone."""

    attempt: int
    reason: str
