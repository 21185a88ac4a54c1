"""Hooks as they are told: once, in order, of what comes after they were set; slow ones, failing ones, endless ones."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.repos import Repo, opened

NOTE = 'cat >> "$DESK/told"'


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def ready(repo: Repo, hooks: str, *, run: str = "true", names: str = "a", text: str = "") -> None:
    """Write settings with hooks, and a plan of loops that run a script."""
    command = repo.script("code", run)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{command}'}}\nhooks:\n{hooks}{text}")
    children = ", ".join(f"{{id: {name}}}" for name in names.split())
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})


def hook(repo: Repo, name: str, script: str = NOTE) -> str:
    """Write a hook as a line of the settings."""
    return f"  {name}: '{repo.script(name, script)}'\n"


def told(repo: Repo) -> list[dict[str, Any]]:
    """Return what hooks were given, in their order."""
    return [json.loads(line) for line in repo.note("told").splitlines()]


def heard(repo: Repo, listener: str) -> list[int]:
    """Return how far a listener had heard, each time that was written down."""
    return [each["data"]["upto"] for each in repo.events("listener_heard") if each["data"]["listener"] == listener]


def complaints(repo: Repo) -> dict[str, str]:
    """Return what `status` says is wrong."""
    return {each["place"]: each["text"] for each in repo.loopr("status", "--json").document["problems"]}


def test_every_event_is_told_once(repo: Repo) -> None:
    """A hook gets each event that concerns it once, as `events --json` has it, and another engine repeats nothing."""
    hooks = "".join(hook(repo, name) for name in ("on_complete", "on_park", "on_settle", "on_convoy_complete"))
    run = 'case "$LOOPR_LOOP" in */c) test -e "$DESK/mended" || exit 78;; esac'
    ready(repo, hooks, run=run, names="a b c")
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("convoy", "create", "both", "demo/a", "demo/b")
    repo.loopr("run", code=1)
    lines = [json.loads(each) for each in repo.loopr("events", "--json").out.splitlines()]
    known = {each["seq"]: each for each in lines}
    first = told(repo)
    assert sorted((each["hook"], each["loop"]) for each in first if each["loop"]) == [
        ("on_complete", "demo/a"),
        ("on_complete", "demo/b"),
        ("on_park", "demo/c"),
    ]
    assert all(each["reason"] and each["status"] == "parked" for each in first if each["hook"] == "on_park")
    for each in first:
        if each["event"] is not None and each["hook"] != "on_convoy_complete":
            assert {key: each[key] for key in ("seq", "at", "event", "loop", "actor", "data")} == known[each["seq"]]
    (convoy,) = [each for each in first if each["hook"] == "on_convoy_complete"]
    assert convoy["event"] == "convoy_landed" and known[convoy["seq"]]["event"] == "convoy_landed"
    assert convoy["data"] == {"name": "both", "members": ["demo/a", "demo/b"]}
    assert first[-1]["hook"] == "on_settle" and first[-1]["data"] == {"plans": {"demo": "stuck"}}
    repo.loopr("run", code=1)
    assert told(repo) == first
    (repo.desk / "mended").touch()
    repo.loopr("reset", "demo/c")
    repo.loopr("run")
    assert [each["hook"] for each in told(repo)[len(first) :]] == ["on_complete", "on_settle"]


def test_what_happens_without_an_engine_is_told_by_the_next(repo: Repo) -> None:
    """A loop that a person completes while no engine runs is told of once one does."""
    ready(repo, hook(repo, "on_complete"), names="a")
    repo.loopr("start", "plan.md")
    repo.write({"more.md": "---\nid: more\nchildren: [{id: x, children: []}]\n---\n# More\n"})
    repo.drop("demo/a/code.md", "# By hand\n")
    before = len(told(repo))
    repo.loopr("start", "--no-run", "plan.md")
    assert len(told(repo)) == before
    repo.loopr("run")
    assert [each["loop"] for each in told(repo)] == ["demo/a", "demo/a"]


def test_a_new_hook_hears_of_what_comes_after(repo: Repo) -> None:
    """A hook that is set while an engine runs, or between two, hears nothing of what was before."""
    run = 'case "$LOOPR_LOOP" in */b) tell b; wait_at gate;; esac'
    ready(repo, "  on_complete: null\n", run=run, names="a b")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    repo.until("landed")
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace("  on_complete: null\n", hook(repo, "on_complete")))
    repo.until("settings_held")
    repo.loopr("config", "accept", "--yes")
    repo.until("listener_heard")
    gate.let_on()
    process.ended()
    assert [each["loop"] for each in told(repo)] == ["demo/b"]
    path.write_text(path.read_text().replace(hook(repo, "on_complete"), hook(repo, "on_settle")))
    repo.loopr("run")
    assert len(told(repo)) == 1
    assert [each["data"]["listener"] for each in repo.events("listener_left")] == ["hook on_complete"]


def test_slow_hooks_hold_up_no_loop(repo: Repo) -> None:
    """While a hook takes its time loops go on, hooks about other loops too, and the engine waits for it at its end."""
    script = f'case "$LOOPR_LOOP" in */a) tell slow; wait_at gate; {NOTE};; *) {NOTE}; tell "$LOOPR_LOOP";; esac'
    ready(
        repo,
        hook(repo, "on_complete", script),
        run='case "$LOOPR_LOOP" in */b) tell b; wait_at first;; esac',
        names="a b c",
    )
    gate, first = repo.gate("gate"), repo.gate("first")
    process = repo.begin("start", "plan.md")
    assert sorted(repo.heard(3)) == ["b", "demo/c", "slow"]
    first.let_on()
    repo.until("landed", 3)
    assert repo.heard(1) == ["demo/b"]
    assert not process.has_ended
    gate.let_on()
    process.ended()
    assert [each["loop"] for each in told(repo)][-1] == "demo/a"
    assert len(told(repo)) == 3
    assert heard(repo, "hook on_complete")[-1] >= max(each["seq"] for each in repo.events("landed"))


def test_hooks_about_one_loop_keep_their_order(repo: Repo) -> None:
    """What is told of one loop is told one after the other, whatever the hooks, and a convoy's after all before it."""
    slow = 'tell "$LOOPR_LOOP"; wait_at gate\n' + NOTE
    done = f'{NOTE}\ntell "$LOOPR_LOOP is complete"'
    hooks = hook(repo, "on_park", slow) + hook(repo, "on_complete", done) + hook(repo, "on_convoy_complete")
    run = 'case "$LOOPR_LOOP" in */a) test -e "$DESK/mended" || exit 78;; */b) wait_at first;; esac'
    ready(repo, hooks, run=run, names="a b")
    gate, first = repo.gate("gate"), repo.gate("first")
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("convoy", "create", "all", "demo")
    process = repo.begin("run")
    assert repo.heard(1) == ["demo/a"]
    (repo.desk / "mended").touch()
    repo.loopr("reset", "demo/a")
    repo.until("landed", words="demo/a")
    first.let_on()
    assert repo.heard(1) == ["demo/b is complete"]
    repo.until("convoy_landed")
    assert [each["loop"] for each in told(repo)] == ["demo/b"]
    gate.let_on()
    process.ended()
    assert [each["hook"] for each in told(repo)[1:]] == ["on_park", "on_complete", "on_convoy_complete"]


