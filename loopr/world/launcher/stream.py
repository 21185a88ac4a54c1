"""One output of a command: the pipe it writes to, and the log it is kept in.

The end that the command gets is open for reading too, so that it never gets a SIGPIPE when its reader dies, and we keep
a copy of it, so that there is never an end of file to handle. Must never know what else happens to the command.
"""

from __future__ import annotations

import fcntl
import os

from loopr.world.launcher.log import Log

CHUNK = 1 << 16


class Stream:
    """A pipe that is read into a log."""

    def __init__(self, reader: int, writer: int, log: Log) -> None:
        """Take over both ends."""
        self.reader, self.writer, self.log = reader, writer, log

    @classmethod
    def open(cls, log: Log) -> Stream:
        """Make a pipe for a command to write to."""
        reader, end = os.pipe2(os.O_CLOEXEC)
        try:
            writer = os.open(f"/proc/self/fd/{end}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(end)
        os.set_blocking(reader, False)
        return cls(reader, writer, log)

    @property
    def inode(self) -> int:
        """What the kernel calls the pipe."""
        return os.fstat(self.reader).st_ino

    def pump(self) -> int:
        """Move what is there, at most one piece of it; return how much it was."""
        try:
            chunk = os.read(self.reader, CHUNK)
        except BlockingIOError:
            return 0
        self.log.write(chunk)
        return len(chunk)

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
        """Close both ends; the log may have more to come."""
        os.close(self.reader)
        os.close(self.writer)
