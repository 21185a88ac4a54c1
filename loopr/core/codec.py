"""How an event is written into the journal and read back, also one of an older version.

Knows the classes of all events by name, and JSON. Must never know what an event means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from loopr.core import events, judge_events, offer_events, plan_events, redo_events, workspace_events, worktree_events
from loopr.core.events import Event, LoopEvent
from loopr.core.model import Failure, Status, Terms, Usage
from loopr.core.policy import Budget, read_amounts
from loopr.core.shared import WORKSPACE
from loopr.errors import Impossible


def _snake(name: str) -> str:
    """Turn `LeaseGranted` into `lease_granted`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _concrete() -> list[type[Event]]:
    """List the events of all modules, in the order they are written there."""
    modules = (events, judge_events, offer_events, redo_events, workspace_events, plan_events, worktree_events)
    every = [each for module in modules for each in vars(module).values()]
    found = [each for each in every if isinstance(each, type) and issubclass(each, Event) and each not in _ABSTRACT]
    return list(dict.fromkeys(found))


_ABSTRACT = (Event, LoopEvent)
EVENTS: Mapping[str, type[Event]] = {_snake(cls.__name__): cls for cls in _concrete()}
NAMES: Mapping[type[Event], str] = {cls: name for name, cls in EVENTS.items()}


def _of_everything(values: dict[str, Any]) -> dict[str, Any]:
    """Version 1 called the scope of everything as a plan may be called."""
    return values | ({"scope": WORKSPACE} if values["scope"] == "workspace" else {})


def _as_before(values: dict[str, Any]) -> dict[str, Any]:
    """Version 1 did not remember that a file was not loopr's, and neither do its rows."""
    return values | {"theirs": False}


def _without_count(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out the count of grants that was told for a while of a loop that is gone."""
    return {key: value for key, value in values.items() if key != "after"}


VERSIONS: Mapping[str, int] = {
    "scope_held": 2,
    "scope_lifted": 2,
    "artifact_accepted": 2,
    "undeclared": 2,
}
"""The payload version of every event that has ever changed; all others are at 1."""

UPCASTERS: Mapping[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("scope_held", 1): _of_everything,
    ("scope_lifted", 1): _of_everything,
    ("artifact_accepted", 1): _as_before,
    ("undeclared", 1): _without_count,
}
"""How a payload of (event, version) becomes one of the next version."""


def read_terms(value: Mapping[str, Any]) -> Terms:
    """Read terms back."""
    known: dict[str, Any] = {key: value[key] for key in Terms._fields if key in value}
    known.update({key: tuple(known[key]) for key in ("needs", "files", "inputs") if key in known})
    if known.get("resources") is not None:
        known["resources"] = read_amounts(known["resources"])
    return Terms(**known | {"budget": Budget(*value["budget"])})


_READ: Mapping[str, Callable[[Any], Any]] = {
    "tuple[str, ...]": tuple,
    "Status": Status,
    "Failure": Failure,
    "Usage": lambda value: Usage(*value),
    "Terms": read_terms,
    "Amounts": read_amounts,
}
_READERS: Mapping[type[Event], tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    cls: tuple((each.name, _READ[str(each.type)]) for each in fields(cls) if str(each.type) in _READ) for cls in NAMES
}
_FIELDS: Mapping[type[Event], tuple[str, ...]] = {cls: tuple(each.name for each in fields(cls)) for cls in NAMES}


def encode(event: Event) -> tuple[str, int, str]:
    """Return the event's name, its payload version and its payload as JSON text."""
    name = NAMES[type(event)]
    payload = {key: _plain(getattr(event, key)) for key in _FIELDS[type(event)]}
    return name, VERSIONS.get(name, 1), json.dumps(payload, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """Turn the one value that JSON does not know, the budget inside of terms, into a list."""
    if isinstance(value, Terms):
        return value._asdict() | {"budget": [value.budget.tokens, value.budget.micro_usd, value.budget.secs]}
    return value


def decode(
    name: str,
    version: int,
    payload: str,
    upcasters: Mapping[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = UPCASTERS,
) -> Event:
    """Read an event back, lifting the payload of an older version step by step."""
    cls = EVENTS.get(name)
    if cls is None:
        raise Impossible(f"the journal holds an event that this version does not know: {name}")
    values: dict[str, Any] = json.loads(payload)
    while (name, version) in upcasters:
        values = upcasters[name, version](values)
        version += 1
    for key, read in _READERS[cls]:
        if key in values:
            values[key] = read(values[key])
    return cls(**values)


def subject(event: Event) -> str | None:
    """Return the id of the loop an event is about."""
    return event.loop if isinstance(event, LoopEvent) else None
