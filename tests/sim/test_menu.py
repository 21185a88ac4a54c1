"""The menu is part of the specification: no event, gate, fault or act that the simulation does not meet."""

from __future__ import annotations

from collections import Counter

import pytest

from loopr.core.codec import NAMES
from loopr.core.gates import GATES
from loopr.core.model import Failure
from loopr.core.offer_events import CompletionUndone
from loopr.core.plan_events import TipsTaken
from tests.sim import age, merges, patience, purses
from tests.sim.faults import MENU
from tests.sim.person import PERSON
from tests.sim.play import play
from tests.sim.worker import WORKER

SEEDS = range(300_000, 300_900)


@pytest.mark.timeout(600)
def test_the_simulation_meets_everything_on_the_menu() -> None:
    """A fixed set of worlds meets every event, closes every gate, and suffers every fault, act and class of trouble."""
    rare = {TipsTaken, CompletionUndone}  # of an old journal; of a word against a file that counted in part
    wanted = [f"event: {each.__name__}" for each in NAMES if each not in rare]
    wanted += [f"gate: {name}" for name, _ in GATES]
    wanted += [f"fault: {name}" for name in MENU]
    wanted += [f"act: {name}" for name in (*PERSON, *WORKER)]
    lucky = (
        "an agent took over",
        "another stood in",
        "a limit was a loop's own",
        *purses.MET,
        *patience.MET,
        *age.MET,
        *merges.MET,
    )
    lucky += ("a resource was granted", "a resource was shared", "a worktree was packed")
    lucky += ("an input went before its attempt began", "a round was cut short", "a loop just did the work")
    wanted += [f"luck: {each}" for each in lucky]
    wanted += [f"trouble: {each.value}" for each in Failure if each is not Failure.BUDGET]
    met: Counter[str] = Counter()
    for seed in SEEDS:
        met.update(play(seed, compare_every=8))
        if all(met[each] for each in wanted):
            break
    assert [each for each in wanted if not met[each]] == []
