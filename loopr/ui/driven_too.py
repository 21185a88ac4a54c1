"""The plans that an engine drives beside those that a start names, since it drives the whole workspace.

Must never know an engine, nor hold anything back.
"""

from __future__ import annotations

from collections.abc import Collection

from loopr.core.scene import Scene
from loopr.core.settled import may_go_on

MOST_NAMED = 5


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
