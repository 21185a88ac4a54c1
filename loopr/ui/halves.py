"""A plan that is not done: what is left of it, what resolves each loop that is stuck, what a part of it cuts through.

Looks at a scene and says it in rows and words. Must never know a branch, nor how a plan comes home.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from loopr.core.gates import first_closed
from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.errors import Problem
from loopr.ui.stands import word_of
from loopr.ui.views import Row

MOST_NAMED, MOST_STUCK = 5, 20
_STUCK = frozenset({Status.FAILED, Status.PARKED, Status.CANCELLED, Status.AWAITING})
_GONE = frozenset({Status.COMPLETE, Status.INVALIDATED})


class Half(NamedTuple):
    """The landed and the open half of a plan: children that are cut through, and missing loops.

    `older` are those of which only the work of an earlier try has landed: that comes home as it is.
    """

    landed: int
    cut: tuple[tuple[str, tuple[str, ...]], ...]
    missing: tuple[tuple[str, str], ...]
    older: tuple[tuple[str, str], ...] = ()

    def row(self) -> Row:
        """Return it as data."""
        return {
            "cut": [{"id": name, "missing": list(without)} for name, without in self.cut],
            "missing": [{"id": name, "status": word} for name, word in self.missing],
            "older": [{"id": name, "status": word} for name, word in self.older],
        }


def half_of(scene: Scene, plan: str, now: int) -> Half:
    """Say what of a plan has landed up to now, and what has not."""
    loops = [each for each in scene.tree.walk(plan) if each.status is not Status.INVALIDATED]
    open_ones = [each for each in loops if each.status is not Status.COMPLETE]
    missing, older = (
        tuple((each.id, _word(scene, each, now)) for each in open_ones if bool(each.landed) is landed)
        for landed in (False, True)
    )
    cut = []
    for child in scene.tree.children(plan):
        without = tuple(name for name, _ in missing if _within(name, child))
        if without and any(each.landed for each in loops if _within(each.id, child)):
            cut.append((child, without))
    return Half(sum(bool(each.landed) for each in loops), tuple(cut), missing, older)


def words_of(half: Half) -> list[str]:
    """Say in lines what a partial landing cuts through, and what is missing altogether."""
    lines = [f"cut through: {name} lacks {_named(without)}" for name, without in half.cut]
    cut = {name for _, without in half.cut for name in without}
    others = [name for name, _ in half.missing if name not in cut]
    lines += [f"missing: {_named(others)}"] if others else []
    old = [name for name, _ in half.older]
    return [*lines, *([f"with older work: {_named(old)}"] if old else [])]


def undone(scene: Scene, plan: Loop, now: int) -> tuple[Problem, ...]:
    """Say why a plan is not done: what is left, and of each loop that is stuck the command that resolves it."""
    if scene.tree.done(plan.id):
        return ()
    half = half_of(scene, plan.id, now)
    named = [f"{name} ({word})" for name, word in (*half.missing, *half.older)]
    hint = f"`loopr tree {plan.id}` says what it waits for"
    if half.landed:
        hint = f"`loopr land {plan.id} --partial` brings home what has landed; {hint}"
    first = Problem(f"{plan.id} is not done: {', '.join(named[:MOST_NAMED])}{_more(named)}", hint=hint)
    stuck = [each for each in scene.tree.walk(plan.id) if each.status in _STUCK or _held(each)]
    rest = Counter(_word(scene, each, now) for each in stuck[MOST_STUCK:])
    more = [Problem(f"{number} more: {word}", hint=f"`loopr ls {plan.id}` lists them") for word, number in rest.items()]
    return (first, *(_stuck(scene, each, now) for each in stuck[:MOST_STUCK]), *more)


def _stuck(scene: Scene, loop: Loop, now: int) -> Problem:
    """Say of a loop that is stuck why, and what resolves it."""
    reason = f": {loop.reason}" if loop.reason and loop.status in _STUCK else ""
    return Problem(f"{loop.id} {_is(scene, loop, now)}{reason}", hint=_resolved_by(loop))


def _is(scene: Scene, loop: Loop, now: int) -> str:
    """Say where a loop stands, as the predicate of a sentence."""
    if loop.status is Status.AWAITING:
        return "waits for approval"
    word = _word(scene, loop, now)
    return word if word == Status.FAILED else f"is {word}"


def _resolved_by(loop: Loop) -> str:
    """Name the command that resolves where a loop is stuck."""
    out = "or take its entry out of the plan"
    match loop.status:
        case Status.FAILED:
            return f"`loopr retry {loop.id}` begins it again, {out}"
        case Status.PARKED:
            return f"mend that, then `loopr reset {loop.id}`, {out}"
        case Status.CANCELLED:
            return f"`loopr retry {loop.id}` brings it back, {out}"
        case Status.AWAITING:
            return f"`loopr diff {loop.id}` shows it, `loopr approve {loop.id}` lets it land"
    return f"`loopr resume {loop.id}` lets it go on"


def _held(loop: Loop) -> bool:
    """Say whether a person holds a loop that is not over."""
    return loop.hold is not None and loop.status not in _GONE


def _word(scene: Scene, loop: Loop, now: int) -> str:
    """Say in one word where a loop stands, as `tree` does."""
    return word_of(scene, loop, first_closed(scene, loop, now) if loop.status is Status.PENDING else None)


def _within(name: str, top: str) -> bool:
    """Say whether a loop is another one or below it."""
    return name == top or name.startswith(f"{top}/")


def _named(names: list[str] | tuple[str, ...]) -> str:
    """Name a few."""
    return ", ".join(names[:MOST_NAMED]) + _more(names)


def _more(names: list[str] | tuple[str, ...]) -> str:
    """Count those that are not named."""
    return f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
