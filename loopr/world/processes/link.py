"""The line to the launcher: made by starting one, and gone with it.

Both ends are inherited, and neither has a name: no other process can speak to a launcher, and no second engine either.
Knows how the launcher is started. Must never know what is said over the line, beyond the greeting, nor when another try
makes sense; the pause before it is here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import loopr
from loopr.errors import WorldError
from loopr.world.launcher import proc, words
from loopr.world.launcher.wire import Wire

LOOK_MS, READY_LOOKS = 1_000, 30
STARTS = 3  # somebody may kill one before it speaks
LOG = "launcher.log"
LOG_BYTES = 1 << 20
BOOT = "import sys; sys.path.append(sys.argv[1]); from loopr.world.launcher.__main__ import main; main()"
KEPT = ("LD_LIBRARY_PATH", "PATH")  # what an interpreter may need; no secret stays in the launcher's environment


class Link:
    """A line to a launcher that has said hello."""

    def __init__(self, wire: Wire, pid: int, start: int) -> None:
        """Take over the line to the process that started then."""
        self.wire, self.pid, self.start = wire, pid, start

    @classmethod
    def make(cls, state: Path) -> Link:
        """Start a launcher, and hear its greeting."""
        with _log(state) as log:
            for _ in range(STARTS):
                wire = _started(state, log)
                for line in wire.lines():
                    hello = words.decode(line)
                    return cls(wire, hello["pid"], hello["start"])
                wire.close()
        raise WorldError("the launcher does not start", hint=f"see {state / LOG}")


class Rest:
    """A pause between two tries that ends by itself, and rings a bell then, so that a selector can wait for it."""

    def __init__(self, bell: int, secs: float) -> None:
        """Name the eventfd that is rung, which stays open until `close`; nothing begins yet."""
        self._bell, self._secs = bell, secs
        self._timer: threading.Timer | None = None
        self.lasts = False

    def begin(self) -> None:
        """Begin a pause; one that lasts goes on."""
        if not self.lasts:
            self.lasts = True
            self._timer = threading.Timer(self._secs, self._end)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """See that no bell is rung any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def _end(self) -> None:
        """End the pause, on a thread of its own."""
        self.lasts = False
        os.eventfd_write(self._bell, 1)


@contextlib.contextmanager
def _log(state: Path) -> Iterator[int]:
    """Open the file that the launcher's own troubles go to; it begins anew when it has grown."""
    path = state / LOG
    try:
        full = path.exists() and path.stat().st_size > LOG_BYTES
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (os.O_TRUNC if full else 0)
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise WorldError(f"{path} cannot be written: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _started(state: Path, log: int) -> Wire:
    """Start a launcher, and return our end of the line to it once it has something to say, or has ended."""
    root = Path(loopr.__file__).parent.parent
    argv = [sys.executable, "-I", "-S", "-c", BOOT, str(root), str(state)]
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    try:
        ours, theirs = socket.socketpair()
        wire = Wire(ours.detach())
        with theirs:
            actions = [
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ]
            pid = os.posix_spawn(sys.executable, argv, env, file_actions=actions, setsid=True, setsigmask=())
    except OSError as error:
        raise WorldError(f"the launcher cannot be started: {error.strerror}") from error
    for _ in range(READY_LOOKS):
        if wire.wait(LOOK_MS):
            break
        for each in _begun(pid):
            proc.rouse(each.pid, each.start)
    else:
        for each in _begun(pid):
            proc.send(each.pid, each.start, signal.SIGKILL)
    os.waitpid(pid, 0)  # it has forked, and ended at once
    return wire


def _begun(leader: int) -> list[proc.Stat]:
    """List the processes that began with an unreaped one of ours: they are a session of their own."""
    seen = map(proc.stat, proc.pids())
    return [each for each in seen if each is not None and each.session == leader]
