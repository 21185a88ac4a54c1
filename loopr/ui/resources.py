"""The resources of the machine as rows and in words: how much there is, and who has it.

Knows the scene. Must never know what a resource is, nor who may have one next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loopr.core.housing import KEPT, PACKED
from loopr.core.model import Loop
from loopr.core.scene import Scene, holds

MOST_NAMED = 3


def resource_rows(scene: Scene) -> dict[str, Any]:
    """Return every resource that is offered or held: how much of each, and by which loops."""
    held = scene.occupancy
    names = sorted({*scene.policy.resources, *held.held})
    return {
        name: {
            "offered": scene.policy.resources.get(name, 0),
            "held": held.held.get(name, 0),
            "by": sorted(held.holders.get(name, ())),
        }
        for name in names
    }


def resource_lines(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Say of each resource how much of it is held, and by whom."""
    for name, row in rows.items():
        loops = row["by"]
        more = f" and {len(loops) - MOST_NAMED} more" if len(loops) > MOST_NAMED else ""
        by = f" by {', '.join(loops[:MOST_NAMED])}{more}" if loops else ""
        yield f"{name}: {row['held']} of {row['offered']} held{by}"


def wanted_words(scene: Scene, loop: Loop) -> str:
    """Say what a loop wants of the resources, or has of them; nothing where it names none."""
    has = holds(loop)
    amounts = has or scene.resources_of(loop)
    said = ", ".join(f"{amount} {name}" for name, amount in amounts)
    return f"{said}{' (held)' if has else ''}"


def worktrees_row(scene: Scene) -> dict[str, int | None]:
    """Count the loops that have a worktree, those of which it was packed or could not be, and how many there may be."""
    words = [loop.packed for loop in scene.loops.values() if loop.packed and loop.leased]
    counts = {"packed": words.count(PACKED), "kept": words.count(KEPT)}
    return {"taken": len(scene.housed), "most": scene.policy.most_worktrees} | counts


def worktrees_words(row: Mapping[str, int | None]) -> str:
    """Say how many worktrees there are, nothing while there is room and none was packed."""
    if not (row["packed"] or row["kept"] or row["taken"] == row["most"]):
        return ""
    said = [f"{row['packed']} packed"] if row["packed"] else []
    said += [f"{row['kept']} kept beside: `loopr events` says why"] if row["kept"] else []
    most = f" of {row['most']}" if row["most"] is not None else ""
    return f"{row['taken']}{most}" + (f" ({', '.join(said)})" if said else "")
