"""What a supervisor leaves for whoever takes over its attempt: a page of memory that the launcher sees too.

Writing to it costs nothing and wakes nobody, so that it is written at once: that the command is about to begin, its pid
as soon as there is one, and how it ended before anything else is done about it. Must never know what happens to any.
"""

from __future__ import annotations

import mmap
import struct

from loopr.world.launcher.words import Usage

_PID = struct.Struct("q")
_END = struct.Struct("qddq?")
UNKNOWN = -1


class Slate:
    """The page of one slot; clean whenever an order is given."""

    def __init__(self) -> None:
        """Make a page that forks share."""
        self._page = mmap.mmap(-1, mmap.PAGESIZE)

    def clean(self) -> None:
        """Forget the attempt before."""
        self._page[: _PID.size + _END.size] = bytes(_PID.size + _END.size)

    def note_spawn(self) -> None:
        """Leave that the command may run from now on."""
        self.note_pid(UNKNOWN)

    def note_pid(self, pid: int) -> None:
        """Leave the pid of the command."""
        _PID.pack_into(self._page, 0, pid)

    def note_end(self, status: int, usage: Usage) -> None:
        """Leave how the command ended; the mark that it did is written last."""
        _END.pack_into(self._page, _PID.size, status, *usage, False)
        self._page[_PID.size + _END.size - 1] = 1

    def pid(self) -> int:
        """Return the pid of the command, 0 if it never began, `UNKNOWN` if nobody has come to write it down."""
        return int(_PID.unpack_from(self._page)[0])

    def end(self) -> tuple[int, Usage] | None:
        """Return how the command ended, None if it has not."""
        status, user, system, largest, ended = _END.unpack_from(self._page, _PID.size)
        return (status, (user, system, largest)) if ended else None

    def close(self) -> None:
        """Give the page back."""
        self._page.close()
