"""The engine lock: whoever holds it, and nobody else, touches the workspace.

It is a `flock` on a file that is never deleted. It dies with its owner, so that nobody ever clears it by hand; what
stands in the file is there for the message only. A holder is an `engine`, or a command that needs one `turn` of it.

Knows processes and one file. Must never know the journal, loops, or what the holder does.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypedDict

from loopr.errors import EngineHeld, SettingsError

Kind = Literal["engine", "turn"]

END_AT_ONCE = signal.SIGUSR1
WAIT_TURN_SECS = 60.0
TICK_SECS = 0.02
BODY_SECS = 0.5  # how long a new holder may take until it has written who it is
BODY_BYTES = 4096


class Holder(TypedDict):
    """Who holds the lock, as it says itself; `since` is in milliseconds UTC, `start_time` in ticks of the kernel.

    What nobody knows of it is 0 or empty. An engine that `stays` does not end when all has settled.
    """

    kind: Kind
    pid: int
    host: str
    boot_id: str
    start_time: int
    since: int
    stays: bool


class EngineLock:
    """The lock while it is held; `acquire` is the way to get one, a `with` block the way to give it back."""

    def __init__(self, descriptor: int, kind: Kind) -> None:
        """Take over a descriptor whose lock is held."""
        self.kind = kind
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path, kind: Kind, wait_turn_secs: float = WAIT_TURN_SECS, *, stays: bool = False) -> Self:
        """Take the lock; wait for a turn to end; `EngineHeld` where an engine holds it, or a turn for too long."""
        descriptor = _opened(path, os.O_RDWR | os.O_CREAT)
        try:
            _wait_for(descriptor, path, wait_turn_secs)
            _write_body(descriptor, kind, stays)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, kind)

    def release(self) -> None:
        """Give the lock back; once is enough."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a forked copy of the descriptor must not keep it
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Return the lock itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Give the lock back."""
        self.release()


def holder(path: Path) -> Holder | None:
    """Tell who holds the lock, None if nobody does; takes nothing and changes nothing."""
    if not path.exists():
        return None
    descriptor = _opened(path, os.O_RDONLY)
    try:
        return _holder_of(descriptor, path)
    finally:
        os.close(descriptor)


def end_at_once(found: Holder) -> bool:
    """Ask a holder to end at once, and wake it if it is stopped; False if it cannot be asked."""
    if not found["pid"] or found["host"] != os.uname().nodename:
        return False
    with suppress(OSError):
        descriptor = os.pidfd_open(found["pid"])
        try:
            if _may_live(found):  # looked at once the pid can be nobody else's
                signal.pidfd_send_signal(descriptor, END_AT_ONCE)
                signal.pidfd_send_signal(descriptor, signal.SIGCONT)
                return True
        finally:
            os.close(descriptor)
    return False


def _opened(path: Path, flags: int) -> int:
    """Open the file so that no command we start inherits it."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise _refused(path, error) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    hint = "move it away: a file of that name belongs there"
    raise SettingsError("is no file, and the engine's lock belongs there", where=str(path), hint=hint)


def _wait_for(descriptor: int, path: Path, wait_turn_secs: float) -> None:
    """Return with the lock held, or raise who is in the way."""
    deadline = time.monotonic() + wait_turn_secs
    while not _try_lock(descriptor, fcntl.LOCK_EX, path):
        found = _holder_of(descriptor, path)
        # None: someone only looked who holds it, which takes microseconds
        if found and (found["kind"] == "engine" or time.monotonic() >= deadline):
            raise _held(found, wait_turn_secs)
        time.sleep(TICK_SECS)


