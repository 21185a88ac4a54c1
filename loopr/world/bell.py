"""The bell of a workspace: whoever has changed the journal rings it, and the engine that serves the workspace looks.

A named pipe in the state folder. Ringing where nobody listens does nothing: whoever begins to listen looks anyway. Must
never carry what is to be done: that stands in the journal.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

NAME = "engine.bell"
LOOK_SECS = 0.02


class Bell:
    """The bell as the engine has it."""

    def __init__(self, state: Path) -> None:
        """Hang it up; anything else that stands in its place goes."""
        path = state / NAME
        with suppress(FileNotFoundError):
            if not stat.S_ISFIFO(path.lstat().st_mode):
                path.unlink()
        with suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # with a writer it never ends

    def fileno(self) -> int:
        """Return the descriptor that is readable after a ring."""
        return self._descriptor

    def hear(self) -> bool:
        """Say whether somebody has rung since the last call."""
        heard = False
        with suppress(BlockingIOError):
            while os.read(self._descriptor, 4096):
                heard = True
        return heard

    def close(self) -> None:
        """Take it down; once is enough."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        """Return the bell itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Take it down."""
        self.close()


def ring(state: Path) -> bool:
    """Ring the bell of a workspace, and say whether anybody listens."""
    try:
        descriptor = os.open(state / NAME, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # there is none, or nobody listens
        return False
    try:
        with suppress(BlockingIOError):  # it is full of rings that nobody has heard yet
            os.write(descriptor, b"!")
    finally:
        os.close(descriptor)
    return True


def is_answered(state: Path, secs: float) -> bool:
    """Ring, and say whether it is heard within a while; True where nobody listens."""
    try:
        descriptor = os.open(state / NAME, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode) or not ring(state):
            return True
        ends = time.monotonic() + secs
        while _unheard(descriptor):
            if time.monotonic() > ends:
                return False
            time.sleep(LOOK_SECS)
    finally:
        os.close(descriptor)
    return True


def _unheard(descriptor: int) -> int:
    """Return how many rings nobody has heard yet."""
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
