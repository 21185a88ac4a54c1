"""Ends a process that was told to end at once and does not come to it, whatever it waits for.

Hears signals as the system delivers them, also while the main thread is in the hands of a disk or a
database. Whatever a thread was in the middle of is begun again by the next engine, as after a crash.
Must never know what is driven.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import NoReturn, Self

from loopr.core.settled import Standing
from loopr.world.lock import END_AT_ONCE
from loopr.world.processes.strays import end_children

INTERRUPTED, TERMINATED = 130, 143
MARGIN_SECS = 1.0
"""How long after the grace a process ends that has not come to its own end."""
MOST_BYTES = 4_000  # what a pipe takes at once if it takes anything


class Curfew:
    """Watches over the end of this process from its first signal on."""

    def __init__(self, secs: Callable[[], float], words: Callable[[], str]) -> None:
        """Say how long the end may take beside the margin, and what is told if it takes longer."""
        self._secs, self._words = secs, words
        self._strikes = False
        self._hears = self._says = self._before = -1

    def __enter__(self) -> Self:
        """Begin to hear signals."""
        self._hears, self._says = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._says, False)
        self._before = signal.set_wakeup_fd(self._says, warn_on_full_buffer=False)
        Thread(target=self._watch, name="loopr-curfew", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the watch, unless the process is to end at once: it may still be kept from that."""
        signal.set_wakeup_fd(self._before)
        if not self._strikes:
            os.close(self._says)

    def _watch(self) -> None:
        """Wait for the signal that ends the process at once, and then for the last moment."""
        heard: list[int] = []
        while numbers := os.read(self._hears, 64):
            for number in numbers:
                if ends_at_once(number, heard):
                    self._strikes = True
                    time.sleep(self._secs() + MARGIN_SECS)
                    leave(code_of([*heard, number]), self._words)
                heard.append(number)
        os.close(self._hears)


def ends_at_once(number: int, before: list[int]) -> bool:
    """Say whether a signal asks for an end at once: the first Ctrl-C does not."""
    return number in (signal.SIGTERM, END_AT_ONCE) or (number == signal.SIGINT and number in before)


def code_of(signals: list[int]) -> int:
    """Return the exit code after some signals; that of another loopr has none of its own."""
    own = [number for number in signals if number in (signal.SIGINT, signal.SIGTERM)]
    if not own:
        return int(Standing.WAITING)
    return INTERRUPTED if own[0] == signal.SIGINT else TERMINATED


def leave(code: int, words: Callable[[], str] = str) -> NoReturn:
    """End the process as it stands: its locks are given back when every thread is gone."""
    with suppress(Exception):  # there is nobody left to tell
        end_children()
    with suppress(Exception):
        text = f"{words()}\n".encode(errors="replace")[:MOST_BYTES]
        if text.strip() and select.select([], [2], [], 0)[1]:
            os.write(2, text)
    os._exit(code)
