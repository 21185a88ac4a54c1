"""Loops that get the same answer again and again: those that get on go on, those that stand still end, and say why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.repos import Repo, opened


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def set_up(repo: Repo, code: str, more: str, retry: str = "") -> None:
    """Set a repository up for a plan with one loop of code."""
    run = repo.script("code", code)
    kept = f"retry: {{{retry}}}\n" if retry else ""
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{more}}}\n{kept}")
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})


def told(repo: Repo) -> list[dict[str, Any]]:
    """List what the journal has of refusals."""
    return [each["data"] for each in repo.events("refused")]


def test_a_quiet_check_fails_no_work_that_grows(repo: Repo) -> None:
    """A check that only exits with 1 is asked until it says yes, as long as each try changes something."""
    set_up(repo, "echo line >> n.txt", ", check: 'test $(wc -l < n.txt) -ge 6'")
    repo.loopr("start", "plan.md")
    assert repo.landed("demo") == [("demo/a", 6, 6)]
    answers = told(repo)
    assert len({each["signature"] for each in answers}) == 1
    assert len({each["work"] for each in answers}) == 5


@pytest.mark.parametrize("check", ["", ", check: 'grep -q never n.txt'"])
def test_a_loop_that_stands_still_has_failed(repo: Repo, check: str) -> None:
    """Three times the same answer to the same work: the message begins with the cause, and names the setting."""
    set_up(repo, "echo same > n.txt" + ("" if check else "\nexit 1"), check)
    end = repo.loopr("start", "plan.md", code=1)
    loop = repo.loops()["demo/a"]
    cause = "the check said no: exit 1" if check else "exit 1"
    assert (loop["status"], loop["attempt"]) == ("failed", 3)
    assert loop["reason"] == f"{cause}, 3 times, nothing changed (retry.no_progress)"
    assert f"{cause}, 3 times, nothing changed" in end.err
    assert "retry.no_progress" in " ".join(repo.loopr("why", "demo/a").out.split())
    assert repo.git("show", "loopr/demo.a.g1:n.txt") == "same"


def test_equal_answers_end_it_whatever_the_work(repo: Repo) -> None:
    """Work that changes each time under the same answer ends after `same_answer` of them; `null` lets it go on."""
    code = "echo $LOOPR_ITERATION > n.txt; echo no; exit 1"
    set_up(repo, code, ", max_iterations: 6", "same_answer: 4")
    repo.loopr("start", "plan.md", code=1)
    loop = repo.loops()["demo/a"]
    assert loop["reason"] == "exit 1: no, 4 times in a row (retry.same_answer)"
    set_up(repo, code, ", max_iterations: 6", "same_answer: null")
    repo.loopr("retry", "demo/a")
    repo.loopr("run", code=1)
    assert repo.loops()["demo/a"]["reason"].startswith("refused 6 times, its limit")


def test_what_is_handed_over_is_part_of_the_work(repo: Repo) -> None:
    """An artifact that changes is work, also where no file does; one that does not is none."""
    code = 'printf -- "---\\nchildren: []\\n---\\n# A %s\\n" $LOOPR_ITERATION > "$LOOPR_OUTPUT"; echo no; exit 1'
    set_up(repo, code, ", max_iterations: 5")
    repo.loopr("start", "plan.md", code=1)
    assert repo.loops()["demo/a"]["attempt"] == 5
    repo.script("code", code.replace(" $LOOPR_ITERATION", " same"))
    repo.loopr("retry", "demo/a")
    repo.loopr("run", code=1)
    assert repo.loops()["demo/a"]["attempt"] == 8


def test_what_a_sibling_lands_is_not_the_loops_own_work(repo: Repo) -> None:
    """A loop that changes nothing stands still, however often its plan moves meanwhile."""
    set_up(repo, 'case "$LOOPR_LOOP" in */a) echo same > a; exit 1;; *) echo x > "$(basename $LOOPR_LOOP)";; esac', "")
    children = "[{id: a}, {id: b}, {id: c}, {id: d}]"
    repo.write({"plan.md": f"---\nchildren: {children}\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", "--set", "concurrency.max_loops=1", code=1)
    assert repo.loops()["demo/a"]["attempt"] == 3
    assert len({each["work"] for each in told(repo)}) == 1


def test_without_git_only_the_answers_count(repo: Repo) -> None:
    """Where nothing tells what has changed, the same answer ends it after `same_answer`."""
    set_up(repo, "echo no; exit 1", ", worktree: false", "same_answer: 5")
    repo.loopr("start", "plan.md", code=1)
    loop = repo.loops()["demo/a"]
    assert (loop["attempt"], loop["reason"]) == (5, "exit 1: no, 5 times in a row (retry.same_answer)")
    assert {each["work"] for each in told(repo)} == {""}


def test_another_agent_takes_over_before_it_fails(repo: Repo) -> None:
    """Where nothing changes any more the agent of `escalate.refused` goes on at once, and it is said so."""
    small, big = (json.dumps(["sh", "-c", text]) for text in ("echo no; exit 1", "echo x > n"))
    repo.settings(
        "types:\n  plan: {child: code}\n  code: {agent: small, escalate: {refused: {after: 9, agent: big}}}\n"
        f"agents: {{small: {{run: {small}}}, big: {{run: {big}}}}}\n"
    )
    repo.write({"plan.md": "---\nchildren: [{id: a}]\n---\n# Demo\n"})
    end = repo.loopr("start", "plan.md")
    assert "big takes over" in end.err
    assert repo.landed("demo") == [("demo/a", 4, 4)]
    assert [each["takes_over"] for each in told(repo)] == ["", "", "big"]
    assert "big, which took over as nothing had changed" in " ".join(repo.loopr("show", "demo/a").out.split())
