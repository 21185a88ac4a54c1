"""What the engine hears of its attempts.

Plain values. Must never know where they come from.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from loopr.world.launcher.words import Outcome

State = Literal["ended", "alive", "vanished", "unclaimed"]


class Began(NamedTuple):
    """The command runs."""

    id: str
    pid: int
    at_ms: int


class Ended(NamedTuple):
    """Nothing of the attempt is left."""

    id: str
    outcome: Outcome
