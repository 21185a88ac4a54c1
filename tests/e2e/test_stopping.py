"""Whatever an engine waits for: told to end at once, it ends within grace and two seconds."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.repos import opened
from tests.e2e.stopping import NAMES, SCENES, WAYS, Setting, clear, stop

ROUNDS = 100
CODES = {"SIGTERM": (143,), "Ctrl-C twice": (130,), "stop --now": (0, 1, 4, 5)}


def play(folder: Path, name: str, way: str, seed: int) -> float:
    """Play a scene: the end is in time, the next run ends the plan, nothing is lost or twice."""
    with ExitStack() as stack:
        at = Setting(stack.enter_context(opened(folder)), random.Random(f"{name} {seed}"), stack)
        process, cure = SCENES[name](at)
        stopped = stop(at, process, way)
        where = f"{name} {way} {seed}: {stopped}"
        assert stopped.secs <= stopped.allowed_secs, where
        assert stopped.said.code in CODES[way], where
        assert stopped.verb is None or stopped.verb.code == 0, where
        cure()
        for gate in ("go", "hold"):
            at.repo.gates[gate].open()
        end = at.repo.loopr("run", code=None)
        parked = [loop for loop, status in at.repo.statuses().items() if status in ("parked", "failed")]
        if parked:  # what was damaged is a reason to be parked, and mended now
            assert name == "objects", (where, end)
            at.repo.loopr("retry", *parked)
            end = at.repo.loopr("run", code=None)
        assert set(at.repo.statuses().values()) == {"complete"}, (where, end)
        assert sorted(each[0] for each in at.repo.landed("demo")) == [f"demo/{each}" for each in NAMES], where
        assert {at.repo.on_branch("demo", each) for each in NAMES} == {f"demo/{each}" for each in NAMES}, where
        assert name == "objects" or {each["failures"] for each in at.repo.loops().values()} == {0}, where
        return stopped.secs


@pytest.mark.parametrize("name", SCENES)
def test_an_engine_that_waits_ends_at_once(tmp_path: Path, name: str) -> None:
    """An engine that waits ends in time when it is told to; the next run ends its plan."""
    seed = list(SCENES).index(name)
    play(tmp_path, name, "stop --now" if name == "hook" else WAYS[seed % len(WAYS)], seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_hundred_ends(tmp_path: Path, seed: int) -> None:
    """A hundred ends at random instants of random waits are in time, and the next run goes on."""
    dice = random.Random(f"end {seed}")
    name = list(SCENES)[seed % len(SCENES)]
    print(f"{name}: {play(tmp_path, name, dice.choice(WAYS), seed):.2f} s")
    clear(tmp_path)
