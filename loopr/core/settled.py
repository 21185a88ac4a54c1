"""Whether there is anything left that will go on by itself, and if not, how it stands.

Asks the same gates as the selector, of the whole workspace or of some loops with all that they wait for. Knows no
process: an attempt that lives takes a slot, and that is all there is to see. Whoever performs effects asks once all
that is owed has been tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

from loopr.core.gates import closed_gates, line_holder, own_gates_open, scope_is_held
from loopr.core.limits import lane_full
from loopr.core.model import FINISHED, Gate, Loop, Status
from loopr.core.resources import is_lost
from loopr.core.scene import Scene
from loopr.core.staleness import comes_first

if TYPE_CHECKING:  # verbs that only show ask here too, and need no forest
    from loopr.core.forest import Forest

_ENDED_BADLY = frozenset({Status.FAILED, Status.PARKED})
_CEILINGS = frozenset({"apart", "budget", "project", "type", "capacity"})


class Standing(IntEnum):
    """How the plans that were asked for stand once nothing goes on by itself; the value is the exit code."""

    DONE = 0
    STUCK = 1
    WAITING = 4
    SPENT = 5


# --- does anything go on by itself? -------------------------------------------------------------------------------


def is_settled(forest: Forest, now: int, among: Iterable[str] | None = None) -> bool:
    """Say whether no attempt lives, no effect is owed, and no closed gate will open by itself.

    `among` asks it of some loops only, with all below them and whatever they wait for. To ask lets nobody into a group:
    a backoff that ends meanwhile would be over, and wake no engine.
    """
    if among is not None:
        return not any(_moves(forest, loop, now) for loop, _ in _concerned(forest, among))
    if (
        forest.occupancy.total
        or forest.packing
        or any(_is_written(forest, forest.loops[each]) for each in forest.settling)
    ):
        return False
    if forest.shared.engine.draining:
        return True
    if any(at > now or _will_go(forest, forest.loops[each], now) for at, each in forest.ready.waiting()):
        return False
    return not any(_will_go(forest, forest.loops[next(iter(group.members))], now) for _, group in forest.ready.groups())


def _moves(forest: Forest, loop: Loop, now: int) -> bool:
    """Say whether something happens to a loop, or will, that no person has to begin."""
    if loop.occupying:
        return True
    if loop.id in forest.settling:
        return _is_written(forest, loop)
    return loop.id in forest.ready and _will_go(forest, loop, now)


def may_go_on(scene: Scene, among: Iterable[str], now: int) -> bool:
    """Say whether something happens to some loops, or to what they wait for, or will, that no person has to begin."""
    return any(_goes_on(scene, loop, now) for loop, _ in _concerned(scene, among))


def _goes_on(scene: Scene, loop: Loop, now: int) -> bool:
    """Say whether a loop is at work, or comes to be by itself."""
    if loop.occupying or not loop.waits:
        return loop.occupying
    return _will_go(scene, loop, now) and (not scene.settles(loop) or _is_written(scene, loop))


def _is_written(forest: Scene, loop: Loop) -> bool:
    """Say whether a loop that completes by declaration will do so; a person must mend what refused its file."""
    place = forest.policy.place_of(loop.id, loop.type)
    return place not in forest.shared.problems and not scope_is_held(forest, loop)


def _will_go(forest: Scene, loop: Loop, now: int) -> bool:
    """Say whether every closed gate of a loop that waits will open by itself."""
    return all(_opens(forest, loop, gate, now) for gate in closed_gates(forest, loop, now))


def _opens(forest: Scene, loop: Loop, gate: Gate, now: int) -> bool:
    """Say whether a closed gate opens by itself: at an instant, or when others give back what they have taken."""
    if gate.until is not None or gate.gate == "worktrees":
        return True
    if not forest.occupancy.total:
        return False
    if gate.gate == "lane":
        lanes = (name for name in forest.lanes_of(loop) if not forest.shared.lane(name).parked)
        return any(lane_full(forest, name, now) for name in lanes)
    if gate.gate == "resource":
        return not is_lost(forest, loop)
    return gate.gate in _CEILINGS


# --- how does it stand? -------------------------------------------------------------------------------------------


def standing(forest: Forest, loops: Iterable[str], now: int) -> Standing:
    """Say how some loops stand: the first of stuck, spent, waiting and done that applies to one of those concerned."""
    found = {_of(forest, loop, needed, now) for loop, needed in _concerned(forest, loops)}
    return next((each for each in (Standing.STUCK, Standing.SPENT, Standing.WAITING) if each in found), Standing.DONE)


def _of(forest: Scene, loop: Loop, needed: bool, now: int) -> Standing:
    """Say how one loop stands; a person who cancelled it has settled that, unless another loop needs it."""
    if loop.status in _ENDED_BADLY:
        return Standing.STUCK
    if not loop.waits:
        if loop.status not in FINISHED:
            return Standing.WAITING
        lost = needed and loop.status is not Status.COMPLETE
        return Standing.STUCK if lost else Standing.DONE
    if any(name not in forest.loops for name in loop.needs) or _has_no_lane(forest, loop):
        return Standing.STUCK
    if not forest.settles(loop) and is_lost(forest, loop):
        return Standing.STUCK
    closed = {gate.gate for gate in closed_gates(forest, loop, now)}
    return Standing.SPENT if "budget" in closed else Standing.WAITING


def _has_no_lane(forest: Scene, loop: Loop) -> bool:
    """Say whether every lane that a loop may use is parked: that is as bad as being parked itself."""
    if forest.settles(loop) or not own_gates_open(forest, loop):
        return False
    return all(forest.shared.lane(name).parked for name in forest.lanes_of(loop))


def _concerned(forest: Scene, tops: Iterable[str]) -> Iterator[tuple[Loop, bool]]:
    """Go through some loops with all below them, and through what they wait for; the latter are said to be needed."""
    waiting = [(top, True, False) for top in tops if top in forest.loops]
    met: set[tuple[str, bool, bool]] = set()
    while waiting:
        each = waiting.pop()
        loop_id, deep, needed = each
        if each in met or forest.tree.at_rest(loop_id):
            continue
        met.add(each)
        loop = forest.loops[loop_id]
        yield loop, needed
        if deep:
            waiting += ((child, True, needed) for child in forest.tree.children(loop_id))
        if loop.waits:
            waiting += ((name, below, True) for name, below in _awaited(forest, loop))


def _awaited(forest: Scene, loop: Loop) -> Iterator[tuple[str, bool]]:
    """Name the loops that a pending one waits for, and whether for all below them too."""
    if loop.parent is not None and forest.loops[loop.parent].status is not Status.COMPLETE:
        yield loop.parent, False
    yield from ((name, True) for name in loop.needs if name in forest.loops)
    first = comes_first(forest.tree, loop) if loop.past.ask is not None else None
    if first is not None:
        yield first, False
    holder = line_holder(forest, loop) if forest.is_serial(loop) else None
    if holder is not None:
        yield holder, False
