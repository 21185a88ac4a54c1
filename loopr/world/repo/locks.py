"""Locks that die with their owner, and the lock files of git's that outlived theirs.

One `flock` for each common git directory stands around every change of what its worktrees share; one for each worktree
around what is done to its files. Both are handed to the git that runs under them, so that a git which outlives us still
keeps the next engine waiting. Must never know what is done under a lock.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from loopr.errors import Problem

STALE_SECS = 30.0
_FOREIGN = re.compile(
    r"Unable to create '(?P<lock>.+?\.lock)': File exists"
    r"|could not lock config file (?P<config>.+?): File exists"
)
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Hold the lock of this file, and give its descriptor for those who shall keep it."""
    try:
        descriptor = os.open(path, _OPEN, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, _OPEN, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)  # not unlocked: a git that still runs under it has a copy


def foreign_lock(said: str) -> Problem | None:
    """Read from what git says which lock file of another git kept it waiting; None if none did.

    It says since when the file is there, not how old it is: the words stay the same.
    """
    found = _FOREIGN.search(said)
    if found is None:
        return None
    path, since = Path(found["lock"] or f"{found['config']}.lock"), ""
    with suppress(OSError):  # it may be gone by now
        at = datetime.fromtimestamp(path.lstat().st_mtime, UTC)
        since = f" (there since {at:%Y-%m-%dT%H:%M:%S}Z)"
    hint = f"if no git is at work there: `rm {shlex.quote(str(path))}`"
    return Problem(f"is held by another git{since}: loopr waits for it", str(path), hint)


def remove_stale(folders: list[Path], older_secs: float = STALE_SECS) -> list[Path]:
    """Remove the lock files below these folders that nobody can still hold, and name them."""
    limit = time.time() - older_secs
    found: list[Path] = []
    for folder in folders:
        for path in folder.rglob("*.lock") if folder.is_dir() else ():
            with suppress(OSError):
                if path.lstat().st_mtime < limit and path.is_file():
                    path.unlink()
                    found.append(path)
    return found
