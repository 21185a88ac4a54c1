"""Which loops work from files that are others now, by the patterns that entries and types give as `inputs`.

Knows paths and patterns as text, and the tree. Must never know a repository, nor when a plan takes a new base.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import NamedTuple

from loopr.core.model import Loop, Status
from loopr.core.overlap import covers
from loopr.core.scene import Scene
from loopr.core.staleness import has_made

_OVER = frozenset({Status.CANCELLED, Status.INVALIDATED})
_WILD = frozenset("*?[")
_LAST = chr(0x10FFFF)


class Other(NamedTuple):
    """A loop that works from files which are others now, in tree order of its plan."""

    loop: str
    paths: tuple[str, ...]


class Differing(NamedTuple):
    """How many loops of a plan name inputs, and which of them have others now."""

    total: int = 0
    others: tuple[Other, ...] = ()


def differing(scene: Scene, plan: str, paths: Collection[str]) -> Differing:
    """Say which loops of a plan that work themselves name a file among some paths as an input."""
    named = _matching(paths)
    total, others = 0, []
    for loop, patterns in with_inputs(scene, plan):
        if _works(loop) and loop.status not in _OVER:
            total += 1
            found = dict.fromkeys(path for pattern in patterns for path in named(pattern))
            others += [Other(loop.id, tuple(found))] if found else []
    return Differing(total, tuple(others))


def _works(loop: Loop) -> bool:
    """Say whether a loop has done work itself, or is still to do it; one that is complete by its file has not."""
    return loop.status is not Status.COMPLETE or has_made(loop)


def with_inputs(scene: Scene, plan: str) -> Iterator[tuple[Loop, tuple[str, ...]]]:
    """Give the loops of a plan that inputs hold for, with the patterns of all of these.

    Those of a loop that does no work itself hold for all below it.
    """
    below: dict[str | None, tuple[str, ...]] = {None: ()}
    for loop in scene.tree.walk(plan) if plan in scene.loops else ():
        own = (*loop.inputs, *scene.policy.type_of(loop.type).inputs)
        above = below[loop.parent]
        if own or above:
            yield loop, tuple(dict.fromkeys((*above, *own)))
        below[loop.id] = above if not own or _works(loop) else (*above, *own)


def unmatched(scene: Scene, plan: str, paths: Collection[str]) -> dict[str, list[str]]:
    """List the patterns of a plan's inputs that no path fits, each with the loops that name it themselves."""
    named = _matching(paths)
    found: dict[str, list[str]] = {}
    for loop in scene.tree.walk(plan) if plan in scene.loops else ():
        for pattern in dict.fromkeys(loop.inputs):
            if loop.status not in _OVER and not named(pattern):
                found.setdefault(pattern, []).append(loop.id)
    return found


def has_inputs(scene: Scene, plan: str) -> bool:
    """Say whether inputs hold for a loop of a plan."""
    return next(with_inputs(scene, plan), None) is not None


def _matching(paths: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Return what says which of some paths fit a pattern; those that begin as it does stand together."""
    known = sorted(set(paths))

    @cache
    def named(pattern: str) -> tuple[str, ...]:
        clean = "/".join(each for each in pattern.split("/") if each not in ("", "."))
        fixed = next((place for place, sign in enumerate(clean) if sign in _WILD), len(clean))
        start, end = bisect_left(known, clean[:fixed]), bisect_left(known, clean[:fixed] + _LAST)
        return tuple(path for path in known[start:end] if covers((clean,), path))

    return named
