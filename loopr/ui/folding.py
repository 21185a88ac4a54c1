"""Which loops of a large tree are drawn, and which are rolled up into one line.

Small trees are drawn whole. In a large one, what is at work or in trouble is opened first, then level by level while it
fits; what is done stays closed. Knows the tree; must never know how a line looks.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from loopr.core.model import Loop, Status
from loopr.core.scene import Scene

FIRST = 10  # how many of those that only wait stand for all, where all are too many
_QUIET = frozenset({Status.PENDING, Status.COMPLETE})


class Line(NamedTuple):
    """One line of a folded tree: a loop, opened or closed, or (without a loop) a number of its siblings left out."""

    loop: Loop | None
    lead: str
    closed: bool = False
    left_out: tuple[Loop, ...] = ()


def fold(scene: Scene, tops: list[str], room: int, depth: int | None = None) -> list[Line]:
    """Choose the lines for some subtrees, about `room` of them at most; no room is no limit."""
    shown = _open(scene, tops, room, depth)
    lines: list[Line] = []
    for top in tops:
        loop = scene.loops[top]
        lines.append(Line(loop, "", _is_closed(scene, top, shown)))
        lines.extend(_below(scene, top, shown, ""))
    return lines


def _open(scene: Scene, tops: list[str], room: int, depth: int | None) -> dict[str, list[str]]:
    """Say for every opened loop which of its children are drawn."""
    total = sum(scene.tree.below[top].total + 1 for top in tops)
    everything = not room or total <= room
    used, shown, waiting = len(tops), dict[str, list[str]](), deque((top, 0) for top in tops)
    while waiting:
        loop_id, level = waiting.popleft()
        children = scene.tree.children(loop_id)
        if not children or (depth is not None and level >= depth):
            continue
        if not everything and scene.tree.at_rest(loop_id):
            continue
        if everything or used + len(children) <= room:
            chosen = children
        else:
            busy = [each for each in children if _busy(scene, each)]
            some = busy or [each for each in children if not scene.tree.at_rest(each)][:FIRST]
            chosen = some[: max(0, room - used - 1)]
            used += 1
        if chosen:
            shown[loop_id] = chosen
            used += len(chosen)
            waiting.extend((each, level + 1) for each in chosen)
    return shown


def _busy(scene: Scene, loop_id: str) -> bool:
    """Say whether something at or below a loop is at work or in trouble."""
    below = scene.tree.below[loop_id]
    return scene.loops[loop_id].status not in _QUIET or bool(below.running or below.parked or below.failed)


def _is_closed(scene: Scene, loop_id: str, shown: dict[str, list[str]]) -> bool:
    """Say whether a loop has children that are not drawn at all."""
    return loop_id not in shown and scene.tree.below[loop_id].total > 0


def _below(scene: Scene, top: str, shown: dict[str, list[str]], lead: str) -> list[Line]:
    """List the lines below one loop."""
    lines: list[Line] = []
    chosen = shown.get(top, [])
    drawn = set(chosen)
    rest = tuple(scene.loops[each] for each in scene.tree.children(top) if each not in drawn) if chosen else ()
    for index, child in enumerate(chosen):
        last = index == len(chosen) - 1 and not rest
        lines.append(Line(scene.loops[child], lead + ("└─ " if last else "├─ "), _is_closed(scene, child, shown)))
        lines.extend(_below(scene, child, shown, lead + ("   " if last else "│  ")))
    if rest:
        lines.append(Line(None, lead + "└─ ", left_out=rest))
    return lines
