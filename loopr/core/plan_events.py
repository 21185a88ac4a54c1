"""Every event about where the branch of a plan stands.

Past tense, like all events. Knows neither what they change (`forest.py`) nor how they are written down (`codec.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from loopr.core.events import Event, LoopEvent


@dataclass(frozen=True, slots=True)
class LandingBegan(LoopEvent):
    """What a loop has done is on its way to the plan branch, or to its place: from here on there is no way back."""

    attempt: int


@dataclass(frozen=True, slots=True)
class PlanMoving(Event):
    """The branch of a plan is about to move; `loop` and `loop_tip` say whose landing it is, if it is one.

    Where it takes over its base, `base` is the commit that this is at, and `others` are the loops that have other
    inputs there, each with the reason: `ID reason`.
    """

    plan: str
    old: str
    new: str
    why: str
    loop: str = ""
    loop_tip: str = ""
    base: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanMoved(Event):
    """The branch of a plan stands at `new`, wherever a ref of that name is; `why` is one of those in `tips.py`."""

    plan: str
    old: str
    new: str
    why: str


@dataclass(frozen=True, slots=True)
class PlanStayed(Event):
    """The branch of a plan stays where it is: the move that was announced cannot be made."""

    plan: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True, slots=True)
class TipForeign(Event):
    """The branch of a plan was moved by somebody else, or deleted (then `tip` is empty).

    `kept` is the ref that keeps it, `back` where the branch was put back to, nothing where it is left; `during` names
    the leases at work meanwhile.
    """

    plan: str
    tip: str
    kept: str = ""
    back: str = ""
    during: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TipsTaken(Event):
    """The journal is from before it said where plans stand: for these the refs are believed, this once."""

    plans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InputsMoved(LoopEvent):
    """Its plan has taken a base on which files are others that a loop at work names as inputs.

    It goes on, and is done again once it is complete, unless another attempt has begun there meanwhile.
    """

    why: str
