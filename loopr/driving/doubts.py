"""Whose word a changed file is: a person's, or that of the loops which were at work since it was looked at last.

A change is a person's if nothing was at work since the last look at everything. Where no engine was
there to look, the times of files are asked; a command cannot set those back. Must never know what
a file says, nor what follows from whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopr.core.forest import Forest
from loopr.core.model import Loop
from loopr.hands import During

_NS_PER_MS = 1_000_000


class Doubts:
    """Knows who was at work since the last look at everything."""

    def __init__(self) -> None:
        """Begin where nothing was at work."""
        self._at_work: dict[str, None] = {}
        self._began_at = 0  # what was there before then is not of those who are at work
        self._lived: tuple[int, int] | None = None  # when an engine before us may have had something at work

    def take_over(self, forest: Forest, started_at: int, lived_until: int | None) -> None:
        """Begin after an engine that began at an instant, and whose loops lived until another; None: some still do."""
        if lived_until is None:
            self._at_work, self._began_at = dict.fromkeys(forest.occupancy.loops), started_at
        elif forest.shared.files_looked != forest.shared.grants:
            self._lived = started_at, lived_until

    def heed(self, forest: Forest, granted: Iterable[str] = ()) -> None:
        """Note who is at work now, or was for a moment."""
        busy = [*forest.occupancy.loops, *granted]
        if not busy:
            return
        if not self._at_work:
            self._began_at = min(map(_since, map(forest.loops.__getitem__, busy)), default=0)
        self._at_work |= dict.fromkeys(busy)

    def of(self, changed_ns: int) -> During:
        """Return who was at work when a file came that has changed since it was looked at last, None if nobody was."""
        return self.came(changed_ns // _NS_PER_MS)

    def came(self, changed_at: int) -> During:
        """Return the same for an instant in milliseconds."""
        if self._at_work:
            return tuple(self._at_work) if changed_at >= self._began_at else None
        if self._lived is not None and self._lived[0] <= changed_at <= self._lived[1]:
            return ()
        return None

    def have_looked(self, forest: Forest) -> None:
        """Forget who was at work before: everything has been looked at since."""
        self._lived = None
        self._at_work = dict.fromkeys(forest.occupancy.loops)

    @property
    def are_over(self) -> bool:
        """True if all that came while something was at work has been looked at."""
        return not self._at_work and self._lived is None


def _since(loop: Loop) -> int:
    """Say since when a loop may have been at work."""
    if loop.lease is not None:
        return loop.lease.at
    return (loop.ending.started_at or 0) if loop.ending is not None else 0
