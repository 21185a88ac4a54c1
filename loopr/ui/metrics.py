"""The state and the history of a workspace as numbers, in the text format that Prometheus reads.

Counters and histograms are made from the journal at each call, so that they go on over any restart. Knows the format
and what is counted. Must never know who asks.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from loopr.core.codec import NAMES
from loopr.core.lifecycle import LIFECYCLE
from loopr.core.model import Status
from loopr.core.scene import Scene
from loopr.ui import tries, views
from loopr.ui.resources import resource_rows

BUCKETS = (1, 5, 15, 60, 300, 900, 3600, 14_400)
"""The upper edges of the histograms, in seconds: a check, a script, an agent, the longest that is let run."""

_BACK = {NAMES[kind]: rule.tos for kind, rule in LIFECYCLE.items() if rule.tos and Status.PENDING in rule.tos}

Labels = tuple[tuple[str, str], ...]


class Family(NamedTuple):
    """All samples of one name: what they mean, their kind, and each with its suffix, labels and value."""

    name: str
    kind: str
    words: str
    samples: Sequence[tuple[str, Labels, float]]


class Spread:
    """The times of one kind of thing, counted by how long they were."""

    def __init__(self) -> None:
        """Begin with none."""
        self.counts = [0] * (len(BUCKETS) + 1)
        self.ms = 0

    def add(self, ms: int) -> None:
        """Count one."""
        self.counts[bisect_left(BUCKETS, ms / 1000)] += 1
        self.ms += ms

    def samples(self, labels: Labels) -> Iterator[tuple[str, Labels, float]]:
        """Give its buckets, each with all that is shorter, its sum and its count."""
        below = 0
        for edge, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            below += count
            yield "_bucket", (*labels, ("le", edge)), below
        yield "_sum", labels, self.ms / 1000
        yield "_count", labels, below


class History(NamedTuple):
    """What the journal tells: events, attempts by type and outcome, how long they took and waited."""

    events: Counter[str]
    attempts: Counter[tuple[str, str]]
    seconds: Mapping[str, Spread]
    queued: Mapping[str, Spread]


def read_history(scene: Scene, records: Iterable[Any], spent: Iterable[Any]) -> History:
    """Count the events of a journal, and the usage that it kept."""
    types = {loop.id: loop.type for loop in scene.loops.values()}
    events, attempts = Counter[str](), Counter[tuple[str, str]]()
    seconds, queued = defaultdict[str, Spread](Spread), defaultdict[str, Spread](Spread)
    stories: dict[str, list[Any]] = {}
    pending: dict[str, int] = {}
    for each in records:
        events[each.event] += 1
        if each.loop not in types:  # it is about the workspace, or was declared a moment ago
            continue
        if each.event == "lease_granted":
            queued[types[each.loop]].add(max(0, each.at - pending.get(each.loop, each.at)))
            stories.setdefault(each.loop, [])
        elif _made_pending(each):
            pending[each.loop] = each.at
        if each.loop in stories:
            stories[each.loop].append(each)
    for loop, told in stories.items():
        attempts.update((types[loop], row["class"]) for row in tries.attempts(told) if row["class"])
    for one in spent:
        seconds[one.type].add(one.ms)
    return History(events, attempts, seconds, queued)


def _made_pending(record: Any) -> bool:
    """Say whether an event has put its loop into the queue."""
    tos = _BACK.get(record.event)
    if tos is None or len(tos) == 1:
        return tos is not None
    return bool(json.loads(record.data).get("to") == Status.PENDING)


def families(scene: Scene, history: History, now: int) -> Iterator[Family]:
    """Give all that is measured."""
    yield Family(
        "loopr_events_total",
        "counter",
        "Events in the journal.",
        [("", (("event", name),), float(n)) for name, n in sorted(history.events.items())],
    )
    yield Family(
        "loopr_attempts_total",
        "counter",
        "Tries that have ended, by what became of them.",
        [("", (("type", name), ("outcome", word)), float(n)) for (name, word), n in sorted(history.attempts.items())],
    )
    yield _histogram("loopr_attempt_seconds", "How long tries ran.", history.seconds)
    words = "How long loops were pending before each lease, from the last event that made them so."
    yield _histogram("loopr_queue_seconds", words, history.queued)
    yield _loops(scene)
    yield from _lanes(scene, now)
    rows = resource_rows(scene)
    for key in ("offered", "held"):
        samples = [("", (("resource", name),), float(row[key])) for name, row in rows.items()]
        yield Family(f"loopr_resource_{key}", "gauge", f"How much of a resource is {key}.", samples)
    yield Family("loopr_problems", "gauge", "What needs a person's eye.", [("", (), float(len(views.problems(scene))))])


def _histogram(name: str, words: str, spreads: Mapping[str, Spread]) -> Family:
    """Return one histogram for each type."""
    samples = [each for key, spread in sorted(spreads.items()) for each in spread.samples((("type", key),))]
    return Family(name, "histogram", words, samples)


def _loops(scene: Scene) -> Family:
    """Count the loops."""
    loops = Counter((loop.status.value, loop.type) for loop in scene.loops.values())
    samples = [("", (("status", status), ("type", kind)), float(n)) for (status, kind), n in sorted(loops.items())]
    return Family("loopr_loops", "gauge", "Loops by where they stand.", samples)


def _lanes(scene: Scene, now: int) -> Iterator[Family]:
    """Give how each lane is."""
    names = sorted(views.lanes(scene))
    lanes = [((("lane", name),), scene.shared.lane(name)) for name in names]
    resting = [("", labels, float(now < lane.rest_until)) for labels, lane in lanes]
    yield Family("loopr_lane_resting", "gauge", "Whether a lane rests after a limit.", resting)
    parked = [("", labels, float(bool(lane.parked))) for labels, lane in lanes]
    yield Family("loopr_lane_parked", "gauge", "Whether a lane waits for a person.", parked)


def exposition(scene: Scene, now: int, records: Iterable[Any], spent: Iterable[Any]) -> str:
    """Return everything in the text format, version 0.0.4."""
    history = read_history(scene, records, spent)
    return "".join(f"{line}\n" for family in families(scene, history, now) for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    """Write one family; one without samples is left out."""
    if not family.samples:
        return
    yield f"# HELP {family.name} {_escaped(family.words)}"
    yield f"# TYPE {family.name} {family.kind}"
    for suffix, labels, value in family.samples:
        inner = ",".join(f'{key}="{_quoted(text)}"' for key, text in labels)
        yield f"{family.name}{suffix}{f'{{{inner}}}' if inner else ''} {_number(value)}"


def _escaped(text: str) -> str:
    """Escape what would end a line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    """Escape what would end a label too."""
    return _escaped(text).replace('"', '\\"')


def _number(value: float) -> str:
    """Write a number exactly, a whole one without a point."""
    return str(int(value)) if value == int(value) else repr(value)
