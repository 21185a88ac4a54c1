"""A plan that was cancelled before anything of it landed, and leaves the tree by a person's word.

Its events stay, and a start brings it back. Must never know what is kept of it in git.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core import events as e
from loopr.core.declaring import undeclare
from loopr.core.events import Event
from loopr.core.model import Loop, Status
from loopr.core.scene import Scene


def may_drop(scene: Scene, plan: str) -> bool:
    """Say whether a plan is cancelled, nothing of it runs any more, and nothing of it has landed."""
    loop = scene.loops.get(plan)
    if loop is None or loop.parent is not None:
        return False
    if loop.status is not Status.CANCELLED and not scene.tree.called_off(plan):
        return False
    bound = scene.shared.plans.get(plan)
    begins = bound.base_commit if bound is not None else ""
    return not any(each.occupying or each.landed not in ("", begins) for each in _every(scene, plan))


def _every(scene: Scene, plan: str) -> list[Loop]:
    """List the loops of a plan, with those that are declared no more."""
    gone = [each for each in scene.tree.by_status[Status.INVALIDATED] if each.startswith(f"{plan}/")]
    return [*scene.tree.walk(plan), *(scene.loops[each] for each in gone)]


def drop(scene: Scene, plan: str, by: str) -> Iterator[Event]:
    """Take a plan out of the tree if it may go, with all below it; lift what holds it, for when it comes back."""
    if not may_drop(scene, plan):
        return
    for loop in list(scene.tree.walk(plan)):
        if loop.hold is not None:
            yield e.Lifted(loop.id, by)
    yield from undeclare(scene, plan)
