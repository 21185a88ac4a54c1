"""Cancelled work: which holds it leaves, and how a plan leaves of which nothing has landed.

The events of such a plan stay, a start brings it back. Must never know which part of it git keeps.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core import events as e
from loopr.core.declaring import undeclare
from loopr.core.events import Event
from loopr.core.model import Hold, Loop, Status
from loopr.core.scene import Scene


def held_by_cancel(scene: Scene, top: str, by: str) -> list[str]:
    """List the loops, from one downwards, that stayed complete when something below was cancelled.

    Of their holds, the word of a loop lets go on only those that it has put itself.
    """
    loops = list(scene.tree.walk(top))
    ended = [each for each in loops if each.status is Status.CANCELLED]
    by_loop = by.partition(" via ")[0].rpartition("#")[0] in scene.loops
    holds = [(each.id, each.hold) for each in loops if each.hold is not None]
    may_lift = [(name, hold) for name, hold in holds if hold.by == by or not by_loop]
    return [name for name, hold in may_lift if any(_ended_with(each, hold) for each in ended)]


def _ended_with(loop: Loop, hold: Hold) -> bool:
    """Say whether a loop was cancelled by the very word that has put a hold on another."""
    return loop.since == hold.at and loop.reason.startswith(hold.reason)


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
