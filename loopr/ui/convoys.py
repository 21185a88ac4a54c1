"""Convoys as everybody calls and sees them: named sets of loops that land when all of them are done.

Knows their names and rows. Must never know how one is formed, nor a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopr.core.gates import closed_gates
from loopr.core.model import Gate, Status
from loopr.core.prospects import prospect
from loopr.core.scene import Scene
from loopr.errors import NotFound
from loopr.ui.views import Row, document, instant, loop_row

_FOR_OTHERS = ("parent", "needs")
_NEXT = "no gate is closed: it waits for its turn, `loopr next`"


def convoy_name(text: str) -> str:
    """Return the name of a convoy that was written with its sign, or without."""
    return text.removeprefix("@")


def find_convoy(scene: Scene, text: str) -> str:
    """Return the name of the convoy that is meant."""
    name = convoy_name(text)
    if name not in scene.shared.convoys:
        known = ", ".join(f"@{each}" for each in sorted(scene.shared.convoys))
        raise NotFound(f"there is no convoy @{name}", hint=f"known: {known}" if known else "`loopr convoy create`")
    return name


def progress_row(scene: Scene, tops: Sequence[str], now: int) -> Row:
    """Return how far some loops have come with all below them, and the longest way still to go."""
    row = prospect(scene, tops, now)._asdict()
    return row | {"way": list(row["way"])}


def way_words(row: Row) -> str:
    """Say how long the longest way still is, where any is left, and whether nothing goes on."""
    if row["total"] == row["complete"]:
        return ""
    length = len(row["way"])
    way = f"the longest way: {length} loop{'s' * (length != 1)}" if length else ""
    stuck = "stuck: nothing of it goes on by itself" if row["stranded"] else ""
    return "; ".join(filter(None, [way, stuck]))


def progress_words(row: Row) -> str:
    """Say what there is of some loops beside the complete ones, and how far they have to go."""
    kinds = (("at_work", "at work"), ("waits", "waiting"), ("failed", "failed"), ("cancelled", "cancelled"))
    counts = ", ".join(f"{row[key]} {words}" for key, words in kinds if row[key])
    return "; ".join(filter(None, [counts, way_words(row)]))


def convoy_row(scene: Scene, name: str, now: int) -> Row:
    """Return one convoy with its counts."""
    convoy = scene.shared.convoys[name]
    return {
        "name": f"@{name}",
        "members": list(convoy.members),
        "total": len(convoy.members),
        "done": sum(map(scene.tree.done, convoy.members)),
        "landed_at": instant(convoy.landed_at),
        "progress": progress_row(scene, convoy.members, now),
    }


def convoys_document(scene: Scene, now: int) -> Row:
    """Return all convoys."""
    return document(now, {"convoys": [convoy_row(scene, name, now) for name in sorted(scene.shared.convoys)]})


def convoy_document(scene: Scene, name: str, now: int) -> Row:
    """Return one convoy with its loops, and all that holds it up."""
    members = scene.shared.convoys[name].members
    holding = {row["id"]: row for each in members for row in _holding(scene, each, now)}
    loops = [loop_row(scene, scene.loops[each], now) for each in members]
    return document(now, {"convoy": convoy_row(scene, name, now), "loops": loops, "holding": list(holding.values())})


def _holding(scene: Scene, member: str, now: int) -> list[Row]:
    """List what is not complete at a member or below: what only waits for others is left out, unless that is all."""
    undone = [each for each in scene.tree.walk(member) if each.status is not Status.COMPLETE]
    gates = [(each.id, next(closed_gates(scene, each, now), None)) for each in undone]
    first = [each for each in gates if each[1] is None or each[1].gate not in _FOR_OTHERS]
    return [{"id": name, "reason": _reason(gate)} for name, gate in first or gates[:1]]


def _reason(gate: Gate | None) -> str:
    """Say what a loop waits for."""
    return gate.reason if gate is not None else _NEXT
