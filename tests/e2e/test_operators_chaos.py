"""Whatever operators say, in whatever order, while engines work, die and come back: all promises hold, all ends well.

A failure names its seed; `play(repo, seed, ...)` says the same words again.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from loopr.core.codec import decode
from loopr.world.journal import Journal
from tests.e2e import operating
from tests.e2e.operating import FINE, plan_text
from tests.e2e.repos import Process, Repo, opened
from tests.sim.invariants import Watch
from tests.sim.journals import Told

TOP = Path(__file__).resolve().parents[2]
WORK = """
exec 9> "$DESK/lock $(echo "$LOOPR_LOOP" | tr / .)"
flock -n 9 || say "! $LOOPR_LOOP $LOOPR_ATTEMPT"
begin
note=$(basename "$LOOPR_LOOP")
if [ -e "$DESK/calm" ]; then
  echo "$LOOPR_LOOP $LOOPR_ATTEMPT" > "$note"
else
  echo "$LOOPR_ATTEMPT" >> "$note"
  case $(echo "$SEED $LOOPR_LOOP $LOOPR_ATTEMPT" | cksum | cut -c 2) in
    0) exit 1 ;;
    1) kill -9 $$ ;;
    2) exit 78 ;;
    3) exec sleep 0.5 ;;
  esac
fi
end
"""
SETTINGS = """\
types:
  plan: {{child: spec}}
  spec: {{child: code}}
  code: {{run: '{run}', approve: true}}
concurrency: {{max_loops: 3, per_type: {{code: 3}}}}
retry: {{base_secs: 0.05, max_attempts: 2, max_iterations: {{code: 3}}}}
scheduler: {{poll_interval_secs: 0.2}}
timeouts: {{grace_secs: 0.2}}
lease: {{ttl_secs: 2}}
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


@pytest.mark.parametrize("seed", range(1))
def test_whatever_operators_say(repo: Repo, seed: int) -> None:
    """Some hundred random words of operators beside an engine that dies now and then break no promise."""
    play(repo, seed, operators=2, words=50)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(100, 120))
def test_whatever_operators_say_for_long(repo: Repo, seed: int) -> None:
    """Thousands of random words of several operators break none either."""
    play(repo, seed, operators=3, words=150)


def play(repo: Repo, seed: int, *, operators: int, words: int) -> None:
    """Let operators talk while engines live and die, then look at what has become of it."""
    repo.env["SEED"] = str(seed)
    repo.patience_secs = 300
    repo.settings(SETTINGS.format(run=repo.script("code", WORK)))
    repo.write({"plan.md": plan_text()})
    repo.loopr("start", "--no-run", "plan.md")
    said: list[dict[str, Any]] = []
    try:
        said = talk(repo, Random(seed), seed, operators, words)
        assert [each for each in said if each["code"] not in FINE] == []
        look_back(repo)
        mend(repo)
        look_back(repo)
        at_the_end(repo)
    except AssertionError as error:
        told = "\n".join(f"{each['code']}  {' '.join(each['words'])}" for each in said)
        raise AssertionError(f"seed {seed}\n{told}\n{error}\nseed {seed}") from error


def talk(repo: Repo, dice: Random, seed: int, operators: int, words: int) -> list[dict[str, Any]]:
    """Let operators say so many words each, and kill an engine after some of them; another one follows."""
    engine = repo.begin("run")
    talking = [_sit_down(repo, 1000 * seed + each, words) for each in range(operators)]
    for place in sorted(dice.sample(range(5, words), max(2, words // 20))):
        talking[0].lines(place)
        if dice.random() < 0.6:
            engine.kill()
        if engine.has_ended:
            engine = repo.begin("run")
    ends = [each.ended() for each in talking]
    engine.kill()
    return [json.loads(line) for each in ends for line in each.out.splitlines()]


def _sit_down(repo: Repo, seed: int, words: int) -> Process:
    """Begin an operator."""
    argv = [sys.executable, operating.__file__, str(repo.root), str(seed), str(words)]
    process = Process(argv, repo.root, {**repo.env, "PYTHONPATH": str(TOP), "USER": f"op{seed}"})
    process.patience_secs = repo.patience_secs
    return process


# --- what must hold -------------------------------------------------------------------------------------------------


class _Replay(Watch):
    """Asks of every event of a journal what the simulation asks; the rows are left to `doctor`."""

    def __init__(self) -> None:
        """Begin with nothing, in a world that has a clock, and counts nothing that it meets."""
        super().__init__(SimpleNamespace(wall=0, met=lambda what: None))  # type: ignore[arg-type]

    def _same_rows(self) -> None:
        """Forget the rows."""
        self.shadow.take_rows()


def look_back(repo: Repo) -> None:
    """No lease past a gate or a ceiling, none before its parent, no attempt twice; the rows are those of a replay."""
    replay = _Replay()
    with Journal.open(repo.state / "loopr.db", readonly=True) as journal:
        for each in journal.since(0):
            replay.world.wall = each.at  # type: ignore[misc]
            replay.told([Told(each.seq, each.at, decode(each.event, each.version, each.data))])
    checks = repo.loopr("doctor", "--json", code=None).document["checks"]
    assert [each for each in checks if each["ok"] is False] == []
    assert [line for line in repo.diary() if line.startswith("!")] == [], "two attempts of a loop were alive at once"


def mend(repo: Repo) -> None:
    """Do all that a person would who wants everything done."""
    (repo.desk / "calm").touch()
    repo.write({"plan.md": f"{plan_text()}All of it.\n"})  # a text that was rejected does not count again
    repo.loopr("start", "--no-run", "--yes", "plan.md")
    for _ in range(8):
        for lease in repo.loopr("lease", "list", "--json").document["leases"]:
            repo.loopr("lease", "release", lease["lease"], code=None)
        repo.loopr("resume", "--all")
        repo.loopr("resume", "project:default", *operating.LOOPS)
        for each in repo.loopr("status", "--json").document["offered"]:
            repo.loopr("approve", each["loop"], "--file")
        for status, words in _BACK.items():
            loops = [each for each, found in repo.statuses().items() if found == status]
            if loops:
                repo.loopr(*words, *loops)
        repo.loopr("run", code=None)
        if set(repo.statuses().values()) == {"complete"}:
            return
    raise AssertionError(f"not all is done although all was mended\n{repo.loopr('ls').out}")


_BACK = {"parked": ["retry"], "failed": ["retry"], "cancelled": ["retry"], "awaiting_approval": ["approve"]}


def at_the_end(repo: Repo) -> None:
    """All that the plan declares is complete, what has landed has landed once, and the user's branch is as it was."""
    assert repo.statuses() == dict.fromkeys(operating.LOOPS, "complete")
    twice = [each for each, count in Counter(repo.landed("demo")).items() if count > 1]
    assert twice == []
    assert repo.git("rev-list", "--count", "main") == "2"
