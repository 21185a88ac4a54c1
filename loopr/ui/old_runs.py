"""Run folders that are older than they are kept, and what an older loopr has left beside them.

Must never know whether a loop is over, nor touch what is in use.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

from loopr import wiring
from loopr.ui.logs import outcome_of
from loopr.ui.remains import Item
from loopr.world.runs import Runs

HOOKS = "hooks"  # their runs lie beside those of loops
VERDICTS = "verdicts"
DAY_MS = 86_400_000


def old_runs(state: Path, names: Set[str], keep_days: float) -> Iterator[Item]:
    """List the run folders of what is over, once nothing in them is younger than they are kept."""
    runs = Runs(state)
    limit_ns = (wiring.wall_clock() - int(keep_days * DAY_MS)) * 1_000_000
    why = f"older than logs.keep_days ({keep_days:g})"
    for name in sorted(each.name for each in runs.root.iterdir()) if runs.root.is_dir() else ():
        for attempt in runs.attempts(name) if name not in names else ():
            folder = runs.folder(name, attempt)
            parts = sorted(folder.iterdir()) if name == HOOKS else [folder]
            for each in parts:
                if each.is_dir() and not each.is_symlink() and _newest(each) < limit_ns and _is_ended(each, name):
                    yield Item("run", each.relative_to(runs.root).as_posix(), str(each), True, why)
    if (state / VERDICTS).is_dir():
        why = "an older loopr kept what judges said there; it is believed no more"
        yield Item("run", VERDICTS, str(state / VERDICTS), True, why)


def _is_ended(folder: Path, name: str) -> bool:
    """Say whether a run has ended; of a loop that is over every run has."""
    return name != HOOKS or outcome_of(folder) is not None


def _newest(folder: Path) -> int:
    """Return when anything in a folder was last changed, in nanoseconds."""
    times = [folder.lstat().st_mtime_ns]
    for root, _, files in os.walk(folder):
        times += [Path(root, each).lstat().st_mtime_ns for each in files]
    return max(times)


def remove_run(folder: Path) -> None:
    """Remove a run folder, and the one around it if that is empty then."""
    shutil.rmtree(folder)
    with suppress(OSError):
        folder.parent.rmdir()
