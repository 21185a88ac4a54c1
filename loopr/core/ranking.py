"""Who is next: the ready loops, kept in the order of their scores without sorting.

Loops whose own gates are open stand in groups that open and close as a whole (`gates.SHARED_GATES`). Inside a group,
those with the same fixed part of the score form a class: there an older loop never ranks lower, whatever the instant,
so one heap a class is exact at every instant. A pick compares the heads of a few dozen classes: those that age may
still lift above the best. A second pair of heaps for each priority of a group keeps who has been ready longest. Knows
no gate and no share between projects.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from loopr.core.grouping import GroupKey
from loopr.core.model import Loop
from loopr.core.policy import Policy
from loopr.core.scoring import age_boost

TreeOrder = tuple[str | int, ...]


class _Entry(NamedTuple):
    """A ready loop in a heap; `stamp` tells whether it still stands there."""

    created: int
    order: TreeOrder
    id: str
    stamp: int


class _Waiting(NamedTuple):
    """A ready loop in the heap of those that wait longest."""

    ready: int
    entry: _Entry


class Rank(NamedTuple):
    """The order of a ready loop beside its age: the rest of its score, its priority, its wait."""

    fixed: int
    priority: int
    ready: int


class Candidate(NamedTuple):
    """The best of a group, comparable across groups: the smaller, the sooner."""

    rank: int
    created: int
    order: TreeOrder
    id: str


class Line(NamedTuple):
    """The ready loops of one priority in a group: those that wait by time, and those as long as the group does."""

    waiting: list[_Waiting]
    settled: list[_Entry]


class Group:
    """The ready loops that open and close together."""

    __slots__ = ("classes", "lines", "lowered", "members")

    def __init__(self) -> None:
        """Begin with nobody."""
        self.members: dict[str, int] = {}
        self.classes: dict[int, list[_Entry]] = {}
        self.lowered: list[int] = []  # the keys of the classes, below 0, so that the highest comes first
        self.lines: dict[int, Line] = {}

    def enter(self, entry: _Entry, rank: Rank) -> None:
        """Add a loop."""
        self.members[entry.id] = entry.stamp
        if rank.fixed not in self.classes:
            self.classes[rank.fixed] = []
            insort(self.lowered, -rank.fixed)
        heappush(self.classes[rank.fixed], entry)
        heappush(self.lines.setdefault(rank.priority, Line([], [])).waiting, _Waiting(rank.ready, entry))

    def leave(self, loop_id: str) -> None:
        """Take a loop out; its entries are dropped when they come up."""
        del self.members[loop_id]

    def _stale(self, entry: _Entry) -> bool:
        """Say whether an entry's loop has left, or has come back since."""
        return self.members.get(entry.id) != entry.stamp

    def best(self, policy: Policy, now: int) -> Candidate | None:
        """Return the member with the highest score at an instant."""
        found: Candidate | None = None
        for lowered in tuple(self.lowered):
            fixed = -lowered
            if found is not None and fixed + policy.priority.age_boost_max < -found.rank:
                break
            heap = self.classes[fixed]
            while heap and self._stale(heap[0]):
                heappop(heap)
            if not heap:
                del self.classes[fixed]
                self.lowered.remove(lowered)
                continue
            head = heap[0]
            total = fixed + age_boost(policy, head.created, now)
            candidate = Candidate(-total, head.created, head.order, head.id)
            found = candidate if found is None else min(found, candidate)
        return found

    def highest(self) -> int:
        """Return the highest priority of the members."""
        found = 0
        for found in sorted(self.lines, reverse=True):
            waiting, settled = self.lines[found]
            while waiting and self._stale(waiting[0].entry):
                heappop(waiting)
            while settled and self._stale(settled[0]):
                heappop(settled)
            if waiting or settled:
                break
            del self.lines[found]
        return found

    def longest(self, floor: int) -> Iterator[tuple[int, Candidate]]:
        """Name, with each priority, the member that has been ready longest, but none from before `floor`.

        `floor` never goes back.
        """
        for priority in list(self.lines):
            head = self._longest(self.lines[priority], floor)
            if head is None:
                del self.lines[priority]
            else:
                yield priority, head

    def _longest(self, line: Line, floor: int) -> Candidate | None:
        """Return the member of one priority that has been ready longest."""
        waiting, settled = line
        while waiting and (self._stale(waiting[0].entry) or waiting[0].ready <= floor):
            entry = heappop(waiting).entry
            if not self._stale(entry):
                heappush(settled, entry)
        while settled and self._stale(settled[0]):
            heappop(settled)
        if settled:
            head = settled[0]
            return Candidate(floor, head.created, head.order, head.id)
        if waiting:
            ready, head = waiting[0]
            return Candidate(ready, head.created, head.order, head.id)
        return None


class Ready:
    """All loops whose own gates are open: in groups, or waiting for their backoff to end."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._groups: dict[GroupKey, Group] = {}
        self._where: dict[str, GroupKey | None] = {}
        self._backoffs: list[tuple[int, str, int]] = []
        self._stamp = 0
        self._stamps: dict[str, int] = {}

    def __contains__(self, loop_id: str) -> bool:
        """Say whether a loop's own gates are open."""
        return loop_id in self._where

    def enter(self, loop: Loop, key: GroupKey, order: TreeOrder, rank: Rank) -> None:
        """Let a loop stand in its group."""
        self._remember(loop.id, key)
        entry = _Entry(loop.created, order, loop.id, self._stamp)
        self._groups.setdefault(key, Group()).enter(entry, rank)

    def wait(self, loop: Loop) -> None:
        """Let a loop wait for its backoff to end."""
        self._remember(loop.id, None)
        heappush(self._backoffs, (loop.not_before, loop.id, self._stamp))

    def _remember(self, loop_id: str, key: GroupKey | None) -> None:
        """Note where a loop stands, under a new stamp."""
        self.leave(loop_id)
        self._stamp += 1
        self._where[loop_id] = key
        self._stamps[loop_id] = self._stamp

    def leave(self, loop_id: str) -> None:
        """Take a loop out, wherever it stands."""
        if loop_id not in self._where:
            return
        key = self._where.pop(loop_id)
        del self._stamps[loop_id]
        if key is not None:
            group = self._groups[key]
            group.leave(loop_id)
            if not group.members:
                del self._groups[key]

    def backed_off(self, now: int) -> list[str]:
        """List the loops whose backoff has ended; each is named once and must then enter its group."""
        due = []
        while self._backoffs and (self._backoffs[0][0] <= now or self._gone(self._backoffs[0])):
            first = heappop(self._backoffs)
            if not self._gone(first):
                due.append(first[1])
        return due

    def _gone(self, waiting: tuple[int, str, int]) -> bool:
        """Say whether a waiting loop has left the backoff line."""
        return self._stamps.get(waiting[1]) != waiting[2]

    def next_backoff(self) -> int | None:
        """Return when the next backoff ends."""
        while self._backoffs and self._gone(self._backoffs[0]):
            heappop(self._backoffs)
        return self._backoffs[0][0] if self._backoffs else None

    def waiting(self) -> Iterator[tuple[int, str]]:
        """Go through those that wait for a backoff, over by now or not, with its end; in no order."""
        yield from ((at, loop_id) for at, loop_id, stamp in self._backoffs if self._stamps.get(loop_id) == stamp)

    @property
    def changes(self) -> int:
        """How often a loop was put in its group or among those that wait."""
        return self._stamp

    def groups(self) -> Iterator[tuple[GroupKey, Group]]:
        """Go through the groups that have members."""
        yield from self._groups.items()
