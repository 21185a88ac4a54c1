"""The number of worktrees that there may be, and the one that is packed to make room.

Knows loops and the bound. Must never know a folder, nor how one is packed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from loopr.core.forest import Forest
from loopr.core.gates import ENGINE_GATES
from loopr.core.model import Loop, Status
from loopr.core.worktree_events import WorktreePacking

_RANKS = {Status.CANCELLED: 0, Status.FAILED: 1, Status.PARKED: 2, Status.AWAITING: 3}
_HELD, _RESTING, _BACKING_OFF = 4, 5, 6


def make_room(forest: Forest, now: int) -> Iterator[WorktreePacking]:
    """Ask for worktrees to be packed, as many as there are loops that wait for nothing else; the longest idle first.

    Asked when nobody can be granted any more: a loop that has its worktree has gone before all others.
    """
    most = forest.policy.most_worktrees
    if most is None or len(forest.housed) < most:
        return
    wanted = _waiting(forest, now)
    if not wanted:
        return
    more = len(forest.housed) - most + wanted - len(forest.packing)
    idle = (forest.loops[each] for each in forest.housed if each not in forest.packing)
    found = [each for each in idle if not each.occupying]
    for loop in islice(sorted(found, key=lambda each: _rank(forest, each, now)), max(0, more)):
        yield WorktreePacking(loop.id)


def _waiting(forest: Forest, now: int) -> int:
    """Count the loops that would be granted if they had room, at most as many as there are slots."""
    policy, waiting = forest.policy, 0
    free = None if policy.unbounded else policy.max_loops - forest.occupancy.total
    for key, group in forest.ready.groups():
        if key.housing and _waits_alone(forest, forest.loops[next(iter(group.members))], now):
            waiting += len(group.members)
    return waiting if free is None else min(waiting, free)


def _waits_alone(forest: Forest, member: Loop, now: int) -> bool:
    """Say whether nothing but the bound holds a group of loops back, asked of any member."""
    closed = [name for name, check in ENGINE_GATES if check(forest, member, now) is not None]
    return closed == ["worktrees"]


def _rank(forest: Forest, loop: Loop, now: int) -> tuple[int, int, str]:
    """Say how soon the worktree of an idle loop is packed: the smaller, the sooner."""
    if loop.status in _RANKS:
        kind = _RANKS[loop.status]
    elif any(each.hold is not None for each in (loop, *forest.tree.ancestors(loop))):
        kind = _HELD
    else:
        kind = _BACKING_OFF if loop.not_before > now else _RESTING
    return kind, loop.since, loop.id
