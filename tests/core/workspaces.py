"""A workspace for tests: a real forest, what its journal would hold, and the two other ways to come to the same forest.

`Story` plays turns and keeps events and rows as a journal does; `Story.verify` compares the forest that lived with one
replayed from the encoded events and with one built from the rows: rows, indexes and next decisions must be the same.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from loopr.core import observations as o
from loopr.core.choose import next_wake, take
from loopr.core.codec import decode, encode
from loopr.core.entries import Artifact, decode_entry, implied_entry
from loopr.core.events import Event, LeaseGranted
from loopr.core.forest import Forest
from loopr.core.gates import closed_gates, first_closed, own_gates_open, ready_since
from loopr.core.ledger import Charge
from loopr.core.model import Failure, Loop
from loopr.core.owed import Judge, Land, StartAttempt, StopAttempt, WriteDeclared, owed
from loopr.core.policy import Policy, Retry, TypePolicy, default_types
from loopr.core.turn import perform, think
from loopr.core.workspace_events import ClockMoved

START = 1_700_000_000_000
STEADY = Retry(jitter=0)  # type: ignore[arg-type]


def ladder(commands: str = "plan spec phase code", **more: dict[str, Any]) -> dict[str, TypePolicy]:
    """Return the built-in ladder, with a command for the named types and what else is said of single types."""
    named = commands.split()
    return {
        name: replace(kind, has_command=name in named, **more.get(name, {})) for name, kind in default_types().items()
    }


def settings(commands: str = "plan spec phase code", types: dict[str, Any] | None = None, **numbers: Any) -> Policy:
    """Return a policy under which every type has a command and nothing but the given numbers limits anything."""
    roomy: dict[str, Any] = {
        "max_loops": 50,
        "max_api_calls": 50,
        "per_type": {},
        "retry": STEADY,
        "max_worktrees": 10_000,
    }
    return Policy(types=ladder(commands, **(types or {})), **roomy | numbers)


class Story:
    """One workspace, what happened in it, and what its journal would hold."""

    def __init__(self, policy: Policy | None = None, at: int = START) -> None:
        """Begin an engine in an empty workspace."""
        self.forest, self.now = Forest(), at
        self.log: list[tuple[Event, int]] = []
        self.rows: dict[tuple[str, str], str] = {}
        self.charges: list[Charge] = []
        self.see(o.PolicySeen(policy or settings()), o.EngineBegan(1, "here"))

    # --- turns -------------------------------------------------------------------------------------------------------

    def see(self, *seen: o.Observation) -> list[Event]:
        """Let the engine observe something, without choosing."""
        return self._keep(lambda: think(self.forest, seen, self.now, choosing=False))

    def wish(self, decisions: Iterable[Event]) -> list[Event]:
        """Let a person ask for something."""
        return self._keep(lambda: perform(self.forest, decisions, self.now))

    def choose(self) -> list[str]:
        """Play one round and return who was granted a lease."""
        return [each.loop for each in self.round() if isinstance(each, LeaseGranted)]

    def round(self) -> list[Event]:
        """Play one round and return all its events."""
        return self._keep(lambda: think(self.forest, (), self.now))

    def take(self, worker: str, limit: int = 1, **wanted: Any) -> list[str]:
        """Let a pull worker take loops."""
        events = self.wish(take(self.forest, self.now, holder=worker, limit=limit, **wanted))
        return [each.loop for each in events if isinstance(each, LeaseGranted)]

    def _keep(self, turn: Callable[[], list[Event]]) -> list[Event]:
        """Play a turn and write its events and rows down as a journal does."""
        events = turn()
        for event in events:
            if isinstance(event, ClockMoved):
                self.charges = [charge._replace(at=charge.at + event.by_ms) for charge in self.charges]
        changes, charges, _ = self.forest.take_rows()
        for table, key, body in changes:
            if body is None:
                self.rows.pop((table, key), None)
            else:
                self.rows[table, key] = body
        self.charges += [charge for _, charge in charges]
        self.log += [(event, self.now) for event in events]
        return events

    # --- what there is -----------------------------------------------------------------------------------------------

    def __getitem__(self, loop_id: str) -> Loop:
        """Return a loop."""
        return self.forest.loops[loop_id]

    def gates(self, loop_id: str) -> dict[str, str]:
        """Return the closed gates of a loop with their words."""
        return {each.gate: each.reason for each in closed_gates(self.forest, self[loop_id], self.now)}

    def entry_of(self, loop_id: str) -> Artifact:
        """Return the artifact that loopr writes for a loop which completes by declaration."""
        entry = decode_entry(json.loads(self.rows["entries", loop_id]))
        child = self.forest.policy.type_of(self[loop_id].type).child or ""
        children = entry.children or (implied_entry(child, child, entry.title, entry.body),)
        return Artifact(entry.id, entry.title, entries=children, declares=True)

    # --- the two other forests ---------------------------------------------------------------------------------------

    def replayed(self) -> Forest:
        """Build the forest from what the events look like in the journal."""
        return Forest.replay((decode(*encode(event)), at) for event, at in self.log)

    def rebuilt(self) -> Forest:
        """Build the forest from the rows of the journal."""
        loops = [body for (table, _), body in self.rows.items() if table == "loops"]
        records = {key: body for (table, key), body in self.rows.items() if table == "records"}
        since = self.forest.at - self.forest.policy.window_ms
        recent = [charge for charge in self.charges if charge.at > since]
        return Forest.from_rows(loops, records, recent, self.forest.at)

    def verify(self) -> None:
        """Compare the three forests: rows, indexes, what they do next."""
        lived, replayed, rebuilt = copy.deepcopy(self.forest), self.replayed(), self.rebuilt()
        lived.advance(self.now)
        kept = {key: json.loads(body) for key, body in self.rows.items() if key[0] != "entries"}
        same(
            plain(lived.all_rows()), kept | _unsaid(lived, kept), "the rows that were kept are not those of the forest"
        )
        for other, name in ((replayed, "replayed"), (rebuilt, "rebuilt")):
            other.advance(self.now)
            same(lived.all_rows(), other.all_rows(), f"the {name} forest has other rows")
            same(indexes(lived), indexes(other), f"the {name} forest has other indexes")
        whole(lived, self.now)
        futures = [future(each, self.now) for each in (lived, replayed, rebuilt)]
        same(futures[0], futures[1], "the replayed forest decides otherwise")
        same(futures[0], futures[2], "the rebuilt forest decides otherwise")


def _unsaid(forest: Forest, kept: dict[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    """Return the records that have their default and so were never written."""
    return {key: value for key, value in plain(forest.all_rows()).items() if key[0] == "records" and key not in kept}


def plain(rows: dict[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    """Turn rows into what JSON makes of them."""
    return {key: json.loads(json.dumps(value)) for key, value in rows.items()}


def same(one: Any, other: Any, words: str) -> None:
    """Say where two values differ, if they do."""
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        raise AssertionError(f"{words}: " + "; ".join(f"{key}: {one.get(key)} / {other.get(key)}" for key in keys))
    if isinstance(one, list) and isinstance(other, list):
        found = next((pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]), (one, other))
        raise AssertionError(f"{words}: {found[0]} / {found[1]}")
    raise AssertionError(f"{words}: {one} / {other}")


def indexes(forest: Forest) -> dict[str, Any]:
    """Return all that a forest derives from its loops, free of the order in which it came to be."""
    tree, occupied = forest.tree, forest.occupancy
    names = ("total", "complete", "running", "parked", "failed", "changed", "redoing", "heads")
    below = {key: tuple(getattr(each, name) for name in names) for key, each in tree.below.items()}
    since = {each: ready_since(forest, loop) for each, loop in tree.loops.items() if own_gates_open(forest, loop)}
    groups = {key: sorted(group.members) for key, group in forest.ready.groups()}
    return {
        "below": below,
        "children": {each: tree.children(each) for each in tree.loops},
        "roots": tree.children(None),
        "needers": {name: sorted(those) for name, those in tree.needers.items() if those},
        "by_status": {status: sorted(those) for status, those in tree.by_status.items()},
        "ending": sorted(tree.ending),
        "redoing": sorted(tree.redoing),
        "timed": sorted(tree.timed),
        "occupied": sorted(occupied.loops),
        "by_type": occupied.by_type,
        "by_project": occupied.by_project,
        "by_lane": occupied.by_lane,
        "held": occupied.held,
        "holders": {name: sorted(those) for name, those in occupied.holders.items()},
        "api_calls": occupied.api_calls,
        "lines": {line: sorted(those) for line, those in occupied.lines.items()},
        "groups": groups,
        "housed": sorted(forest.housed),
        "packing": sorted(forest.packing),
        "backoff": forest.ready.next_backoff(),
        "settling": sorted(forest.settling),
        "ready_since": since,
    }


def whole(forest: Forest, now: int) -> None:
    """Check what must hold of every forest: the open groups hold exactly the loops without a closed gate."""
    forest.advance(now)
    grouped = {each for _, group in forest.ready.groups() for each in group.members}
    for _, group in forest.ready.groups():
        for ready, entry in (each for line in group.lines.values() for each in line.waiting):
            if group.members.get(entry.id) == entry.stamp and ready != ready_since(forest, forest.loops[entry.id]):
                raise AssertionError(f"{entry.id} is ready since another instant than the one it stands under")
    for loop in forest.loops.values():
        gate = first_closed(forest, loop, now)
        if gate is None and loop.id not in grouped:
            raise AssertionError(f"{loop.id} has no closed gate, and stands in no group")
        if (
            gate is not None
            and loop.id in grouped
            and gate.gate in ("status", "stopping", "parent", "needs", "artifact", "backoff")
        ):
            raise AssertionError(f"{loop.id} stands in a group, but {gate}")


def future(forest: Forest, now: int, steps: int = 25) -> list[Any]:
    """Play a forest on, the same way each time, and return what it decides."""
    decided: list[Any] = []
    for step in range(steps):
        events = think(forest, (), now)
        decided += [(now, event) for event in events]
        due = sorted(owed(forest), key=lambda effect: (effect.loop, type(effect).__name__))
        seen = [each for place, effect in enumerate(due) for each in _outcome(effect, step + place)]
        decided += [(now, event) for event in think(forest, seen, now, choosing=False)]
        now = max(now + 20_000, min(next_wake(forest, now) or 0, now + 7_200_000))
        decided.append(next_wake(forest, now))
    return decided


def _outcome(effect: Any, turn: int) -> Iterator[o.Observation]:
    """Say what comes of an effect: mostly something good."""
    key = (effect.loop, effect.attempt)
    match effect:
        case StartAttempt():
            yield o.AttemptBegan(*key)
            if turn % 5 != 2:
                trouble = (None, o.Trouble(Failure.INFRA, "x"), o.Trouble(Failure.REFUSED, "y"), None, None)[turn % 5]
                yield o.AttemptEnded(*key, trouble)
        case Judge():
            yield o.Judged(*key, None if turn % 4 else o.Trouble(Failure.REFUSED, "z"))
        case Land():
            yield o.LandingDone(*key, "c0ffee", f"landed-{effect.loop}")
        case StopAttempt():
            yield o.StopSeen(*key)
        case WriteDeclared():
            yield o.FileGone(effect.loop)
