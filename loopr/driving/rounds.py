"""The instant up to which loops have been chosen; each that comes of age later makes a choice due, a change too.

No instant that passes is forgotten during other acts and waits. Must never know which loops are chosen.
"""

from __future__ import annotations

from loopr.core.choose import next_wake
from loopr.engine import Mind

AGAIN_MS = 1_000  # what could not be remembered is tried that often


class Rounds:
    """The last choice of loops: its instant, and the state that it met."""

    def __init__(self) -> None:
        self._at = self._not_before = 0
        self._stood = (0, 0)

    def done(self, mind: Mind, now: int) -> None:
        """Note that all was chosen that there was at an instant."""
        self._at, self._not_before, self._stood = now, 0, _stands(mind)

    def put_off(self, now: int) -> None:
        """Note that nothing could be remembered: the same is due a while later."""
        self._not_before = now + AGAIN_MS

    def due(self, mind: Mind) -> int | None:
        """Return when to choose again, an instant that has passed for at once; None for never by itself."""
        at = next_wake(mind.forest, self._at) if _stands(mind) == self._stood else self._at
        return None if at is None else max(at, self._not_before)

    def is_due(self, mind: Mind, now: int) -> bool:
        """Say whether something may have changed by itself."""
        at = self.due(mind)
        return at is not None and at <= now


def _stands(mind: Mind) -> tuple[int, int]:
    """Return a mark that changes once loops come among the ready, or all is read anew."""
    return mind.recalls, mind.forest.ready.changes
