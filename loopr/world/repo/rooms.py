"""A clean worktree for judges: what would land, and nothing that a command has left beside it.

Knows worktrees and how they are given back. Must never know who judges, nor what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from loopr.world.repo.ground import Ground
from loopr.world.repo.laying import Laying, finish, lay
from loopr.world.repo.making import make_commit
from loopr.world.repo.returning import release
from loopr.world.repo.slots import need_slot, opened, slot_of
from loopr.world.repo.words import Candidate, Message, Worktree
from loopr.world.repo.worktrees import nobody, take

Occupied = Callable[[Path], str]


def take_room(ground: Ground, room: str, candidate: Candidate, occupied: Occupied, at_ms: int) -> Path:
    """Lay what would land into a worktree that no command has worked in."""
    leave_room(ground, room, occupied)
    message = Message(f"What would land of {candidate.name}", at_ms=at_ms)
    commit = make_commit(ground.door, candidate.tree, [candidate.plan_tip], message)
    return lay_room(ground, room, commit, occupied).folder


def lay_room(ground: Ground, room: str, commit: str, occupied: Occupied = nobody) -> Worktree:
    """Give a clean worktree that holds exactly a commit, for a judge to work in."""
    taken = take(ground, room, commit, occupied)
    with opened(ground, need_slot(ground, room)) as at:
        finish(at)
        lay(at, Laying(commit, judged=True))
    return taken._replace(tip=commit)


def room_of(ground: Ground, room: str) -> Path | None:
    """Return the folder of a room that an earlier engine has taken, None if there is none."""
    slot = slot_of(ground, room)
    return slot.place(ground) if slot is not None else None


def leave_room(ground: Ground, room: str, occupied: Occupied) -> None:
    """Give a room back with all that a judge has left in it; twice is once."""
    release(ground, room, occupied, derived=True)
