"""What a loop remembers of how old its work is, and that it is to be done again.

Time is told in grants: the count of leases granted in the workspace orders all attempts, and every landing between two
of them. Knows no loop and no tree (`staleness.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

STALE, REDO = "stale", "redo"
"""Why work is done again that is older than what it rests on, and the setting that has it so."""


class Ask(NamedTuple):
    """The wish that complete work be done again: `cause` in words, by whom, and the loop whose landing led to it.

    Where it `cascades`, those that rest on the loop are asked too, should it land something.
    """

    cause: str
    by: str
    at: int
    cascades: bool = False
    landed: str = ""


class Past(NamedTuple):
    """How old the work of a loop is; 0 where nobody knows, as of all that is from before this was remembered.

    `worked` is the grant of the attempt that its present work comes from, `made` that of its landed work; `changed` is
    the count of grants when it last landed a commit. `round` is the one in which it was last asked to be done
    again; `paid` is what earlier generations have used of tokens, money and time, as `Spent` counts them.
    """

    worked: int = 0
    made: int = 0
    changed: int = 0
    ask: Ask | None = None
    round: int = 0
    paid: tuple[int, int, int] = (0, 0, 0)


NO_PAST = Past()


def read_past(value: Sequence[Any]) -> Past:
    """Read it back from a row."""
    worked, made, changed, ask, number, paid = value
    return Past(worked, made, changed, Ask(*ask) if ask else None, number, (paid[0], paid[1], paid[2]))


DAY_MS = 86_400_000


class Round(NamedTuple):
    """What happens to a plan between two starts: its number, and when first something was asked to be done again."""

    number: int = 1
    used_at: int = 0

    def is_over(self, now: int) -> bool:
        """Say whether an engine that stays begins the next one: a day after something was done again."""
        return bool(self.used_at) and now - self.used_at >= DAY_MS


NO_ROUND = Round()


def redo_words(cause: str, landed: str) -> str:
    """Say why work is to be done again, and which landing led to it."""
    return f"{cause}, since {landed} landed" if landed else cause
