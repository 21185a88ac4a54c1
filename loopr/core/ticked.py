"""Items that a list has ticked off: what is done already, and never became a loop, is left out and needed no more.

Knows entries and which loops there are. Must never know how an item is written, nor what becomes of it in the tree.
"""

from __future__ import annotations

from dataclasses import replace

from loopr.core.entries import Artifact, Entry
from loopr.core.model import Status
from loopr.core.scene import Scene


def left_out(scene: Scene, parent_id: str, artifact: Artifact) -> list[Entry]:
    """List the entries that are ticked off and not in the tree; one that is there stays a loop like any other."""
    return [each for each in artifact.entries if each.ticked and not _is_there(scene, f"{parent_id}/{each.id}")]


def without_ticked(scene: Scene, parent_id: str, artifact: Artifact) -> list[tuple[int, Entry]]:
    """Return the entries that count, each with its place in the file, without needs on those that are left out."""
    gone = {each.id for each in left_out(scene, parent_id, artifact)}
    counted = [(place, each) for place, each in enumerate(artifact.entries) if each.id not in gone]
    return [(place, _without_needs(each, parent_id, gone)) for place, each in counted] if gone else counted


def _without_needs(entry: Entry, parent_id: str, gone: set[str]) -> Entry:
    """Take the needs of an entry that are met by what is ticked off."""
    needs = tuple(each for each in entry.needs if each.removeprefix(f"{parent_id}/") not in gone)
    return replace(entry, needs=needs) if needs != entry.needs else entry


def _is_there(scene: Scene, loop_id: str) -> bool:
    """Say whether a loop is in the tree."""
    loop = scene.loops.get(loop_id)
    return loop is not None and loop.status is not Status.INVALIDATED
