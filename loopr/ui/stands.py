"""The words in which people are told where loops stand: one for each loop, and the sums of many.

Whatever is printed here may be typed where loops are filtered. Knows the scene. Must never know colours or columns but
for the width of a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from loopr.core.grouping import Waits
from loopr.core.model import Gate, Loop, Status
from loopr.core.scene import Scene
from loopr.core.staleness import is_stale
from loopr.core.states import PAUSED, READY, WORDS, turn_word
from loopr.core.tree import Below

DONE, OPEN, WAITING, STALE = "done", "open", WORDS[Status.PENDING], "stale"
WORDS_TO_TYPE = (
    WAITING,
    READY,
    PAUSED,
    *(WORDS[each] for each in Status if each not in (Status.PENDING, Status.COMPLETE)),
    OPEN,
    STALE,
    DONE,
)
"""Every word that a list of loops is narrowed down by; `open` stands for `3 of 8 done`."""
ALL_WORDS = tuple(dict.fromkeys((*WORDS_TO_TYPE, *(each.value for each in Status))))
"""The same, and how the journal says it."""
_SO_FAR = re.compile(r"\d+ of \d+ done")

IsReady = Callable[[Loop], bool]


def word_of(scene: Scene, loop: Loop, gate: Gate | None) -> str:
    """Return the word for where a loop stands: a pending one is ready, or waits; an open one says how much is done."""
    if loop.status is Status.PENDING:
        return turn_word(gate)
    if loop.status is Status.COMPLETE and scene.tree.is_head(loop.id) and not scene.tree.done(loop.id):
        done, of = scene.tree.below[loop.id].done
        if done == 0 and scene.tree.called_off(loop.id):
            return WORDS[Status.CANCELLED]
        return f"{done} of {of} done"
    if loop.status is Status.COMPLETE:
        if loop.past.ask is not None or is_stale(scene.tree, loop):
            return STALE
        done, of = scene.tree.below[loop.id].done
        return f"{done} of {of} done" if again_below(scene, loop) else DONE
    return WORDS[loop.status]


def again_below(scene: Scene, loop: Loop) -> int:
    """Count the loops to do again below one that is done but for these."""
    if not scene.tree.redoing or not scene.tree.done(loop.id):
        return 0
    return scene.tree.below[loop.id].redoing


def again_words(number: int) -> str:
    """Say how many loops are to do again, nothing where none is."""
    return f"{number} to do again" if number else ""


def to_do_again(scene: Scene, tops: Iterable[str] = ("",)) -> list[Loop]:
    """List the complete loops that are to be done again, at and below some loops, or all."""
    above = tuple(f"{each}/" if each else "" for each in tops)
    asked = (scene.loops[each] for each in sorted(scene.tree.redoing))
    found = (each for each in asked if each.status is Status.COMPLETE and each.waits)
    return [each for each in found if f"{each.id}/".startswith(above)]


def typed(word: str) -> str:
    """Return the word that is meant by one that was read off a tree."""
    return OPEN if _SO_FAR.fullmatch(word) else word


def is_like(scene: Scene, loop: Loop, gate: Gate | None, wanted: Iterable[str]) -> bool:
    """Say whether a loop stands as one of some words say, of people's or of the journal's.

    One that is to be done again is ready, waiting or paused too, as any that waits for its turn.
    """
    words = {loop.status.value, typed(word_of(scene, loop, gate))}
    return not words.union([turn_word(gate)] if loop.waits else []).isdisjoint(wanted)


def readiness(scene: Scene, now: int) -> IsReady:
    """Make what says of pending loops whether they are ready, asking once what many share."""
    waits = Waits(scene, now)
    return lambda loop: waits.first_closed(loop) is None


def summary(scene: Scene, loops: Iterable[Loop], is_ready: IsReady) -> str:
    """Count loops by their words."""
    found: dict[str, int] = {}
    for loop in loops:
        word = _plainest(scene, loop, is_ready)
        found[word] = found.get(word, 0) + 1
    return ", ".join(f"{n} {word}" for word, n in found.items())


def _plainest(scene: Scene, loop: Loop, is_ready: IsReady) -> str:
    """Return the word for where a loop stands among many."""
    if loop.status is Status.PENDING:
        return READY if is_ready(loop) else WAITING
    return typed(word_of(scene, loop, None))


def roll_up(scene: Scene, loop: Loop) -> str:
    """Say in a few words what is below a loop, beside how much of it is done."""
    below = scene.tree.below[loop.id]
    if below.total == below.complete:
        again = again_words(again_below(scene, loop))
        return f"{below.total} below, all done" + (f", {again}" if again else "")
    parts = ((below.running, "running"), (below.parked, "parked"), (below.failed, "failed"))
    return f"{below.total} below" + "".join(f", {n} {word}" for n, word in parts if n)


def footer(
    counts: Mapping[str, int],
    done_of: tuple[int, int],
    width: int,
    ready: int = 0,
    *,
    again: int = 0,
) -> list[str]:
    """Say how much is done, and how all else stands, in one line if it fits.

    Of the pending loops some are `ready`; of the done ones some are to be done `again`.
    """
    done, of = done_of
    rest = {WORDS[Status(name)]: n for name, n in counts.items() if name != Status.COMPLETE}
    if ready and WAITING in rest:
        rest = {WAITING: rest.pop(WAITING) - ready, READY: ready} | rest
    lines = [f"{done} of {of} done" if of else "no loops"]
    told = [again_words(again), *(f"{n} {word}" for word, n in rest.items() if n)]
    for part in (f" · {each}" for each in told if each):
        if len(lines[-1] + part) > width:
            lines.append(" " * len(lines[0].split(" ·")[0]))
        lines[-1] += part
    return lines


# --- as data ------------------------------------------------------------------------------------------------------


def below_row(below: Below) -> dict[str, Any]:
    """Return what is below a loop: counted by status, and how much of it is done."""
    done, of = below.done
    found = {key: getattr(below, key) for key in ("total", "complete", "running", "parked", "failed")}
    return found | {"done": done, "of": of}


def done_of(scene: Scene, loops: Iterable[Loop]) -> tuple[int, int]:
    """Count how many of some loops are done, and of how many: what is below an open one stands for it."""
    ends = [loop for loop in loops if not scene.tree.is_head(loop.id)]
    return sum(loop.status is Status.COMPLETE for loop in ends), len(ends)


def done_row(found: tuple[int, int]) -> dict[str, Any]:
    """Return how much is done as data."""
    return {"progress": {"done": found[0], "of": found[1]}}
