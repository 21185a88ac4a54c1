"""What is done when an attempt is not wanted any more, and when a loop's folder is not.

Both may be asked for again at any time. Must never decide that something ends.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

from loopr.core import observations as o
from loopr.core.naming import is_judge_room, judge_room
from loopr.core.observations import Observation
from loopr.driving.acts import Act, Do, Run, StopAsked, Until
from loopr.driving.attempting import message_of
from loopr.driving.kit import OWN_FOLDER, Kit, Task
from loopr.driving.sites import last_site, set_deserted_aside
from loopr.world.processes.strays import living_in
from loopr.world.repo.commits import commit_attempt
from loopr.world.repo.ground import WORK, Ground
from loopr.world.repo.leftovers import remove_stale_locks
from loopr.world.repo.packing import pack_worktree
from loopr.world.repo.plain import remove_plain
from loopr.world.repo.refs import pack_refs, read_refs
from loopr.world.repo.returning import release
from loopr.world.repo.rooms import leave_room
from loopr.world.repo.slots import load, slot_of

GATHER_MS = 50


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
    """Commit what an attempt left, if its folder is still there; its judge's folder goes."""
    leave_room(ground, judge_room(name, task.attempt), living_in)
    slot = slot_of(ground, name)
    if slot is not None and slot.place(ground).is_dir():
        commit_attempt(ground, name, task.attempt, message_of(kit, task))


def make_room(kit: Kit, task: Task, ground: Ground | None) -> Act:
    """Pack the worktree of a loop that is not at work, and say whether that is done."""
    why: str = (yield Do(partial(_pack, kit, task, ground))) if ground is not None else ""
    return o.PackingDone(task.loop.id, task.attempt, why)


def _pack(kit: Kit, task: Task, ground: Ground) -> str:
    """Pack a worktree, but for one that a pull worker may still be in: that is set aside, and is no loop's any more."""
    set_deserted_aside(kit.runs, ground, task.name)
    return pack_worktree(ground, task.name, task.attempt, message_of(kit, task), living_in)


def pack(ground: Ground) -> Act:
    """Pack the refs if there are many; whoever reads them reads fewer files then."""
    yield Do(lambda: pack_refs(ground))
    nothing: Observation | None = None
    return nothing


def free_locks(grounds: list[Ground]) -> Act:
    """Take away lock files below refs of loopr's whose git is long gone: no other git has business there."""
    yield Do(lambda: [remove_stale_locks(each) for each in grounds])
    nothing: Observation | None = None
    return nothing


def give_back(kit: Kit, ground: Ground | None, due: set[str]) -> Act:
    """Give folders of generations back that nobody works in any more, those too that become due meanwhile.

    Plain ones are gathered for a moment: many take little longer than one.
    """
    while due:
        if ground is None:
            yield Until(kit.clock() + GATHER_MS)
        names = sorted(due)
        due.clear()
        yield Do(partial(_give_back, kit, ground, names))
    nothing: Observation | None = None
    return nothing


def known_names(ground: Ground) -> set[str]:
    """List the generations that have a worktree, or of which a branch or a mark is left."""
    slots = {slot.name for slot in load(ground).values() if slot.name}
    return slots | {ref.removeprefix(WORK) for ref in read_refs(ground.door, WORK)}


def _give_back(kit: Kit, ground: Ground | None, names: list[str]) -> None:
    """Return worktrees to the pool as far as what was in them is safe, and take empty folders away."""
    plain: list[str] = []
    for name in names:
        if ground is not None and _is_known(ground, name):
            set_deserted_aside(kit.runs, ground, name)
            release(ground, name, living_in, derived=is_judge_room(name))
        elif (site := last_site(kit.runs, name)) is not None and site.is_deserted:
            continue
        elif set(_names_in(kit.worktrees / name)) <= {OWN_FOLDER}:  # what a command made there stays until `gc`
            plain.append(name)
    if plain:
        remove_plain(kit.worktrees, plain)


def _is_known(ground: Ground, name: str) -> bool:
    """Say whether a generation has a worktree, or whether a branch or a mark is left of it."""
    return slot_of(ground, name) is not None or bool(read_refs(ground.door, WORK + name))


def _names_in(folder: Path) -> list[str]:
    """List what is in a folder, nothing if it is none."""
    try:
        return [each.name for each in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