def test_a_hook_without_end(repo: Repo) -> None:
    """A hook that hangs is ended with all that it has started, is shown with its log, and the work is as it is."""
    endless = hook(repo, "on_complete", 'echo "I wait"; setsid sleep 1000 & wait_at gate')
    ready(repo, f"{endless}  timeout_secs: 0.5\n")
    repo.gate("gate")
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    text = complaints(repo)["hook on_complete"]
    assert "took longer than hooks.timeout_secs" in text and "I wait" in text
    log = Path(text.rpartition("its log is in ")[2])
    assert (log / "stdout.log").read_text() == "I wait\n"
    assert any("on_complete" in line and "timeout_secs" in line for line in repo.loopr("doctor").out.splitlines())


def test_a_hook_that_fails_is_shown_until_it_works(repo: Repo) -> None:
    """A hook's failure stays in `status` over the end of the engine, until it has worked again or is set no more."""
    fails = hook(repo, "on_complete", 'test -e "$DESK/mended" || { echo "no luck" >&2; exit 3; }')
    ready(repo, fails)
    repo.loopr("start", "plan.md")
    assert "it failed with exit 3: no luck" in complaints(repo)["hook on_complete"]
    repo.loopr("run")
    assert "hook on_complete" in complaints(repo)
    (repo.desk / "mended").touch()
    repo.drop("demo/a/code.md", "# By hand\n")
    repo.loopr("run")
    assert complaints(repo) == {}
    (repo.desk / "mended").unlink()
    repo.drop("demo/a/code.md", "# By hand again\n")
    repo.loopr("run")
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace(fails, "  on_complete: null\n"))
    repo.loopr("run")
    assert complaints(repo) == {}


