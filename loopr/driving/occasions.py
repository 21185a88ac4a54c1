"""What is told of an event: which hook hears of it, what kind of news it is to a person, and in which words.

Follows from the event alone, as the journal keeps it, so that it is the same after a crash. Must never know who
listens, nor what else has happened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from loopr.core import events as e
from loopr.core import offer_events as f
from loopr.core import workspace_events as w
from loopr.core.accepting import held_words
from loopr.core.codec import NAMES, decode
from loopr.core.events import Event
from loopr.core.judge_events import Conflicted, Refused
from loopr.core.model import Status
from loopr.world.journal import Record

ON_COMPLETE, ON_PARK, ON_SETTLE, ON_CONVOY = "on_complete", "on_park", "on_settle", "on_convoy_complete"
TOLD_HOOKS = (ON_COMPLETE, ON_PARK, ON_SETTLE, ON_CONVOY)
SETTINGS = "settings"
"""The news that concern also those whom settings would tell that are held back."""
LANDING_PLACE, BUDGET_PLACE = "landing of ", "budget of "
"""Where problems stand that are news to a person."""


class Occasion(NamedTuple):
    """Something that is told: when it happened, which hook hears of it, of what kind it is to a person, in words."""

    seq: int
    at: int
    event: str = ""
    loop: str = ""
    actor: str = ""
    data: Mapping[str, Any] = {}
    status: str = ""
    reason: str = ""
    hook: str = ""
    kind: str = ""
    text: str = ""


class _Said(NamedTuple):
    """What an event means to those who are told."""

    status: str = ""
    reason: str = ""
    hook: str = ""
    kind: str = ""
    text: str = ""


def occasion_of(record: Record) -> Occasion | None:
    """Return what is told of an event, None if nobody is."""
    say = _SAID.get(record.event)
    said = say(decode(record.event, record.version, record.data)) if say is not None else None
    if said is None:
        return None
    about = (record.seq, record.at, record.event, record.loop or "", record.actor, json.loads(record.data))
    return Occasion(*about, *said)


def instant(at: int) -> str:
    """Write an instant as every document does."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _complete(event: e.Landed | e.Settled | e.ArtifactAccepted) -> _Said:
    """A loop is complete."""
    return _Said("complete", hook=ON_COMPLETE)


def _ended_badly(event: e.Broke | Conflicted | e.LeaseExpired | Refused) -> _Said | None:
    """An attempt was the last one for now: the loop is parked or has failed."""
    if event.to is Status.PARKED:
        return _parked(event)
    if event.to is Status.FAILED:
        return _Said("failed", event.reason, kind="failed", text=f"{event.loop} has failed: {event.reason}")
    return None


def _parked(event: e.SetAside | e.Broke | Conflicted | e.LeaseExpired | Refused) -> _Said:
    """A loop is parked."""
    return _Said("parked", event.reason, ON_PARK, "parked", f"{event.loop} is parked: {event.reason}")


def _passed(event: e.Passed) -> _Said | None:
    """A check said yes, and a person may have to as well."""
    if event.to is not Status.AWAITING:
        return None
    words = f"{event.loop} waits for approval: `loopr approve {event.loop}`"
    return _Said("awaiting_approval", kind="approval", text=words)


def _offered(event: f.ArtifactOffered) -> _Said:
    """A file waits for a person's word."""
    words = f"`loopr approve {event.loop} --file` or `loopr reject {event.loop} --file`"
    return _Said(kind="offered", text=f"a file is offered for {event.loop}: {words}")


def _lane_parked(event: w.LaneParked) -> _Said:
    """A lane is of no use."""
    return _Said("parked", event.reason, kind="lane", text=f"lane {event.lane} is parked: {event.reason}")


def _convoy_landed(event: w.ConvoyLanded) -> _Said:
    """A convoy has landed."""
    return _Said("landed", hook=ON_CONVOY, kind="convoy", text=f"convoy @{event.name} has landed")


def _held_back(event: w.SettingsHeld) -> _Said:
    """Changed settings do not count until a person says so."""
    words = held_words(event.keys)
    return _Said("", words, kind=SETTINGS, text=f"settings are {words}")


def _problem(event: w.ProblemSeen) -> _Said | None:
    """A problem may be one that a person wants to be told of."""
    for prefix, kind in ((LANDING_PLACE, "landing"), (BUDGET_PLACE, "budget")):
        if event.place.startswith(prefix):
            return _Said("", event.text, kind=kind, text=f"{event.place}: {event.text}")
    return None


_MEANT: Mapping[type[Event], Callable[[Any], _Said | None]] = {
    e.Landed: _complete,
    e.Settled: _complete,
    e.ArtifactAccepted: _complete,
    e.SetAside: _parked,
    e.Broke: _ended_badly,
    Conflicted: _ended_badly,
    e.LeaseExpired: _ended_badly,
    Refused: _ended_badly,
    e.Passed: _passed,
    f.ArtifactOffered: _offered,
    w.LaneParked: _lane_parked,
    w.ConvoyLanded: _convoy_landed,
    w.ProblemSeen: _problem,
    w.SettingsHeld: _held_back,
}
_SAID: Mapping[str, Callable[[Any], _Said | None]] = {NAMES[cls]: say for cls, say in _MEANT.items()}
