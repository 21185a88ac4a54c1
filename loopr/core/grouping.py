"""With whom a loop is let run and held back, and how many wait for nothing but a ceiling.

Knows what loops of one group share. Must never know who of them is next (`ranking.py`), nor what is done about a long
queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from loopr.core.gates import SHARED_GATES, closed_gates, first_closed, group_closed, own_closed, own_gates_open
from loopr.core.limits import budget_spent, budgets_of, crew_of, lane_full
from loopr.core.model import Gate, Loop
from loopr.core.policy import Amounts
from loopr.core.resources import is_lost
from loopr.core.scene import Scene

_CEILINGS = frozenset({"lane", "project", "type", "resource", "worktrees", "capacity", "pace"})


class GroupKey(NamedTuple):
    """What loops must have in common to be let run or held back together."""

    project: str
    plan: str
    type: str
    lanes: tuple[tuple[str, ...], ...]
    line: str
    command: bool
    suspects: tuple[int, ...] = ()
    vain_on: str = ""
    in_vain: int = 0
    resources: Amounts = ()
    housing: str = ""


def group_key(scene: Scene, loop: Loop) -> GroupKey:
    """Say with whom a loop opens and closes: a serial loop with its line, unless it holds the line itself."""
    own = scene.policy.type_of(loop.type)
    is_serial, suspects = loop.serial or not own.parallel, scene.shared.suspects  # asked of each of very many loops
    line = (loop.id if loop.holds_line else loop.parent or loop.id) if is_serial else ""
    return GroupKey(
        loop.project,
        "" if scene.loops[loop.plan].budget.unlimited else loop.plan,
        loop.type,
        tuple([crew.lanes for crew in scene.crews_of(loop)]),
        line,
        loop.command or own.has_command,
        tuple([each.number for each in suspects if loop.id in each.loops]) if suspects else (),
        loop.vain_on,
        loop.in_vain,
        scene.resources_of(loop),
        "" if scene.policy.most_worktrees is None else scene.housing(loop),
    )


class Waits:
    """What holds back each of many loops at one moment: what a group shares is asked once."""

    def __init__(self, scene: Scene, now: int) -> None:
        """Begin with nothing asked."""
        self._scene, self._now = scene, now
        self._of_groups: dict[GroupKey, tuple[Gate, ...]] = {}

    def first_closed(self, loop: Loop) -> Gate | None:
        """Return the first closed gate of a loop."""
        if self._is_alone(loop):
            return first_closed(self._scene, loop, self._now)
        own = next(own_closed(self._scene, loop, self._now), None)
        return own or next(iter(self._of_group(loop)), None)

    def closed(self, loop: Loop) -> list[Gate]:
        """List every closed gate of a loop, in order."""
        if self._is_alone(loop):
            return list(closed_gates(self._scene, loop, self._now))
        return [*own_closed(self._scene, loop, self._now), *self._of_group(loop)]

    def _is_alone(self, loop: Loop) -> bool:
        """Say whether a loop shares none of its gates with others."""
        return not loop.waits or loop.ending is not None or self._scene.settles(loop)

    def _of_group(self, loop: Loop) -> tuple[Gate, ...]:
        """Return the closed gates that all of a loop's group share."""
        key = group_key(self._scene, loop)
        if key not in self._of_groups:
            self._of_groups[key] = tuple(group_closed(self._scene, loop, self._now))
        return self._of_groups[key]


class Queue(NamedTuple):
    """How many loops wait for nothing but a ceiling, by type, and how many wait for nothing at all."""

    depth: dict[str, int]
    ready: int


def queue(scene: Scene, now: int) -> Queue:
    """Count the loops that wait for a slot, and those without a closed gate; a group is asked once."""
    waits: dict[GroupKey, bool | None] = {}
    depth: dict[str, int] = {}
    ready = 0
    for loop in scene.loops.values():
        if not loop.waits or now < loop.not_before or not own_gates_open(scene, loop):
            continue
        key = group_key(scene, loop)
        if key not in waits:
            waits[key] = _only_ceilings(scene, loop, now) if key.command else False
        found = waits[key]
        if found is None:
            ready += 1
        elif found:
            depth[key.type] = depth.get(key.type, 0) + 1
    return Queue(dict(sorted(depth.items())), ready)


def queue_depth(scene: Scene, now: int) -> dict[str, int]:
    """Count, by type, the pending loops held by ceilings alone: of a type, project, lane or the whole."""
    return queue(scene, now).depth


def ready_loops(scene: Scene, now: int) -> Iterator[Loop]:
    """Go through the pending loops that no gate holds back."""
    waits = Waits(scene, now)
    for loop in scene.loops.values():
        if loop.waits and waits.first_closed(loop) is None:
            yield loop


def budget_waits(scene: Scene, now: int) -> dict[tuple[str, int | None], int]:
    """Count the pending loops that a budget holds back, by what is said of it and when it has room again.

    Who waits for something else first is not among them.
    """
    waits = Waits(scene, now)
    spent: dict[GroupKey, tuple[str, int | None] | None] = {}
    found: dict[tuple[str, int | None], int] = {}
    bound: dict[tuple[str, str], bool] = {}
    for loop in scene.loops.values():
        payers = (loop.plan, loop.project)
        if payers not in bound:
            bound[payers] = any(True for _ in budgets_of(scene, loop))
        if not bound[payers] or not loop.waits or not own_gates_open(scene, loop):
            continue
        key = group_key(scene, loop)
        if key not in spent:
            spent[key] = budget_spent(scene, loop, now)
        reason = spent[key]
        first = waits.first_closed(loop) if reason is not None else None
        if reason is not None and first is not None and first.gate == "budget":
            found[reason] = found.get(reason, 0) + 1
    return found


def _only_ceilings(scene: Scene, loop: Loop, now: int) -> bool | None:
    """Say whether nothing but ceilings hold a loop back, None where nothing that it shares with others does."""
    closed = {name for name, check in SHARED_GATES if check(scene, loop, now) is not None}
    if not closed:
        return None
    if "lane" in closed and not any(_is_full(scene, name, now) for name in crew_of(scene, loop, now).lanes):
        return False
    if "resource" in closed and is_lost(scene, loop):
        return False
    return closed <= _CEILINGS


def _is_full(scene: Scene, name: str, now: int) -> bool:
    """Say whether a lane works and has as many loops as it may; one that rests or is parked is no ceiling."""
    lane = scene.shared.lane(name)
    return not lane.parked and now >= lane.rest_until and lane_full(scene, name, now) is not None
