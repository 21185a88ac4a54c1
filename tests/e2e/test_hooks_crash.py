"""Hooks over a crash: whoever is struck down at whatever moment, every hook is told of all that concerns it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopr.driving.occasions import occasion_of
from loopr.engine import compare, recall
from loopr.world.journal import Journal
from tests.e2e.crashing import PLAN, Life, Round, play, prepare
from tests.e2e.repos import LOOPR

MEMORY = Path("/dev/shm")
HOOKS = ("on_complete", "on_convoy_complete", "on_settle")
HOOK = """\
#!/bin/sh
set -eu
seq=$(sed 's/.*"seq": \\([0-9]*\\),.*/\\1/')
echo "begin $LOOPR_HOOK $seq" >> {told}
sleep 0.03
echo "end $LOOPR_HOOK $seq" >> {told}
"""
STRIKES = [
    (Life("engine", "hook asks for Run", 1), Life("engine", "hook asks for Run", 2)),
    (Life("engine", "hook goes on", 2), Life("engine", "hook is over", 1)),
    (Life("engine", "hook asks for Tell", 1), Life("engine", "adopted", 1)),
    (Life("engine", "after append", 20), Life("engine", "after append", 30)),
    (Life("engine", "step", 300), Life("engine", "effect", 60)),
    (Life("all", "hook asks for Run", 3), Life("all", "hook asks for Run", 1), Life("all", "moment", 0.8)),
    (Life("machine", "hook goes on", 7), Life("machine", "hook asks for Run", 2)),
    (Life("launcher", "hook asks for Run", 2), Life("supervisor", "hook goes on", 3)),
]


@pytest.fixture
def root() -> Iterator[Path]:
    """Give a folder in memory, where there is one: what is synced there costs nothing."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def lay_out(root: Path, seed: int, lives: tuple[Life, ...]) -> Round:
    """Lay out a round whose workspace has hooks, and a convoy with two members."""
    made = prepare(root, seed, lives)
    script = root / "tools" / "hook.sh"
    script.write_text(HOOK.format(told=root / "told"))
    settings = json.loads((made.repo / "loopr.yml").read_text())
    settings["hooks"] = {name: ["sh", str(script)] for name in HOOKS}
    (made.repo / "loopr.yml").write_text(json.dumps(settings, indent=1))
    made.git("commit", "--quiet", "--all", "--message", "hooks")
    for words in (["start", "--no-run", "plan.md"], ["convoy", "create", "all", PLAN]):
        subprocess.run([str(LOOPR), *words], cwd=made.repo, check=True, capture_output=True)
    return made


class Aftermath:
    """What a round has left behind: what hooks should have heard, and what they did."""

    def __init__(self, made: Round) -> None:
        """Read the journal and what hooks wrote."""
        with Journal.open(made.state / "loopr.db", readonly=True) as journal:
            self.differences = compare(journal) + journal.integrity()
            self.forest = recall(journal)[0]
            records = list(journal.since(0))
        first = next(json.loads(each.data)["upto"] for each in records if each.event == "listener_heard")
        found = [each for each in map(occasion_of, records) if each is not None and each.hook and each.seq > first]
        self.loops = {(each.hook, each.seq): each.loop for each in found}
        self.work = max(each.seq for each in records if each.loop is not None)
        lines = (line.split() for line in (made.root / "told").read_text().splitlines())
        self.told = [(word, hook, int(seq)) for word, hook, seq in lines]

    def count(self, word: str) -> Counter[tuple[str, int]]:
        """Count how often hooks began to be told, or were told to the end."""
        return Counter((hook, seq) for said, hook, seq in self.told if said == word and hook != "on_settle")

    def order(self, loop: str) -> list[int]:
        """Return the events of a loop in the order in which they were told for the first time."""
        seen = dict.fromkeys(seq for word, hook, seq in self.told if self.loops.get((hook, seq)) == loop)
        return list(seen)


@pytest.mark.parametrize("lives", STRIKES, ids=lambda lives: f"{lives[0].victim} {lives[0].by} {lives[0].at}")
def test_hooks_are_told_at_least_once(root: Path, lives: tuple[Life, ...]) -> None:
    """Every hook is told of all that concerns it, of each loop in order, and once unless it was killed itself."""
    made = lay_out(root, STRIKES.index(lives), lives)
    ended = play(made)
    assert ended.returncode == 0, ended.stderr
    found = Aftermath(made)
    assert found.differences == []
    told = found.count("end")
    assert set(told) == set(found.loops)
    assert "on_convoy_complete" in {hook for hook, _ in told}
    if all(life.victim == "engine" for life in lives):
        assert set(found.count("begin").values()) == set(told.values()) == {1}
    for loop in set(found.loops.values()):
        assert (order := found.order(loop)) == sorted(order)
    assert ("end", "on_settle", found.work) in found.told
    assert found.forest.shared.heard["hook on_settle"] == found.work
    assert not found.forest.shared.problems
