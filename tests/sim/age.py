"""What must hold of work that is older than what it rests on, told anew from the numbers of events alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loopr.core import events as e
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.core.redo import STALE
from loopr.core.redo_events import RedoAsked, RedoBegan, RoundBegan
from loopr.core.staleness import is_stale, stale_below

MET = ("something became stale", "a rule had something done again", "a landing had others done again")


class Age:
    """When each loop was granted, and when it landed what, in numbers of events."""

    def __init__(self, met: Callable[[str], None]) -> None:
        """Begin with nothing."""
        self.met = met
        self._number = 0
        self._work: dict[str, int] = {}
        self._made: dict[str, int] = {}
        self._changed: dict[str, int] = {}
        self._asked: dict[str, set[str]] = {}
        self._begun = ""

    def problems(self, forest: Forest, event: e.Event) -> Iterator[str]:
        """Take in an event, and say what is wrong with it, in the state before it."""
        self._number += 1
        begun, self._begun = self._begun, event.loop if isinstance(event, RedoBegan) else ""
        if begun and not (isinstance(event, e.LeaseGranted) and event.loop == begun):
            yield f"although the lease of {begun} was to follow"
        if isinstance(event, e.LeaseGranted) and not event.judge_only:
            self._work[event.loop] = self._number
        elif isinstance(event, e.Landed):
            self._made[event.loop] = self._work[event.loop]
            if event.commit:
                self._changed[event.loop] = self._number
        elif isinstance(event, e.ArtifactAccepted) and forest.loops[event.loop].status is not Status.COMPLETE:
            self._made.pop(event.loop, None)
        elif isinstance(event, RoundBegan):
            self._asked.pop(event.plan, None)
        elif isinstance(event, RedoAsked):
            yield from self._may_ask(forest, forest.loops[event.loop], event)
        elif isinstance(event, RedoBegan):
            yield from self._comes_first(forest, forest.loops[event.loop])

    def _may_ask(self, forest: Forest, loop: Loop, event: RedoAsked) -> Iterator[str]:
        """Nothing is asked for twice at once, nor by a rule between two starts; a rule asks for what is stale."""
        asked = self._asked.setdefault(loop.plan, set())
        if loop.past.ask is not None:
            yield f"although {loop.past.ask}"
        if event.landed and not self._rests(forest, loop) & {event.landed}:
            yield f"which does not rest on {event.landed}"
        if not event.by and loop.id in asked:
            yield "for the second time since its plan was started"
        if not event.by and event.cause == STALE and not self._is_old(forest, loop):
            yield "which is not stale"
        asked.add(loop.id)
        if event.cause == STALE:
            self.met(f"luck: {'somebody' if event.by else 'a rule'} had something done again")
        if event.cascades and event.landed and event.cause != STALE:
            self.met("luck: a landing had others done again")

    def _comes_first(self, forest: Forest, loop: Loop) -> Iterator[str]:
        """Whatever is to be done again and is rested on, at whatever length, comes first."""
        found, waiting = set[str](), [loop.id]
        while waiting:
            fresh = self._rests(forest, forest.loops[waiting.pop()]) - found
            found |= fresh
            waiting += fresh
        over = (Status.PARKED, Status.FAILED, Status.CANCELLED, Status.INVALIDATED)
        for each in sorted(found):
            other = forest.loops[each]
            if other.past.ask is not None and other.status not in over:
                yield f"before {each}, which is {other.status} and to be done again"

    def _rests(self, forest: Forest, loop: Loop) -> set[str]:
        """Name all that a loop rests on, in the plainest way."""
        parts = loop.id.split("/")
        chain = [forest.loops["/".join(parts[:length])] for length in range(1, len(parts) + 1)]
        needs = {name for each in chain for name in each.needs}
        return {other for other in forest.loops for name in needs if f"{other}/".startswith(f"{name}/")}

    def _is_old(self, forest: Forest, loop: Loop) -> bool:
        """Say whether a loop is stale."""
        made = self._made.get(loop.id)
        if made is None or loop.status is not Status.COMPLETE:
            return False
        return any(self._changed.get(each, 0) > made for each in self._rests(forest, loop))

    def differences(self, forest: Forest) -> Iterator[str]:
        """Say where the core takes other loops for stale."""
        wanted = {each.id for each in forest.tree.walk() if self._is_old(forest, each)}
        found = {each.id for each in forest.tree.walk() if is_stale(forest.tree, each)}
        if found != wanted:
            yield f"{sorted(found)} are stale, by the numbers of events {sorted(wanted)}"
        listed = [each.id for each in stale_below(forest.tree)]
        if set(listed) != found:
            yield f"{listed} are listed as stale, {sorted(found)} are"
        if wanted:
            self.met("luck: something became stale")
