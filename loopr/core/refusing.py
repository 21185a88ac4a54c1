"""Refusals of wishes that do not fit a loop as it stands, with those that fit instead.

Knows states and gates. Must never decide whether a wish fits.
"""

from __future__ import annotations

from loopr.core.gates import first_closed
from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.core.states import GONE, NOT_OVER, complete_words, is_written, people_say, turn_word
from loopr.errors import UserError

_TURN = "it waits its turn by itself: `loopr why` says for what"
_ANEW = "`loopr retry --fresh {}` makes it anew"
_BY_A_PERSON = "edit its plan and `loopr start` it again, or name what is below it, with --fresh"
_GOES_ON = "what is open of it goes on by `loopr run`; {}"
_WAITS_FOR = "`loopr why {}` says what it waits for"
_PARKED_ONLY = "only a parked loop is reset; `loopr retry` begins a failed one again"

_LATE = "it tries again by itself; `loopr retry {}` ends that wait"


def does_not_fit(
    scene: Scene,
    loop: Loop,
    verb: str,
    hint: str,
    *,
    of_below: bool = False,
) -> UserError:
    """Make the refusal of a wish that does not fit a loop as it, or all below it, stands."""
    says = f"it is {_stands(scene, loop)}"
    if of_below and loop.status is Status.COMPLETE and not scene.tree.done(loop.id):
        says = "it is cancelled" if scene.tree.called_off(loop.id) else complete_words(scene, loop)
    return UserError(f"cannot {verb} {loop.id}: {says}", hint=hint)


def nothing_stuck(scene: Scene, loop: Loop, verb: str) -> UserError:
    """Make the refusal of a retry or a reset where nothing of a loop, or below it, is stuck."""
    loops = list(scene.tree.walk(loop.id))
    held = next((each.id for each in loops if each.hold is not None), "")
    on = f"`loopr resume {held}` lets go on what is held" if held else ""
    if loop.status is not Status.COMPLETE or scene.tree.at_rest(loop.id):
        hint = _not_parked(scene, loop) if verb == "reset" else on or _again(scene, loop)
        return does_not_fit(scene, loop, verb, hint)
    if any(each.status in (Status.FAILED, Status.CANCELLED) for each in loops):
        on = f"`loopr retry {loop.id}` begins again what has failed or was cancelled"
    stuck = "is parked" if verb == "reset" else "has failed, or was parked or cancelled"
    said = f"cannot {verb} {loop.id}: nothing of it {stuck}"
    also = (_WAITS_FOR if is_written(scene, loop) else _ANEW).format(loop.id)
    return UserError(said, hint=on or _GOES_ON.format(also))


def _not_parked(scene: Scene, loop: Loop) -> str:
    """Return the hint in the place of a reset, of a loop that is not parked."""
    if loop.status is Status.PENDING and loop.not_before > scene.at:
        return _LATE.format(loop.id)
    return _PARKED_ONLY


def _again(scene: Scene, loop: Loop) -> str:
    """Say how a loop goes on of which nothing is to be retried."""
    if loop.status is Status.PENDING:
        return _TURN
    if loop.status is Status.COMPLETE:
        return _BY_A_PERSON if is_written(scene, loop) else _ANEW.format(loop.id)
    return GONE if loop.status is Status.INVALIDATED else NOT_OVER


def _stands(scene: Scene, loop: Loop) -> str:
    """Say how a loop stands in the word that a tree has for it."""
    if loop.status is not Status.PENDING:
        return people_say(loop)
    return turn_word(first_closed(scene, loop, scene.at))
