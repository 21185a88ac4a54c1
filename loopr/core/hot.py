"""Files that several loops change at once: the turns to mend conflicts, and the landings that wait.

A loop has its turn while it is at work on a conflict, until it has landed or `merge.turn_secs` have
passed. Of loops with a file in common one at a time has a turn; landings that touch its files let
others pass, so that what it mends is not stale before it lands. Knows paths as names. Must never
know how a conflict is laid out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loopr.core.model import OCCUPYING, Loop, Status
from loopr.core.offering import Closed
from loopr.core.overlap import covers
from loopr.core.scene import Scene

ALONE_FROM = 2
"""From this conflict in a row on, nothing else is granted that means to touch its files."""


def has_turn(loop: Loop) -> bool:
    """Say whether it is a loop's turn to mend its conflict: it is at work on that."""
    return bool(loop.clash.number and loop.clash.began) and loop.status in OCCUPYING


def next_number(scene: Scene) -> int:
    """Return the place of a conflict that comes now."""
    return 1 + max((scene.loops[each].clash.number for each in scene.tree.clashing), default=0)


def turn_closed(scene: Scene, loop: Loop) -> Closed:
    """Another loop mends a conflict first in files that it would change."""
    for other in _turns_beside(scene, loop):
        paths = _in_common(loop, other)
        if paths:
            return f"{other.id} mends its conflict in {named(paths)} first", None
    return None


def waits_to_land(scene: Scene, loop: Loop) -> Loop | None:
    """Name the loop with the turn that a landing waits for, while that has not begun."""
    lease = loop.lease
    if loop.status is not Status.LANDING or lease is None or lease.lands or not lease.behind:
        return None
    return next((each for each in _before(scene, loop) if _shared(each, lease.behind)), None)


def touched_turns(scene: Scene, loop: Loop, changed: Iterable[str]) -> tuple[str, ...]:
    """Return the files that a landing changes and another loop has its turn to mend."""
    held = {path for each in _before(scene, loop) for path in each.clash.paths}
    return tuple(sorted(held.intersection(changed))) if held else ()


def passed_by(scene: Scene) -> int:
    """Count the landings that wait for a turn: they take no slot of `max_loops`."""
    if not scene.tree.clashing:
        return 0
    landing = (scene.loops[each] for each in scene.tree.by_status[Status.LANDING])
    return sum(waits_to_land(scene, each) is not None for each in landing)


def starts_later(scene: Scene, loop: Loop) -> bool:
    """Say whether a landing must be over first, so that a conflict is laid upon its commit."""
    tip = scene.shared.tip(loop.plan)
    return bool(loop.clash.number) and tip.moving is not None and not tip.begins


def concerned(scene: Scene, loop: Loop) -> list[str]:
    """List the loops for which it matters whether this one has its turn."""
    if loop.clash.times >= ALONE_FROM:
        return [each.id for each in scene.tree.walk(loop.plan) if each.waits and each.id != loop.id]
    return [each for each in scene.tree.clashing if each != loop.id and _plan_of(each) == loop.plan]


def overdue(scene: Scene, now: int) -> Iterator[Loop]:
    """Go through the loops with a turn that has taken too long, by id."""
    for each in sorted(scene.tree.clashing):
        ends = ends_at(scene, scene.loops[each])
        if ends is not None and now >= ends:
            yield scene.loops[each]


def ends_at(scene: Scene, loop: Loop) -> int | None:
    """Say when the turn of a loop ends by itself, None before it has begun."""
    return loop.clash.began + scene.policy.merge_turn_ms if loop.clash.began else None


def named(paths: tuple[str, ...]) -> str:
    """Name files in a sentence."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def _before(scene: Scene, loop: Loop) -> Iterator[Loop]:
    """Go through the loops of a plan that have their turn before another one may land."""
    mine = loop.clash.number if has_turn(loop) else 0
    return (each for each in _turns_beside(scene, loop) if not mine or each.clash.number < mine)


def _turns_beside(scene: Scene, loop: Loop) -> Iterator[Loop]:
    """Go through the other loops of a plan that have their turn."""
    for each in scene.tree.clashing:
        other = scene.loops[each]
        if other.id != loop.id and other.plan == loop.plan and has_turn(other):
            yield other


def _in_common(loop: Loop, other: Loop) -> tuple[str, ...]:
    """Return the files of another loop's turn for which a loop has to wait."""
    clash, theirs = loop.clash, other.clash
    found = set[str]()
    if clash.number:
        found = set(clash.paths) & {*theirs.paths, *theirs.touched} | set(clash.touched) & set(theirs.paths)
    if theirs.times >= ALONE_FROM:
        found.update(each for each in theirs.paths if each in clash.touched or covers(loop.files, each))
    return tuple(sorted(found))


def _shared(other: Loop, paths: tuple[str, ...]) -> bool:
    """Say whether a loop has a conflict in one of some files."""
    return not set(other.clash.paths).isdisjoint(paths)


def _plan_of(loop_id: str) -> str:
    """Return the plan that a loop belongs to."""
    return loop_id.partition("/")[0]
