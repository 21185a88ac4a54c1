"""What came out of a simulation: who ran when, how long it took, what was waited for and what is left over.

Knows how to watch events go by and how to sum them up. Must never decide anything: that is `simulate.py` with the same
functions that the engine uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from loopr.core import events as e
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.gates import first_closed, group_ready_since, ready_since
from loopr.core.judge_events import Conflicted, JudgeWaits, Refused
from loopr.core.model import Loop, Status

STILL_RUNNING = "running"
"""The outcome of an attempt that had not ended when the simulation did."""


class Run(NamedTuple):
    """One attempt: it took its slot at `leased`, its command began at `start`, the slot was free again at `end`."""

    id: str
    type: str
    attempt: int
    leased: int
    start: int
    end: int
    outcome: str


class Waiting(NamedTuple):
    """How long loops of one type were ready before they were leased: half of them at most, 99 of 100 at most."""

    p50_ms: int
    p99_ms: int


class Unfinished(NamedTuple):
    """A loop that did not complete, and the first gate that keeps it; no gate where only the simulation ended."""

    id: str
    gate: str
    reason: str


class Part(NamedTuple):
    """One loop of the tree as it was in the end."""

    id: str
    type: str
    title: str
    status: Status


@dataclass(frozen=True, slots=True)
class Played:
    """A whole plan, or a whole workspace, played in virtual time; instants are of that time, which began at `at`.

    `makespan_ms` is from `at` to the end of the last run. `utilisation` is the slot time that anybody took until then,
    as a part of `slots` for all of it; `slots` is the ceiling, or the most that were taken at once where there is none.
    """

    at: int
    makespan_ms: int
    utilisation: Fraction
    slots: int
    waiting: Mapping[str, Waiting]
    critical_path: tuple[tuple[str, int], ...]
    runs: tuple[Run, ...]
    counts: Mapping[Status, int]
    unfinished: tuple[Unfinished, ...]
    parts: tuple[Part, ...]
    events: int
    cut_short: bool
    unused: tuple[str, ...]


class _Open:
    """An attempt that still has its slot."""

    __slots__ = ("attempt", "leased", "outcome", "start")

    def __init__(self, attempt: int, leased: int, start: int | None = None) -> None:
        """Begin with the grant."""
        self.attempt, self.leased, self.start, self.outcome = attempt, leased, start, ""


_ENDS = (
    e.Landed,
    Refused,
    Conflicted,
    JudgeWaits,
    e.Limited,
    e.Broke,
    e.SetAside,
    e.LeaseReleased,
    e.LeaseExpired,
    e.AttemptGone,
)
_WORDS: Mapping[type[Event], str] = {
    e.Landed: "complete",
    JudgeWaits: "limited",
    Refused: "refused",
    Conflicted: "conflict",
    e.LeaseReleased: "released",
    e.LeaseExpired: "infra",
    e.AttemptGone: "stopped",
}


class Watch:
    """Who takes and frees a slot when, seen from the events just before they are applied."""

    def __init__(self, forest: Forest, now: int) -> None:
        """Begin with what takes a slot already: that counts from now."""
        self.forest, self.began = forest, now
        self.runs: list[Run] = []
        self.waited: list[tuple[str, str, int]] = []
        self.events = 0
        self._open: dict[str, _Open] = {}
        for loop_id in forest.occupancy.loops:
            loop = forest.loops[loop_id]
            attempt = loop.ending.attempt if loop.ending is not None else loop.attempt
            self._open[loop_id] = _Open(attempt, now, None if loop.status is Status.LEASED else now)

    def see(self, event: Event, now: int) -> None:
        """Take note of an event that is about to be applied."""
        self.events += 1
        if isinstance(event, e.LeaseGranted):
            loop = self.forest.loops[event.loop]
            ready = max(self.began, ready_since(self.forest, loop), group_ready_since(self.forest, loop))
            self.waited.append((loop.id, loop.type, max(0, now - ready)))
            self._open[loop.id] = _Open(event.attempt, now)
        elif isinstance(event, e.AttemptStarted):
            self._open[event.loop].start = now
        elif isinstance(event, _ENDS) and event.loop in self._open:
            self._ends(event, now)

    def _ends(self, event: e.LoopEvent, now: int) -> None:
        """Note the outcome of an attempt; one that was only told to stop keeps its slot."""
        one = self._open[event.loop]
        one.outcome = one.outcome or str(getattr(event, "failure", "")) or _WORDS[type(event)]
        if not (isinstance(event, e.SetAside) and event.live):
            self.runs.append(self._run(event.loop, self._open.pop(event.loop), now))

    def _run(self, loop_id: str, one: _Open, now: int) -> Run:
        """Write down one attempt."""
        start = one.leased if one.start is None else one.start
        return Run(loop_id, self.forest.loops[loop_id].type, one.attempt, one.leased, start, now, one.outcome)

    def every_run(self, now: int) -> list[Run]:
        """List all runs in order of time, with those that have not ended by now."""
        left = [
            self._run(each, one, now)._replace(outcome=STILL_RUNNING)
            for each, one in self._open.items()
            if self.forest.loops[each].occupying
        ]
        return sorted([*self.runs, *left], key=lambda run: (run.start, run.end, run.id, run.attempt))


# --- summing up ---------------------------------------------------------------------------------------------------


def sum_up(watch: Watch, now: int, *, top: str | None, cut_short: bool, named: Collection[str]) -> Played:
    """Sum up what was seen until now of one loop with all below it, or of everything; `named` had a duration each."""
    forest, every = watch.forest, watch.every_run(now)
    loops = [each for each in forest.tree.walk(top) if each.status is not Status.INVALIDATED]
    wanted = {each.id for each in loops}
    runs = tuple(run for run in every if run.id in wanted)
    end = max((run.end for run in runs), default=watch.began)
    slots = forest.policy.max_loops if not forest.policy.unbounded else most_at_once(every)
    makespan = end - watch.began
    taken = sum(min(run.end, end) - run.leased for run in every if run.leased < end)
    ran = {run.id for run in every}
    return Played(
        at=watch.began,
        makespan_ms=makespan,
        utilisation=Fraction(taken, slots * makespan) if slots and makespan else Fraction(0),
        slots=slots,
        waiting=_waiting(forest, (each for each in watch.waited if each[0] in wanted)),
        critical_path=_critical_path(forest, runs),
        runs=runs,
        counts=_counts(loops),
        unfinished=tuple(_unfinished(forest, each, now) for each in loops if each.status is not Status.COMPLETE),
        parts=tuple(Part(each.id, each.type, each.title, each.status) for each in loops),
        events=watch.events,
        cut_short=cut_short,
        unused=tuple(sorted(each for each in named if each not in ran)),
    )


def most_at_once(runs: Iterable[Run]) -> int:
    """Return the most slots that were taken at the same time; one that is freed can be taken at the same instant."""
    changes = sorted(change for run in runs if run.end > run.leased for change in ((run.leased, 1), (run.end, -1)))
    most = taken = 0
    for _, step in changes:
        taken += step
        most = max(most, taken)
    return most


def _waiting(forest: Forest, waited: Iterable[tuple[str, str, int]]) -> dict[str, Waiting]:
    """Return the waiting times of each type that was leased at all, in the order of the ladder."""
    by_type: dict[str, list[int]] = {name: [] for name in forest.policy.types}
    for _, type_name, ms in waited:
        by_type.setdefault(type_name, []).append(ms)
    return {name: Waiting(_rank(times, 50), _rank(times, 99)) for name, times in by_type.items() if times}


def _rank(times: list[int], percent: int) -> int:
    """Return the smallest of some times that so many percent of them do not exceed."""
    return sorted(times)[-(-len(times) * percent // 100) - 1]


def _critical_path(forest: Forest, runs: Iterable[Run]) -> tuple[tuple[str, int], ...]:
    """Return the longest chain of loops that waited for each other, each with the time its attempts took."""
    from loopr.core import graph  # networkx is slow to import

    ms: dict[str, int] = {}
    for run in runs:
        ms[run.id] = ms.get(run.id, 0) + run.end - run.start
    return tuple((each, ms[each]) for each in graph.critical_path(forest.tree, ms)[1] if ms.get(each))


def _counts(loops: Iterable[Loop]) -> dict[Status, int]:
    """Count the loops by status, in the order of the lifecycle."""
    counts = dict.fromkeys(Status, 0)
    for loop in loops:
        counts[loop.status] += 1
    return {status: count for status, count in counts.items() if count}


def _unfinished(forest: Forest, loop: Loop, now: int) -> Unfinished:
    """Say what keeps a loop from being complete."""
    gate = first_closed(forest, loop, now)
    return Unfinished(loop.id, *(gate[:2] if gate is not None else ("", "the simulation ended before its turn")))
