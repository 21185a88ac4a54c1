"""The launcher's one thread: hears engines and supervisors, and ends by itself when it is idle and alone.

Everybody who is connected hears all news; whoever asks about an attempt that is not here is told so, and looks into its
folder. A launcher that is told to retire lets everybody go, takes nothing new, and ends after its last attempt.

Knows lines and who says them. Must never know why an attempt runs, nor touch a loop, the journal or git.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from loopr.world.launcher import words
from loopr.world.launcher.crew import Crew, Job
from loopr.world.launcher.wire import Wire
from loopr.world.launcher.words import Message

FIRST_CALL_SECS = 5.0
CLOGGED_BYTES = 64 << 20  # a client that does not listen is let go: what it misses is on disk


class Reception:
    """The state of the launcher."""

    def __init__(self, listener: socket.socket, version: str, linger_secs: float) -> None:
        """Take over a listening socket."""
        self._listener, self._version, self._linger_secs = listener, version, linger_secs
        self._poll = select.poll()
        self._clients: dict[int, Wire] = {}
        self._greeted: list[Wire] = []
        self._crew = Crew(self._poll, self._say)
        self._retired = self._told = False
        self._alone_since = time.monotonic() + FIRST_CALL_SECS  # whoever started us is on the way
        self._wake, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._retire)
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(listener, select.POLLIN)
        self._asked: dict[str, Callable[[Wire, Message, bytes], None]] = {
            "hello": self._hello,
            "run": self._run,
            "adopt": self._adopt,
            "kill": self._kill,
            "retire": self._retire,
        }

    def serve(self) -> None:
        """Hear and do until idle and alone."""
        while not self._may_end():
            for descriptor, event in self._poll.poll(self._patience_ms()):
                self._attend(descriptor, event)
            if self._told:
                self._flush()
            if self._retired:
                self._withdraw()
        self._crew.shrink()

    def _may_end(self) -> bool:
        """Tell whether nobody would miss us."""
        if self._crew.jobs or self._clients:
            self._alone_since = 0.0
            return False
        self._alone_since = self._alone_since or time.monotonic()
        return self._retired or time.monotonic() - self._alone_since >= self._linger_secs

    def _patience_ms(self) -> int | None:
        """Return how long to wait for something to happen."""
        if self._crew.jobs or self._clients:
            return None
        return max(0, int((self._alone_since + self._linger_secs - time.monotonic()) * 1000) + 1)

    def _attend(self, descriptor: int, event: int) -> None:
        """See to one descriptor that has something; it may have been closed by the one before it."""
        slot, client = self._crew.slots.get(descriptor), self._clients.get(descriptor)
        if event & select.POLLOUT:
            self._unclog(slot.wire if slot else client)
        if not event & ~select.POLLOUT:
            return
        if slot is not None:
            self._crew.hear(slot)
        elif client is not None:
            self._hear(client)
        elif descriptor == self._wake:
            os.read(self._wake, 4096)
            self._crew.reap()
        elif descriptor == self._listener.fileno():
            self._accept()

    def _accept(self) -> None:
        """Let somebody in."""
        with suppress(OSError):
            connection, _ = self._listener.accept()
            wire = Wire(connection.detach())
            self._clients[wire.fd] = wire
            self._poll.register(wire.fd, select.POLLIN)

    def _hear(self, wire: Wire) -> None:
        """Do what a client says, and let it go when it is gone."""
        for line in wire.lines():
            try:
                message, _ = words.parts_of(line)
                self._asked[message["do"]](wire, message, line)
            except (ValueError, KeyError, TypeError) as error:
                self._answer(wire, words.encode({"did": "not_understood", "why": repr(error)}))
        if wire.closed and wire.fd in self._clients:
            self._dismiss(wire)

    def _hello(self, wire: Wire, _message: Message, _line: bytes) -> None:
        """Say who we are and what we have in hand, the last orders of an engine that died before this one included."""
        for earlier in list(self._greeted):
            self._hear(earlier)
        self._greeted.append(wire)
        live = [job.id for job in self._crew.jobs.values()]
        hello = {"did": "hello", "proto": words.PROTO, "version": self._version, "pid": os.getpid(), "live": live}
        self._answer(wire, words.encode(hello))

    def _run(self, wire: Wire, message: Message, line: bytes) -> None:
        """Start an attempt, unless it is here already."""
        known = self._crew.jobs.get(message["id"])
        if known is None:
            self._crew.run(Job(message["id"], message["folder"], line + b"\n"))
        elif known.began:
            self._answer(wire, known.began)

    def _adopt(self, _wire: Wire, message: Message, _line: bytes) -> None:
        """Take over an attempt that nobody watches any more, unless it is here already."""
        if message["id"] not in self._crew.jobs:
            self._crew.adopt(Job(message["id"], message["folder"]))

    def _kill(self, wire: Wire, message: Message, line: bytes) -> None:
        """Pass on the wish that an attempt ends."""
        job = self._crew.jobs.get(message["id"])
        if job is None:
            self._answer(wire, words.encode({"did": "unknown", "id": message["id"]}))
        else:
            self._crew.kill(job, line + b"\n")

    def _retire(self, *_: object) -> None:
        """Take nothing new, and end after the last attempt."""
        self._retired = True

    def _withdraw(self) -> None:
        """Let everybody go: they find another launcher, and the supervisors by what is on disk."""
        if self._listener.fileno() >= 0:
            self._poll.unregister(self._listener)
            self._listener.close()
        for wire in list(self._clients.values()):
            self._dismiss(wire)
        self._crew.shrink()

    def _say(self, line: bytes) -> None:
        """Tell everybody."""
        for wire in list(self._clients.values()):
            self._answer(wire, line)

    def _answer(self, wire: Wire, line: bytes) -> None:
        """Tell one client, at the end of this round."""
        wire.put(line)
        self._told = True

    def _flush(self) -> None:
        """Send what is to be told."""
        self._told = False
        for wire in list(self._clients.values()):
            if wire.clogged:
                wire.flush()
                if wire.clogged > CLOGGED_BYTES:
                    self._dismiss(wire)
                elif wire.clogged:
                    self._poll.modify(wire.fd, select.POLLIN | select.POLLOUT)

    def _unclog(self, wire: Wire | None) -> None:
        """Send what had to wait."""
        if wire is not None:
            wire.flush()
            if not wire.clogged:
                self._poll.modify(wire.fd, select.POLLIN)

    def _dismiss(self, wire: Wire) -> None:
        """Let a client go."""
        self._poll.unregister(wire.fd)
        del self._clients[wire.fd]
        if wire in self._greeted:
            self._greeted.remove(wire)
        wire.close()
