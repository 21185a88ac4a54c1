"""What the world may report of the branches of plans: the part of `observations.py` about where plans stand.

Knows no decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopr.core.observations import Observation


@dataclass(frozen=True, slots=True)
class PlanStands(Observation):
    """The branch of a plan stands where it was announced to move to, or cannot, for a reason."""

    plan: str
    new: str
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class ForeignSeen(Observation):
    """The branch of a plan was at a commit that loopr did not bring it to, or gone; what was done about it."""

    plan: str
    tip: str
    kept: str = ""
    back: str = ""
    during: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TipsFound(Observation):
    """Where the refs say that plans stand, of which the journal says nothing; empty where a plan has not begun."""

    tips: Mapping[str, str]
