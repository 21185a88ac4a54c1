"""Tells a person what a verb waits for, once that takes longer than a second.

Must never know what runs, nor write to stdout.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType, TracebackType
from typing import NoReturn, Self

from loopr.ui import render
from loopr.ui.times import say_duration

TERMINATED, MINUTE_MS, WIDTH = 143, 60_000, 79


class Clock:
    """A line on stderr: drawn again each second on a terminal, else written once and at each minute."""

    def __init__(self) -> None:
        """Begin with nothing told."""
        self._drawn = False
        self._told = ""
        self._minutes = 0

    def __enter__(self) -> Self:
        """Let SIGTERM end what runs as Ctrl-C does, so that all is put away."""
        self._before = signal.signal(signal.SIGTERM, _end)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the line away, and hear signals as before."""
        signal.signal(signal.SIGTERM, self._before)
        self._erase()

    def _erase(self) -> None:
        """Take away the line that is drawn."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._drawn = False

    def say(self, words: str, passed_ms: int) -> None:
        """Tell that something has run for so long; its end is told by no words."""
        if not words:
            self._erase()
            return
        if sys.stderr.isatty():
            ends = f"  {say_duration(passed_ms)}"
            sys.stderr.write("\r\x1b[K" + render.fit(render.plain(words), WIDTH - len(ends)) + ends)
            sys.stderr.flush()
            self._drawn = True
            return
        minutes = passed_ms // MINUTE_MS
        if words != self._told or minutes > self._minutes:
            sys.stderr.write(f"running for {say_duration(passed_ms)}: {render.plain(words)}\n")
            sys.stderr.flush()
        self._told, self._minutes = words, minutes


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """End this process in order."""
    raise SystemExit(TERMINATED)
