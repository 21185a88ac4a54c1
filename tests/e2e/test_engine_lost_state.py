"""What an engine does whose own files are taken away, or made useless, while it runs."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Process, Repo, opened


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def started(repo: Repo, run: str) -> Process:
    """Start an engine on two loops that work one after the other, and wait until one has told."""
    repo.gate("gate")
    command = repo.script("code", run)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{command}'}}\ntimeouts: {{grace_secs: 0.5}}\n")
    repo.write({"plan.md": "---\nid: demo\nparallel: false\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    process = repo.begin("start", "plan.md")
    repo.heard()
    return process


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_the_journal_is_taken_away(repo: Repo, what: str) -> None:
    """An engine whose journal is taken away says so and ends; what had landed is kept, and a person begins anew."""
    process = started(repo, 'echo "$LOOPR_LOOP" > "$(basename "$LOOPR_LOOP")"; test "$LOOPR_LOOP" = demo/a || '
                            '{ tell b; wait_at gate; }')  # fmt: skip
    repo.until("landed")
    journal = repo.state / "loopr.db"
    kept = journal.with_name("empty")
    kept.write_bytes(b"")
    for each in sorted(repo.state.glob("loopr.db*")):
        each.unlink()
    if what == "replaced":
        kept.replace(journal)
    assert "taken away or replaced" in process.ended(78).err
    repo.gates["gate"].open()
    assert "is gone" in repo.loopr("start", "plan.md", code=78).err
    tip = repo.git("rev-parse", "loopr/demo")
    repo.loopr("init", "--anew")
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    old = repo.git("for-each-ref", "--format=%(objectname)", "refs/loopr/old").split()
    assert tip in old
    assert Counter(each[0] for each in repo.landed("demo")) == {"demo/b": 1}


def test_commands_that_nobody_remembers(repo: Repo) -> None:
    """Where the whole state is gone with its engine, the next one ends what that had started before it starts anew."""
    process = started(repo, 'echo $$ >> "$DESK/pids"; tell x; wait_at gate')
    process.kill()
    shutil.rmtree(repo.state)
    repo.loopr("start", "plan.md", code=78)
    repo.loopr("init", "--anew")
    process = repo.begin("start", "plan.md")
    repo.heard()
    before, now = repo.note("pids").split()
    assert (Path("/proc", before).exists(), Path("/proc", now).exists()) == (False, True)
    repo.gates["gate"].open()
    process.ended()
    assert set(repo.statuses().values()) == {"complete"}


def test_an_engine_that_has_lost_its_name(repo: Repo) -> None:
    """Where nobody can read who holds the lock, `status` tells what is known, and never of a process 0."""
    process = started(repo, "tell x; wait_at gate")
    (repo.state / "engine.lock").write_text("garbage")
    engine = repo.loopr("status", "--json").document["engine"]
    assert engine["running"] is True
    assert engine["pid"] in {process.pid, None}
    assert engine["since"] is None
    assert "pid 0" not in repo.loopr("status").out
    repo.gates["gate"].open()
    process.ended()


def test_a_machine_that_stays_short_of_something(repo: Repo) -> None:
    """A machine that is short of disk is asked at growing intervals, and at once where the limit itself is changed."""
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: '{repo.script('code', 'true')}'}}\n"
        "retry: {base_secs: 1, factor: 100, cap_secs: 90, jitter: 0}\n"
    )
    repo.loopr("set", "worktrees.min_free_gb", "900000")
    repo.write({"plan.md": "---\nid: demo\nchildren: [{id: a}]\n---\n# Demo\n"})
    process = repo.begin("start", "plan.md")
    first, second = (each["data"]["until"] - each["at"] for each in repo.until("host_changed", 2)[:2])
    assert first <= 1_000
    assert 50_000 < second <= 90_000
    repo.loopr("set", "worktrees.min_free_gb", "0")
    process.ended()
