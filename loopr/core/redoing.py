"""Decides which complete work is done again: because of a landing, a start, or a person's word.

Yields events one at a time, like `intake.py`. A loop that is asked to be done again stays complete until the selector
grants it (`choose.py`). By a rule, each loop is asked at most once between two starts of its plan.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core.events import Event
from loopr.core.model import Loop, Status
from loopr.core.redo_events import RedoAsked, RedoBegan, RoundBegan
from loopr.core.scene import Scene
from loopr.core.staleness import is_stale, resting_on, stale_because, stale_below

STALE = "stale"
REDO = "redo"


def may_redo(scene: Scene, loop: Loop) -> bool:
    """Say whether complete work can be asked to be done again: an attempt has done it, and it is not asked already."""
    if loop.status is not Status.COMPLETE or loop.past.ask is not None or scene.settles(loop):
        return False
    return loop.past.made > 0 or (bool(loop.landed) and not loop.offers.counts)


def ask_redo(
    scene: Scene, loop: Loop, cause: str, by: str = "", *, cascades: bool = False, landed: str = "", again: bool = False
) -> Iterator[Event]:
    """Ask for the work of a loop to be done again, where it can be.

    Not twice between two starts of its plan, unless `again`: a person says so.
    """
    number = scene.shared.round(loop.plan).number
    if may_redo(scene, loop) and (again or loop.past.round != number):
        yield RedoAsked(loop.id, cause, by, cascades, landed, number)


def redo_after(scene: Scene, before: Loop) -> Iterator[Event]:
    """Ask for what is to be done again now that a loop has landed; `before` is how it was until then."""
    loop, ask = scene.loops[before.id], before.past.ask
    changed = loop.past.changed == scene.shared.grants and loop.past.changed != 0
    if changed and (ask is not None and ask.cascades):
        for each in resting_on(scene.tree, loop):
            yield from ask_redo(scene, each, ask.cause, ask.by, cascades=True, landed=loop.id)
    if not _redoes(scene):
        return
    for each in resting_on(scene.tree, loop) if changed else ():
        yield from _by_rule(scene, scene.loops[each.id], loop.id)
    if loop.status is Status.COMPLETE and _is_redone(scene, loop) and is_stale(scene.tree, loop):
        yield from _by_rule(scene, loop, stale_because(scene.tree, loop)[0])


def _redoes(scene: Scene) -> bool:
    """Say whether any type has its stale loops done again."""
    return any(each.stale == REDO for each in scene.policy.types.values())


def _is_redone(scene: Scene, loop: Loop) -> bool:
    """Say whether a loop is done again by a rule once it is stale."""
    return scene.policy.type_of(loop.type).stale == REDO


def _by_rule(scene: Scene, loop: Loop, landed: str) -> Iterator[Event]:
    """Ask for a stale loop to be done again if its type says so."""
    if _is_redone(scene, loop) and is_stale(scene.tree, loop):
        yield from ask_redo(scene, loop, STALE, landed=landed)


def begin_round(scene: Scene, plan: str) -> Iterator[Event]:
    """Let each loop of a plan be done again once more by a rule, and ask for those that wait for that."""
    if scene.shared.round(plan).used_at:
        yield RoundBegan(plan)
    if _redoes(scene):
        for loop in stale_below(scene.tree, plan):
            if _is_redone(scene, loop):
                yield from _by_rule(scene, loop, stale_because(scene.tree, loop)[0])


def redo_stale(scene: Scene, plans: tuple[str, ...], by: str) -> Iterator[Event]:
    """Ask for all that is stale in some plans to be done again, and for what rests on it where that lands something."""
    for plan in plans:
        found = [each for each in stale_below(scene.tree, plan) if may_redo(scene, each)]
        if found and scene.shared.round(plan).used_at:
            yield RoundBegan(plan)
        for loop in found:
            landed = stale_because(scene.tree, loop)[0]
            yield from ask_redo(scene, loop, STALE, by, cascades=True, landed=landed, again=True)


def begins(loop: Loop) -> Iterator[Event]:
    """Begin the redoing of a loop that is granted next, if it is one."""
    if loop.status is Status.COMPLETE:
        yield RedoBegan(loop.id, loop.generation + 1)
