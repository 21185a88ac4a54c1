"""How far some loops have come together, the longest way still to go, and whether anything of them goes on by itself.

Counts loops and knows no durations. Must never decide what may run: it asks the gates as `settled.py` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loopr.core.model import FINISHED, OCCUPYING, Loop, Status
from loopr.core.scene import Scene
from loopr.core.settled import may_go_on

_Point = tuple[str, bool]
"""A loop, and whether all below it counts too: where it is *done*, or only its own work."""


class Prospect(NamedTuple):
    """How many loops stand how; the ids on the longest way still to go, in order; and whether it is stranded.

    `done` are those that nothing is left of, `of` how many count there: a complete loop is counted by its children.
    """

    total: int
    complete: int
    at_work: int
    waits: int
    failed: int
    cancelled: int
    way: tuple[str, ...]
    stranded: bool
    done: int = 0
    of: int = 0


def prospect(scene: Scene, tops: Sequence[str], now: int) -> Prospect:
    """Say how some loops stand with all below them."""
    known = [each for each in tops if each in scene.loops]
    highest = [each for each in known if not any(each.startswith(f"{other}/") for other in known)]
    below = [scene.tree.below[each] for each in highest]
    own = [scene.loops[each].status for each in highest]
    complete = sum(each.complete for each in below) + own.count(Status.COMPLETE)
    at_work = sum(each.running for each in below) + sum(each in OCCUPYING for each in own)
    failed = sum(each.failed + each.parked for each in below) + own.count(Status.FAILED) + own.count(Status.PARKED)
    total = sum(each.total for each in below) + len(own) - own.count(Status.INVALIDATED)
    cancelled = sum(each.cancelled for each in below) + own.count(Status.CANCELLED)
    waits = total - complete - at_work - failed - cancelled
    done = all(scene.tree.at_rest(each) or scene.tree.called_off(each) for each in highest)
    stranded = bool(highest) and not done and not _is_decided_on(scene, highest) and not may_go_on(scene, highest, now)
    way = longest_way(scene, highest)
    return Prospect(total, complete, at_work, waits, failed, cancelled, way, stranded, *scene.tree.done_of(highest))


def _is_decided_on(scene: Scene, tops: Sequence[str]) -> bool:
    """Say whether a person only has to say yes or no for some loops to go on."""
    asks = (*scene.tree.by_status[Status.AWAITING], *scene.tree.offered)
    return any(each == top or each.startswith(f"{top}/") for each in asks for top in tops)


def longest_way(scene: Scene, tops: Iterable[str]) -> tuple[str, ...]:
    """Return the longest row of loops of which each must be complete before the next, up to the end of some loops."""
    lengths: dict[_Point, int] = {}
    before: dict[_Point, _Point | None] = {}
    rests_on: dict[_Point, list[_Point]] = {}
    goals = [(top, True) for top in tops]
    stack = list(goals)
    while stack:
        point = stack[-1]
        if point in lengths:
            stack.pop()
            continue
        awaited = rests_on.pop(point, None)
        if awaited is None:
            awaited = rests_on[point] = list(_awaited(scene, *point))
        open_ones = [each for each in awaited if each not in lengths and each not in before]
        before.setdefault(point, None)
        if open_ones:
            stack += open_ones
            continue
        best = max(awaited, key=lambda each: lengths.get(each, 0), default=None)
        before[point] = best
        lengths[point] = (lengths.get(best, 0) if best is not None else 0) + _counts(scene.loops[point[0]], point)
        stack.pop()
    return tuple(_row(scene, before, max(goals, key=lambda each: lengths[each], default=None)))[::-1]


def _row(scene: Scene, before: dict[_Point, _Point | None], point: _Point | None) -> Iterator[str]:
    """Go the way back, naming the loops whose own work is still to be done."""
    while point is not None:
        if _counts(scene.loops[point[0]], point):
            yield point[0]
        point = before[point]


def _counts(loop: Loop, point: _Point) -> bool:
    """Say whether a point is a loop's own work, and that is still to be done."""
    return not point[1] and loop.status not in FINISHED


def _awaited(scene: Scene, loop_id: str, deep: bool) -> Iterator[_Point]:
    """List what must come before a point; what is done is left out."""
    loop = scene.loops[loop_id]
    if deep:
        yield loop_id, False
        yield from _open_children(scene, loop_id)
    elif loop.status not in FINISHED:
        yield from ((each, True) for each in loop.needs if each in scene.loops and not scene.tree.done(each))
        if loop.parent is not None and scene.loops[loop.parent].status is not Status.COMPLETE:
            yield loop.parent, False


def _open_children(scene: Scene, loop_id: str) -> Iterator[_Point]:
    """List the children that are not done; of those that have nothing below and no needs, one stands for all."""
    loops, has_children, is_met = scene.loops, scene.tree.has_children, False
    for name in scene.tree.children(loop_id):
        loop = loops[name]
        if has_children(name):
            if not scene.tree.done(name):
                yield name, True
        elif loop.needs or loop.status in FINISHED:
            if loop.status is not Status.COMPLETE:
                yield name, False
        elif not is_met:
            is_met = True
            yield name, False
