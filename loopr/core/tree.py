"""The loops and how they hang together: parents and children, needs, what is complete below each.

A plain structure with counters that are kept up to date in O(depth) per change. Knows no gate, no order of launching
and no policy; `put` is called by `forest.py` alone.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from operator import attrgetter

from loopr.core.model import OCCUPYING, Loop, Status
from loopr.core.redo import NO_PAST

_LISTED = frozenset(Status) - {Status.PENDING, Status.COMPLETE}


class Below:
    """What is declared below a loop, itself not counted; `latest` is when the last of it was done or went.

    `changed` is the count of grants when something of it last landed a commit, `redoing` how many are done again.
    `heads` are complete loops that have children: those stand for them where it is counted how much is done.
    """

    __slots__ = (
        "cancelled",
        "changed",
        "complete",
        "failed",
        "heads",
        "latest",
        "parked",
        "redoing",
        "running",
        "total",
    )

    def __init__(self) -> None:
        """Begin with nothing below."""
        self.total = self.complete = self.running = self.latest = 0
        self.parked = self.failed = self.cancelled = self.changed = self.redoing = self.heads = 0

    @property
    def done(self) -> tuple[int, int]:
        """How many are done, and of how many."""
        return self.complete - self.heads, self.total - self.heads

    def count(self, loop: Loop, step: int) -> None:
        """Count a loop in (1) or out (-1)."""
        status = loop.status
        if status is Status.INVALIDATED:
            return
        self.total += step
        if loop.redoing:
            self.redoing += step
        if status is Status.COMPLETE:
            self.complete += step
        elif status in OCCUPYING:
            self.running += step
        elif status is Status.PARKED:
            self.parked += step
        elif status is Status.FAILED:
            self.failed += step
        elif status is Status.CANCELLED:
            self.cancelled += step

    def gather(self, child: Loop, under: Below | None) -> None:
        """Count a child in, with all that is below it."""
        if child.status is Status.PENDING and child.past is NO_PAST:  # as most loops of a large tree are
            self.total += 1
        else:
            self.count(child, 1)
            self.latest = max(self.latest, ended_at(child))
            self.changed = max(self.changed, child.past.changed)
        if under is None:
            return
        self.total += under.total
        self.complete += under.complete
        self.running += under.running
        self.parked += under.parked
        self.failed += under.failed
        self.cancelled += under.cancelled
        self.redoing += under.redoing
        self.changed = max(self.changed, under.changed)
        self.heads += under.heads
        self.latest = max(self.latest, under.latest)


class Counters(dict[str, Below]):
    """What is below each loop; one that has never had a child needs no counter of its own."""

    def __missing__(self, loop_id: str) -> Below:
        """Return that nothing is below a loop."""
        return Below()

    def own(self, loop_id: str) -> Below:
        """Return the counter of a loop that has a child, made when first asked for."""
        found = self.get(loop_id)
        if found is None:
            found = self[loop_id] = Below()
        return found


def ended_at(loop: Loop) -> int:
    """Say when a loop was done with or left the tree, 0 if neither."""
    return loop.since if loop.status in (Status.COMPLETE, Status.INVALIDATED) else 0


class Tree:
    """All loops of the workspace by id, with the indexes that follow from them."""

    def __init__(self) -> None:
        """Begin with no loops."""
        self.loops: dict[str, Loop] = {}
        self.below = Counters()
        self.needers: dict[str, dict[str, None]] = {}
        self.by_status: dict[Status, dict[str, None]] = {status: {} for status in _LISTED}
        self.ending: dict[str, None] = {}
        self.timed: dict[str, None] = {}
        self.held: dict[str, None] = {}
        self.redoing: dict[str, None] = {}
        self.offered: dict[str, None] = {}
        self.clashing: dict[str, None] = {}
        self.resourced: dict[str, None] = {}
        self._heads = set[str]()
        self._children: dict[str, list[tuple[int, str]]] = {}
        self._roots: list[tuple[int, str]] = []

    def children(self, loop_id: str | None) -> list[str]:
        """List the declared children of a loop in the order of its outline; the plans for None."""
        found = self._roots if loop_id is None else self._children.get(loop_id, ())
        return [each for _, each in found]

    def has_children(self, loop_id: str) -> bool:
        """Say whether a loop has declared children."""
        return bool(self._children.get(loop_id))

    def former_children(self, loop_id: str) -> list[str]:
        """List the children that are no longer declared."""
        gone = self.by_status[Status.INVALIDATED]
        return sorted(each for each in gone if self.loops[each].parent == loop_id)

    def walk(self, top: str | None = None) -> Iterator[Loop]:
        """Go through a loop and all declared below it, or through everything, in tree order."""
        stack = [top] if top is not None else self.children(None)[::-1]
        while stack:
            loop_id = stack.pop()
            yield self.loops[loop_id]
            if loop_id in self._children:
                stack.extend(each for _, each in reversed(self._children[loop_id]))

    def ancestors(self, loop: Loop) -> Iterator[Loop]:
        """Go upwards from the parent to the plan."""
        while loop.parent is not None:
            loop = self.loops[loop.parent]
            yield loop

    def order(self, loop: Loop) -> tuple[str, ...] | tuple[str | int, ...]:
        """Return the loop's place in tree order: its plan's id, then its places in the outlines downwards."""
        places: list[str | int] = [loop.place]
        for above in self.ancestors(loop):
            places.append(above.place)
        places[-1] = loop.plan
        return tuple(reversed(places))

    def done(self, loop_id: str) -> bool:
        """Say whether a loop and every loop now declared below it are complete."""
        loop = self.loops.get(loop_id)
        if loop is None or loop.status is not Status.COMPLETE:
            return False
        below = self.below[loop_id]
        return below.total == below.complete

    def called_off(self, loop_id: str) -> bool:
        """Say whether a loop is complete, and all that is not complete below it is cancelled."""
        below, loop = self.below[loop_id], self.loops[loop_id]
        over = below.complete + below.cancelled == below.total
        return bool(below.cancelled) and over and loop.status is Status.COMPLETE

    def at_rest(self, loop_id: str) -> bool:
        """Say whether a loop is done with all below it, and nothing of it is to be done again."""
        return self.done(loop_id) and loop_id not in self.redoing and not self.below[loop_id].redoing

    def changed(self, loop_id: str) -> int:
        """Return the count of grants when a loop, or one below it, last landed a commit; 0 if none has."""
        loop = self.loops.get(loop_id)
        return max(loop.past.changed, self.below[loop_id].changed) if loop is not None else 0

    def is_head(self, loop_id: str) -> bool:
        """Say whether a loop is complete and has children, which stand for it where it is counted what is done."""
        return loop_id in self._heads

    def done_of(self, tops: Iterable[str]) -> tuple[int, int]:
        """Count, at and below some loops of which none is below another, how many are done, and of how many."""
        done = of = 0
        for top in tops:
            below, status = self.below[top], self.loops[top].status
            done += below.done[0] + (status is Status.COMPLETE and top not in self._heads)
            of += below.done[1] + (status is not Status.INVALIDATED and top not in self._heads)
        return done, of

    def done_at(self, loop_id: str) -> int:
        """Say when a done loop became done."""
        loop = self.loops[loop_id]
        return max(loop.since, self.below[loop_id].latest)

    def put(self, loop: Loop) -> None:
        """Add a loop or replace it, and bring every index along."""
        old = self.loops.get(loop.id)
        self.loops[loop.id] = loop
        self._place(old, loop)
        self._list(old, loop)
        if old is None or old.needs != loop.needs:
            self._need(old, loop)
        if old is None or old.status is not loop.status or old.since != loop.since or old.past is not loop.past:
            self._count(old, loop)
            self._head(loop)
            if loop.parent is not None:
                self._head(self.loops[loop.parent])

    def fill(self, loops: Iterable[Loop]) -> None:
        """Take all loops at once into an empty tree; each is looked at once."""
        self.loops = {loop.id: loop for loop in loops}
        below = self.below
        for loop in sorted(self.loops.values(), key=attrgetter("depth"), reverse=True):
            listed = loop.status in _LISTED or loop.past.ask is not None or loop.offers.offered
            said = loop.needs or loop.resources is not None or loop.clash.number
            if listed or said or loop.hold or loop.lease or loop.ending:
                self._list(None, loop)
                self._need(None, loop)
            loop_id, parent = loop.id, loop.parent
            if loop.status is not Status.INVALIDATED:
                siblings = self._roots if parent is None else self._children.setdefault(parent, [])
                siblings.append((_rank(loop), loop_id))
            is_head = loop.status is Status.COMPLETE and bool(self._children.get(loop_id))
            if is_head:
                self._heads.add(loop_id)
            if parent is not None:
                below.own(parent).gather(loop, below.get(loop_id))
                below[parent].heads += is_head
        for siblings in (self._roots, *self._children.values()):
            siblings.sort()

    def move_clock(self, by_ms: int) -> None:
        """Move every instant that is kept here."""
        for below in self.below.values():
            below.latest += by_ms if below.latest else 0

    def _place(self, old: Loop | None, new: Loop) -> None:
        """Keep the parent's list of declared children in order."""
        was = old is not None and old.status is not Status.INVALIDATED
        now = new.status is not Status.INVALIDATED
        if was and now and old is not None and old.place == new.place:
            return
        siblings = self._roots if new.parent is None else self._children.setdefault(new.parent, [])
        if was and old is not None:
            siblings.remove((_rank(old), old.id))
        if now:
            insort(siblings, (_rank(new), new.id))

    def _list(self, old: Loop | None, new: Loop) -> None:
        """Keep the loops by status, those with an ending attempt, and those whose worker must give a sign."""
        if old is not None and old.status in self.by_status:
            self.by_status[old.status].pop(old.id, None)
        if new.status in self.by_status:
            self.by_status[new.status][new.id] = None
        if (old.hold if old is not None else None) is not new.hold:
            _keep(self.held, new.id, new.hold is not None)
        if new.offers.offered or (old is not None and old.offers.offered):
            _keep(self.offered, new.id, bool(new.offers.offered) and new.status is not Status.INVALIDATED)
        if (old.resources if old is not None else None) is not new.resources:
            _keep(self.resourced, new.id, new.resources is not None)
        if new.redoing or (old is not None and old.redoing):
            _keep(self.redoing, new.id, new.redoing)
        if new.clash.number or (old is not None and old.clash.number):
            _keep(self.clashing, new.id, bool(new.clash.number))
        if old is None and new.lease is None and new.ending is None:
            return
        _keep(self.ending, new.id, new.ending is not None)
        owner = new.lease or new.ending
        _keep(self.timed, new.id, owner is not None and owner.expires_at is not None)

    def _need(self, old: Loop | None, new: Loop) -> None:
        """Keep who needs whom."""
        for name in old.needs if old is not None else ():
            self.needers[name].pop(new.id, None)
        for name in new.needs:
            self.needers.setdefault(name, {})[new.id] = None

    def _count(self, old: Loop | None, new: Loop) -> None:
        """Keep the counters of all ancestors."""
        ended = ended_at(new)
        for above in self.ancestors(new):
            below = self.below.own(above.id)
            if old is not None:
                below.count(old, -1)
            below.count(new, 1)
            below.latest = max(below.latest, ended)
            below.changed = max(below.changed, new.past.changed)

    def _head(self, loop: Loop) -> None:
        """Keep whether a loop is complete and has children, and the counters of all ancestors."""
        is_head = loop.status is Status.COMPLETE and bool(self._children.get(loop.id))
        if is_head is (loop.id in self._heads):
            return
        if is_head:
            self._heads.add(loop.id)
        else:
            self._heads.discard(loop.id)
        for above in self.ancestors(loop):
            self.below.own(above.id).heads += 1 if is_head else -1


def _rank(loop: Loop) -> int:
    """Plans are listed by id alone, all others by their place in the outline."""
    return 0 if loop.parent is None else loop.place


def _keep(listed: dict[str, None], key: str, wanted: bool) -> None:
    """Put a key on a list or take it off."""
    if wanted:
        listed[key] = None
    else:
        listed.pop(key, None)
