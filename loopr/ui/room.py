"""How much disk worktrees may take: the size of the checkout, as its index has it, times the bound.

Knows sizes only. Must never know which loop has a worktree.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.wiring import Workspace
from loopr.world.host_facts import free_bytes
from loopr.world.place import own_git_dir
from loopr.world.repo.weight import bytes_of_checkout

GIB = 1024**3
_SHARE = 10  # of the free disk: one part of so many is worth a line


def room_remarks(workspace: Workspace, loops: int | None = None) -> Iterator[str]:
    """Say how much the worktrees of so many loops may take, or of as many as there may be, where that is much."""
    bound = workspace.policy.most_worktrees
    most = min((each for each in (bound, loops) if each is not None), default=None)
    top = workspace.place.repository
    size = bytes_of_checkout(own_git_dir(top)) if top is not None else None
    if most is None or not size:
        return
    free = free_bytes(workspace.place.root)
    if size * most > min(GIB, free // _SHARE):
        each = f"{most} of {say_bytes(size)}, without what a setup makes"
        yield (
            f"worktrees may take {say_bytes(size * most)} ({each}), and {say_bytes(free)} are free: "
            "`loopr set worktrees.max N` bounds them"
        )


def say_bytes(count: int) -> str:
    """Say how many bytes these are, roughly."""
    for unit, size in (("GB", 1000**3), ("MB", 1000**2), ("kB", 1000)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if count < 10 * size else f"{count // size} {unit}"
    return f"{count} bytes"
