"""What the kernel tells about processes: /proc, pidfds, and being the one who inherits orphans.

Knows Linux. Must never know attempts.
"""

# what is forked for every slot does without pathlib
# ruff: noqa: PTH110, PTH115, PTH116, PTH123, PTH208

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

PR_SET_DUMPABLE, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 4, 15, 36
KILL_SECS = 1.0


class Stat(NamedTuple):
    """One process at one moment; `start` in ticks since boot tells it from another that had its pid."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    terminal: int
    threads: int
    start: int

    @property
    def lives(self) -> bool:
        """Whether it is more than an entry that waits to be reaped; a first thread may end before the others."""
        return self.state not in "ZX" or self.threads > 1


def become_subreaper() -> None:
    """Inherit the orphans among our descendants, instead of init."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def become_private() -> None:
    """Keep our memory and descriptors from other processes of the same user, those of root excepted.

    Where the system shows nobody the processes of others, a private one is hidden from our own engine too: not there.
    """
    if stat(1) is not None:
        _prctl(PR_SET_DUMPABLE, 0)


def call_ourselves(name: str) -> None:
    """Have our process shown by a name of at most 15 bytes."""
    _prctl(PR_SET_NAME, name.encode())


def _prctl(option: int, value: int | bytes) -> None:
    """Set something of our own process."""
    import ctypes

    if _libc().prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"this kernel refuses prctl {option}")


@cache
def _libc() -> Any:
    """Return the C library of this process."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def boot_id() -> str:
    """Return what tells one start of this machine from the next, empty where the system does not say."""
    return read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def read(path: str, most: int = 0) -> bytes:
    """Read a file of the kernel's, or at most so much of it; nothing if it is gone or not ours to read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if most:
            return os.read(descriptor, most)
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def stat(pid: int) -> Stat | None:
    """Look at a process, None if there is none."""
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < 20:
        return None
    state, (parent, group, session, terminal) = fields[0].decode(), map(int, fields[1:5])
    return Stat(pid, state, parent, group, session, terminal, int(fields[17]), int(fields[19]))


def start_time(pid: int) -> int:
    """Return when a process started, in ticks since boot; 0 where it is gone."""
    fields = read(f"/proc/{pid}/stat", 1 << 12).rpartition(b")")[2].split(None, 20)
    return int(fields[19]) if len(fields) > 19 else 0


def pids() -> list[int]:
    """Return every process that we can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid: int) -> list[int]:
    """Return the children of a process; each of its threads has its own."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        found: list[int] = []
        for thread in threads:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except FileNotFoundError:
        if not os.path.exists("/proc/self/task") or os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
            return []  # it went away meanwhile
        return [other for other in pids() if (seen := stat(other)) and seen.parent == pid]  # a kernel without the file
    except OSError:
        return []
    return found


def descendants(*roots: int) -> dict[int, Stat]:
    """Return all that live below some processes, without these."""
    found: dict[int, Stat] = {}
    ahead = list(roots)
    while ahead:
        for child in children(ahead.pop()):
            seen = stat(child) if child not in found else None
            if seen is not None and seen.lives:
                found[child] = seen
                ahead.append(child)
    return found


def environment(pid: int) -> dict[bytes, bytes]:
    """Return the environment that a process was started with; empty if it is not ours to read."""
    pairs = (entry.partition(b"=") for entry in read(f"/proc/{pid}/environ").split(b"\0") if entry)
    return {name: value for name, _, value in pairs}


def open_files(pid: int) -> list[tuple[int, str]]:
    """Return the descriptors of a process with what each points to; none if it is not ours to look at."""
    found: list[tuple[int, str]] = []
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.append((int(name), os.readlink(f"/proc/{pid}/fd/{name}")))
    return found


def folder(pid: int) -> str:
    """Return where a process works, empty if it is not ours to look at."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def name_of(pid: int) -> str:
    """Return what a process calls itself, empty where it is gone."""
    return read(f"/proc/{pid}/comm", 64).decode(errors="replace").rstrip("\n")


def owner(pid: int) -> int:
    """Return whose process it is, -1 where it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


def grasp(pid: int, start: int) -> int | None:
    """Open a pidfd of exactly the process that started then; None if it is gone or waits to be reaped.

    The comparison comes after the opening: only then can the pid not change hands in between.
    """
    if pid <= 0:
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    found = stat(pid)
    if found is not None and found.lives and found.start == start:
        return descriptor
    os.close(descriptor)
    return None


def is_alive(pid: int, start: int) -> bool:
    """Tell whether exactly the process that started then lives."""
    found = grasp(pid, start)
    if found is not None:
        os.close(found)
    return found is not None


def send(pid: int, start: int, number: int) -> None:
    """Send a signal to exactly the process that started then."""
    descriptor = grasp(pid, start)
    if descriptor is not None:
        with suppress(OSError):
            signal.pidfd_send_signal(descriptor, number)
        os.close(descriptor)


def rouse(pid: int, start: int) -> bool:
    """Let exactly the process that started then go on, if somebody has stopped it; tell whether that was so."""
    seen = stat(pid) if pid > 0 else None
    stopped = seen is not None and seen.start == start and seen.state in "Tt"
    if stopped:
        send(pid, start, signal.SIGCONT)
    return stopped


def kill_and_wait(processes: Iterable[Stat]) -> None:
    """Kill processes that are nobody's to reap but init's, and wait a moment for their ends."""
    poll = select.poll()
    grasped = [found for seen in processes if (found := grasp(seen.pid, seen.start)) is not None]
    for descriptor in grasped:
        with suppress(OSError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + KILL_SECS
    waiting = set(grasped)
    while waiting and (left := deadline - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left * 1000):
            poll.unregister(descriptor)
            waiting.discard(descriptor)
    for descriptor in grasped:
        os.close(descriptor)
