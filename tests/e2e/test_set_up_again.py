"""What is mended in the settings, or in what they name, reaches the worktrees that there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = "---\nid: p\ntasks: [{id: a}, {id: b}]\n---\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository whose check needs a file that git ignores, and one that a setup makes; all of it is parked."""
    with opened(tmp_path) as found:
        made = found.found({".gitignore": "check/\nmade\n", "prepare.sh": "true\n"})
        made.write({"check/tool.sh": "test -f made || exit 127\n", "plan.md": PLAN})
        setting(made)
        made.loopr("start", "--yes", "plan.md", code=1)
        assert made.statuses() == {"p": "complete", "p/a": "parked", "p/b": "parked"}
        yield made


def setting(repo: Repo, setup: str = "") -> None:
    """Write settings with a setup, or without."""
    run = repo.script("work", 'say $LOOPR_LOOP; echo "$LOOPR_LOOP" > "${LOOPR_LOOP##*/}"')
    task = f"{{run: '{run}', check: 'test -f check/tool.sh || exit 127; sh check/tool.sh'}}"
    types = f"types:\n  plan: {{child: task}}\n  task: {task}\n"
    repo.settings(types, worktrees=setup and f", setup: '{setup}'")


def test_include_and_setup_that_come_later_reach_worktrees_that_are_there(repo: Repo) -> None:
    """A list of files to copy, then a setup, then another one in the file that it names: each works after a reset."""
    for mended in (False, True):
        repo.write({".worktreeinclude": "check/\n"})
        if mended:
            setting(repo, "sh prepare.sh")
        repo.loopr("reset", "--yes", "p")
        repo.loopr("run", code=1)
        folder = next(each for each in (repo.root / "worktrees").glob("p.a*"))
        assert (folder / "check/tool.sh").is_file()
    repo.write({"prepare.sh": "touch made\n"})
    repo.git("commit", "--quiet", "--all", "--message=mended")
    repo.loopr("reset", "--yes", "p")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_a_plan_of_a_persons_own_is_made_anew_as_a_whole(repo: Repo) -> None:
    """One line gives each loop below it that is parked a worktree of its own."""
    repo.write({".worktreeinclude": "check/\n"})
    setting(repo, "touch made")
    repo.loopr("retry", "--fresh", "--yes", "p")
    assert {each["generation"] for name, each in repo.loops().items() if name != "p"} == {2}
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
