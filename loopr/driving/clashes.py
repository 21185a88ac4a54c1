"""A conflict in a loop's worktree: laid out for a try, and whether that has mended any of it.

A try that leaves it just as it was has a command that mends none, as a script that knows its own
change only: the next try begins at the plan's tip, without it. Must never move a branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from loopr.driving.guarding import protect_of
from loopr.driving.kit import Kit, Task
from loopr.errors import Problem
from loopr.world.repo.checkouts import read_whole
from loopr.world.repo.conflicts import lay_clash
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import Onto, build_candidate
from loopr.world.repo.named import text_at
from loopr.world.repo.words import Clash, LaidClash

_FILES, _MARKERS = "conflicted", "markers"
_MARKER = re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE)


class Clashing(NamedTuple):
    """The files that have markers of a conflict, and the number of these markers."""

    files: tuple[str, ...] = ()
    markers: int = 0

    @property
    def noted(self) -> dict[str, str]:
        """Return it as circumstances of the try that it is given to."""
        return {_FILES: "\0".join(self.files), _MARKERS: str(self.markers)} if self.files else {}


NO_CLASH = Clashing()


class Left(NamedTuple):
    """The conflict that earlier tries have left; `untouched` if the last one mended none of it."""

    clashing: Clashing
    untouched: bool = False


NOTHING_LEFT = Left(NO_CLASH)


def found_now(kit: Kit, task: Task, ground: Ground) -> Clash | None:
    """Return the conflict of a loop that had one with the plan as it stands, None where both fit."""
    if not task.loop.clash.paths:
        return None
    onto = Onto(task.loop.plan, task.tip)
    made = build_candidate(ground, task.name, onto, task.attempt - 1, protect_of(kit, task, ground))
    return made if isinstance(made, Clash) else None


def lay_out(kit: Kit, task: Task, ground: Ground, clash: Clash) -> LaidClash:
    """Lay a conflict into the worktree, once, and have the try told of it."""
    laid = lay_clash(ground, clash)
    kit.runs.note_clash(task.name, task.attempt, laid.feedback())
    return laid


def look_at(ground: Ground, task: Task, folder: Path, files: Iterable[str]) -> Clashing:
    """Look for markers in files of a worktree."""
    counts = {path: _count(ground, task, folder, path) for path in files}
    found = {path: count for path, count in counts.items() if count}
    return Clashing(tuple(found), sum(found.values()))


def left_before(kit: Kit, task: Task, ground: Ground, folder: Path) -> Left:
    """Return the conflict that the tries before have left in a worktree."""
    last = next(kit.runs.tries_before(task.name, task.attempt), None)
    if last is None:
        return NOTHING_LEFT
    given = _given(kit.runs.circumstances(task.name, last.attempt))
    now = look_at(ground, task, folder, given.files)
    return Left(now, last.refusal is not None and _is_untouched(given, now))


def left_now(kit: Kit, task: Task, ground: Ground, folder: Path) -> list[Problem]:
    """Name the files in which a try has left markers of the conflict that it was given."""
    given = _given(kit.runs.circumstances(task.name, task.attempt))
    now = look_at(ground, task, folder, given.files)
    said = ("still has conflict markers", "mend the conflict and take them out")
    if _is_untouched(given, now):
        said = ("was left in conflict", "the next try begins without that, at the plan's tip")
    return [Problem(said[0], path, said[1]) for path in now.files]


def _given(said: Mapping[str, str]) -> Clashing:
    """Read the conflict that a try was given from its circumstances."""
    files = tuple(filter(None, said.get(_FILES, "").split("\0")))
    count = said.get(_MARKERS, "")
    return Clashing(files, int(count) if count.isdecimal() else 0)


def _is_untouched(given: Clashing, now: Clashing) -> bool:
    """Say whether there are as many markers as were given."""
    return 0 < given.markers <= now.markers


def _count(ground: Ground, task: Task, folder: Path, path: str) -> int:
    """Count the markers in a file; one that shows markers on the plan's branch too has none."""
    file = folder / path
    found = [] if file.is_symlink() else _MARKER.findall(read_whole(file))
    shown = bool(found) and _MARKER.search(text_at(ground, task.tip, path).encode())
    return 0 if shown else len(found)
