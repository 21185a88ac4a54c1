"""A worktree that is being set up for a loop: since when, and where the output of that lies.

Reads the files that steps leave in run folders, which alone tell of them. Must never know a
terminal, nor run anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.ui import logs
from loopr.ui.times import say_duration
from loopr.ui.views import Row, instant
from loopr.world.launcher.words import STREAMS, read_run
from loopr.world.runs import Runs

if TYPE_CHECKING:
    from loopr.core.forest import Forest
    from loopr.ui.picture import Tail
    from loopr.wiring import Workspace

STEPS = ("setup", "post_create", "pre_run")
"""The steps that run before a command, in their order."""
QUIET_MS = 2_000  # a setup that takes less is not worth a line
AGAIN_MS = 60_000
_EVENT = '{"type":'


class Setup(NamedTuple):
    """A step that prepares a worktree at this moment."""

    loop: str
    step: str
    since: int
    folder: Path

    def row(self, now: int) -> Row:
        """Return it as data."""
        since, secs = instant(self.since), max(0, now - self.since) / 1000
        row = {"loop": self.loop, "step": self.step, "since": since, "seconds": secs}
        return row | {"folder": str(self.folder)}


def words_of(row: Row) -> str:
    """Say of a setup for how long it has been going on, and which command prints its output."""
    span = say_duration(round(row["seconds"] * 1000))
    return f"being set up for {span}: `loopr logs -f {row['loop']}`"


class Setups:
    """The setups of a workspace, from its run folders."""

    def __init__(self, state: Path | None, hide: Callable[[str], str] = str) -> None:
        """Look below the folder of the state, if there is one; `hide` takes keys out of a line."""
        self._runs, self._hide = Runs(state) if state is not None else None, hide

    def of(self, loop: Loop) -> Setup | None:
        """Return the step that prepares the worktree of a loop now, None where none does."""
        if self._runs is None or loop.status is not Status.LEASED or loop.lease is None:
            return None
        for folder in reversed(steps_before(self._runs.folder(loop.name, loop.lease.attempt))):
            run = read_run(str(folder))
            if run is not None and logs.outcome_of(folder) is None and not logs.is_lost(folder):
                return Setup(loop.id, _step_of(folder), run.started_at, folder)
        return None

    def within(self, scene: Scene, tops: Sequence[str] = ()) -> list[Setup]:
        """List the setups that go on, all or those below some loops, the oldest first."""
        from loopr.ui.telling import within  # slow to import, and `logs` does without

        leased = (scene.loops[each] for each in scene.tree.by_status[Status.LEASED])
        found = (self.of(each) for each in leased if not tops or within(tops, each.id))
        return sorted(filter(None, found), key=lambda each: (each.since, each.loop))

    def tail(self, loop: Loop, tail: Tail) -> str:
        """Return the last line of a loop, that of its setup as long as this runs."""
        setup = self.of(loop)
        if setup is None:
            return _within(loop, tail(loop))
        said = self._hide(_last_line(setup.folder))
        return f"being set up, `loopr logs -f {loop.id}`{f': {said}' if said else ''}"


NO_SETUPS = Setups(None)


def _within(loop: Loop, said: str) -> str:
    """Name files as a loop's worktree has them, and leave out an event that no reader has read."""
    if said.startswith(_EVENT):
        return ""
    return re.sub(rf"[^\s'\"]*/{re.escape(loop.name)}/", "", said)


def setups_of(workspace: Workspace) -> Setups:
    """Make the `Setups` of a workspace."""
    return Setups(workspace.place.state, workspace.hide)


def steps_before(folder: Path) -> list[Path]:
    """List the steps that have begun before the command of an attempt, in their order."""
    try:
        names = [each.name for each in folder.iterdir() if each.name.partition(".")[0] in STEPS]
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = (folder / each for each in sorted(names, key=_order))
    return [each for each in found if read_run(str(each)) is not None]


def outputs_of(folder: Path) -> list[Path]:
    """List the runs that an attempt's output is in: its command, else the steps before it."""
    return [folder] if has_begun(folder) else steps_before(folder) or [folder]


def has_begun(folder: Path) -> bool:
    """Say whether the command of an attempt has begun, or will not: that has ended."""
    if read_run(str(folder)) is not None or logs.outcome_of(folder) is not None:
        return True
    return any((folder / each).exists() for each in STREAMS)


class Reminder:
    """Says of setups that go on that they do: after a moment, then once a minute."""

    def __init__(self, setups: Setups, plans: Sequence[str]) -> None:
        """Look at the setups of some plans, or of all."""
        self._setups, self._plans = setups, plans
        self._told: dict[Path, int] = {}

    def due(self, forest: Forest, now: int) -> Iterable[str]:
        """Give a line for each setup that has one coming."""
        told, self._told = self._told, {}
        for each in self._setups.within(forest, self._plans):
            last = told.get(each.folder)
            if now - each.since >= QUIET_MS and (last is None or now - last >= AGAIN_MS):
                last = now
                yield f"{each.loop}  {words_of(each.row(now))}"
            if last is not None:
                self._told[each.folder] = last


def _order(name: str) -> tuple[int, int]:
    """Return where a step stands among those before a command; its later tries have numbers."""
    step, _, number = name.partition(".")
    return STEPS.index(step), int(number) if number.isdecimal() else 0


def _step_of(folder: Path) -> str:
    """Name the step whose folder it is."""
    return folder.name.partition(".")[0]


def _last_line(folder: Path) -> str:
    """Return the last line that a step has written."""
    from loopr.world.processes import last_lines

    return "".join(last_lines(folder))
