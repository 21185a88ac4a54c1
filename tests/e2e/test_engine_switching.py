"""Another commit in the user's checkout brings other artifacts: no loop is told so until a person says it is meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Process, Repo, opened

SPEC = "---\nphases: [{{id: p}}]\n---\n# By hand, {}\n"
PLAN = "---\nid: demo\nspecs: [{id: busy, phases: [{id: q, tasks: [{id: c}]}]}, {id: r}, {id: s}]\n---\n# Demo\n"
WAITS = "came with another commit"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with two branches, on which two specs that a person has written are not the same."""
    with opened(tmp_path) as found:
        run = found.found().script("code", 'case "$LOOPR_LOOP" in */busy/*) tell busy; wait_at gate ;; esac')
        found.gate("gate")
        found.settings(f"types:\n  code: {{run: '{run}'}}\nscheduler: {{poll_interval_secs: 0.2}}\n")
        for branch in ("main", "other"):
            if branch == "other":
                found.git("checkout", "--quiet", "-b", branch)
            found.write({f"specs/demo/{each}/spec.md": SPEC.format(branch) for each in "rs"})
            found.git("add", "specs")
            found.git("commit", "--quiet", f"--message={branch}")
        found.git("checkout", "--quiet", "main")
        found.write({"plan.md": PLAN})
        yield found


def started(repo: Repo) -> Process:
    """Start the plan, and wait until the specs of a person's hand are complete, with all below them."""
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("landed", 2)
    return process


def waits(repo: Repo) -> set[str]:
    """Return the artifacts that wait for a person to say that they are meant."""
    found = repo.loopr("status", "--json").document["problems"]
    return {each["place"] for each in found if WAITS in each["text"]}


def test_another_branch_is_checked_out(repo: Repo) -> None:
    """Specs that change with HEAD are reported and change nothing, also for the next engine, until `start`."""
    process = started(repo)
    repo.git("checkout", "--quiet", "other")
    repo.until("problem_seen", 2, words=WAITS)
    accepted = len(repo.events("artifact_accepted"))
    process.kill()
    process = repo.begin("run")
    repo.until("engine_started", 2)
    repo.gates["gate"].open()
    process.ended(None)
    assert waits(repo) == {"specs/demo/r/spec.md", "specs/demo/s/spec.md"}
    assert len(repo.events("artifact_accepted")) == accepted
    repo.loopr("start", "plan.md", "--yes")
    assert {each["loop"] for each in repo.events("artifact_accepted")[accepted:]} == {"demo/r", "demo/s"}
    assert not waits(repo)


def test_back_again(repo: Repo) -> None:
    """Once the branch from before is checked out again nothing is reported any more, and nothing has changed."""
    process = started(repo)
    accepted = len(repo.events("artifact_accepted"))
    repo.git("checkout", "--quiet", "other")
    repo.until("problem_seen", 2, words=WAITS)
    repo.git("checkout", "--quiet", "main")
    repo.until("problem_gone", 2)
    repo.gates["gate"].open()
    process.ended()
    assert len(repo.events("artifact_accepted")) == accepted


def test_an_edit_of_one_of_them(repo: Repo) -> None:
    """A file that was kept back counts as soon as a person edits it; all others go on waiting."""
    process = started(repo)
    repo.git("checkout", "--quiet", "other")
    repo.until("problem_seen", 2, words=WAITS)
    accepted = len(repo.events("artifact_accepted"))
    repo.drop("demo/r/spec.md", SPEC.format("edited"))
    repo.until("artifact_accepted", accepted + 1)
    assert waits(repo) == {"specs/demo/s/spec.md"}
    repo.gates["gate"].open()
    process.ended(None)
