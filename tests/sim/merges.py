"""What must hold of conflicts: one is mended at a time, and no landing takes the ground from under it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from loopr.core import events as e
from loopr.core.forest import Forest
from loopr.core.judge_events import MergeTurnEnded
from loopr.core.model import Loop, Status
from loopr.core.plan_events import LandingBegan

MET = ("a landing waited for a merge turn",)
FILES = ("changes", "code", "tests")
_AT_WORK = (Status.LEASED, Status.RUNNING, Status.CHECKING, Status.LANDING)


def some_files(draw: Random, least: int = 0) -> tuple[str, ...]:
    """Draw some files."""
    return tuple(sorted(draw.sample(FILES, draw.randint(least, 2))))


def mending(forest: Forest, beside: Loop) -> Iterator[Loop]:
    """Go through the other loops of a plan that mend a conflict in their turn."""
    for loop in forest.loops.values():
        lease = loop.lease
        if loop.id == beside.id or loop.plan != beside.plan or loop.status not in _AT_WORK:
            continue
        if lease is not None and loop.clash.number and loop.clash.began:
            yield loop


def waiting(forest: Forest) -> list[Loop]:
    """List the landings that let others pass."""
    found = []
    for loop in forest.loops.values():
        if loop.status is not Status.LANDING or loop.lease is None or loop.lease.lands:
            continue
        mine = loop.clash.number if loop.clash.began else 0
        others = [each for each in mending(forest, loop) if not mine or each.clash.number < mine]
        if any(set(each.clash.paths) & set(loop.lease.behind) for each in others):
            found.append(loop)
    return found


class Merges:
    """The turns of all loops, counted anew from their events."""

    def __init__(self, met: Callable[[str], None]) -> None:
        """Begin with none."""
        self.met = met

    def problems(self, forest: Forest, event: e.Event) -> Iterator[str]:
        """Say what is wrong with an event, in the state before it."""
        if isinstance(event, LandingBegan):
            if any(each.id == event.loop for each in waiting(forest)):
                yield "begins a landing that lets others pass"
        elif isinstance(event, MergeTurnEnded):
            if not forest.loops[event.loop].clash.began:
                yield "ends a turn that had not begun"
        elif isinstance(event, e.LeaseGranted):
            yield from self._granted(forest, forest.loops[event.loop])
        if waiting(forest):
            self.met("luck: a landing waited for a merge turn")

    def _granted(self, forest: Forest, loop: Loop) -> Iterator[str]:
        """Say what is wrong with a grant."""
        mine = set(loop.clash.paths)
        for other in mending(forest, loop) if loop.clash.number else ():
            if mine & set(other.clash.paths):
                yield f"beside {other.id}, which mends {other.clash.paths}"
