"""Copies what `.worktreeinclude` names from the user's checkout into a new worktree: files that git ignores.

Knows git's patterns. Must never copy what git would commit, nor what leads back into the checkout, nor
write outside the worktree.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from loopr.errors import Problem, SettingsError
from loopr.world.repo.calls import Door
from loopr.world.repo.ground import Ground
from loopr.world.repo.ties import Tie, ties_among

MOST_TOLD, _MOST_LINES = 5, 200
_LEAVE_IT = "leave it out there"


def copy_included(ground: Ground, place: Path) -> tuple[str, ...]:
    """Copy the ignored files that the include file names, and return their paths."""
    top, paths = ground.top, included(ground)
    if top is None:
        return ()
    if ties := [*islice(ties_among(top, paths), MOST_TOLD)]:
        made = "`loopr doctor` names the setting that makes it in each worktree"
        raise SettingsError("", problems=[refused(ground, each, made) for each in ties])
    return tuple(path for path in paths if _copy(top, place, path))


def refused(ground: Ground, tie: Tie, instead: str) -> Problem:
    """Say that a file is not copied, which line of the include file names it, and what to do."""
    line = next(_lines_naming(ground, tie.place), 0)
    where = f"{ground.include}:{line}" if line else ground.include
    return Problem(f"copies {tie.place}, {tie.why}", where, f"{_LEAVE_IT}; {instead}")


def _lines_naming(ground: Ground, path: str) -> Iterator[int]:
    """Give the numbers of the lines in the include file that name a path, or files below it."""
    if ground.top is None:
        return
    text = (ground.top / ground.include).read_text("utf-8", errors="replace")
    for number, line in enumerate(text.split("\n")[:_MOST_LINES], 1):
        if line.strip() and line[0] not in "#!":
            asked = "--others", "--ignored", f"--exclude={line.rstrip()}"
            if ground.users_door.run("ls-files", "-z", *asked, "--", f":(literal){path}").out:
                yield number


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
