"""Where attempts have worked, and what is to be done where whoever worked there may be there still.

The engine knows when its own commands have ended. A pull worker only says so: a folder that it has not given back is
never given to anybody else. Knows run folders and worktrees. Must never know a lease, nor when one is over.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.branches import head_of
from loopr.world.repo.ground import HEADS, Ground
from loopr.world.repo.refs import commit_of
from loopr.world.repo.returning import set_aside
from loopr.world.repo.slots import load, opened, slot_of
from loopr.world.runs import Runs

HOLDER, ENDED = "holder", "ended"
_LATEST = 1 << 62


class Site(NamedTuple):
    """Where one attempt works or has worked; `holder` is the pull worker that it was for, if it was for one."""

    attempt: int
    folder: Path
    holder: str
    ended: bool

    @property
    def is_deserted(self) -> bool:
        """True where a pull worker has never said that it is done: for whoever comes after it."""
        return bool(self.holder) and not self.ended


def site_of(runs: Runs, name: str, attempt: int) -> Site | None:
    """Return where an attempt works, None if it was never given a place."""
    said, folder = runs.circumstances(name, attempt), runs.place_of(name, attempt)
    return Site(attempt, folder, said.get(HOLDER, ""), ENDED in said) if folder is not None else None


def last_site(runs: Runs, name: str, before: int = _LATEST) -> Site | None:
    """Return where the newest attempt of a generation worked, of those before one."""
    made = runs.attempts(name) if before > 1 else []
    numbers = (number for number in reversed(made) if number < before)
    return next((site for number in numbers if (site := site_of(runs, name, number)) is not None), None)


def note_ended(runs: Runs, name: str, attempt: int) -> None:
    """Write down that a pull worker has said that it is done."""
    runs.note_circumstances(name, attempt, **runs.circumstances(name, attempt) | {ENDED: "yes"})


def set_deserted_aside(runs: Runs, ground: Ground, name: str, before: int = _LATEST) -> None:
    """Leave a worktree to the pull worker that may still be in it, on a branch of its own; twice is once."""
    site, slot = last_site(runs, name, before), slot_of(ground, name)
    if site is not None and site.is_deserted and slot is not None and slot.place(ground) == site.folder:
        set_aside(ground, name, f"{site.holder} has not given it back")


def whereabouts(runs: Runs, ground: Ground | None, name: str, attempt: int) -> tuple[str, Path | None]:
    """Say what has become of what an attempt left: in words, and the folder that they speak of."""
    site, last = site_of(runs, name, attempt), last_site(runs, name)
    if site is None or last is None or not site.folder.is_dir():
        return "", None
    if last.attempt > attempt and last.folder == site.folder:
        return f"try {last.attempt} goes on with what it left in", site.folder
    slots = load(ground).values() if ground is not None else ()
    slot = next((each for each in slots if ground is not None and each.place(ground) == site.folder), None)
    if slot is None or ground is None:
        return "what it left is kept in", site.folder
    with opened(ground, slot, mend=False) as at:
        branch, commit = head_of(at.admin).removeprefix(HEADS), commit_of(at.door, "HEAD")
    return f"what it left is kept: branch {branch} at {commit[:12]}, in", site.folder


def plain_name(runs: Runs, worktrees: Path, name: str, before: int) -> str:
    """Return what the plain folder of an attempt is called: that of the last one, unless somebody may be in it."""
    site = last_site(runs, name, before)
    if site is None or site.folder.parent != worktrees:
        return name
    if not site.is_deserted:
        return site.folder.name
    count = 2
    while os.path.lexists(worktrees / f"{name}~{count}"):
        count += 1
    return f"{name}~{count}"
