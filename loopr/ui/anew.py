"""Begins a journal anew: everything of the old one is put aside, and named.

Knows which parts of the state folder belong to a journal. Must never delete anything.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from loopr.errors import SettingsError
from loopr.grounds import grounds_of
from loopr.wiring import Workspace, wall_clock
from loopr.world.lock import EngineLock
from loopr.world.place import remember_place
from loopr.world.repo.anew import set_old_aside

OF_A_JOURNAL = ("runs", "copies", "inputs", "conflicts", "verdicts", "accepted")


class Begun(NamedTuple):
    """What was put aside: the folder with the old state, and old refs with their new names."""

    folder: Path
    refs: dict[str, str]


def begin_anew(workspace: Workspace, *, yes: bool) -> Begun:
    """Put the old journal aside, with its runs, refs and worktrees; a journal that works asks for a yes."""
    place = workspace.place
    if not yes and _works(workspace):
        hint = "`loopr init --anew --yes` puts it aside all the same; `loopr gc` clears what is over"
        raise SettingsError(f"the journal {place.journal} is there and can be read", hint=hint)
    remember_place(place)
    word = datetime.fromtimestamp(wall_clock() / 1000, UTC).strftime("%Y-%m-%dT%H-%M-%S-%f")[:-3]
    with EngineLock.acquire(place.lock, "turn"):
        refs: dict[str, str] = {}
        for ground in grounds_of(workspace).values():
            refs |= set_old_aside(ground, word)
        folder = place.state / "old" / word
        folder.mkdir(mode=0o700, parents=True)
        names = [each.name for each in place.state.glob(f"{place.journal.name}*")]
        for name in (*OF_A_JOURNAL, *names):
            if (place.state / name).exists():
                (place.state / name).rename(folder / name)
    return Begun(folder, refs)


def _works(workspace: Workspace) -> bool:
    """Say whether there is a journal that can be read."""
    try:
        return workspace.remembers() and bool(workspace.look().seq)
    except SettingsError:
        return False
