"""What carries a workspace's mark and belongs to no attempt that anybody waits for, and what works in a folder.

Knows marks. Must never know attempts beyond their leases.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from loopr.world.launcher import proc, traces

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


def living_in(folder: Path) -> str:
    """Say which process works in a folder, a person's shell too; nothing where none does, or none can be seen."""
    here = os.path.realpath(folder)
    with suppress(OSError):  # where there is no /proc
        for pid in proc.pids():
            at = proc.folder(pid)
            if at == here or at.startswith(f"{here}/"):
                return f"process {pid} works in it"
    return ""
