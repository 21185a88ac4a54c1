"""What is done when an attempt is not wanted any more, and when a loop's folder is not.

Both may be asked for again at any time. Must never decide that something ends.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from loopr.core import observations as o
from loopr.core.observations import Observation
from loopr.driving.acts import Act, Do, Run, StopAsked
from loopr.driving.attempting import message_of
from loopr.driving.kit import OWN_FOLDER, Kit, Task
from loopr.world.repo.commits import commit_attempt
from loopr.world.repo.ground import WORK, Ground
from loopr.world.repo.plain import remove_plain
from loopr.world.repo.refs import pack_refs, read_refs
from loopr.world.repo.returning import release
from loopr.world.repo.slots import load, slot_of


def stop(kit: Kit, task: Task, name: str, live: list[str]) -> Act:
    """Wait until nothing of an attempt that was told to stop is left, and commit what it left."""
    for run in live:
        with suppress(StopAsked):
            yield Run(run)
    ground = kit.ground_of(task)
    if ground is not None:
        yield Do(lambda: _commit(kit, task, ground, name))
    return o.StopSeen(task.loop.id, task.attempt)


def _commit(kit: Kit, task: Task, ground: Ground, name: str) -> None:
    """Commit what an attempt of some generation left, if its folder is still there."""
    slot = slot_of(ground, name)
    if slot is not None and slot.place(ground).is_dir():
        commit_attempt(ground, name, task.attempt, message_of(kit, task))


def pack(ground: Ground) -> Act:
    """Pack the refs if there are many; whoever reads them reads fewer files then."""
    yield Do(lambda: pack_refs(ground))
    nothing: Observation | None = None
    return nothing


def give_back(kit: Kit, name: str) -> Act:
    """Give a generation's folder back, as far as all that was in it is safe."""
    yield Do(lambda: _give_back(kit, name))
    nothing: Observation | None = None
    return nothing


def known_names(ground: Ground) -> set[str]:
    """List the generations that have a worktree, or of which a branch or a mark is left."""
    slots = {slot.name for slot in load(ground).values() if slot.name}
    return slots | {ref.removeprefix(WORK) for ref in read_refs(ground.door, WORK)}


def _give_back(kit: Kit, name: str) -> None:
    """Return a worktree to the pool, or take an empty folder away."""
    folder = kit.worktrees / name
    if kit.ground is not None and name in known_names(kit.ground):
        release(kit.ground, name)
    elif set(_names_in(folder)) <= {OWN_FOLDER}:  # what else is there was made by a command, and stays until `gc`
        remove_plain(kit.worktrees, name)


def _names_in(folder: Path) -> list[str]:
    """List what is in a folder, nothing if it is none."""
    try:
        return [each.name for each in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
