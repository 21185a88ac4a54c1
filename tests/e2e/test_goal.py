"""A goal in one line, worked for by real processes until the person's command says that it is reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository in a folder with a blank in its name."""
    found = Repo(tmp_path / "a b").found()
    yield found
    found.close()


def test_a_goal_is_worked_for_until_its_check_says_yes(repo: Repo) -> None:
    """A first try that does not reach it is refused with the check's words, the second one lands, and comes home."""
    work = 'cat > prompt.txt; test "$LOOPR_ITERATION" = 1 || echo hello > hello.txt'
    told = repo.loopr("goal", "Make hello.txt say: hello", "--check", "grep -q hello hello.txt", "--run", work)
    assert "wrote specs/make-hello-txt-" in told.err
    (plan,) = [each for each, state in repo.statuses().items() if "/" not in each]
    assert [each["data"]["reason"][:20] for each in repo.events("refused")] == ["the check said no: e"]
    assert repo.on_branch(plan, "hello.txt") == "hello"
    prompt = repo.on_branch(plan, "prompt.txt")
    assert "# Make hello.txt say: hello" in prompt
    assert "judged by `grep -q hello hello.txt`" in prompt
    again = repo.loopr("goal", "Make hello.txt say: hello", "--check", "grep -q hello hello.txt", "--run", work)
    assert "nothing to do" in again.err
    assert len(repo.events("attempt_started")) == 2


def test_an_agent_works_for_a_goal(repo: Repo) -> None:
    """A preset of the repository's own is asked with the goal, and its work lands once the check says yes."""
    repo.write({"agents/pal.yml": "run: [sh, -c, 'grep -q \"# Be friendly\" && echo hello > hello.txt']\n"})
    repo.git("add", "agents")
    repo.git("commit", "--quiet", "--message=pal")
    repo.loopr("goal", "Be friendly", "--check", "grep -q hello hello.txt", "--agent", "pal")
    assert repo.on_branch("be-friendly", "hello.txt") == "hello"


def test_a_goal_beside_types_that_are_judged(repo: Repo) -> None:
    """Where specs hand over what is checked, a goal's one loop is judged by the goal's own check, and lands."""
    repo.settings("types: {spec: {check: test -e never}, code: {run: echo hello > hello.txt}}\n")
    repo.loopr("goal", "Greet", "--check", "grep -q hello hello.txt")
    assert repo.on_branch("greet", "hello.txt") == "hello"
    assert repo.statuses() == {"greet": "complete", "greet/spec": "complete"}


def test_a_goal_that_is_never_reached_in_its_time(repo: Repo) -> None:
    """With --until nothing more is started after it, and the exit code says that it is not done."""
    ended = repo.loopr("goal", "Never", "--check", "false", "--run", "echo x >> x", "--until", "0s", "--json", code=75)
    assert [each["type"] for each in ended.document["loops"]] == ["plan", "spec", "phase", "code"]
    assert repo.loops()["never/spec/phase/code"]["status"] == "pending"
