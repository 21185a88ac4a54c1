"""Every event about work that is done again, though it is complete.

Past tense, like all events. Knows neither what they change (`forest.py`) nor how they are written down (`codec.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from loopr.core.events import Event, LoopEvent


@dataclass(frozen=True, slots=True)
class RedoAsked(LoopEvent):
    """The work of a complete loop is to be done again; until its lease is granted it stays complete.

    `landed` is the loop whose landing led to it. Where it `cascades`, what rests on the loop is asked too, should it
    land something.
    """

    cause: str
    by: str = ""
    cascades: bool = False
    landed: str = ""
    round: int = 0


@dataclass(frozen=True, slots=True)
class RedoBegan(LoopEvent):
    """The lease of the redoing is granted with the next event: the loop begins again, as a new generation."""

    generation: int


@dataclass(frozen=True, slots=True)
class RoundBegan(Event):
    """A plan was started anew: each of its loops may be done again once more by a rule."""

    plan: str
