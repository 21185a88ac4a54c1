"""The line to the launcher: found where one runs, made by starting one where none does.

Knows the socket, and how the launcher is started. Must never know what is said over it, beyond the greeting, nor when
another try makes sense; the pause before it is here.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import loopr
from loopr.errors import WorldError
from loopr.world.launcher import words
from loopr.world.launcher.wire import Wire

HELLO_SECS = 5.0  # one that does not answer is stuck, and another takes its place
READY_SECS = 30.0
STARTS = 3  # somebody may kill one before it speaks
LOG = "launcher.log"
LOG_BYTES = 1 << 20
BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from loopr.world.launcher.__main__ import main; main(sys.argv[2], float(sys.argv[3]))"
)
KEPT = ("LD_LIBRARY_PATH", "PATH")  # what an interpreter may need; no secret stays in the launcher's environment


class Link:
    """A line to a launcher that has said hello."""

    def __init__(self, wire: Wire, pid: int, live: set[str]) -> None:
        """Take over the line; `live` are the attempts that the launcher had in hand at the hello."""
        self.wire, self.pid, self.live = wire, pid, live

    @classmethod
    def find(cls, state: Path) -> Link | None:
        """Connect to the launcher of a state folder, None where none answers."""
        connection = _connected(state)
        if connection is None:
            return None
        wire = Wire(connection.detach())
        hello = _greeted(wire)
        if hello and hello.get("proto") == words.PROTO and hello.get("version") == loopr.__version__:
            return cls(wire, int(hello["pid"]), set(hello["live"]))
        if hello:  # one of another version ends what it has, and its attempts are found on disk
            wire.send(words.encode({"do": "retire"}))
        wire.close()
        return None

    @classmethod
    def make(cls, state: Path, linger_secs: float) -> Link:
        """Start a launcher and connect to it; takes the place of one that does not answer."""
        with _log(state) as log:
            for _ in range(STARTS):
                if _start(state, linger_secs, log) and (link := cls.find(state)) is not None:
                    return link
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


def _connected(state: Path) -> socket.socket | None:
    """Connect by way of a descriptor of the folder: a path of a socket has 107 bytes at most."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(HELLO_SECS)
    try:
        folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            connection.connect(f"/proc/self/fd/{folder}/{words.SOCKET}")
        finally:
            os.close(folder)
    except OSError:
        connection.close()
        return None
    return connection


def _greeted(wire: Wire) -> words.Message | None:
    """Say hello and hear it, None if nothing sensible comes back in time."""
    wire.send(words.encode({"do": "hello", "proto": words.PROTO, "version": loopr.__version__}))
    deadline = time.monotonic() + HELLO_SECS
    while not wire.closed and wire.wait(max(0, int((deadline - time.monotonic()) * 1000))):
        for line in wire.lines():
            with contextlib.suppress(ValueError):
                said = words.decode(line)
                if said.get("did") == "hello":
                    return said
    return None


@contextlib.contextmanager
def _log(state: Path) -> Iterator[int]:
    """Open the file that the launcher's own troubles go to; it begins anew when it has grown."""
    path = state / LOG
    try:
        full = path.exists() and path.stat().st_size > LOG_BYTES
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (os.O_TRUNC if full else 0)
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        raise WorldError(f"{path} cannot be written: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _start(state: Path, linger_secs: float, log: int) -> bool:
    """Start a launcher; True once it listens, False if it ended before."""
    root = Path(loopr.__file__).parent.parent
    argv = [sys.executable, "-I", "-S", "-c", BOOT, str(root), str(state), str(linger_secs)]
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    ready, says = os.pipe2(os.O_CLOEXEC)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, says, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    try:
        pid = os.posix_spawn(sys.executable, argv, env, file_actions=actions, setsid=True, setsigmask=())
        os.close(says)
        says = -1
        found, _, _ = select.select([ready], [], [], READY_SECS)
        said = os.read(ready, 64) if found else b""
        if found:
            os.waitpid(pid, 0)  # it forked, and ended at once
    except OSError as error:
        raise WorldError(f"the launcher cannot be started: {error.strerror}") from error
    finally:
        os.close(ready)
        if says >= 0:
            os.close(says)
    return said == b"ready\n"
