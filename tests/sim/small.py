"""A world so small that everything which can happen in it can be tried: up to four loops, one thing going wrong.

A loop's life is five reports: its attempt began, its command ended, its judge said yes, it is about to land, it
landed. A run takes the loops in a given order from one report to the next; a fault (`strikes.py`) comes before one of
them, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import NamedTuple

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.entries import Artifact, Entry
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Failure, Loop, Status
from loopr.core.observations import Trouble
from loopr.core.owed import landings
from loopr.core.policy import Policy, Priority, Retry, TypePolicy
from loopr.core.turn import perform, think
from tests.sim import invariants
from tests.sim.author import digest_of
from tests.sim.journals import MemoryJournal, Told

BEGINNING = 1_700_000_000_000
LADDER = ("top", "upper", "lower", "leaf")
TYPES = {
    name: TypePolicy(name, child, has_command=True) for name, child in zip(LADDER, (*LADDER[1:], None), strict=True)
}
POLICY = Policy(
    types=TYPES,
    priority=Priority(base={name: 40 + 20 * depth for depth, name in enumerate(LADDER)}),
    retry=Retry(base_ms=1_000, cap_ms=1_000),
    max_loops=4,
    per_type={},
)
LIVE = (Status.LEASED, Status.RUNNING, Status.CHECKING, Status.LANDING)


class Tree(NamedTuple):
    """A plane tree: its children, each a tree, from left to right."""

    children: tuple[Tree, ...] = ()

    @property
    def size(self) -> int:
        """How many loops it has."""
        return 1 + sum(each.size for each in self.children)


def trees(size: int) -> Iterator[Tree]:
    """Give every plane tree of a size."""
    yield from (Tree(each) for each in _groves(size - 1))


def _groves(size: int) -> Iterator[tuple[Tree, ...]]:
    """Give every row of trees that has so many loops in all."""
    if size == 0:
        yield ()
    for first in range(1, size + 1):
        for tree in trees(first):
            yield from ((tree, *rest) for rest in _groves(size - first))


class Kind(NamedTuple):
    """How siblings stand to each other: `needs` has a bit for each pair of an earlier and a later one."""

    needs: int = 0
    serial: bool = False


class Small:
    """The world of one run."""

    def __init__(self, tree: Tree, kind: Kind) -> None:
        """Begin with a plan whose command is about to run."""
        self.kind = kind
        self.now = BEGINNING
        self.outlines = dict(self._outlines("p", tree))
        self.words: dict[str, str] = {}
        self.journal = MemoryJournal()
        self.journal.listeners.append(self._told)
        self.watch = invariants.Watch(self)  # type: ignore[arg-type]
        self.hands = SimpleNamespace(alive=lambda: ())
        self.forest, self.seq = self.journal.load()
        plan = Artifact("p", "p", text="p")
        self.tell(o.PolicySeen(POLICY), o.EngineBegan(1, "here"))
        self.tell(o.PlanOffered("p", plan, "offered", "p.md", "main", "c0"))

    def _outlines(self, name: str, tree: Tree) -> Iterator[tuple[str, tuple[str, ...]]]:
        """List the children of every loop."""
        yield name, tuple(f"{name}/{place}" for place in range(len(tree.children)))
        for place, child in enumerate(tree.children):
            yield from self._outlines(f"{name}/{place}", child)

    def artifact(self, name: str, without: str = "") -> Artifact:
        """Write what a loop hands over; now and then with a child left out."""
        children = [each for each in self.outlines[name] if each != without]
        entries = tuple(self._entry(child, place, children) for place, child in enumerate(children))
        return Artifact(name, name, entries=entries, declares=bool(entries), text=name)

    def _entry(self, child: str, place: int, children: list[str]) -> Entry:
        """Write the entry of one child."""
        first = place * (place - 1) // 2
        ids = [each.rpartition("/")[2] for each in children]
        needs = tuple(ids[each] for each in range(place) if self.kind.needs >> (first + each) & 1)
        return Entry(ids[place], child, self.words.get(child, ""), needs, parallel=not self.kind.serial)

    # --- thinking and remembering -------------------------------------------------------------------------------------

    @property
    def shadow(self) -> Forest:
        """The forest that is replayed from the texts of the events."""
        return self.watch.shadow

    @property
    def wall(self) -> int:
        """What the clock shows."""
        return self.now

    def met(self, what: str) -> None:
        """Count nothing."""

    def _told(self, told: list[Told]) -> None:
        """Let the rules look at what was appended."""
        self.watch.told(told)

    def tell(self, *seen: o.Observation) -> list[Event]:
        """Let the engine learn something, decide and remember."""
        return self.remember(think(self.forest, seen, self.now))

    def wish(self, wish: Iterator[Event]) -> None:
        """Let a person wish for something, then let the engine decide."""
        self.remember(perform(self.forest, wish, self.now))
        self.tell()

    def remember(self, events: list[Event]) -> list[Event]:
        """Append what was decided."""
        rows = self.forest.take_rows()
        if events:
            self.seq = self.journal.append(events, rows, self.now, self.seq)
        return events

    def crash(self) -> None:
        """Lose all that was not remembered."""
        self.forest, self.seq = self.journal.load()

    # --- the life of loops --------------------------------------------------------------------------------------------

    def live(self) -> list[Loop]:
        """List the loops that something will be reported of, in tree order."""
        found = [each for each in self.forest.tree.walk() if each.status in LIVE]
        return [each for each in found if each.status is not Status.LANDING or self._lands_first(each)]

    def _lands_first(self, loop: Loop) -> bool:
        """Say whether it is a loop's turn to land."""
        return next(landings(self.forest)).loop == loop.id

    def report(self, loop: Loop, trouble: Trouble | None = None) -> o.Observation:
        """Say what is reported next of a loop."""
        match loop.status:
            case Status.LEASED if trouble is None or trouble.failure not in (Failure.INFRA, Failure.HOST):
                return o.AttemptBegan(loop.id, loop.attempt)
            case Status.LEASED | Status.RUNNING:
                return o.AttemptEnded(loop.id, loop.attempt, trouble)
            case Status.CHECKING:
                return o.Judged(loop.id, loop.attempt, trouble)
        if trouble is not None:
            return o.LandingFailed(loop.id, loop.attempt, trouble)
        if loop.lease is not None and not loop.lease.lands:
            old = self.forest.shared.tip(loop.plan).stands
            return o.LandingReady(loop.id, loop.attempt, old, f"{loop.id}#{loop.attempt}", "tip")
        artifact = self.artifact(loop.id)
        return o.LandingDone(loop.id, loop.attempt, f"{loop.id}#{loop.attempt}", digest_of(artifact), artifact)

    def end_stopped(self) -> None:
        """Let every attempt end that was told to stop."""
        for loop in list(self.forest.loops.values()):
            if loop.ending is not None:
                self.tell(o.StopSeen(loop.id, loop.ending.attempt))

    def wait(self) -> None:
        """Let time pass until all backoffs and rests are over, and let a person lift what a cancel has held."""
        self.now += 400_000
        self.tell(o.HostSeen(""))
        for loop in list(self.forest.tree.walk()):
            if loop.hold is not None:
                self.wish(wishes.resume(self.forest, loop.id, "ann"))


