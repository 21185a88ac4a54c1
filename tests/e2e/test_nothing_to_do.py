"""A start that leaves nothing to do: no engine begins, no event is written; whatever is in doubt begins one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = "---\nid: demo\nspecs: [{id: a, tasks: [{id: x, run: 'echo x > x', check: none}]}]\n---\n# Demo\n"
LADDER = "types:\n  plan: {child: spec}\n  spec: {child: task}\n  task: {}\n"
ENGINE = {"engine_started", "engine_ended"}


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a plan that is done."""
    with opened(tmp_path) as found:
        repo = found.found()
        repo.settings(LADDER)
        repo.write({"plan.md": PLAN})
        repo.loopr("start", "plan.md")
        yield repo


def fresh(repo: Repo, *words: str, code: int = 0) -> set[str]:
    """Start the plan again, and say which events that has led to."""
    seen = len(repo.events())
    said = repo.loopr("start", *words, "plan.md", code=code)
    assert "--json" in words or repo.events()[seen:] or "demo: nothing to do: it is done" in said.err, said.err
    return {each["event"] for each in repo.events()[seen:]}


@pytest.mark.parametrize("words", [[], ["--json"], ["--detach"], ["--no-run"], ["--for", "1m"]])
def test_no_engine_begins(repo: Repo, words: list[str]) -> None:
    """Nothing is written, and the last word is that of an engine: what to type next, and where it has led to."""
    if words != ["--no-run"]:
        assert fresh(repo, *words) == set()
    before = sorted(each for each in repo.state.rglob("*") if each.is_file())
    said = repo.loopr("start", *words, "plan.md")
    assert sorted(each for each in repo.state.rglob("*") if each.is_file()) == before
    if words == []:
        assert said.err.splitlines()[-1] == "next: `loopr land demo`"
        repo.loopr("land", "demo", "--yes")
        assert repo.loopr("start", "plan.md").err.splitlines()[-1] == "next: `loopr tree`"
    if words == ["--json"]:
        (row,) = said.document["plans"]
        assert (row["plan"], row["declared"], row["changed"]) == ("demo", [], [])


def _edited(repo: Repo) -> None:
    repo.write({"plan.md": PLAN.replace("# Demo", "# Demo\n\nWords.")})


def _malformed(repo: Repo) -> None:
    repo.drop("demo/a/spec.md", "---\ntasks: [\n---\n")


def _gone(repo: Repo) -> None:
    (repo.root / "specs/demo/a/spec.md").unlink()


def _settings(repo: Repo) -> None:
    repo.settings(f"{LADDER}artifacts: {{stamp: true}}\n")


def _foreign(repo: Repo) -> None:
    repo.git("branch", "--force", "loopr/demo", "main")


@pytest.mark.parametrize("change", [_edited, _malformed, _gone, _settings, _foreign])
def test_whatever_is_in_doubt_is_looked_at(repo: Repo, change: Callable[[Repo], None]) -> None:
    """A plan that was edited, a file that is wrong or gone, other settings or a foreign branch: an engine begins."""
    change(repo)
    seen = len(repo.events())
    repo.loopr("start", "plan.md", code=None)
    assert {each["event"] for each in repo.events()[seen:]} >= ENGINE


def test_a_plan_that_owes_its_landing_begins_an_engine(repo: Repo) -> None:
    """With `land.mode: auto` a plan that is done and away comes home, and after that nothing is left to do."""
    repo.settings(f"{LADDER}land: {{mode: auto}}\n")
    assert fresh(repo) >= ENGINE
    assert repo.git("show", "main:x") == "x"
    assert fresh(repo) == set()


def test_settings_that_are_held_back_begin_no_engine(repo: Repo) -> None:
    """They are told again and stay held back; once they are written otherwise, an engine takes note."""
    changes = 'cd "$LOOPR_WORKSPACE" && cp easier loopr.local.yml && sleep 1'
    two = PLAN.replace("demo", "two").replace("echo x > x", changes)
    repo.write({"easier": "types: {task: {check: exit 0}}\n", "two.md": two})
    repo.loopr("start", "two.md")
    assert repo.events("settings_held")
    seen = len(repo.events())
    said = repo.loopr("start", "plan.md")
    assert "held back: types.task.check" in said.err
    assert "demo: nothing to do: it is done" in said.err
    assert repo.events()[seen:] == []
    (repo.root / "loopr.local.yml").unlink()
    assert fresh(repo) >= ENGINE
    assert fresh(repo) == set()


def test_an_input_that_is_not_committed_is_told_without_an_engine(repo: Repo) -> None:
    """It does not count, so nothing is left to do."""
    with_inputs = PLAN.replace("demo", "two").replace("check: none", "check: none, inputs: [data.csv]")
    repo.write({"data.csv": "1\n", "two.md": with_inputs})
    repo.git("add", "data.csv")
    repo.git("commit", "--message", "data")
    repo.loopr("start", "two.md")
    repo.write({"data.csv": "2\n"})
    seen = len(repo.events())
    said = repo.loopr("start", "two.md")
    assert "two: nothing to do: it is done" in said.err
    assert "not committed as here: data.csv, which 1 loop names as inputs" in said.err
    assert repo.events()[seen:] == []
