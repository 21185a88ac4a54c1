"""What a command names and does not find, though it lies in the person's checkout: it was not committed.

Knows commands and commits. Must never commit anything, nor know what the failure costs.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from loopr.core.model import Failure
from loopr.core.observations import Trouble
from loopr.driving.kit import Kit, Task
from loopr.driving.outcomes import Said
from loopr.errors import LooprError
from loopr.world.judges import Command, paths_in
from loopr.world.repo.include import ignored_among, included
from loopr.world.repo.named import only_here

_ASKS = frozenset({Failure.CONFIG, Failure.REFUSED})


def with_checkout(kit: Kit, task: Task, command: Command | None, trouble: Trouble | None, said: Said) -> Trouble | None:
    """Add to what went wrong which file is in the checkout and not in what the loop began at, if that may be why.

    A command that could not be run may want any file that it names; one that said no must have named it.
    """
    ground = kit.ground_of(task)
    if trouble is None or trouble.failure not in _ASKS or ground is None or ground.top is None:
        return trouble
    here = [each for each in paths_in(command) if (ground.top / each).is_file()]
    if trouble.failure is Failure.REFUSED:
        here = [each for each in here if each.rpartition("/")[2].encode() in said.tail]
    with suppress(LooprError, OSError):
        absent = [each for each in only_here(ground, task.tip, here) if not (said.worktree / each).exists()]
        if absent and absent[0] not in included(ground):
            words = _words(absent[0], ground.include if absent[0] in ignored_among(ground.users_door, absent) else "")
            return replace(trouble, reason=f"{trouble.reason}; {words}")
    return trouble


def _words(name: str, include: str) -> str:
    """Say of a file where it is and where it is not, and what brings it there; `include` if git ignores it."""
    if include:
        return f"{name} is in your checkout, but git ignores it: {include} may name it"
    return f"{name} is in your checkout, but not committed"
