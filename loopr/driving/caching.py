"""A worktree is set up from what an earlier setup has made, or that is kept for the next one.

Knows the settings of the cache and the order of the steps. Must never know how files are copied.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from loopr.core import observations as o
from loopr.core.entries import Command
from loopr.driving.acts import Asked, Do, Tell
from loopr.driving.kit import Kit, Task
from loopr.driving.materials import Spot, own_folder
from loopr.driving.readiness import was_ready
from loopr.driving.stepping import run_before
from loopr.errors import LooprError
from loopr.world.judges import paths_in
from loopr.world.repo.branches import loop_tip
from loopr.world.repo.caching import Basis, entry_of, keep, restore
from loopr.world.repo.ground import Ground

PLACE = "worktrees.cache"


class Steps(NamedTuple):
    """The commands that set a worktree up; `more` ends the names of their runs."""

    commands: Mapping[str, Command | None]
    more: str = ""

    def named(self, *names: str) -> dict[str, Command | None]:
        """Return some of them as they are to run."""
        return {f"{name}{self.more}": self.commands.get(name) for name in names}


def run_setup(kit: Kit, task: Task, ground: Ground, spot: Spot, steps: Steps) -> Generator[Asked, Any, None]:
    """Run the steps that set a worktree up; where what the setup makes is copied, it does not run."""
    setup, paths = steps.commands["setup"], kit.settings.of_project(task.loop.project).worktrees.cache.paths
    own = own_folder(spot.folder)
    entry = ""
    if setup is not None and not paths:
        yield Tell(o.Noticed(PLACE, ""))  # it is set no more
    if setup is not None and paths and not was_ready(own):
        entry = yield Do(lambda: _entry(kit, task, ground, setup))
    if entry and (yield Do(lambda: restore(ground, entry, paths, spot.folder, own))):
        yield from run_before(kit, task, spot, steps.named("post_create"))
        return
    yield from run_before(kit, task, spot, steps.named("setup"))
    if entry and loop_tip(ground, task.name) == task.tip:  # made by what is the plan's, not the loop's
        why = yield Do(lambda: _kept(ground, task, entry, paths, spot))
        yield Tell(o.Noticed(PLACE, why))
    yield from run_before(kit, task, spot, steps.named("post_create"))


def _entry(kit: Kit, task: Task, ground: Ground, setup: Command) -> str:
    """Name the entry that fits what the worktree holds."""
    kept = kit.settings.of_project(task.loop.project).worktrees.cache
    named = tuple(each for each in paths_in(setup) if _is_inside(each))
    basis = Basis(repr(setup), kept.key, named, kept.paths)
    return entry_of(ground, loop_tip(ground, task.name), basis)


def _kept(ground: Ground, task: Task, entry: str, paths: tuple[str, ...], spot: Spot) -> str:
    """Keep what a setup has made; say why where that cannot be: the attempt goes on without."""
    try:
        return keep(ground, task.name, entry, paths, spot.folder)
    except (LooprError, OSError) as error:
        return f"what the setup has made is not kept: {error}"


def _is_inside(path: str) -> bool:
    """Say whether a word may be the path of a file in the repository."""
    return not path.startswith(("/", "-")) and ".." not in path.split("/")
