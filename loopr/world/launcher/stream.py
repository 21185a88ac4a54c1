"""One output of a command: the pipe it writes to, and the log it is kept in.

A supervisor has two pipes, and the launcher a copy of their reading ends: what is in them survives whoever was killed.
The end that a command gets is opened anew for each, so that no flag it sets reaches the next one, and for reading too,
so that it never gets a SIGPIPE. We keep a copy of that while it runs, so that there is no end of file to handle.

Must never know what else happens to the command.
"""

from __future__ import annotations

import fcntl
import os
import select
from collections.abc import Iterable

from loopr.world.launcher.log import Log


def make_pipe() -> int:
    """Make a pipe and return its reading end, which never blocks; it lives as long as that is open."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.close(writer)
    os.set_blocking(reader, False)
    return reader


def make_pipes() -> tuple[int, int]:
    """Make the pipes of a supervisor, for both outputs of its commands."""
    out = make_pipe()
    try:
        return out, make_pipe()
    except OSError:
        os.close(out)
        raise


def inode(reader: int) -> int:
    """Return what the kernel calls a pipe."""
    return os.fstat(reader).st_ino


class Stream:
    """A pipe that is read into a log; the reading end stays open when the stream is closed."""

    def __init__(self, reader: int, log: Log) -> None:
        """Open the end that is to be written to."""
        self.reader, self.log = reader, log
        self.writer = os.open(f"/proc/self/fd/{reader}", os.O_RDWR | os.O_CLOEXEC)

    def pump(self) -> int:
        """Move what is there, at most one piece of it; return how much it was."""
        return self.log.take(self.reader)

    def drain(self) -> None:
        """Move all that is there now; a stray that goes on writing does not hold us up."""
        left = -1
        while moved := self.pump():
            if left < 0:
                left = fcntl.fcntl(self.reader, fcntl.F_GETPIPE_SZ)
            left -= moved
            if left < 0:
                return

    def close(self) -> None:
        """Let go of the end that is written to."""
        os.close(self.writer)

    def is_over(self) -> bool:
        """Take the last of the output; tell whether nobody is left who could write to the pipe."""
        self.drain()
        try:
            return not os.read(self.reader, 1)  # end of file
        except BlockingIOError:
            return False


def close(streams: Iterable[Stream]) -> bool:
    """Close streams with the last of their output; tell whether nobody is left who could write to their pipes."""
    poll = select.poll()
    for stream in streams:
        stream.close()
        poll.register(stream.reader, select.POLLIN)
    said = dict(poll.poll(0))
    held = [stream for stream in streams if said.get(stream.reader) != select.POLLHUP and not stream.is_over()]
    return not held
