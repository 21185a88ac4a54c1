"""Which processes of a workspace somebody has stopped (SIGSTOP): what they watch does not end.

Knows marks and run folders. Must never know why an attempt runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from loopr.world.launcher import proc, words
from loopr.world.launcher.words import LEASE_MARK, WORKSPACE_MARK

STATE = "T"
MOST_ABOVE = 64


class Stopped(NamedTuple):
    """A process that is stopped, and what it is."""

    pid: int
    what: str


def watchers(folder: Path) -> Iterator[tuple[proc.Stat, str]]:
    """Give the supervisor of a run and the launcher above it, with what each is."""
    run = words.read_run(str(folder))
    if run is None or run.boot_id != proc.boot_id():
        return
    watcher = proc.stat(run.supervisor)
    if watcher is None or watcher.start != run.supervisor_start:
        return
    yield watcher, f"the supervisor of {run.lease or run.id}"
    above = proc.stat(run.launcher) if watcher.parent == run.launcher else None
    if above is not None:
        yield above, "the launcher"


def stopped(workspace: str, folders: Iterable[Path]) -> list[Stopped]:
    """Name the stopped processes of a workspace; `folders` are those of the runs that live."""
    known = {seen.pid: what for folder in folders for seen, what in watchers(folder)}
    found: list[Stopped] = []
    for pid in proc.pids():
        seen = proc.stat(pid)
        if seen is not None and seen.state == STATE:
            what = known.get(pid) or _command(workspace, seen, known)
            if what:
                found.append(Stopped(pid, what))
    return found


def is_stopped(pid: int) -> bool:
    """Say whether somebody has stopped a process."""
    seen = proc.stat(pid)
    return seen is not None and seen.state == STATE


def _command(workspace: str, seen: proc.Stat, known: dict[int, str]) -> str:
    """Say whose command a process is part of, by its mark or one above it; nothing if none's."""
    above: proc.Stat | None = seen
    for _ in range(MOST_ABOVE):
        if above is None or above.pid in known:
            break
        names = proc.environment(above.pid)
        if names.get(WORKSPACE_MARK.encode()) == os.fsencode(workspace):
            return f"a process of {os.fsdecode(names.get(LEASE_MARK.encode(), b'this workspace'))}"
        above = proc.stat(above.parent)
    return f"a process below {known[above.pid]}" if above is not None and above.pid in known else ""
