"""What the world must be doing, derived from the present state alone.

Every effect is named by its loop and attempt, so that doing it twice is doing it once. Knows no past: an effect is owed
until the state says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loopr.core.attempt import lands
from loopr.core.forest import Forest
from loopr.core.hot import starts_later, waits_to_land
from loopr.core.housing import PACKING
from loopr.core.model import Loop, Status


@dataclass(frozen=True, slots=True)
class Effect:
    """Something to do for one loop."""

    loop: str
    attempt: int


@dataclass(frozen=True, slots=True)
class WriteDeclared(Effect):
    """Write the artifact of a loop that completes by declaration, from its entry."""


@dataclass(frozen=True, slots=True)
class StartAttempt(Effect):
    """Prepare the worktree and start the command."""


@dataclass(frozen=True, slots=True)
class FollowAttempt(Effect):
    """Hear of the end of an attempt that runs here."""


@dataclass(frozen=True, slots=True)
class StopAttempt(Effect):
    """End an attempt with all its descendants."""


@dataclass(frozen=True, slots=True)
class Judge(Effect):
    """Judge what the command left, on the tree that would land."""


@dataclass(frozen=True, slots=True)
class Land(Effect):
    """Bring the loop's commits to the plan branch and publish its artifact."""


@dataclass(frozen=True, slots=True)
class PackWorktree(Effect):
    """Commit all that is in the worktree of a loop that is not at work, and free the folder."""


def owed(forest: Forest) -> Iterator[Effect]:
    """List every effect that the present state owes; landings one a plan, in tree order."""
    tree = forest.tree
    for loop_id in tree.ending:
        yield from owed_to(forest, forest.loops[loop_id])
    for loop_id in forest.packing:
        yield from owed_to(forest, forest.loops[loop_id])
    for loop_id in forest.settled_now():
        yield WriteDeclared(loop_id, forest.loops[loop_id].attempt)
    for status in (Status.LEASED, Status.RUNNING, Status.CHECKING):
        for loop_id in tree.by_status[status]:
            yield from owed_to(forest, forest.loops[loop_id])
    yield from landings(forest)


def owed_to(forest: Forest, loop: Loop) -> Iterator[Effect]:
    """List the effects owed to one loop; one with a turn to mend a conflict waits for a landing under way."""
    if loop.ending is not None and loop.ending.expires_at is None:
        yield StopAttempt(loop.id, loop.ending.attempt)
    elif loop.packed == PACKING and loop.status not in (Status.COMPLETE, Status.INVALIDATED):
        yield PackWorktree(loop.id, loop.attempt)
    elif loop.status is Status.LEASED:
        if not starts_later(forest, loop):
            yield StartAttempt(loop.id, loop.attempt)
    elif loop.status is Status.RUNNING and loop.lease is not None and loop.lease.expires_at is None:
        yield FollowAttempt(loop.id, loop.attempt)
    elif loop.status is Status.CHECKING:
        yield Judge(loop.id, loop.attempt)


def owed_beside(forest: Forest) -> Iterator[Effect]:
    """List the effects owed to loops that waited for others: to begin after a landing, and to land."""
    for loop_id in forest.tree.clashing:
        if forest.loops[loop_id].status is Status.LEASED:
            yield from owed_to(forest, forest.loops[loop_id])
    yield from landings(forest)


def landings(forest: Forest) -> Iterator[Land]:
    """List for each plan the loop whose landing has begun, else the first in tree order that waits for no turn.

    None where the branch moves by a person's word: that comes first.
    """
    first: dict[str, Loop] = {}
    for loop_id in forest.tree.by_status[Status.LANDING]:
        loop = forest.loops[loop_id]
        if loop.packed == PACKING or waits_to_land(forest, loop) is not None:  # it is laid again after that
            continue
        known = first.setdefault(loop.plan, loop)
        if (not lands(loop), forest.tree.order(loop)) < (not lands(known), forest.tree.order(known)):
            first[loop.plan] = loop
    for loop in first.values():
        tip = forest.shared.tip(loop.plan)
        if lands(loop) or tip.moving is None or tip.begins:
            yield Land(loop.id, loop.attempt)
