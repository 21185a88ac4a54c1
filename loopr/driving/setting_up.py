"""A worktree is set up as the settings say now, and laid again where it was packed since its work was done.

Knows one worktree. Must never know what works in it next.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from functools import partial
from typing import Any

from loopr.driving.acts import Asked, Do
from loopr.driving.caching import Steps, run_setup
from loopr.driving.kit import Kit, Task
from loopr.driving.materials import Spot, own_folder
from loopr.driving.readiness import is_ready, mark_ready, seal_of, was_ready
from loopr.world.processes.strays import living_in
from loopr.world.repo.ground import Ground
from loopr.world.repo.include import copy_included
from loopr.world.repo.slots import slot_of
from loopr.world.repo.worktrees import take
from loopr.world.runs import BASE, FOLDER

AGAIN = ".again"


def set_up(kit: Kit, task: Task, ground: Ground, spot: Spot, more: str = "") -> Generator[Asked, Any, None]:
    """Have a worktree set up as the settings say now, if it is not; `more` ends the names of the steps."""
    own = own_folder(spot.folder)
    settings = kit.settings.of_project(task.loop.project)
    setup = {"setup": settings.worktrees.setup, "post_create": settings.hooks.get("post_create")}
    if not is_ready(own, seal_of(setup, ground, spot.folder)):
        if was_ready(own):
            yield Do(lambda: copy_included(ground, spot.folder))
        yield from run_setup(kit, task, ground, spot, Steps(setup, more))
        mark_ready(own, seal_of(setup, ground, spot.folder))


def lay_again(kit: Kit, task: Task) -> Generator[Asked, Any, None]:
    """Lay the worktree of work that is judged or lands, where it was packed since it was done."""
    ground = kit.ground_of(task)
    if ground is None:
        return
    slot = slot_of(ground, task.name)
    if slot is None:
        spot: Spot = yield Do(partial(_laid, kit, task, ground))
    elif was_ready(own_folder(slot.place(ground))):
        return
    else:  # an engine ended while it was set up
        spot = Spot(slot.place(ground), _base_of(kit, task))
    yield from set_up(kit, task, ground, spot, AGAIN)  # what the same attempt had made is gone with its folder


def _laid(kit: Kit, task: Task, ground: Ground) -> Spot:
    """Lay a worktree as the last attempt has left it, and write down where that is now."""
    worktree = take(ground, task.name, task.tip, living_in, known=True)
    said = kit.runs.circumstances(task.name, task.attempt)
    folder = os.path.relpath(worktree.folder, kit.place.root)
    kit.runs.note_circumstances(task.name, task.attempt, **said | {FOLDER: folder})
    return Spot(worktree.folder, _base_of(kit, task))


def _base_of(kit: Kit, task: Task) -> str:
    """Return the commit that the work began at."""
    return kit.runs.circumstances(task.name, task.attempt).get(BASE, task.loop.base_commit)
