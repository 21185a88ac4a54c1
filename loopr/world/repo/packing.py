"""A worktree of a loop that is not at work is packed: all of it is committed to the loop's branch, its folder is freed.

Knows what a commit and a return of a worktree would lose. Must never know why others need the room.
"""

from __future__ import annotations

from loopr.world.repo.commits import commit_attempt
from loopr.world.repo.ground import Ground
from loopr.world.repo.returning import release
from loopr.world.repo.slots import slot_of
from loopr.world.repo.words import Message
from loopr.world.repo.worktrees import Occupied, nobody


def pack_worktree(ground: Ground, name: str, attempt: int, message: Message, occupied: Occupied = nobody) -> str:
    """Pack a worktree, and return why it has to stay, nothing where its folder is free; twice is once.

    What git ignores goes. The branch and its mark stay: `take` lays the worktree again from them.
    """
    slot = slot_of(ground, name)
    if slot is not None and slot.place(ground).is_dir():
        if why := occupied(slot.place(ground)):
            return why
        if slot.state == "used":
            done = commit_attempt(ground, name, attempt, message)
            if done.refused:
                first = done.refused[0]
                return f"it holds {first.where}, which is not committed: {first.message}"
    return release(ground, name, occupied, packs=True).why
