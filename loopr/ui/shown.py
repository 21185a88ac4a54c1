"""What was shown at an event of the journal: the loops that are still as they were then.

A list of what waits for a person may be read long before a word is said on it: its number stands for it. Must never
know what a word leads to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.errors import UserError
from loopr.ui.groups import SHOWN, mark
from loopr.wiring import Scenery, Workspace

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground

Mark = tuple[object, ...]
CHANGED: Mark = ("changed",)
"""The mark of a loop that was shown, and has changed since."""

_HARMLESS = frozenset({"held", "lifted", "entry_changed", "artifact_gone", "steering_refused", "deferred"})
"""Events that leave the work of a loop, and what is asked about it, as they were."""
_OF_WAITING = frozenset({"iteration_asked", "candidate_replaced", "approved", "rejected"})
"""Events that only a loop has that waits for a person."""


def shown_at(workspace: Workspace, seen: Scenery, names: Iterable[str], at: int) -> dict[str, Mark]:
    """Map the loops that waited at an event to their marks: as they are, where nothing has happened to them since."""
    if at > seen.seq:
        hint = "`loopr diff --waiting` shows what waits now, and prints its number"
        raise UserError(f"nothing was shown at {at}: the journal is at {seen.seq}", hint=hint)
    first: dict[str, str] = {}
    with workspace.journal() as journal:
        for record in journal.since(at, seen.seq - at):
            if record.loop is not None and record.event not in _HARMLESS:
                first.setdefault(record.loop, record.event)
    same = {each: mark(seen.scene.loops[each]) for each in names if each not in first and each in seen.scene.loops}
    changed = {each: CHANGED for each in names if first.get(each) in _OF_WAITING}
    return same | changed | _moved_since(workspace, seen, same)


def shown_now(workspace: Workspace, seen: Scenery, names: Iterable[str]) -> dict[str, Mark]:
    """Map loops that are shown at this moment to their marks."""
    known = {each: mark(seen.scene.loops[each]) for each in names}
    return known | _moved_since(workspace, seen, known)


def _moved_since(workspace: Workspace, seen: Scenery, names: Iterable[str]) -> dict[str, Mark]:
    """Mark the loops whose branch is not where it was judged: somebody has committed there since, in no try."""
    scene = seen.scene
    waiting = [scene.loops[each] for each in names if each in scene.loops]
    waiting = [each for each in waiting if each.status is Status.AWAITING]
    if not waiting:
        return {}
    from loopr.grounds import ground_of_plan  # slow to import

    grounds = {each.plan: ground_of_plan(workspace, scene, each.plan) for each in waiting}
    return {each.id: CHANGED for each in waiting if has_moved(grounds[each.plan], each)}


def has_moved(ground: Ground | None, loop: Loop) -> bool:
    """Say whether the branch of a loop at rest is not where the engine left it."""
    from loopr.world.repo.ground import WORK
    from loopr.world.repo.refs import read_refs

    if ground is None:
        return False
    branch, work = ground.branch(loop.name), WORK + loop.name
    refs = read_refs(ground.door, branch, work)
    return branch in refs and work in refs and refs[branch] != refs[work]


def ensure_shown(scene: Scene, names: Iterable[str], known: Mapping[str, Mark]) -> None:
    """Refuse loops that are named themselves and are not as they were shown."""
    wrong = [each for each in names if each in scene.loops and known.get(each) != mark(scene.loops[each])]
    if wrong:
        hint = f"`loopr diff {wrong[0]}` shows what waits now"
        raise UserError(f"{', '.join(wrong)}: {SHOWN}, or was not shown", hint=hint)
