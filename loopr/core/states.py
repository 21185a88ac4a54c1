"""What a loop that is not pending waits for, in words: each state has its own.

Knows the tree and what is in the way. Must never know gates: that such a loop may not run is theirs to say.
"""

from __future__ import annotations

from loopr.core.hot import named, waits_to_land
from loopr.core.model import Gate, Loop, Status
from loopr.core.scene import Scene

WORDS = {each: each.value for each in Status} | {
    Status.PENDING: "waiting",
    Status.LEASED: "starting",
    Status.AWAITING: "approval",
    Status.COMPLETE: "done",
    Status.INVALIDATED: "undeclared",
}
"""What people call each state, in one word."""
READY, PAUSED = "ready", "paused"
"""What a loop that waits is called instead where no gate is closed, and where a person holds it."""

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


def awaits(scene: Scene, loop: Loop) -> str:
    """Say what its state waits for, and what holds it up there."""
    problem = scene.shared.problems.get(loop.id) if loop.occupying else None
    return _state_words(scene, loop) + (f"; held up: {problem}" if problem else "")


def turn_word(gate: Gate | None) -> str:
    """Return the word for a loop that waits for its turn, by its first closed gate."""
    if gate is None:
        return READY
    return PAUSED if gate.gate == PAUSED else WORDS[Status.PENDING]


def people_say(loop: Loop) -> str:
    """Say how a loop stands, as the end of a sentence that begins with "it is"."""
    return "waiting for approval" if loop.status is Status.AWAITING else WORDS[loop.status]


def is_written(scene: Scene, loop: Loop) -> bool:
    """Say whether a loop is a plan that a person has written, which nothing makes anew."""
    return loop.parent is None and not scene.policy.type_of(loop.type).has_command


def _state_words(scene: Scene, loop: Loop) -> str:
    """Say what its state waits for."""
    if loop.status is Status.COMPLETE:
        return complete_words(scene, loop)
    if loop.status is Status.LANDING:
        return _landing(scene, loop)
    reason = loop.reason or "no reason was given"
    return _STATE_WORDS[loop.status].format(id=loop.id, attempt=loop.attempt, reason=reason)


def complete_words(scene: Scene, loop: Loop) -> str:
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
    """Say how many loops of its plan land before it does, or which one mends a conflict first."""
    other, lease = waits_to_land(scene, loop), loop.lease
    if other is not None and lease is not None:
        return f"its landing waits: {other.id} mends its conflict in {named(lease.behind)} first"
    line = [scene.loops[each] for each in scene.tree.by_status[Status.LANDING]]
    order = scene.tree.order(loop)
    before = sum(other.plan == loop.plan and scene.tree.order(other) < order for other in line)
    return f"{ON_THE_WAY}, {before} before it" if before else LANDS_NOW
