"""Listeners: who is told of events, and how far each has heard."""

from __future__ import annotations

from loopr.core import observations as o
from loopr.core import workspace_events as w
from loopr.core.forest import Forest
from loopr.core.intake import interpret
from loopr.core.turn import perform

NOW = 1_000


def learn(forest: Forest, *seen: o.Observation) -> list[object]:
    """Let a forest take observations, and return the events that they lead to."""
    return [event for each in seen for event in perform(forest, interpret(forest, each, NOW), NOW)]


def test_who_is_new_begins_where_the_journal_is() -> None:
    """A listener that is set for the first time begins at the last event, one that is known goes on where it was."""
    forest = Forest()
    assert learn(forest, o.ListenersSet(("hook on_park",), 7)) == [w.ListenerHeard("hook on_park", 7)]
    both = o.ListenersSet(("hook on_complete", "hook on_park"), 9)
    assert learn(forest, both, both) == [w.ListenerHeard("hook on_complete", 9)]
    assert forest.shared.heard == {"hook on_park": 7, "hook on_complete": 9}


def test_who_is_set_no_more_begins_anew() -> None:
    """A listener that is set no more is forgotten, so that it hears nothing of what was meanwhile."""
    forest = Forest()
    learn(forest, o.ListenersSet(("hook on_park",), 7))
    assert learn(forest, o.ListenersSet((), 8)) == [w.ListenerLeft("hook on_park")]
    assert learn(forest, o.ListenerTold("hook on_park", 9)) == []
    assert learn(forest, o.ListenersSet(("hook on_park",), 12)) == [w.ListenerHeard("hook on_park", 12)]


def test_nobody_hears_less_than_before() -> None:
    """What a listener has heard only grows; a report that is late or comes twice changes nothing."""
    forest = Forest()
    learn(forest, o.ListenersSet(("hook on_park",), 7))
    told = o.ListenerTold("hook on_park", 9)
    assert learn(forest, told, told, o.ListenerTold("hook on_park", 8)) == [w.ListenerHeard("hook on_park", 9)]
    assert Forest.from_rows([], {"heard/hook on_park": "9"}, [], NOW).shared.heard == forest.shared.heard
