"""Whatever an engine waits for: told to end at once, it ends within grace and two seconds."""

from __future__ import annotations

import random
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.repos import opened
from tests.e2e.stopping import GRACE_SECS, NAMES, SCENES, WAYS, Setting, clear, stop

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


def test_a_plain_stop_waits_for_no_landing_that_waits(tmp_path: Path) -> None:
    """The first Ctrl-C lets commands end; landings that wait for others, and those behind, do not keep it."""
    with ExitStack() as stack:
        at = Setting(stack.enter_context(opened(tmp_path)), random.Random("plain"), stack)
        process, cure = SCENES["lock"](at)
        process.signal(signal.SIGINT)
        process.says("draining")
        assert not process.has_ended
        at.repo.gates["hold"].open()
        said = process.ended(130)
        assert "left to the next run: landing of demo/a, landing of demo/b, landing of demo/c" in said.err
        cure()
        at.repo.loopr("run")
        assert set(at.repo.statuses().values()) == {"complete"}


CHECK = """
test "$LOOPR_LOOP" = demo/b || exit 0
echo "$LOOPR_LOOP" >> "$DESK/asked"
number=$(wc -l < "$DESK/asked")
tell "asked $number"
trap '' TERM
test "$number" -gt 2 || wait_at "judge $number"
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_landing_that_asks_its_judge_gives_way(tmp_path: Path, way: str) -> None:
    """A landing whose check works still is left to the next run, which asks that check anew."""
    with ExitStack() as stack:
        at = Setting(stack.enter_context(opened(tmp_path)), random.Random(way), stack)
        repo = at.repo.found()
        for gate in ("judge 1", "judge 2", "late"):
            repo.gate(gate)
        work = 'test "$LOOPR_LOOP" = demo/b || wait_at late; echo x > "$(basename "$LOOPR_LOOP")"'
        run, check = repo.script("code", work), repo.script("check", CHECK)
        repo.settings(
            f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', check: '{check}'}}\n"
            f"timeouts: {{grace_secs: {GRACE_SECS:g}}}\n"
        )
        repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
        process = repo.begin("start", "plan.md")
        assert repo.heard() == ["asked 1"]
        repo.gates["late"].open()
        repo.until("landed", words='"loop": "demo/a"')
        repo.gates["judge 1"].open()
        assert repo.heard() == ["asked 2"]
        assert repo.statuses()["demo/b"] == "landing"
        stopped = stop(at, process, way)
        assert stopped.secs <= stopped.allowed_secs, stopped
        told = stopped.said.err + (stopped.verb.err if stopped.verb is not None else "")
        assert told.count("left to the next run: landing of demo/b") == 1 + (way == "stop --now")
        assert repo.statuses()["demo/b"] == "landing"
        repo.loopr("run")
        assert repo.note("asked").count("demo/b") == 3
        assert set(repo.statuses().values()) == {"complete"}
        assert repo.granted() == {"demo/a": 1, "demo/b": 1}
        assert not repo.events("broke", "refused", "limited")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_hundred_ends(tmp_path: Path, seed: int) -> None:
    """A hundred ends at random instants of random waits are in time, and the next run goes on."""
    dice = random.Random(f"end {seed}")
    name = list(SCENES)[seed % len(SCENES)]
    print(f"{name}: {play(tmp_path, name, dice.choice(WAYS), seed):.2f} s")
    clear(tmp_path)
