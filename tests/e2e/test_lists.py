"""Lists from elsewhere, worked through by real processes, and told back by the script of the guide."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.test_imported import TASKS
from tests.e2e.repos import Repo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "tasks-from-elsewhere.md"
SETTINGS = """\
types: {code: {run: 'echo x > "$(basename "$LOOPR_LOOP")"', check: none}}
hooks: {on_complete: sh tell-back.sh}
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with the guide's script as its hook."""
    found = Repo(tmp_path / "a b").found()
    script = re.search(r"```sh title=tools/tell-back.sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert script
    found.write({"tell-back.sh": script[1]})
    found.settings(SETTINGS)
    yield found
    found.close()


def test_issues_are_closed_where_they_came_from(repo: Repo, tmp_path: Path) -> None:
    """The hook names the number of each issue that is done; a newer export, in which they are closed, does nothing."""
    tool = tmp_path / "bin" / "gh"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$1 $2 $3" >> "{tmp_path}/told"\n')
    tool.chmod(0o755)
    path = f"{tool.parent}:{repo.env['PATH']}"
    issues = [{"number": n, "title": f"Number {n}", "body": "", "state": "OPEN"} for n in (3, 11)]
    repo.write({"issues.json": json.dumps(issues)})
    repo.loopr("start", "--from", "github", "issues.json", PATH=path)
    assert sorted((tmp_path / "told").read_text().splitlines()) == ["issue close 11", "issue close 3"]
    repo.write({"issues.json": json.dumps([each | {"state": "CLOSED"} for each in issues])})
    again = repo.loopr("start", "--from", "github", "issues.json", PATH=path)
    assert "nothing to do" in again.err
    assert len(repo.events("attempt_started")) == 2


def test_tasks_are_ticked_off(repo: Repo) -> None:
    """A task list of spec-kit is worked through in its order, and ends with every task ticked off."""
    repo.write({"specs/001-photos/tasks.md": TASKS})
    repo.loopr("start", "specs/001-photos/tasks.md")
    landed = [each["loop"].rpartition("/")[2] for each in repo.events("landed")]
    assert sorted(landed) == [f"t{n:03}" for n in range(2, 11)]
    assert landed[:2] == ["t002", "t003"]
    assert landed.index("t006") > max(landed.index("t004"), landed.index("t005"))
    assert landed[-1] == "t010"
    text = (repo.root / "specs/001-photos/tasks.md").read_text()
    ticked = re.findall(r"^- \[x\] (T\d+)", text, re.MULTILINE)
    assert ticked == [f"T{n:03}" for n in range(2, 11) if n != 8]  # the one in bold is left alone by the script
    assert "nothing" in repo.loopr("start", "specs/001-photos/tasks.md").err