def _try_lock(descriptor: int, operation: int, path: Path) -> bool:
    """Try to lock without waiting."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise _refused(path, error) from error
    return True


def _holder_of(descriptor: int, path: Path) -> Holder | None:
    """Tell who holds the lock: a shared one is refused only where there is a real holder, so that a body may be old.

    A holder that died left its body, and a new one holds the lock before it has written its own: until the body can
    be that of the holder, or is long due, it is read again.
    """
    deadline = time.monotonic() + BODY_SECS
    while not _try_lock(descriptor, fcntl.LOCK_SH, path):
        found = _body(descriptor)
        if found and (_may_live(found) or time.monotonic() >= deadline):
            return found
        if time.monotonic() >= deadline:
            return _nameless(descriptor)
        time.sleep(TICK_SECS)
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return None


def _body(descriptor: int) -> Holder | None:
    """Read what the holder says of itself, None if it is not all there."""
    try:
        said = json.loads(os.pread(descriptor, BODY_BYTES, 0))
        return Holder(
            kind="engine" if said["kind"] == "engine" else "turn",
            pid=int(said["pid"]),
            host=str(said["host"]),
            boot_id=str(said["boot_id"]),
            start_time=int(said["start_time"]),
            since=int(said["since"]),
            stays=bool(said.get("stays")),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _nameless(descriptor: int) -> Holder:
    """Describe a holder whose body makes no sense: the system may know which process it is."""
    pid = _locker(os.fstat(descriptor))
    if not pid:
        return Holder(kind="engine", pid=0, host="", boot_id="", start_time=0, since=0, stays=False)
    host, boot, start = os.uname().nodename, _boot_id(), _start_time(pid)
    return Holder(kind="engine", pid=pid, host=host, boot_id=boot, start_time=start, since=0, stays=False)


def _locker(status: os.stat_result) -> int:
    """Ask the system which process has locked a file, 0 where it does not say."""
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError, ValueError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()  # 1: FLOCK  ADVISORY  WRITE 7879 fe:00:15343618 0 EOF
            if words[1:2] == ["FLOCK"] and words[3:6:2] == ["WRITE", device]:
                return int(words[4])
    return 0


def _write_body(descriptor: int, kind: Kind, stays: bool) -> None:
    """Say who holds the lock, for the message only: a full disk is no reason not to hold it."""
    body = Holder(
        kind=kind,
        pid=os.getpid(),
        host=os.uname().nodename,
        boot_id=_boot_id(),
        start_time=_start_time(os.getpid()),
        since=time.time_ns() // 1_000_000,
        stays=stays,
    )
    text = json.dumps(body).encode() + b"\n"
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text, 0)


def _may_live(found: Holder) -> bool:
    """Tell whether the process in the body may still be there; of another host we know nothing."""
    if found["host"] != os.uname().nodename:
        return True
    return found["boot_id"] == _boot_id() and found["start_time"] == _start_time(found["pid"])


def _boot_id() -> str:
    """Return what tells one start of this machine from the next, empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _start_time(pid: int) -> int:
    """Return when a process started, in ticks since boot; 0 where it is gone or the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[19])


def _held(found: Holder, waited_secs: float) -> EngineHeld:
    """Name the holder, and what to do about it."""
    begun = datetime.fromtimestamp(found["since"] / 1000, UTC)
    since = f", since {begun:%Y-%m-%dT%H:%M:%SZ}"
    named = f"pid {found['pid']} on {found['host']}{since if found['since'] else ''}"
    who = named if found["pid"] else "it has not said who it is"
    if found["kind"] == "engine":
        return EngineHeld(
            f"an engine runs in this workspace already: {who}",
            hint="`loopr status` shows what it does, `loopr stop` ends it",
        )
    return EngineHeld(
        f"another command has kept the workspace busy for {waited_secs:g} s: {who}",
        hint="try again, or end that process if it hangs",
    )


def _refused(path: Path, error: OSError) -> SettingsError:
    """Say why the file cannot be locked."""
    return SettingsError(
        f"the engine lock cannot be used: {error.strerror}",
        where=str(path),
        hint="loopr needs a local file system that it may write to, with locks that work",
    )
