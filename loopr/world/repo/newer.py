"""The times of files in a worktree, such that make and its like take no old product for a new one.

A checkout gives all files the time at which git came to them. So files that have landed, or have
changed since a loop last landed, are made newer than all others, and files that are put back as
they were are made older. Must never know a loop, nor change the contents of a file.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import is_there
from loopr.world.repo.refs import merge_base
from loopr.world.repo.scanning import NOTHING, changed_entries

AFTER_NS, APART_NS = 10_000_000, 1_000
MOST_COMMITS = 200  # of a plan: what is older than these was there before most of its worktrees


def make_newer(ground: Ground, folder: Path, since: str, tip: str) -> None:
    """Give the files that are others than in a commit the time of now; nothing where that commit is gone."""
    if since == tip or not is_there(ground, since):
        return
    for each in changed_entries(ground.door, since, tip):
        if each.mode != NOTHING:
            with suppress(FileNotFoundError, NotADirectoryError):  # a sparse checkout has not all of them
                os.utime(folder / each.path, follow_symlinks=False)


def make_landed_newer(ground: Ground, folder: Path, base: str, tip: str) -> None:
    """Make the files that a plan has landed newer than all others, the latest one the newest."""
    if not base or base == tip:
        return
    words = ("log", "--first-parent", "-m", "--format=", "--name-only", "-z", f"-{MOST_COMMITS}")
    landed = list(dict.fromkeys(ground.door.ask(*words, f"{base}..{tip}").parts))[::-1]
    now = time.time_ns()
    for number, path in enumerate(landed, 1):
        at = now + number * APART_NS
        with suppress(OSError):  # it is gone by now, or a sparse checkout has not all of them
            os.utime(folder / path, ns=(at, at), follow_symlinks=False)


def make_oldest(ground: Ground, folder: Path, made: str, stands: str) -> None:
    """Make the files that a loop had made and that were taken back older than all others.

    Others get a later time, and none an earlier one: products of the taken back are made anew.
    """
    door = ground.door
    own = {each.path for each in changed_entries(door, merge_base(door, made, stands), made)}
    times = [file.lstat().st_mtime_ns for each in own if (file := folder / each).exists()]
    after = max(times, default=time.time_ns()) + AFTER_NS
    for path in door.run("ls-tree", "-r", "-z", "--name-only", stands).parts:
        if path not in own:
            with suppress(OSError):
                os.utime(folder / path, ns=(after, after), follow_symlinks=False)
