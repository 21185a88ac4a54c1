"""Which clock of an attempt runs out first."""

from __future__ import annotations

from typing import Any

from loopr.world.launcher.clocks import Clocks
from loopr.world.launcher.words import Run


def clocks(heard: float | None = None, **settings: Any) -> Clocks:
    """Start clocks at second 100."""
    off = dict.fromkeys(Run._fields, 0)
    return Clocks(Run(**{**off, "started_ms": 100_000, **settings}), heard)


def test_clocks_that_are_off_never_end() -> None:
    """A clock of 0 is off."""
    assert clocks().next_end() is None


def test_the_first_clock_counts() -> None:
    """The clock that runs out first is the one that is named."""
    assert clocks(wall_ms=5_000, idle_ms=9_000).next_end() == (105.0, "wall")
    assert clocks(wall_ms=9_000, idle_ms=5_000).next_end() == (105.0, "idle")


def test_silence_begins_with_the_last_byte() -> None:
    """Each sign of life starts the idle clock anew, and ends that of the first byte."""
    each = clocks(idle_ms=5_000, first_byte_ms=2_000)
    assert each.next_end() == (102.0, "first_byte")
    each.hear(103.5)
    assert each.next_end() == (108.5, "idle")


def test_before_the_first_byte_the_first_byte_is_waited_for() -> None:
    """A short idle clock does not shorten the time for the first byte."""
    assert clocks(idle_ms=1_000, first_byte_ms=9_000).next_end() == (109.0, "first_byte")
    assert clocks(idle_ms=1_000).next_end() == (101.0, "idle")
