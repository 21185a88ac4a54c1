"""A plan that was started by mistake: cancelled and let go it is out of the tree, and a start brings it back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = """---
id: todo
tasks:
  - {id: one, run: 'exit 127'}
  - {id: two, run: 'echo x > x.txt', needs: [one]}
---
# Todo
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a plan of which a first task has failed."""
    with opened(tmp_path) as found:
        repo = found.found()
        repo.settings("types:\n  plan: {child: task}\n  task: {check: none, max_iterations: 1}\n")
        repo.write({"todo.md": PLAN})
        repo.loopr("start", "todo.md", code=1)
        yield repo


def states(repo: Repo) -> dict[str, str]:
    """Return the word for where each loop stands."""
    return {each["id"]: each["state"] for each in repo.loopr("ls", "--json").document["loops"]}


def test_a_cancelled_plan_goes_and_comes_back(repo: Repo) -> None:
    """It is told as cancelled with the command that lets it go; then no view has it, until it is started again."""
    repo.loopr("cancel", "--yes", "todo")
    said = repo.loopr("cancel", "todo")
    assert set(states(repo).values()) == {"cancelled"}
    assert "stuck" not in repo.loopr("status").out
    assert "it is cancelled" in repo.loopr("clear", "todo", code=2).err, said
    assert "`loopr start todo.md` brings it back" in repo.loopr("gc", "--forget", "todo", "--yes").err
    assert states(repo) == {}
    assert "todo" not in repo.loopr("tree").out + repo.loopr("status").out
    repo.write({"todo.md": PLAN.replace("exit 127", "echo y > y.txt")})
    repo.loopr("start", "todo.md")
    assert states(repo) == {"todo": "done", "todo/one": "done", "todo/two": "done"}
    repo.loopr("doctor")


def test_the_same_file_brings_it_back(repo: Repo) -> None:
    """Nothing needs to have changed in the file: what was cancelled is to be done again."""
    repo.loopr("cancel", "--yes", "todo")
    repo.loopr("gc", "--forget", "todo", "--yes")
    repo.loopr("start", "--no-run", "todo.md")
    assert states(repo) == {"todo": "0 of 2 done", "todo/one": "ready", "todo/two": "waiting"}


def test_what_has_landed_stays(repo: Repo) -> None:
    """A plan of which something has landed stays in the tree, and says how much of it is done."""
    repo.write({"todo.md": PLAN.replace("exit 127", "echo y > y.txt").replace("echo x > x.txt", "exit 127")})
    repo.loopr("start", "todo.md", code=1)
    repo.loopr("cancel", "--yes", "todo")
    repo.loopr("gc", "--forget", "todo", "--yes")
    assert states(repo) == {"todo": "1 of 2 done", "todo/one": "done", "todo/two": "cancelled"}
