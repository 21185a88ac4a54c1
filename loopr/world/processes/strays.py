"""What carries a workspace's mark and belongs to no attempt that anybody waits for, and what works in a folder.

Knows marks. Must never know attempts beyond their leases.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from loopr.world.launcher import proc, traces

ASKED_SECS, LOOK_SECS = 0.2, 0.01
ROUNDS = 10  # what forks faster than it is killed, or cannot be killed at all, is left for the next sweep


def sweep(workspace: str, spares: Callable[[str], bool]) -> int:
    """Kill what carries the mark of a workspace and no lease that is to be spared; return how many that were."""
    ended: set[tuple[int, int]] = set()
    for _ in range(ROUNDS):
        strays = {seen for seen, lease in traces.marked(workspace).items() if not spares(lease)}
        strays |= set(proc.descendants(*(seen.pid for seen in strays)).values())
        if not strays:
            break
        proc.kill_and_wait(strays)
        ended |= {(seen.pid, seen.start) for seen in strays}
    return len(ended)


def end_bearing(marks: Mapping[str, str]) -> None:
    """Kill what was started with these variables in its environment, with all below."""
    wanted = {name.encode(): os.fsencode(value) for name, value in marks.items()}
    for _ in range(ROUNDS):
        bearing = (pid for pid in proc.pids() if wanted.items() <= proc.environment(pid).items())
        strays = {seen for seen in map(proc.stat, bearing) if seen is not None and seen.lives}
        strays |= set(proc.descendants(*(seen.pid for seen in strays)).values())
        if not strays:
            return
        proc.kill_and_wait(strays)


def end_children() -> None:
    """End what this process has started, with all below: asked first, as git then unlocks."""
    deadline = time.monotonic() + ASKED_SECS
    asked: set[int] = set()
    while found := proc.descendants(os.getpid()):
        late = time.monotonic() >= deadline
        for seen in found.values():
            if late or seen.pid not in asked:
                proc.send(seen.pid, seen.start, signal.SIGKILL if late else signal.SIGTERM)
                proc.send(seen.pid, seen.start, signal.SIGCONT)
        if late:
            return
        asked |= found.keys()
        time.sleep(LOOK_SECS)


def living_in(folder: Path) -> str:
    """Say which process works in a folder, a person's shell too; nothing where none does, or none can be seen."""
    here = os.path.realpath(folder)
    with suppress(OSError):  # where there is no /proc
        for pid in proc.pids():
            at = proc.folder(pid)
            if at == here or at.startswith(f"{here}/"):
                return f"process {pid} works in it"
    return ""
