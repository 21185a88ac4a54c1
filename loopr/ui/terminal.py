"""A terminal that nobody waits for: one that is stopped with Ctrl-S, or slow, holds up no work.

It is opened anew, so that not waiting is our own affair: the descriptors of a shell share theirs with every program it
starts. Knows bytes and one descriptor. Must never know what is shown.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from typing import Self

PATIENCE_SECS = 1.0  # how long the last words may take


class Terminal:
    """The end of a terminal to which as much is written as it takes; the rest follows, in order."""

    def __init__(self, descriptor: int) -> None:
        """Take over a descriptor that never blocks."""
        self._descriptor, self._rest = descriptor, b""

    @classmethod
    def behind_of(cls, descriptor: int) -> Self | None:
        """Open the terminal that a descriptor leads to, None where that is none, or none that can be opened anew."""
        try:
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            return cls(os.open(os.ttyname(descriptor), flags))
        except OSError:
            return None

    @property
    def lags(self) -> bool:
        """True while something is left that it has not taken: what comes now would only grow old."""
        self._flush()
        return bool(self._rest)

    def write(self, text: str) -> None:
        """Write, as far as it takes it now."""
        self._rest += text.encode(errors="replace")
        self._flush()

    def close(self) -> None:
        """Wait a moment until the last words are taken, and leave it. Once is enough."""
        if self._descriptor < 0:
            return
        ends = time.monotonic() + PATIENCE_SECS
        with suppress(OSError):
            while self.lags and (left := ends - time.monotonic()) > 0:
                select.select([], [self._descriptor], [], left)
        os.close(self._descriptor)
        self._descriptor = -1

    def _flush(self) -> None:
        """Write what is left, as far as it is taken."""
        with suppress(BlockingIOError):
            while self._rest:
                self._rest = self._rest[os.write(self._descriptor, self._rest) :]
