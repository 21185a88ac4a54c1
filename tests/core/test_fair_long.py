"""Fair share over ten thousand grants: whoever weighs so much uses so much, whatever attempts cost and take."""

from __future__ import annotations

from fractions import Fraction
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

import pytest

from loopr.core.fairness import next_project
from loopr.core.ledger import PROJECT, charge_of
from loopr.core.model import Lease, Loop, Status, Usage
from loopr.core.policy import Policy, ProjectPolicy
from loopr.core.scene import Scene

GRANTS = 10_000
WEIGHTS = {
    "even": (1, 1),
    "three to one": (3, 1),
    "nineteen to one": (19, 1),
    "five, three, two": (5, 3, 2),
    "a small one beside many": (1, 9, 10, 20),
}


class Kind(NamedTuple):
    """What the attempts of a project are like: tokens and seconds, from and to."""

    tokens: tuple[int, int]
    secs: tuple[int, int]


ALIKE = Kind((100, 100), (5, 5))
KINDS = {
    "all alike": (ALIKE, ALIKE, ALIKE, ALIKE),
    "costs ten to one": (Kind((1000, 1000), (5, 5)), Kind((100, 100), (5, 5)), ALIKE, ALIKE),
    "hours beside seconds": (Kind((100, 100), (1, 3)), Kind((100, 100), (50, 90)), ALIKE, Kind((90, 110), (1, 60))),
    "anything": (Kind((1, 900), (1, 60)), Kind((50, 400), (1, 20)), Kind((1, 3000), (1, 5)), Kind((10, 20), (1, 90))),
}


class Bench:
    """A workspace whose projects all have more to do than fits, with so many slots: only fair share decides."""

    def __init__(self, weights: tuple[int, ...], kinds: tuple[Kind, ...], slots: int) -> None:
        """Begin at the first instant."""
        self.names = [f"p{place}" for place in range(len(weights))]
        projects = {name: ProjectPolicy(Fraction(each)) for name, each in zip(self.names, weights, strict=True)}
        self.scene = Scene(Policy(projects=projects, window_ms=10**12))
        self.kinds, self.slots, self.chance = dict(zip(self.names, kinds, strict=False)), slots, Random(7)
        self.now, self.ends = 0, list[tuple[int, int, Loop, int]]()

    def grant(self, number: int) -> None:
        """Let the project whose turn it is have a slot."""
        name, chance = next_project(self.scene, self.names, self.now), self.chance
        lease = Lease(number, "engine", "default", self.now, number, started_at=self.now)
        loop = Loop(
            f"{name}/{number}", "code", "", None, 0, 0, name, status=Status.RUNNING, attempt=number, lease=lease
        )
        self.scene.tree.loops[loop.id] = loop
        self.scene.occupancy.count(loop, 1)
        kind = self.kinds[name]
        heappush(self.ends, (self.now + 1000 * chance.randint(*kind.secs), number, loop, chance.randint(*kind.tokens)))

    def end(self) -> None:
        """Let whoever is done first end: only then is it known what it has cost."""
        self.now, _, loop, tokens = heappop(self.ends)
        self.scene.occupancy.count(loop, -1)
        del self.scene.tree.loops[loop.id]
        usage = Usage(tokens, None, self.now - loop.lease.at if loop.lease is not None else 0)
        self.scene.ledger.add(charge_of(self.scene.policy, loop, usage, "default", self.now))
        self.scene.shared.completed[loop.project] = self.now

    def shares(self) -> list[float]:
        """Return which part of all use each project has had."""
        used = [self.scene.ledger.used((PROJECT, name), self.now).cost for name in self.names]
        return [each / sum(used) for each in used]


CASES = [
    *((list(WEIGHTS)[slots % 5], list(KINDS)[slots % 4], slots) for slots in range(1, 9)),
    ("a small one beside many", "anything", 8),
]


@pytest.mark.parametrize(("weights", "kinds", "slots"), CASES)
def test_use_follows_weights_within_a_hundredth(weights: str, kinds: str, slots: int) -> None:
    """After ten thousand grants each project has used its share, however unequal costs and durations are."""
    bench = Bench(WEIGHTS[weights], KINDS[kinds], slots)
    for number in range(1, GRANTS + 1):
        if len(bench.ends) == slots:
            bench.end()
        bench.grant(number)
    while bench.ends:
        bench.end()
    whole = sum(WEIGHTS[weights])
    for got, weight in zip(bench.shares(), WEIGHTS[weights], strict=True):
        assert abs(got - weight / whole) < 0.01, (bench.shares(), WEIGHTS[weights])
