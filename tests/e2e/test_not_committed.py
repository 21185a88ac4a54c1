"""A script that lies in the checkout and was not committed: whoever fails for want of it says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a plan of one loop, and scripts that are not committed."""
    with opened(tmp_path) as found:
        repo = found.found()
        repo.write(
            {"plan.md": "---\nid: demo\ncodes: [{id: a}]\n---\n# Demo\n", "tools/work.sh": "#!/bin/sh\necho x > x\n"}
        )
        (repo.root / "tools/work.sh").chmod(0o755)
        yield repo


def reason(repo: Repo, code: str) -> str:
    """Drive the plan with a type until it can get no further, and return why."""
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{{code}}}\nretry: {{no_progress: 1, base_secs: 0.05}}\n")
    repo.loopr("start", "plan.md", code=1)
    found: str = repo.loops()["demo/a"]["reason"]
    assert found in repo.loopr("why", "a").out.replace("\n            ", " ")
    return found


@pytest.mark.parametrize(
    "code",
    [
        "run: ./tools/work.sh, check: none",
        "run: [./tools/work.sh], check: none",
        "run: sh tools/work.sh, check: none",
        "run: 'true', check: ./tools/work.sh",
    ],
)
def test_what_is_not_committed_is_named(repo: Repo, code: str) -> None:
    """A loop that failed by it has that in its reason, and once it is committed it goes on."""
    assert "tools/work.sh is in your checkout, but not committed" in reason(repo, code)
    repo.git("add", "tools")
    repo.git("commit", "--quiet", "--message=tools")
    repo.loopr("retry", "a")
    repo.loopr("run")
    assert repo.statuses()["demo/a"] == "complete"


def test_what_git_ignores_is_not_to_be_committed(repo: Repo) -> None:
    """A file that git ignores gets into worktrees by another way."""
    repo.write({".gitignore": "tools/\n"})
    found = reason(repo, "run: ./tools/work.sh, check: none")
    assert "tools/work.sh is in your checkout, but git ignores it: .worktreeinclude may name it" in found


def test_other_failures_are_not_blamed_on_it(repo: Repo) -> None:
    """A no that says nothing of the file has its own reason alone."""
    found = reason(repo, "run: 'echo tools/work.sh > x', check: 'test -e y || cat tools/work.sh 2>/dev/null'")
    assert "committed" not in found
