"""A start drives the whole workspace: what that is beside the plans that it names is said before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

ALSO = "also drives: todo (1 of 1 to do); `loopr pause todo` holds it"


def plan(name: str) -> str:
    """Write a plan with one task."""
    return f"---\nid: {name}\ntasks: [{{id: task, run: 'echo x > {name}.txt', check: none}}]\n---\n# {name}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with two plans, of which one is enqueued."""
    with opened(tmp_path) as found:
        repo = found.found()
        repo.settings("types:\n  plan: {child: task}\n  task: {}\n")
        repo.write({"todo.md": plan("todo"), "report.md": plan("report")})
        repo.loopr("start", "--no-run", "todo.md")
        yield repo


def test_the_other_plan_is_named_before_it_runs(repo: Repo) -> None:
    """The line comes before the first try; once nothing is to do there, it is gone."""
    said = repo.loopr("start", "report.md").err.splitlines()
    assert said.index(ALSO) < next(n for n, line in enumerate(said) if "report/task" in line)
    repo.write({"report.md": plan("report").replace("# report", "# anew")})
    assert "also drives" not in repo.loopr("start", "report.md").err


@pytest.mark.parametrize(("run", "code"), [("echo x > x", 0), ("exit 78", 1)])
def test_the_named_plan_gives_the_exit_code(repo: Repo, run: str, code: int) -> None:
    """A start with `--for` ends with the code of what it names, though another plan would go on."""
    ladder = "types:\n  plan: {child: task}\n  task: {max_iterations: 1000}\n"
    repo.settings(f"{ladder}retry: {{same_answer: null}}\n")
    again = "date +%N >> todo.txt; sleep 0.2; exit 1"
    repo.write({"todo.md": plan("todo").replace("echo x > todo.txt", again)})
    repo.write({"report.md": plan("report").replace("echo x > report.txt", run)})
    repo.loopr("start", "--no-run", "todo.md")
    said = repo.loopr("start", "report.md", "--for", "4s", code=code).err
    word = "has settled" if code else "is done"
    assert f" report {word}; still driving todo until " in said, said
    assert said.count("still driving") == 1
    both = repo.loopr("start", "report.md", "todo.md", "--for", "2s", code=75).err
    assert "still driving" not in both


def test_what_is_held_is_not_named(repo: Repo) -> None:
    """The command that the line names keeps the plan from being driven, and the line from being said."""
    repo.loopr("pause", "todo")
    assert "also drives" not in repo.loopr("start", "report.md").err
    rows = {each["id"]: each["status"] for each in repo.loopr("ls", "--json").document["loops"]}
    assert rows["todo/task"] == "pending"
