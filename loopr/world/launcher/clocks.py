"""The three clocks of an attempt: all of its time, silence, and silence before the first byte.

All on the monotonic clock, so that setting the machine's clock ends nothing, and in seconds of it. Silence counts from
the last byte; before the first one only if the clock of the first byte is off. Must never know what happens when a
clock runs out.
"""

from __future__ import annotations

from loopr.world.launcher.words import Reason, Run


class Clocks:
    """What is left of an attempt's time."""

    def __init__(self, run: Run, heard: float | None = None) -> None:
        """Start all clocks at the start of the attempt; `heard` is when it was last heard, None if never."""
        self._started = run.started_ms / 1000
        self._wall, self._idle, self._first = run.wall_ms / 1000, run.idle_ms / 1000, run.first_byte_ms / 1000
        self._heard = heard

    def hear(self, now: float) -> None:
        """Note a sign of life."""
        self._heard = now

    def next_end(self) -> tuple[float, Reason] | None:
        """Return which clock runs out first, and when; None if all are off."""
        wall: tuple[float, Reason] | None = (self._started + self._wall, "wall") if self._wall else None
        silence: tuple[float, Reason] | None = None
        if self._first and self._heard is None:
            silence = (self._started + self._first, "first_byte")
        elif self._idle:
            silence = ((self._started if self._heard is None else self._heard) + self._idle, "idle")
        return min(wall, silence) if wall and silence else wall or silence
