"""One look at the artifacts that a decision rests on, for a process that decides where no engine looks all the time.

Knows how a loop's place, its input and those above that are compared with the journal. Must never decide anything, nor
look at more than a decision rests on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core.events import Event
from loopr.core.filing import place_of
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.driving.switching import WAITS
from loopr.engine import Decide, Engine

MOST_REST_MS = 1_000  # a file that was written to a moment ago is given so much time to be whole
_OURS = frozenset({Status.INVALIDATED, Status.LANDING})


class _UnreadError(Exception):
    """Carries the files that a decision rests on and that differ from what was read."""

    def __init__(self, seen: list[o.Observation]) -> None:
        """Keep what was seen."""
        super().__init__(f"{len(seen)} files differ from what was read")
        self.seen = seen


def decide_looking(engine: Engine, settle_ms: int, decide: Decide) -> list[Event]:
    """Let leases be decided on the files as they are: what differs is learnt first, and all is decided again.

    Where nothing can be leased the decision rests on all files that are missing: those that have come are learnt.
    """
    looked = set[str]()

    def guarded(forest: Forest, now: int) -> Iterator[Event]:
        """Stop before a lease that rests on a file which differs."""
        for event in decide(forest, now):
            if isinstance(event, e.LeaseGranted) and (seen := learnable(engine, settle_ms, event.loop, looked)):
                raise _UnreadError(seen)
            yield event

    while True:
        try:
            events = engine.mind.decide(guarded)
        except _UnreadError as found:
            learn(engine, found.seen)
            continue
        granted = any(isinstance(each, e.LeaseGranted) for each in events)
        come = [] if granted else _come(engine, settle_ms, looked)
        if not come:
            return events
        learn(engine, come)


def _come(engine: Engine, settle_ms: int, looked: set[str]) -> list[o.Observation]:
    """List what is not known of files at places where none was, each looked at once."""
    missing = [each for each in engine.forest.tree.walk() if not each.on_disk and each.id not in looked]
    there = [each for each in missing if engine.hands.changed_at(each.id, each.type)]
    looked.update(each.id for each in there)
    return [seen for each in there if (seen := _settled(engine, settle_ms, each)) is not None]


def learn(engine: Engine, seen: Iterable[o.Observation]) -> None:
    """Learn what files say by now, and complete what is declared by that."""
    told = engine.learn(seen)
    engine.settle({engine.forest.loops[each.loop].plan for each in told if isinstance(each, e.LoopEvent)})


def learn_files(engine: Engine, loops: Iterable[str]) -> None:
    """Learn what the files of some loops say by now."""
    known = (engine.forest.loops[each] for each in loops if each in engine.forest.loops)
    learn(engine, [seen for each in known if (seen := _news(engine, each)) is not None])


def learnable(engine: Engine, settle_ms: int, loop_id: str, looked: set[str]) -> list[o.Observation]:
    """List what is not known of the files that the lease of a loop rests on, each looked at once."""
    loop = engine.forest.loops[loop_id]
    loops = [each for each in (loop, *engine.forest.tree.ancestors(loop)) if each.id not in looked]
    looked.update(each.id for each in loops)
    return [seen for each in reversed(loops) if (seen := _settled(engine, settle_ms, each)) is not None]


def _settled(engine: Engine, settle_ms: int, loop: Loop) -> o.Observation | None:
    """Look at a loop's artifact, and again where somebody may be in the middle of writing it."""
    seen = _news(engine, loop)
    if seen is None or isinstance(seen, o.FileGone):
        return seen
    rest = engine.hands.changed_at(loop.id, loop.type) + settle_ms - engine.mind.now()
    if rest <= 0:
        return seen
    time.sleep(min(rest, MOST_REST_MS) / 1000)
    return _news(engine, loop)


def _news(engine: Engine, loop: Loop) -> o.Observation | None:
    """Look at a loop's artifact, and say what of it is not known; None if that is nothing."""
    told = engine.forest.shared.problems.get(place_of(engine.forest, loop))
    if loop.status in _OURS or told == WAITS:
        return None
    seen = engine.hands.look(loop.id, loop.type, loop.artifact if told is None else "", engine.whose(loop))
    counts = {loop.artifact} if loop.on_disk else set[str]()
    match seen:
        case None:
            return o.FileGone(loop.id) if engine.is_missed(loop) else None
        case o.FileUnchanged() if loop.on_disk:
            return None
        case o.FileSeen(digest=digest) if digest in counts | {loop.offers.offered, *loop.offers.rejected}:
            return None
        case o.FileRefused(text=text) if text == told:
            return None
    return seen
