"""What stands still is told, with the line to type; locks of others are waited for at no cost."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.repos import Process, Repo, opened
from tests.e2e.stopping import wake

SCRIPT = """
tell "$LOOPR_LOOP $PPID"
wait_at "$(basename "$LOOPR_LOOP")"
echo "$LOOPR_LOOP" > "$(basename "$LOOPR_LOOP")"
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()
        wake(found.state)


def start(repo: Repo, more: str = "") -> tuple[Process, dict[str, int]]:
    """Start two loops that work until their gates open; gives the supervisor of each."""
    run = repo.script("code", SCRIPT)
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: 'exec {run}'{more}}}\ntimeouts: {{grace_secs: 1}}\n"
        "scheduler: {poll_interval_secs: 0.1}\n"
    )
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    for name in "ab":
        repo.gate(name)
    process = repo.begin("start", "plan.md")
    heard = (each.split() for each in repo.heard(2))
    return process, {loop: int(pid) for loop, pid in heard}


def wrong(repo: Repo) -> list[dict[str, Any]]:
    """Return what the doctor finds wrong, and see that it says that something is, if so."""
    end = repo.loopr("doctor", "--json", code=None)
    found = [each for each in end.document["checks"] if each["ok"] is False]
    assert end.code == (78 if found else 0)
    return found


def all_landed(repo: Repo) -> None:
    """See that both loops have landed, and that it cost neither of them anything."""
    loops = repo.loops()
    assert {each["status"] for each in loops.values()} == {"complete"}
    assert {(each["failures"], each["iteration"]) for each in loops.values()} <= {(0, 0), (0, 1)}
    assert sorted(each[0] for each in repo.landed("demo")) == ["demo/a", "demo/b"]
    assert not repo.events("broke", "set_aside")


def test_what_nobody_wakes_is_named(repo: Repo) -> None:
    """Where the engine and the launcher are stopped too, the doctor names each, with the line that wakes it."""
    process, supervisors = start(repo)
    assert wrong(repo) == []
    repo.until("attempt_started", 2)  # by then the claims name the commands, else pid 0 is meant
    claims = {each["lease"]: each for each in map(_read, (repo.state / "runs").glob("*/*/run.json"))}
    supervisor, launcher, command = supervisors["demo/a"], claims["demo/a#1"]["launcher"], claims["demo/b#1"]["pid"]
    for pid in (process.pid, launcher, supervisor, command):
        os.kill(pid, signal.SIGSTOP)
    found = {each["text"]: each["hint"] for each in wrong(repo) if each["check"] == "processes"}
    texts, hints = " ".join(found), " ".join(found.values())
    assert f"the supervisor of demo/a#1 (pid {supervisor}) is stopped" in texts
    assert f"a process of demo/b#1 (pid {command}) is stopped" in texts
    assert f"the launcher (pid {launcher}) is stopped" in texts
    assert f"kill -CONT {supervisor}" in hints
    for pid in (process.pid, command):  # the engine wakes its launcher, and that the supervisor
        os.kill(pid, signal.SIGCONT)
    for name in "ab":
        repo.gates[name].open()
    process.ended()
    all_landed(repo)


def _read(path: Path) -> dict[str, Any]:
    """Read the claim of a run."""
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def test_an_engine_that_does_not_answer(repo: Repo) -> None:
    """An engine that is stopped is named; `stop --now` wakes it, and it ends in time."""
    process, _ = start(repo)
    process.signal(signal.SIGSTOP)
    found = wrong(repo)
    assert any(f"the engine (pid {process.pid}) is stopped" in each["text"] for each in found), found
    assert "the engine has ended" in repo.loopr("stop", "--now").err
    process.ended(None)
    for name in "ab":
        repo.gates[name].open()
    repo.loopr("run")
    all_landed(repo)


@pytest.mark.parametrize("name", ["refs/heads/loopr/demo.lock", "packed-refs.lock", "config.lock", "index.lock"])
def test_a_lock_of_another_git_costs_nothing(repo: Repo, name: str) -> None:
    """While another git holds a lock nobody fails: it is told, waited for, and all goes on."""
    process, _ = start(repo, more=", check: 'true'")
    lock = repo.root / ".git" / name
    lock.touch()
    for gate in "ab":
        repo.gates[gate].open()
    if name.endswith("demo.lock"):
        told = repo.until("problem_seen", words=name)
        assert f"rm {lock}" in told[0]["data"]["text"]
        assert name in repo.loopr("status").out
        assert [name in each["text"] for each in wrong(repo)] == [True]
        assert not process.has_ended
        lock.unlink()
    process.ended()
    lock.unlink(missing_ok=True)
    repo.loopr("run")
    all_landed(repo)
    assert wrong(repo) == []


def test_a_lock_in_the_worktree_of_a_loop(repo: Repo) -> None:
    """A lock that a killed git of the command has left in its own worktree costs nothing."""
    run = repo.script("code", 'touch "$(git rev-parse --git-dir)/index.lock"; echo x > x; exit 0')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', check: 'true'}}\n")
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    assert not repo.events("broke", "set_aside", "limited")


def test_an_old_lock_delays_no_end_without_a_word(repo: Repo) -> None:
    """An old packed-refs.lock keeps no engine whose work is done: it is told."""
    process, _ = start(repo)
    repo.git("pack-refs", "--all")
    lock = repo.root / ".git/packed-refs.lock"
    lock.touch()
    os.utime(lock, (time.time() - 600, time.time() - 600))
    for gate in "ab":
        repo.gates[gate].open()
    end = process.ended()
    assert "packed-refs.lock" in end.err, end
    assert "packed-refs.lock" in wrong(repo)[0]["text"]
    lock.unlink()
    repo.loopr("run")
    all_landed(repo)
    assert wrong(repo) == []
    assert [each for each in repo.git("for-each-ref", "refs/loopr/candidate").splitlines() if each] == []
