"""What of loopr's is needed still: the generations that are not over, and the folders that somebody works in.

Must never know what lies on disk, nor what may go of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from loopr.core.model import FINISHED, Loop, Status
from loopr.core.naming import generation_name, judge_room
from loopr.core.scene import Scene

ENDED = frozenset({Status.CANCELLED, Status.INVALIDATED})
"""Where a plan stands that goes on no more."""


def is_over(loop: Loop) -> bool:
    """Say whether nothing of a loop runs or is to run: complete, cancelled or no longer declared."""
    return loop.status in FINISHED and not loop.occupying


def names_of(loop: Loop) -> list[str]:
    """Name every generation of a loop."""
    return [generation_name(loop.id, each) for each in range(1, loop.generation + 1)]


def in_use(scene: Scene) -> set[str]:
    """Name the generations that are not over, and the plans that may still go on.

    A plan that is done may get another loop at any time, which begins where the others have landed: its branch stays
    until a person lets it go.
    """
    found = {loop.id for loop in scene.loops.values() if loop.parent is None and loop.status not in ENDED}
    for loop in scene.loops.values():
        if loop.ending is not None:  # of whichever generation it is
            found.update(names_of(loop))
        elif not is_over(loop):
            found.update((loop.name, judge_room(loop.name, loop.attempt)))
    return found


def living() -> Callable[[Path], str]:
    """Look once where all processes work, and return what says which of them works in a folder, if any does."""
    from loopr.world.launcher import proc

    found: list[tuple[int, Path]] = []
    with suppress(OSError):  # where there is no /proc
        found = [(pid, Path(folder)) for pid in proc.pids() if (folder := proc.folder(pid))]

    def lived_in(folder: Path) -> str:
        return next((f"process {pid} works in it" for pid, at in found if at.is_relative_to(folder)), "")

    return lived_in
