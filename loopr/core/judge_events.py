"""What those who judge an attempt have said, one event each.

Past tense, like all events. Knows neither who judges nor what they look at.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopr.core.events import LoopEvent
from loopr.core.model import Status


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


@dataclass(frozen=True, slots=True)
class Refused(LoopEvent):
    """A verdict of no: the next iteration begins, or there is none left.

    `work` is the digest of all that the loop has made of its plan, `touched` are files of that, and `agent` has made
    it, nothing for a command.
    `takes_over` names the agent that goes on because nothing has changed, before its number of refusals is full.
    """

    attempt: int
    to: Status
    signature: str
    reason: str
    work: str = ""
    agent: str = ""
    takes_over: str = ""
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conflicted(LoopEvent):
    """The change does not fit the plan branch, which stood at `tip`: refused, and counted apart; else as `Refused`.

    `paths` are the files in conflict, and `number` is its place in the order of conflicts.
    """

    attempt: int
    to: Status
    signature: str
    reason: str
    work: str = ""
    agent: str = ""
    takes_over: str = ""
    tip: str = ""
    paths: tuple[str, ...] = ()
    number: int = 0
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LandingWaits(LoopEvent):
    """A landing that has not begun lets others pass: it changes files in which another loop mends a conflict."""

    attempt: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeTurnEnded(LoopEvent):
    """The turn of a loop to mend its conflict has taken too long: it waits like any other from here on."""
