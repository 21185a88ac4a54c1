"""Loops that change the same files, mended rightly each time: every one lands, and none mends a file twice."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

import pytest

from loopr.core import observations as o
from loopr.core.choose import next_wake
from loopr.core.entries import Artifact, Entry
from loopr.core.forest import Forest
from loopr.core.hot import touched_turns
from loopr.core.judge_events import Conflicted
from loopr.core.model import Failure, Loop, Status
from loopr.core.observations import Trouble
from loopr.core.owed import Effect, Judge, Land, PackWorktree, StartAttempt, owed
from loopr.core.policy import Policy, TypePolicy
from loopr.core.turn import think

FILES = ("changes", "code", "tests")
BLOCK = 20


class Shop:
    """A repository of a few files, and loops that change them; time is virtual."""

    def __init__(self, seed: int) -> None:
        """Begin a plan of loops with files, some of which are wrong at first."""
        self.chance = Random(seed)
        self.forest, self.now, self.number = Forest(), 0, 0
        names = [f"n{each}" for each in range(self.chance.randint(3, 14))]
        most = self.chance.randint(1, len(FILES))
        self.files = {f"p/{each}": set(self.chance.sample(FILES, self.chance.randint(1, most))) for each in names}
        self.wrong = {each for each in self.files if self.chance.random() < 0.3}
        self.versions = dict.fromkeys(FILES, 0)
        self.seen: dict[str, dict[str, int]] = {}
        self.coming: list[tuple[int, int, o.Observation]] = []
        self.begun: set[Effect] = set()
        self.tip, self.landing = "c0", ""
        self.mended: dict[str, list[str]] = {each: [] for each in self.files}
        kinds = {"plan": TypePolicy("plan", "code"), "code": TypePolicy("code", None, has_command=True, judged=True)}
        policy = Policy(types=kinds, max_loops=self.chance.randint(2, 5), per_type={})
        plan = Artifact("p", "p", entries=tuple(Entry(each, each) for each in names), declares=True)
        self.tell(o.PolicySeen(policy), o.EngineBegan(1, "here"), o.PlanOffered("p", plan, "d", "p.md", "main", "c0"))

    def tell(self, *seen: o.Observation) -> None:
        """Let the engine think."""
        for event in think(self.forest, seen, self.now):
            if isinstance(event, Conflicted):
                self.mended[event.loop] += event.paths
        for effect in list(owed(self.forest)):
            if effect not in self.begun:
                self.act(effect)

    def later(self, seen: o.Observation, most: int = 60_000) -> None:
        """Let something be seen after a while."""
        self.number += 1
        heappush(self.coming, (self.now + self.chance.randint(1, most), self.number, seen))

    def act(self, effect: Effect) -> None:
        """Begin what is owed."""
        loop = self.forest.loops[effect.loop]
        match effect:
            case StartAttempt():
                self.begun.add(effect)
                self.seen[loop.id] = dict(self.versions)
                self.later(o.AttemptBegan(loop.id, effect.attempt), 1)
                self.later(o.AttemptEnded(loop.id, effect.attempt))
            case Judge():
                self.begun.add(effect)
                self.later(o.Judged(loop.id, effect.attempt, self.trouble(loop)))
            case PackWorktree():
                self.begun.add(effect)
                self.later(o.PackingDone(loop.id, effect.attempt), 20)
            case Land() if not self.landing:
                self.land(loop)

    def trouble(self, loop: Loop) -> Trouble | None:
        """Judge what a loop has made: what it did not see is in conflict, and some are wrong at first."""
        paths = tuple(sorted(each for each in self.files[loop.id] if self.versions[each] != self.seen[loop.id][each]))
        if paths:
            return Trouble(Failure.CONFLICT, "both", "c", tip=self.tip, paths=paths, touched=tuple(self.files[loop.id]))
        if loop.id in self.wrong:
            self.wrong.discard(loop.id)
            return Trouble(Failure.REFUSED, "it is wrong", "w", touched=tuple(self.files[loop.id]))
        return None

    def land(self, loop: Loop) -> None:
        """Make a landing ready, or end one that has begun."""
        touched, trouble = tuple(self.files[loop.id]), self.trouble(loop)
        if loop.lease is not None and loop.lease.lands:
            self.landing = loop.id
            self.later(o.LandingDone(loop.id, loop.attempt, "c", f"d{loop.id}"), 20)
        elif trouble is not None:
            self.tell(o.LandingFailed(loop.id, loop.attempt, trouble))
        elif touched_turns(self.forest, loop, touched):
            self.tell(o.LandingTouches(loop.id, loop.attempt, touched))
        else:
            self.landing = loop.id
            new = f"c{int(self.tip[1:]) + 1}"
            self.later(o.LandingReady(loop.id, loop.attempt, self.tip, new, "t", touched), 2_000)

    def run(self) -> None:
        """Let time pass until nothing happens any more."""
        while self.coming:
            self.now, _, seen = heappop(self.coming)
            if isinstance(seen, o.LandingReady | o.LandingDone):
                self.landing = ""
            if isinstance(seen, o.LandingDone):
                self.versions |= {each: self.versions[each] + 1 for each in self.files[seen.loop]}
                self.tip = f"c{int(self.tip[1:]) + 1}"
            self.tell(seen)
            assert next_wake(self.forest, self.now) is not None or self.coming or self.is_done()

    def is_done(self) -> bool:
        """Say whether all loops have landed."""
        return all(self.forest.loops[each].status is Status.COMPLETE for each in self.files)


@pytest.mark.parametrize("block", range(10))
def test_nobody_mends_a_file_twice(block: int) -> None:
    """Every loop lands, and meets at most one conflict in each file, whatever lands beside it."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        shop = Shop(seed)
        shop.run()
        assert shop.is_done(), (seed, {each: shop.forest.loops[each].status for each in shop.files})
        twice = {each: paths for each, paths in shop.mended.items() if len(paths) != len(set(paths))}
        assert not twice, (seed, twice)
