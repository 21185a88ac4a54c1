"""What a loop has come to is told as it is: landed, nothing changed, or left in a folder; and where a plan begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = "---\nid: demo\nparallel: false\nchildren: [{id: idle}, {id: busy}]\n---\n# Demo\n"
WORK = "case $LOOPR_LOOP in */busy) echo done > made.txt ;; esac"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a folder that is no repository yet."""
    with opened(tmp_path) as found:
        yield found


def settings(repo: Repo, code: str, more: str = "") -> str:
    """Return settings in which the plan's loops are code."""
    command = repo.script("code", code)
    return f"worktrees: {{min_free_gb: 0}}\ntypes:\n  plan: {{child: code}}\n  code: {{run: '{command}'{more}}}\n"


def test_one_that_changed_nothing(repo: Repo) -> None:
    """It is complete and said to have changed no file; nobody else's commit is called its work, now or later."""
    repo.found({"loopr.yml": settings(repo, WORK), "plan.md": PLAN})
    said = repo.loopr("start", "plan.md").err
    assert "demo/idle  done  1 try  0 s  no file changed" in said
    assert "demo/busy  landed" in said
    assert "no file changed" in next(line for line in repo.loopr("tree").out.splitlines() if "idle" in line)
    assert "left     no file changed" in repo.loopr("show", "idle").out
    assert {each["loop"]: bool(each["data"]["commit"]) for each in repo.events("landed")} == {
        "demo/idle": False,
        "demo/busy": True,
    }
    repo.write({"plan.md": PLAN.replace("{id: idle}, ", "")})
    repo.loopr("start", "plan.md")  # no --yes: what is gone has landed nothing
    assert repo.loopr("status", "--json").document["problems"] == []


def test_one_that_only_declares(repo: Repo) -> None:
    """A loop whose work is to say what is below it, and which commits no file, is not said to have landed."""
    more = 'test "$LOOPR_LOOP" = demo/busy && echo done > made.txt\n'
    write = repo.script(
        "spec", more + "printf -- '---\\nchildren: [{id: one}, {id: two}]\\n---\\n' > \"$LOOPR_OUTPUT\""
    )
    types = f"types:\n  plan: {{child: spec}}\n  spec: {{child: code, run: '{write}'}}\n  code: {{run: 'true'}}\n"
    repo.found({"loopr.yml": f"worktrees: {{min_free_gb: 0}}\n{types}", "plan.md": PLAN})
    said = repo.loopr("start", "plan.md").err
    assert re.search(r"demo/idle  done  1 try  \d+ s  2 declared", said), said
    assert re.search(r"demo/busy  landed  1 try  \d+ s$", said, re.MULTILINE), said


def test_what_has_landed_stays_known(repo: Repo) -> None:
    """A loop that is made anew and changes nothing keeps the commit that it landed before."""
    repo.found({"loopr.yml": settings(repo, WORK), "plan.md": PLAN})
    repo.loopr("start", "plan.md")
    repo.loopr("retry", "--fresh", "--yes", "busy")
    repo.loopr("run")
    assert [bool(each["data"]["commit"]) for each in repo.events("landed") if each["loop"] == "demo/busy"] == [1, 0]
    assert "+done" in repo.loopr("diff", "busy").out
    (repo.root / "specs/demo/busy/code.md").unlink()
    assert "put back  demo/busy" in repo.loopr("doctor", "--fix").out


def test_without_git(repo: Repo) -> None:
    """Where there is no repository nothing is said to land, and the folder is named in which the work stays."""
    repo.write({"loopr.yml": settings(repo, WORK), "plan.md": PLAN})
    said = repo.loopr("start", "plan.md").err
    assert "landed" not in said
    assert "demo/busy  done  1 try  0 s  what it made stays in worktrees/demo.busy.g1" in said
    assert (repo.root / "worktrees/demo.busy.g1/made.txt").exists()


def test_a_base_that_was_mended(repo: Repo) -> None:
    """A loop that was parked for what its base lacked finds it there, without a merge, once it is reset."""
    code = 'test -e tool || exit 78; echo "$LOOPR_LOOP" > "$(basename "$LOOPR_LOOP")"'
    repo.found({"loopr.yml": settings(repo, code), "plan.md": PLAN})
    repo.loopr("start", "plan.md", code=1)
    repo.write({"tool": "mended\n"})
    repo.git("add", "tool")
    repo.git("commit", "--quiet", "--message=mended")
    said = repo.loopr("reset", "idle", "busy").err
    assert "nothing of demo has landed, so it goes on from main as it is now" in said
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.git("merge-base", "main", "loopr/demo") == repo.git("rev-parse", "main")
    assert len(repo.landed("demo")) == 2
