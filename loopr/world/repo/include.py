"""Copies what `.worktreeinclude` names from the user's checkout into a new worktree: files that git ignores.

Knows git's patterns. Must never copy what git would commit, nor write outside the worktree.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from loopr.world.repo.calls import Door
from loopr.world.repo.ground import Ground


def copy_included(ground: Ground, place: Path) -> tuple[str, ...]:
    """Copy the ignored files that the include file names, and return their paths."""
    top = ground.top
    return () if top is None else tuple(path for path in included(ground) if _copy(top, place, path))


def included(ground: Ground) -> list[str]:
    """List the files that both the include file and git's own lists of ignored files name."""
    if ground.top is None or not (ground.top / ground.include).is_file():
        return []
    door = ground.users_door
    named = door.run("ls-files", "-z", "--others", "--ignored", f"--exclude-from={ground.include}").parts
    return [path for path in ignored_among(door, named) if not ground.is_left_out(path)]


def ignored_among(door: Door, paths: Sequence[str]) -> list[str]:
    """Return which of these paths git ignores."""
    if not paths:
        return []
    return door.ask("check-ignore", "-z", "--stdin", stdin=b"".join(os.fsencode(each) + b"\0" for each in paths)).parts


def _copy(top: Path, place: Path, path: str) -> bool:
    """Copy one file; a link stays a link, and nothing is written through one."""
    source, target = top / path, place / path
    if source.is_dir() and not source.is_symlink():  # another repository
        return False
    if not target.parent.resolve().is_relative_to(place.resolve()) or os.path.lexists(target):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)
    return True
