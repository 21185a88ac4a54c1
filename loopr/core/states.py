"""What a loop that is not pending waits for, in words: each state has its own.

Knows the tree and what is in the way. Must never know gates: that such a loop may not run is theirs to say.
"""

from __future__ import annotations

from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.errors import UserError

WORDS = {each: each.value for each in Status} | {
    Status.PENDING: "waiting",
    Status.LEASED: "starting",
    Status.AWAITING: "approval",
    Status.COMPLETE: "done",
    Status.INVALIDATED: "undeclared",
}
"""What people call each state, in one word."""

LANDS_NOW, ON_THE_WAY = "its commits land now", "its commits are on their way to the plan branch"
"""What a landing is told as where an engine carries it out."""

_STATE_WORDS = {
    Status.LEASED: "it was chosen; its worktree and process are being prepared",
    Status.RUNNING: "try {attempt} runs",
    Status.CHECKING: "try {attempt} is being judged",
    Status.AWAITING: "it waits for a person: `loopr approve {id}` or `loopr reject {id}`",
    Status.PARKED: "it is parked: {reason}; `loopr reset {id}` once that is mended",
    Status.FAILED: "it failed: {reason}; `loopr retry {id}` begins again",
    Status.CANCELLED: "it was cancelled; `loopr retry {id}` brings it back",
    Status.INVALIDATED: "it is no longer declared by its parent",
}


NOT_OVER = "wait until it has ended, or `loopr cancel` it first"
GONE = "it is not declared any more, so nothing of it will run"
_TURN = "it waits its turn by itself: `loopr why` says for what"
_ANEW = "`loopr retry --fresh {}` makes it anew"
_BY_A_PERSON = "edit its plan and `loopr start` it again, or name what is below it, with --fresh"
_GOES_ON = "what is open of it goes on by `loopr run`; {}"
_WAITS_FOR = "`loopr why {}` says what it waits for"
_PARKED_ONLY = "only a parked loop is reset; `loopr retry` begins a failed one again"


def awaits(scene: Scene, loop: Loop) -> str:
    """Say what its state waits for, and what holds it up there."""
    problem = scene.shared.problems.get(loop.id) if loop.occupying else None
    return _state_words(scene, loop) + (f"; held up: {problem}" if problem else "")


def people_say(loop: Loop) -> str:
    """Say how a loop stands, as the end of a sentence that begins with "it is"."""
    return "waiting for approval" if loop.status is Status.AWAITING else WORDS[loop.status]


def does_not_fit(loop: Loop, verb: str, hint: str, scene: Scene | None = None) -> UserError:
    """Make the refusal of a wish that does not fit how a loop stands; of what is below it, where the scene is given."""
    says = f"it is {people_say(loop)}"
    if scene is not None and loop.status is Status.COMPLETE and not scene.tree.done(loop.id):
        says = "it is cancelled" if scene.tree.called_off(loop.id) else _complete(scene, loop)
    return UserError(f"cannot {verb} {loop.id}: {says}", hint=hint)


def nothing_stuck(scene: Scene, loop: Loop, verb: str) -> UserError:
    """Make the refusal of a retry or a reset where nothing of a loop, or below it, is stuck."""
    loops = list(scene.tree.walk(loop.id))
    held = next((each.id for each in loops if each.hold is not None), "")
    way_on = f"`loopr resume {held}` lets go on what is held" if held else ""
    if loop.status is not Status.COMPLETE or scene.tree.at_rest(loop.id):
        hint = _PARKED_ONLY if verb == "reset" else way_on or _again(scene, loop)
        return does_not_fit(loop, verb, hint)
    if any(each.status in (Status.FAILED, Status.CANCELLED) for each in loops):
        way_on = f"`loopr retry {loop.id}` begins again what has failed or was cancelled"
    stuck = "is parked" if verb == "reset" else "has failed, or was parked or cancelled"
    said = f"cannot {verb} {loop.id}: nothing of it {stuck}"
    also = (_WAITS_FOR if is_written(scene, loop) else _ANEW).format(loop.id)
    return UserError(said, hint=way_on or _GOES_ON.format(also))


def _again(scene: Scene, loop: Loop) -> str:
    """Say how a loop goes on of which nothing is to be retried."""
    if loop.status is Status.PENDING:
        return _TURN
    if loop.status is Status.COMPLETE:
        return _BY_A_PERSON if is_written(scene, loop) else _ANEW.format(loop.id)
    return GONE if loop.status is Status.INVALIDATED else NOT_OVER


def is_written(scene: Scene, loop: Loop) -> bool:
    """Say whether a loop is a plan that a person has written, which nothing makes anew."""
    return loop.parent is None and not scene.policy.type_of(loop.type).has_command


def _state_words(scene: Scene, loop: Loop) -> str:
    """Say what its state waits for."""
    if loop.status is Status.COMPLETE:
        return _complete(scene, loop)
    if loop.status is Status.LANDING:
        return _landing(scene, loop)
    reason = loop.reason or "no reason was given"
    return _STATE_WORDS[loop.status].format(id=loop.id, attempt=loop.attempt, reason=reason)


def _complete(scene: Scene, loop: Loop) -> str:
    """Say what a complete loop still waits for below it."""
    if scene.tree.at_rest(loop.id):
        return "it is done"
    if scene.tree.done(loop.id):
        number = scene.tree.below[loop.id].redoing
        again = f"{number} below it {'is' if number == 1 else 'are'}" if number else "it is"
        return f"it is done, and {again} to do again"
    if scene.tree.called_off(loop.id):
        return f"it was cancelled; `loopr retry {loop.id}` brings it back"
    done, of = scene.tree.below[loop.id].done
    return f"its own work is done, and {done} of {of} below it"


def _landing(scene: Scene, loop: Loop) -> str:
    """Say how many loops of its plan land before it does."""
    line = [scene.loops[each] for each in scene.tree.by_status[Status.LANDING]]
    order = scene.tree.order(loop)
    before = sum(other.plan == loop.plan and scene.tree.order(other) < order for other in line)
    return f"{ON_THE_WAY}, {before} before it" if before else LANDS_NOW
