"""Artifacts of complete loops that are gone from their places, and come back from what is kept.

A file that is missing is never taken for a wish: nothing is done again because of it. Must never write over a file, nor
know how the copy of one is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.engine import WRITERS, Engine
from loopr.errors import EngineHeld
from loopr.hands import FileHands
from loopr.wiring import Workspace


class Mended(NamedTuple):
    """The loops whose artifacts were put back, and those of which no copy is kept."""

    back: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def gone(scene: Scene, hands: FileHands, tops: Iterable[str]) -> Iterator[Loop]:
    """Give the complete loops at and below some tops whose artifact is not in its place."""
    for top in tops:
        for loop in scene.tree.walk(top):
            if loop.status is Status.COMPLETE and loop.artifact and hands.is_gone(loop):
                yield loop


def put_back(engine: Engine, tops: Iterable[str]) -> Mended:
    """Put back what is gone at and below some tops, as far as a copy is kept, and learn that it is there."""
    hands = engine.hands
    if not isinstance(hands, FileHands):
        return Mended()
    kept, lost = list[tuple[Loop, bytes]](), list[str]()
    for loop in gone(engine.forest, hands, list(tops)):
        raw = hands.copy_of(loop, engine.mind.find_entry(loop.id))
        if raw is None:
            lost.append(loop.id)
        else:
            kept.append((loop, raw))
    with ThreadPoolExecutor(WRITERS) as pool:  # most of writing is waiting for the disk
        done = list(pool.map(lambda each: hands.put_back(*each), kept))
    back = [loop for (loop, _), is_back in zip(kept, done, strict=True) if is_back]
    engine.learn(filter(None, [hands.look(each.id, each.type, each.artifact) for each in back]))
    return Mended(tuple(each.id for each in back), tuple(lost))


def mend(workspace: Workspace) -> Mended:
    """Put back what is gone anywhere, in a turn of our own or beside the engine that serves the workspace."""
    try:
        with workspace.turn() as engine:
            return put_back(engine, engine.forest.tree.children(None))
    except EngineHeld:
        pass
    with workspace.visit() as engine:
        return put_back(engine, engine.forest.tree.children(None))
