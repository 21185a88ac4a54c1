"""Wakes supervisors and launchers that somebody has stopped: only they can end what they watch.

Knows run folders. Must never know why an attempt is to end.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from pathlib import Path

from loopr.world.launcher import proc
from loopr.world.processes.stopped import STATE, watchers


def wake(folders: Iterable[Path]) -> None:
    """Let those go on who watch some runs, and who launched them, if they were stopped."""
    for folder in folders:
        for seen, _ in watchers(folder):
            if seen.state == STATE:
                proc.send(seen.pid, seen.start, signal.SIGCONT)
