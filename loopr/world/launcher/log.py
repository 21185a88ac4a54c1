"""One stream of output on disk: its head, its tail, and a line that says how much is missing between them.

The head fills the log itself. What follows goes to segments beside it, each named by the offset it begins at, of which
the last two are kept; in the end the tail is cut from them and put behind the head. So a log never takes more than its
head and three tails, in memory never more than what is being written, and whoever takes over finds all there is to
know. No output leaves no file.

Knows files. Must never know where the bytes come from; never raises, since output must go on being taken.
"""

# what is forked for every slot does without pathlib
# ruff: noqa: PTH108, PTH110, PTH116, PTH123, PTH208

from __future__ import annotations

import fcntl
import os
import struct
import termios

CHUNK = 1 << 16
COPY_BYTES = 1 << 20


def segments(path: str) -> list[int]:
    """Return the offsets of the segments beside a log, oldest first."""
    folder, name = os.path.split(path)
    endings = (found.removeprefix(f"{name}.") for found in os.listdir(folder or ".") if found.startswith(f"{name}."))
    return sorted(int(ending) for ending in endings if ending.isdigit())


class Log:
    """A log that is being written."""

    def __init__(self, path: str, head: int, tail: int) -> None:
        """Begin a log; nothing is opened before there is something to write."""
        self.total = 0
        self.trouble = ""
        self._path, self._head, self._tail = path, head, tail
        self._segments: list[int] = []
        self._descriptor = -1
        self._room = head

    @classmethod
    def resume(cls, path: str, head: int, tail: int) -> Log:
        """Go on with a log where another process left it."""
        log = cls(path, head, tail)
        try:
            written = os.stat(path).st_size if os.path.exists(path) else 0
            log._segments = segments(path)
        except OSError:
            return log
        if log._segments:
            newest = log._segments[-1]
            size = os.stat(f"{path}.{newest}").st_size
            log.total, log._room = newest + size, tail - size
        else:
            log.total, log._room = min(written, head), max(0, head - written)
        return log

    def take(self, pipe: int) -> int:
        """Move one piece of output from a pipe, or as much of it as belongs to head and tail; return its size.

        The kernel moves it in one step: whoever is killed here leaves it in the one or in the other.
        """
        if self._descriptor < 0 and not _waiting(pipe):
            return 0
        if self._room <= 0:
            if not self._tail:
                return self._count(len(_read(pipe, CHUNK)))
            self._next_segment()
        size = min(self._room, CHUNK)
        try:
            moved = os.splice(pipe, self._file(), size)
        except BlockingIOError:
            return 0
        except OSError:  # a full disk, or a file system that cannot do this
            moved = self._copy(pipe, size)
        self._room -= moved
        return self._count(moved)

    def finish(self) -> None:
        """Put the tail behind the head, and close the log."""
        self._close()
        try:
            if self._segments:
                self._join()
            elif self.total > self._head:  # there was no room for a tail
                self._mark(self.total - self._head)
        except OSError as error:
            self.trouble = error.strerror or str(error)

    def _count(self, moved: int) -> int:
        """Count what was taken."""
        self.total += moved
        return moved

    def _file(self) -> int:
        """Return the file of the moment, opened where it ends."""
        if self._descriptor < 0:
            path = f"{self._path}.{self._segments[-1]}" if self._segments else self._path
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        return self._descriptor

    def _copy(self, pipe: int, size: int) -> int:
        """Take a piece through our own hands; what does not fit on the disk is dropped, and that is remembered."""
        part = memoryview(_read(pipe, size))
        moved = len(part)
        try:
            while part:
                part = part[os.write(self._file(), part) :]
        except OSError as error:
            self.trouble = error.strerror or str(error)
        return moved

    def _next_segment(self) -> None:
        """Go on in a new segment, and drop the one before the last."""
        self._close()
        for offset in self._segments[:-1]:
            self._drop(offset)
        self._segments = [*self._segments[-1:], self.total]
        self._room = self._tail

    def _drop(self, offset: int) -> None:
        """Delete a segment."""
        try:
            os.unlink(f"{self._path}.{offset}")
        except OSError as error:
            self.trouble = error.strerror or str(error)

    def _join(self) -> None:
        """Cut the tail from the segments; the head is cut back first, in case someone was killed in the middle."""
        begin = max(self._segments[0], self.total - self._tail)
        if os.path.exists(self._path) and os.stat(self._path).st_size > self._head:
            os.truncate(self._path, self._head)
        if begin > self._head:
            self._mark(begin - self._head)
        with open(self._path, "ab", buffering=0) as log:
            for offset in self._segments:
                with open(f"{self._path}.{offset}", "rb", buffering=0) as segment:
                    segment.seek(max(0, begin - offset))
                    while part := segment.read(COPY_BYTES):
                        log.write(part)
        for offset in self._segments:
            self._drop(offset)

    def _mark(self, cut: int) -> None:
        """Say in the log how much is missing."""
        with open(self._path, "ab", buffering=0) as log:
            log.write(f"\n[loopr: {cut} bytes were cut here]\n".encode())

    def _close(self) -> None:
        """Close the file of the moment."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _waiting(pipe: int) -> int:
    """Return how many bytes wait in a pipe."""
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0])


def _read(pipe: int, size: int) -> bytes:
    """Read what is there, without waiting."""
    try:
        return os.read(pipe, size)
    except BlockingIOError:
        return b""
