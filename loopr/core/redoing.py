"""Decides which complete work is done again: because of a landing, a start, or a person's word.

Yields events one at a time, like `intake.py`. A loop that is asked to be done again stays complete until the selector
grants it (`choose.py`). By a rule, each loop is asked at most once between two starts of its plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loopr.core.events import Event
from loopr.core.model import Loop, Status
from loopr.core.redo import REDO, STALE
from loopr.core.redo_events import RedoAsked, RedoBegan, RoundBegan
from loopr.core.scene import Scene
from loopr.core.staleness import has_made, is_stale, resting_on, stale_because, stale_below

_ENDED = frozenset({Status.PARKED, Status.FAILED, Status.CANCELLED})


def may_redo(scene: Scene, loop: Loop, *, stale: bool = False) -> bool:
    """Say whether complete work can be asked to be done again: an attempt has done it, and it is not asked already.

    `stale`: only if it is.
    """
    if stale and not is_stale(scene.tree, loop):
        return False
    if loop.status is not Status.COMPLETE or loop.past.ask is not None or scene.settles(loop):
        return False
    return has_made(loop)


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
        for each in sorted(resting_on(scene.tree, loop), key=scene.tree.order):
            yield from ask_redo(scene, each, ask.cause, ask.by, cascades=True, landed=loop.id)
    if not _redoes(scene):
        return
    for each in sorted(resting_on(scene.tree, loop), key=scene.tree.order) if changed else ():
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


def owes_redo(scene: Scene, plan: str) -> list[Loop]:
    """List the stale loops of a plan that a start has done again, since their types say so."""
    return [each for each in stale_below(scene.tree, plan) if _is_redone(scene, each)] if _redoes(scene) else []


def begin_round(scene: Scene, plan: str) -> Iterator[Event]:
    """Start a plan anew: each of its loops may be done again once more by a rule; ask for those that wait for that."""
    yield from next_round(scene, plan)
    for loop in owes_redo(scene, plan):
        yield from _by_rule(scene, loop, stale_because(scene.tree, loop)[0])


def next_round(scene: Scene, plan: str) -> Iterator[Event]:
    """Begin another round of a plan, if anything was asked for in the present one."""
    if scene.shared.round(plan).used_at:
        yield RoundBegan(plan)


def redo_stale(scene: Scene, names: Iterable[str], by: str) -> Iterator[Event]:
    """Ask for those loops of some that are stale to be done again, and for what rests on them in its turn."""
    loops = [scene.loops[each] for each in names]
    found = [each for each in loops if may_redo(scene, each, stale=True)]
    for plan in dict.fromkeys(each.plan for each in found):
        yield from next_round(scene, plan)
    for loop in found:
        landed = stale_because(scene.tree, loop)[0]
        yield from ask_redo(scene, loop, STALE, by, cascades=True, landed=landed, again=True)


def begin_daily(scene: Scene, now: int) -> Iterator[Event]:
    """Begin another round of each plan whose present one is a day old, for an engine that stays."""
    for plan, known in list(scene.shared.rounds.items()):
        if known.is_over(now) and plan in scene.loops:
            yield from begin_round(scene, plan)


def begins(loop: Loop) -> Iterator[Event]:
    """Begin the redoing of a loop that is granted next, if it is one."""
    if loop.status is Status.COMPLETE:
        yield RedoBegan(loop.id, loop.generation + 1)


def worked_below(scene: Scene, top: str) -> list[Loop]:
    """List the loops below one that have been tried and are over, parents first: they can be made anew."""
    found = (each for each in scene.tree.walk(top) if each.id != top and each.leased)
    return [each for each in found if each.status in _ENDED or (each.status is Status.COMPLETE and has_made(each))]
