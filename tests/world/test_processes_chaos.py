"""Kills at random moments: of supervisors, launchers, the engine and the commands themselves."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loopr.world.launcher import proc, traces
from loopr.world.processes.attempts import TRIES
from tests.world.attempting import wait_gone

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 8
PAUSE_SECS = 0.02


class Arena:
    """An engine with its launcher, and somebody who kills."""

    def __init__(self, root: Path, count: int, seed: int) -> None:
        """Lay out the folders and start the engine."""
        self.root, self.count, self.dice = root, count, random.Random(seed)
        for name in ("state", "tree", "ledger"):
            (root / name).mkdir()
        self.kills: Counter[str] = Counter()
        self.killed: set[int] = set()
        self.engine = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start an engine."""
        command = [sys.executable, str(ROOT / "tests/world/chaos.py"), str(self.root), str(self.count), str(WIDTH)]
        with (self.root / "engine.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})

    def close(self) -> None:
        """End the engine, if the test did not, and then whatever it left behind."""
        over = self.engine.poll() == 0
        self.engine.kill()
        self.engine.wait()
        for pid in () if over else (*self.launchers(), *(seen.pid for seen in traces.marked(str(self.root)))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def launchers(self) -> list[int]:
        """Return the launchers and supervisors of this workspace."""
        return [pid for pid in proc.pids() if os.fsencode(self.root / "state") in proc.read(f"/proc/{pid}/cmdline")]

    def victims(self) -> Iterator[tuple[str, int]]:
        """Give who may be killed, and what it is: a supervisor leads a session, also when its launcher is dead."""
        found = self.launchers()
        for pid in found:
            seen = proc.stat(pid)
            yield ("supervisor" if seen and (seen.session == pid or seen.parent in found) else "launcher"), pid
        for seen in traces.marked(str(self.root)):
            yield "command", seen.pid
        yield "engine", self.engine.pid

    def kill(self) -> None:
        """Kill somebody, of a kind that is there."""
        by_kind: dict[str, list[int]] = {}
        if not self.launchers():
            return  # an engine that never gets to anything proves nothing
        for kind, pid in self.victims():
            by_kind.setdefault(kind, []).append(pid)
        kind = self.dice.choices(list(by_kind), [{"supervisor": 6, "launcher": 2}.get(kind, 1) for kind in by_kind])[0]
        pid = self.dice.choice(by_kind[kind])
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.kills[kind] += 1
        self.killed.add(pid)  # what looked like a supervisor may have become a command by now: a fork before its exec

    def fight(self, most: int) -> None:
        """Kill every now and then until the engine has what it wants."""
        while True:
            watched = os.pidfd_open(self.engine.pid)
            ended, _, _ = select.select([watched], [], [], self.dice.expovariate(1 / PAUSE_SECS))
            os.close(watched)
            if ended:
                if self.engine.wait() == 0:
                    return
                assert self.engine.returncode == -signal.SIGKILL, (self.root / "engine.log").read_text()
                self.engine = self.start()
            elif self.kills.total() < most:
                self.kill()

    def outcomes(self) -> dict[str, dict[str, object]]:
        """Return how each attempt ended; what an engine heard twice, it may write twice."""
        lines = map(json.loads, (self.root / "journal").read_text().splitlines())
        return {line["ended"]: line["outcome"] for line in lines if "ended" in line}

    def ledger(self, number: str) -> str:
        """Return what an attempt did."""
        path = self.root / "ledger" / number
        return path.read_text() if path.exists() else ""


@pytest.mark.parametrize(
    ("count", "most", "seed"),
    [
        (300, 100, 1),
        pytest.param(1500, 600, 2, marks=pytest.mark.soak),
        pytest.param(1500, 600, 3, marks=pytest.mark.soak),
    ],
)
def test_whoever_is_killed_every_attempt_ends_once(tmp_path: Path, count: int, most: int, seed: int) -> None:
    """With kills at random moments none is stuck, none runs twice, every outcome is right, and nothing is left."""
    arena = Arena(tmp_path, count, seed)
    try:
        arena.fight(most)
    finally:
        arena.close()
    outcomes = arena.outcomes()
    assert outcomes.keys() == {str(number) for number in range(count)}
    for number, outcome in outcomes.items():
        did = arena.ledger(number)
        assert did in ("", "start\n", "start\nend\n"), "it ran twice"
        log = tmp_path / "runs" / number / "stdout.log"
        if outcome["reason"] == "exited":
            assert (outcome["code"], did) == (int(number) % 50, "start\nend\n")
            assert log.read_text() == f"said {number}\n"
        elif outcome["reason"] == "signalled":
            assert outcome["signal"] == signal.SIGKILL
            pid = json.loads((tmp_path / "runs" / number / "run.json").read_text())["pid"]
            assert pid in arena.killed or not pid  # one that was killed at once
        elif outcome["reason"] == "not_started":
            assert did == ""
            assert not (tmp_path / "runs" / number / "run.json").exists()
            assert arena.kills["launcher"] >= TRIES
        else:
            assert outcome["reason"] == "lost"
            assert arena.kills["supervisor"]
    lost = sum(outcome["reason"] == "lost" for outcome in outcomes.values())
    assert lost <= arena.kills.total()
    print(f"{dict(arena.kills)}, lost {lost} of {count}")
    for pid in arena.launchers():
        wait_gone(pid)
    assert traces.marked(str(tmp_path)) == {}
    assert not (tmp_path / "state" / "launcher.log").read_text()
