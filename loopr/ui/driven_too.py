"""The plans that an engine drives beside those that a start names, and once these are done.

Must never know an engine, nor hold anything back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from loopr.core.forest import Forest
from loopr.core.scene import Scene
from loopr.core.settled import Standing, is_settled, may_go_on, standing
from loopr.ui.older import some

MOST_NAMED = 5
LOOK_MS = 1_000


def driven_too(scene: Scene, named: Collection[str], now: int) -> list[str]:
    """List the plans that are not named and have something to do that goes on by itself."""
    others = (each for each in scene.tree.children(None) if each not in named)
    return [each for each in others if not scene.tree.at_rest(each) and may_go_on(scene, [each], now)]


def driven_too_words(scene: Scene, named: Collection[str], now: int) -> str:
    """Say which plans are driven too although nobody named them, and how one is held; nothing where none is."""
    found = driven_too(scene, named, now)
    if not found:
        return ""
    told = []
    for plan in found[:MOST_NAMED]:
        done, of = scene.tree.done_of([plan])
        told.append(f"{plan} ({of - done} of {of} to do)")
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    them = "it" if len(found) == 1 else "one"
    return f"also drives: {', '.join(told)}{more}; `loopr pause {found[0]}` holds {them}"


class DrivenOn:
    """Says once which plans are driven on when those that a start names have settled."""

    def __init__(self, named: Sequence[str]) -> None:
        """Begin with the plans that are named, if any are."""
        self._named = tuple(named)
        self._looked_at: int | None = None
        self._told = False

    def words(self, forest: Forest, now: int, until: str = "") -> str:
        """Say it where that is so and was not said yet; looked at once a second."""
        since, self._looked_at = self._looked_at, self._looked_at or now
        if not self._named or since is None or abs(now - since) < LOOK_MS:
            return ""
        self._looked_at = now
        if forest.shared.engine.draining or not is_settled(forest, now, self._named):
            self._told = False
            return ""
        others = () if self._told else driven_too(forest, self._named, now)
        self._told = self._told or bool(others)
        if not others:
            return ""
        done = standing(forest, self._named, now) is Standing.DONE
        is_are, has_have = ("is", "has") if len(self._named) == 1 else ("are", "have")
        state = f"{is_are} done" if done else f"{has_have} settled"
        ends = f" until {until}" if until else ""
        return f"{some(self._named)} {state}; still driving {some(others)}{ends}"
