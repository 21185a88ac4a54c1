"""A worktree that is being set up: a person is told so, for how long, and reads along."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Process, Repo, opened
from tests.e2e.test_engine_commands import plan

SOON = "retry: {base_secs: 0}\n"
WORDS = re.compile(r"being set up for \d+ s: `loopr logs -f demo/a`")


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


@pytest.fixture
def engine(repo: Repo) -> Process:
    """Give an engine while the setup of a worktree waits at a gate, and has said something."""
    repo.gate("gate")
    setup = repo.script("setup", "echo fetching; echo oh >&2; tell x; wait_at gate; echo fetched")
    plan(repo, "echo work; echo x > x", worktrees=f", setup: '{setup}'")
    begun = repo.begin("start", "plan.md")
    repo.heard()
    return begun


def test_the_engine_says_it(repo: Repo, engine: Process) -> None:
    """The engine's lines tell of a setup before its command starts; so does `wait`."""
    engine.says("demo/a  being set up for ")
    repo.begin("wait", "demo").says("demo/a  being set up for ")
    assert WORDS.search(engine.said)
    assert "demo/a  started" not in engine.said
    repo.gates["gate"].open()
    engine.says("demo/a  started")
    engine.ended()
    assert "being set up" not in repo.loopr("tree").out


def test_the_verbs_that_show_say_it(repo: Repo, engine: Process) -> None:
    """Tree, why and status say that a loop is being set up, for how long, and where to look."""
    for words in (["tree"], ["why", "a"], ["status"]):
        assert WORDS.search(" ".join(repo.loopr(*words, COLUMNS="200").out.split())), words
    setup = repo.loopr("why", "a", "--json").document["setup"]
    assert (setup["loop"], setup["step"]) == ("demo/a", "setup")
    assert Path(setup["folder"], "stdout.log").read_text() == "fetching\n"
    assert repo.loopr("status", "--json").document["setups"][0]["folder"] == setup["folder"]
    repo.gates["gate"].open()
    engine.ended()
    assert repo.loopr("why", "a", "--json").document["setup"] is None
    assert repo.loopr("status", "--json").document["setups"] == []


def test_logs_show_it(repo: Repo, engine: Process) -> None:
    """Logs print the output of the setup while it runs; that of the command takes its place."""
    out = "==> setup stdout <==\nfetching\n==> setup stderr <==\noh\n"
    assert repo.loopr("logs", "a").out == out
    outputs = repo.loopr("logs", "a", "--json").document["outputs"]
    assert [(each["step"], each["stdout"]) for each in outputs] == [("setup", "fetching\n")]
    assert "fetching" in repo.loopr("logs", "demo").out
    repo.gates["gate"].open()
    engine.ended()
    assert repo.loopr("logs", "a").out == "work\n"


def test_logs_follow_it(repo: Repo, engine: Process) -> None:
    """Logs that follow go on from the setup to the command, for one loop and for all below one."""
    one = repo.begin("logs", "-f", "a")
    every = repo.begin("logs", "-f", "demo")
    rows = repo.begin("logs", "-f", "a", "--json")
    for each in (one, every, rows):
        each.says("fetching", "out")
    repo.gates["gate"].open()
    engine.ended()
    said = one.ended().out
    order = ("setup stdout", "fetching", "fetched", "==> stdout <==\nwork\n")
    places = [said.index(each) for each in order]
    assert places == sorted(places)
    lines = [each for each in every.ended().out.splitlines() if each != "a | oh"]
    assert lines == ["a | fetching", "a | fetched", "a | work"]
    texts = [json.loads(each)["text"] for each in rows.ended().out.splitlines()]
    assert [each for each in texts if each != "oh"] == ["fetching", "fetched", "work"]


def test_logs_of_a_setup_that_failed(repo: Repo) -> None:
    """Where the setup has failed its output is what there is of the attempt."""
    plan(repo, "echo work", text=SOON, worktrees=", setup: 'echo no compiler; exit 3'")
    repo.loopr("start", "plan.md", code=None)
    assert repo.loopr("logs", "a").out == "==> setup stdout <==\nno compiler\n"


def test_the_time_of_setup_and_check_is_told_apart(repo: Repo) -> None:
    """Where setup and check took long the progress, `tree` and `show` say so, and not `0 s`."""
    slow = "sleep 1.05"
    plan(repo, "echo x > x", more=f", check: {slow}", worktrees=f", setup: '{slow}'")
    said = repo.loopr("start", "plan.md").err
    order = (
        r"demo/a  setup \d+ s",
        "demo/a  started",
        r"demo/a  check \d+ s",
        r"demo/a  landed  1 try  ([2-9]|\d\d+) s",
    )
    assert re.search(".*".join(order), said, re.DOTALL), said
    assert re.search(r"a +code +done +([2-9]|\d\d+) s", repo.loopr("tree").out)
    shown = " ".join(repo.loopr("show", "a").out.split())
    assert re.search(r"setup \d+ s; check \d+ s", shown)
    assert re.search(r"and \d+ s for setup and judges", shown)
    loop = repo.loopr("show", "a", "--json").document
    assert [each["step"] for each in loop["attempts"][0]["steps"]] == ["setup", "check"]
    usage = loop["loop"]["usage"]
    assert usage["beside_seconds"] >= 2.1
    assert "its setup took" in repo.loopr("why", "a").out
    assert "ok     replay" in repo.loopr("doctor", code=None).out
