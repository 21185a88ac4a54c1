"""Lines over a descriptor that never blocks: what cannot be sent now waits, and a peer that is gone swallows it.

Knows bytes and newlines. Must never know what a line says.
"""

from __future__ import annotations

import os
import select

CHUNK = 1 << 16
LONGEST_LINE = 16 << 20


class Wire:
    """One end of a stream of lines; owns its descriptor."""

    __slots__ = ("_in", "_out", "closed", "fd")

    def __init__(self, descriptor: int) -> None:
        """Take over a connected descriptor."""
        os.set_blocking(descriptor, False)
        self.fd = descriptor
        self.closed = False
        self._in = b""
        self._out = b""

    @property
    def clogged(self) -> int:
        """How many bytes wait to be sent."""
        return len(self._out)

    def send(self, line: bytes) -> None:
        """Send a line, as far as the peer takes it now."""
        self._out += line
        self.flush()

    def put(self, line: bytes) -> None:
        """Have a line sent with the next flush."""
        self._out += line

    def flush(self) -> None:
        """Send what waits, as far as the peer takes it now."""
        try:
            while self._out and not self.closed:
                self._out = self._out[os.write(self.fd, self._out) :]
        except BlockingIOError:
            return
        except OSError:  # the peer is gone: reading says so as well, after its last words
            self._out = b""

    def lines(self) -> list[bytes]:
        """Return the lines that have arrived whole; `closed` is set once the peer is gone."""
        try:
            while chunk := os.read(self.fd, CHUNK):
                self._in += chunk
                if len(chunk) < CHUNK or len(self._in) > LONGEST_LINE:
                    break
            else:
                self.closed = True
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
        *whole, self._in = self._in.split(b"\n")
        if len(self._in) > LONGEST_LINE:
            self.closed = True
        return whole

    def wait(self, timeout_ms: int | None = None) -> bool:
        """Wait until there is something to read; False when the time is over."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(timeout_ms))

    def close(self) -> None:
        """Close the descriptor; once is enough."""
        if self.fd >= 0:
            descriptor, self.fd = self.fd, -1
            self.closed = True
            os.close(descriptor)
