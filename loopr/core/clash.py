"""The conflict that a loop has to mend: its files, its place among those of others, its turn.

Knows paths as names. Must never know who else is at work (`hot.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

MOST_PATHS = 100
"""So many files are remembered, of a conflict and of a change."""


class Clash(NamedTuple):
    """The files of its conflicts so far, and how often in a row there was one in files of the last.

    `touched` are those that it has changed, as far as its last verdict of no has told. `number` is its place
    in the order of conflicts, 0 where none is to be mended before all else; `began` is when its
    turn to be mended did, 0 before that.
    """

    paths: tuple[str, ...] = ()
    times: int = 0
    number: int = 0
    began: int = 0
    touched: tuple[str, ...] = ()

    @property
    def over(self) -> Clash:
        """The same conflict, without a turn."""
        return self._replace(number=0, began=0)

    def again(self, paths: tuple[str, ...], number: int) -> Clash:
        """Return the conflict that comes after this one; files that were mended before stay among its own."""
        times = self.times if set(paths) & set(self.paths) else 0
        return Clash(tuple(dict.fromkeys([*paths, *self.paths]))[:MOST_PATHS], times + 1, number, 0, self.touched)


NO_CLASH = Clash()


def read_clash(value: Sequence[Any]) -> Clash:
    """Read it back from a row."""
    paths, times, number, began, touched = value
    return Clash(tuple(paths), times, number, began, tuple(touched))