def test_a_hook_that_is_cut_off(repo: Repo) -> None:
    """A hook that is ended by a signal is told again, with the same event, and not for ever."""
    cut = 'test -e "$DESK/cut" || { touch "$DESK/cut"; kill -9 $$; }\n' + NOTE
    ready(repo, hook(repo, "on_complete", cut) + hook(repo, "on_settle", "kill -9 $$"))
    repo.loopr("start", "plan.md")
    assert [each["loop"] for each in told(repo)] == ["demo/a"]
    assert complaints(repo).keys() == {"hook on_settle"}
    assert "signal 9" in complaints(repo)["hook on_settle"]
    assert len(list((repo.state / "runs/hooks/0").glob("on_settle.*"))) == 3


def test_a_hook_that_is_not_there(repo: Repo) -> None:
    """A hook whose program does not exist is reported, not tried for ever."""
    ready(repo, "  on_complete: [no-such-program-anywhere]\n")
    repo.loopr("start", "plan.md")
    assert "exit 127: " in complaints(repo)["hook on_complete"]
    assert len(heard(repo, "hook on_complete")) > 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_an_engine_leaves_hooks_to_the_next(repo: Repo, number: int) -> None:
    """A hook runs on when its engine is stopped or killed, and the next one hears it out: it is told once."""
    ready(repo, hook(repo, "on_complete", 'tell "$$"; wait_at gate\n' + NOTE))
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(1)
    process.signal(number)
    process.ended(None)
    assert heard(repo, "hook on_complete")[1:] == []
    following = repo.begin("run")
    repo.until("engine_started", 2)
    repo.drop("demo/a/code.md", "# By hand\n")
    repo.until("artifact_accepted", words="demo/a")
    gate.let_on()
    repo.heard(1)
    gate.let_on()
    following.ended()
    assert [each["event"] for each in told(repo)] == ["landed", "artifact_accepted"]
    assert len(heard(repo, "hook on_complete")) == 3


def test_nobody_to_tell_costs_nothing(repo: Repo) -> None:
    """Without hooks and addresses the journal holds no word of them; telling a hook adds at most one event."""
    ready(repo, "  on_complete: null\n", names="a b")
    repo.loopr("start", "plan.md")
    assert repo.events("listener_heard", "listener_left") == []
    path = repo.root / "loopr.yml"
    path.write_text(path.read_text().replace("  on_complete: null\n", hook(repo, "on_complete")))
    repo.write({"two.md": "---\nid: two\nchildren: [{id: a}, {id: b}, {id: c}]\n---\n# Two\n"})
    repo.loopr("start", "two.md")
    assert len(told(repo)) == 3
    assert len(heard(repo, "hook on_complete")) <= 1 + len(told(repo))
