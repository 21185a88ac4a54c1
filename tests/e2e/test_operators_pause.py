"""A pause holds: on every path, through a crash that comes with it, and among many who say this and that at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.e2e.operators import QUICK, at_once, numbered, outline, past_gates, plan
from tests.e2e.repos import Ended, Repo, opened


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


@pytest.mark.parametrize(
    "scope", ["--all", *(pytest.param(each, marks=pytest.mark.soak) for each in ("project:default", "demo", "demo/n1"))]
)
def test_a_pause_stops_every_path(repo: Repo, scope: str) -> None:
    """What is paused is started by no engine that runs or begins, by no dispatch, and taken by no pull worker."""
    plan(repo, numbered(3), text="concurrency: {max_loops: 1}\n")
    engine = repo.begin("start", "plan.md")
    assert repo.heard() == ["demo/n0"]
    repo.loopr("pause", scope)
    paused = ["n1"] if scope == "demo/n1" else ["n1", "n2"]
    dispatched = repo.loopr("dispatch", *paused, "--json").document["done"]
    assert all("is paused by" in each["loop"]["gates"][0]["reason"] for each in dispatched)
    engine.kill()
    repo.gates["gate"].open()
    if scope != "demo/n1":
        ended = repo.loopr("lease", "take", code=75)
        assert "paused by" in ended.err
    repo.loopr("run", code=4)
    assert not set(repo.granted()) & {f"demo/{each}" for each in paused}
    assert past_gates(repo) == []
    repo.loopr("resume", scope)
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_a_paused_workspace_takes_plans(repo: Repo) -> None:
    """While the workspace is paused a plan is enqueued, starts nothing, and begins after `resume`."""
    plan(repo, numbered(2), work=QUICK)
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("pause", "--all", "--reason", "freeze")
    repo.write({"more.md": outline(numbered(2), "more")})
    repo.loopr("start", "more.md", code=4)
    assert repo.granted() == {}
    assert repo.statuses()["more/n0"] == "pending"
    repo.loopr("resume", "--all")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


@pytest.mark.parametrize("seed", range(1))
def test_a_pause_that_returned_outlives_a_crash(repo: Repo, seed: int) -> None:
    """However close a kill comes, a pause that said yes is there afterwards, and nothing is started until its end."""
    _crash_beside_a_pause(repo, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 130))
def test_pauses_outlive_many_crashes(repo: Repo, seed: int) -> None:
    """The same holds for many moments."""
    _crash_beside_a_pause(repo, seed)


def _crash_beside_a_pause(repo: Repo, seed: int) -> None:
    """Kill an engine while one operator pauses and another dispatches, and look at what the next engine does."""
    dice = Random(seed)
    work = f'{QUICK}; case "$LOOPR_LOOP" in */n[0-3]) ;; *) wait_at gate ;; esac'
    plan(repo, numbered(12), work=work, text="concurrency: {max_loops: 2}\n")
    engine = repo.begin("start", "plan.md")
    repo.until("landed", dice.randint(1, 3))
    words = dice.choice(["--all", "project:default", "demo"])
    pause, other = repo.begin("pause", words), repo.begin("dispatch", "n11", "n10")
    if dice.random() < 0.5:
        repo.until("scope_held" if words != "demo" else "held")
    engine.kill()
    pause.ended()
    other.ended(None)
    repo.gates["gate"].open()
    repo.loopr("run", code=4)
    held = next(each["seq"] for each in repo.events("scope_held", "held"))
    assert [each for each in repo.events("lease_granted") if each["seq"] > held] == [], f"seed {seed}"
    repo.loopr("resume", words)
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}, f"seed {seed}"
    assert past_gates(repo) == []


@pytest.mark.parametrize("seed", range(1))
def test_pauses_and_dispatches_from_many_processes(repo: Repo, seed: int) -> None:
    """However many pause, resume and dispatch at once, each word that was taken is remembered, and all gates hold."""
    _storm(repo, seed, rounds=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_long_storm(repo: Repo, seed: int) -> None:
    """The same holds for long."""
    _storm(repo, seed, rounds=10)


def _storm(repo: Repo, seed: int, *, rounds: int) -> None:
    """Let many processes say this and that at once while an engine starts one short loop after the other."""
    dice, loops = Random(seed), numbered(30)
    plan(repo, loops, work=QUICK, text="concurrency: {max_loops: 3}\n")
    repo.loopr("start", "--no-run", "plan.md")
    engine = repo.begin("run")
    for _ in range(rounds):
        lines = []
        for _ in range(8):
            some = " ".join(dice.sample(loops, 2))
            verbs = (f"pause {some}", f"pause {some}", f"dispatch {some}", "pause demo", "resume demo", "lease take")
            lines.append(f"{dice.choice(verbs)} --json")
        for line, ended in zip(lines, at_once(repo, lines, None), strict=True):
            _is_in_the_journal(repo, line, ended)
    for lease in repo.loopr("lease", "list", "--json").document["leases"]:
        repo.loopr("lease", "release", lease["lease"])
    engine.ended(None)
    repo.loopr("resume", "demo", *loops)
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}, f"seed {seed}"
    assert past_gates(repo) == [], f"seed {seed}"


def _is_in_the_journal(repo: Repo, line: str, ended: Ended) -> None:
    """Whatever a command says it has done is an event; what it refuses is one of the refusals that there are."""
    if ended.code:
        assert (line.partition(" ")[0], ended.code) in {("dispatch", 2), ("lease", 75)}, (line, ended)
        return
    if line.startswith("lease"):
        return
    done = {(each["id"], each["did"]) for each in ended.document["done"]}
    words = {"held": "paused", "lifted": "resumed"}
    known = {(each["loop"], words[each["event"]]) for each in repo.events("held", "lifted")}
    known |= {(x, "dispatched") for each in repo.events("loops_dispatched") for x in each["data"]["loops"]}
    assert done <= known, (line, done - known)