class Run(NamedTuple):
    """What a run was: how many could go on at each report, and how many reports there were."""

    widths: list[int]
    steps: int


def run(
    tree: Tree,
    kind: Kind,
    order: tuple[int, ...] = (),
    strike: Callable[[Small, Loop], None] | None = None,
    at: int = -1,
    *,
    whole: bool = False,
) -> Run:
    """Play one run to its end, where all must be done.

    `order` says who goes on whenever several could; with `whole`, a loop that has begun goes on to its end.
    """
    world, widths, steps = Small(tree, kind), list[int](), 0
    while (live := world.live()) or not world.forest.tree.done("p"):
        invariants.require(steps < 400, f"it goes on and on: {list(world.forest.tree.walk())}")
        if not live:
            world.wait()
        elif steps == at and strike is not None:
            strike(world, live[0])
            invariants.after_a_step(world)  # type: ignore[arg-type]
        else:
            begun = [each for each in live if each.status is not Status.LEASED] if whole else []
            choice = order[len(widths)] if len(widths) < len(order) else 0
            widths.append(len(begun or live))
            world.tell(world.report((begun or live)[min(choice, widths[-1] - 1)]))
        steps += 1
    invariants.require(set(world.outlines) <= world.forest.loops.keys(), "a loop was never declared")
    invariants.after_a_step(world)  # type: ignore[arg-type]
    return Run(widths, steps)


def orders(tree: Tree, kind: Kind, *, whole: bool = False) -> Iterator[tuple[int, ...]]:
    """Give every order in which the loops can go on, each after it was played."""
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        order = waiting.pop()
        widths = run(tree, kind, order, whole=whole).widths
        yield order
        for place in range(len(order), len(widths)):
            prefix = order + (0,) * (place - len(order))
            waiting += [(*prefix, choice) for choice in range(1, widths[place])]


def has_siblings(tree: Tree) -> bool:
    """Say whether two loops of a tree have the same parent."""
    return any(len(each.children) > 1 for each in _all(tree))


def kinds(tree: Tree) -> Iterator[Kind]:
    """Give every way in which the siblings of a tree can stand to each other."""
    widest = max((len(each.children) for each in _all(tree)), default=0)
    for needs in range(1 << widest * (widest - 1) // 2):
        yield Kind(needs)
        if widest > 1:
            yield Kind(needs, serial=True)


def _all(tree: Tree) -> Iterator[Tree]:
    """Go through a tree."""
    yield tree
    for child in tree.children:
        yield from _all(child)
