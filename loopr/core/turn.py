"""One turn of thinking: observations in, events out, the forest changed by exactly these events.

The one driver of the generators in `intake.py`, `wishes.py` and `choose.py`: it applies every event before it asks for
the next. Used alike by the engine, by requests and by the simulation.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopr.core.choose import choose
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.intake import interpret
from loopr.core.observations import Observation


def perform(forest: Forest, decisions: Iterable[Event], now: int) -> list[Event]:
    """Apply events one by one as they are decided, and return them."""
    done = []
    for event in decisions:
        forest.apply(event, now)
        done.append(event)
    return done


def think(forest: Forest, seen: Iterable[Observation], now: int, *, choosing: bool = True) -> list[Event]:
    """Interpret what was seen, then choose what runs next."""
    events: list[Event] = []
    for each in seen:
        events += perform(forest, interpret(forest, each, now), now)
    if choosing:
        events += perform(forest, choose(forest, now), now)
    return events
