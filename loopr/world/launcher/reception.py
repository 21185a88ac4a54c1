"""The launcher's one thread: hears its engine and the supervisors, and ends when nobody needs it any more.

Whoever is at the other end of the line hears all news; a word about an attempt that is not here is answered by that,
and the engine looks into its folder. Once the engine is gone, or the launcher is told to end, the supervisors go on
with what they have in hand, and the launcher ends after its last attempt.

Knows lines and who says them. Must never know why an attempt runs, nor touch a loop, the journal or git.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable

from loopr.world.launcher import proc, words
from loopr.world.launcher.crew import Crew, Job
from loopr.world.launcher.wire import Wire
from loopr.world.launcher.words import Message

CLOGGED_BYTES = 64 << 20  # an engine that does not listen is let go: what it misses is on disk
NOT_UNDERSTOOD = (ValueError, KeyError, TypeError, RecursionError)


class Reception:
    """The state of the launcher."""

    def __init__(self, engine: Wire) -> None:
        """Take over the line to the engine."""
        self._engine = engine
        self._poll = select.poll()
        self._crew = Crew(self._poll, self._say)
        self._retired = False
        self._wake, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._retire)
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(engine.fd, select.POLLIN)
        self._asked: dict[str, Callable[[Message, bytes, bytes], None]] = {
            "run": self._run,
            "adopt": self._adopt,
            "kill": self._kill,
        }

    def serve(self) -> None:
        """Hear and do until the engine is gone and nothing is in hand."""
        self._say(words.encode({"did": "hello", "pid": os.getpid(), "start": proc.start_time(os.getpid())}))
        while self._is_needed():
            for descriptor, event in self._poll.poll(self._crew.patience_ms):
                self._attend(descriptor, event)
            self._crew.help_births()
            if (self._retired or self._engine.closed) and self._engine.fd >= 0:
                self._let_go()
        self._crew.shrink()

    def _is_needed(self) -> bool:
        """Send what is to be told; tell whether there is anybody to hear, or anything to do."""
        self._flush()
        return self._engine.fd >= 0 or bool(self._crew.jobs)

    def _attend(self, descriptor: int, event: int) -> None:
        """See to one descriptor that has something; it may have been closed by the one before it."""
        slot = self._crew.slots.get(descriptor)
        if event & select.POLLOUT:
            self._unclog(slot.wire if slot else self._engine)
        if not event & ~select.POLLOUT:
            return
        if slot is not None:
            self._crew.hear(slot)
        elif descriptor == self._engine.fd:
            self._hear()
        elif descriptor == self._wake:
            os.read(self._wake, 4096)
            self._crew.reap()

    def _hear(self) -> None:
        """Do what the engine says; what is not understood is answered, and does nothing."""
        for line in self._engine.lines():
            try:
                message, order = words.parts_of(line)
                self._asked[message["do"]](message, order, line + b"\n")
            except NOT_UNDERSTOOD as error:
                self._say(words.encode({"did": "not_understood", "why": repr(error)}))

    def _run(self, message: Message, order: bytes, line: bytes) -> None:
        """Start an attempt, unless it is here already."""
        job = _job(message, line)
        if not order:
            raise ValueError("an order without its second part")
        known = self._crew.jobs.get(job.id)
        if known is None:
            self._crew.run(job)
        elif known.began:
            self._say(known.began)

    def _adopt(self, message: Message, _order: bytes, _line: bytes) -> None:
        """Take over an attempt that nobody watches any more, unless it is here already."""
        job = _job(message)
        if job.id not in self._crew.jobs:
            self._crew.adopt(job)

    def _kill(self, message: Message, _order: bytes, line: bytes) -> None:
        """Pass on the wish that an attempt ends."""
        job = self._crew.jobs.get(message["id"])
        if job is None:
            self._say(words.encode({"did": "unknown", "id": message["id"]}))
        else:
            self._crew.kill(job, line)

    def _retire(self, *_: object) -> None:
        """Take nothing new, and end after the last attempt."""
        self._retired = True

    def _let_go(self) -> None:
        """Let the engine go: it finds the supervisors by what is on disk."""
        self._poll.unregister(self._engine.fd)
        self._engine.close()
        self._crew.shrink()

    def _say(self, line: bytes) -> None:
        """Tell the engine, at the end of this round."""
        if self._engine.fd >= 0:
            self._engine.put(line)

    def _flush(self) -> None:
        """Send what is to be told."""
        wire = self._engine
        if wire.clogged and wire.fd >= 0:
            wire.flush()
            if wire.clogged > CLOGGED_BYTES:
                self._let_go()
            elif wire.clogged:
                self._poll.modify(wire.fd, select.POLLIN | select.POLLOUT)

    def _unclog(self, wire: Wire) -> None:
        """Send what had to wait."""
        wire.flush()
        if not wire.clogged and wire.fd >= 0:
            self._poll.modify(wire.fd, select.POLLIN)


def _job(message: Message, line: bytes = b"") -> Job:
    """Make a job of what names one; `TypeError` if the names are none."""
    if not isinstance(message["id"], str) or not isinstance(message["folder"], str):
        raise TypeError("the names of an attempt are texts")
    return Job(message["id"], message["folder"], line)
