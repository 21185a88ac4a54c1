"""What the README shows first runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import LOOPR, PATIENCE_SECS, Repo, opened

README = Path(__file__).resolve().parents[2] / "README.md"


def shown(kind: str) -> str:
    """Return the first block of a kind."""
    found = re.search(rf"^```{kind}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, kind
    return found[1]


@pytest.mark.parametrize("name", ["empty", "a folder with spaces, ü"])
def test_the_first_example_runs_when_it_is_pasted(tmp_path: Path, name: str) -> None:
    """Line by line, as from a clipboard: no command takes the lines that follow it for itself."""
    folder = tmp_path / name
    folder.mkdir()
    env = os.environ | {"PATH": f"{LOOPR.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-e", "-s"],
        input=shown("sh"),
        cwd=folder,
        env=env,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
    )
    assert done.returncode == 0, done
    assert done.stdout.split()[-1] == "2", done
    assert "one\ntwo\n" in done.stdout, "its log"
    assert "hello is home" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with the plan and the settings for agents that the README shows."""
    with opened(tmp_path) as found:
        repo = found.found()
        repo.write({"plan.md": shown("markdown"), "loopr.yml": shown("yaml")})
        yield repo


def test_the_example_for_agents_is_sound(repo: Repo) -> None:
    """Its settings have no problem, and its plan can be looked at before an agent is there."""
    assert "the settings are sound" in repo.loopr("config", "check").out
    assert "oauth: 5 new" in repo.loopr("start", "--dry-run", "plan.md").err
    assert "makespan" in repo.loopr("simulate", "plan.md").out


@pytest.mark.parametrize("ignored", [False, True])
def test_the_tree_may_be_ignored_or_committed(repo: Repo, ignored: bool) -> None:
    """Whether git ignores specs/ or has it makes no difference to what is done, now and when it is started again."""
    repo.settings("types:\n  plan: {child: spec}\n  spec: {child: task}\n  task: {run: 'echo x > x', check: none}\n")
    repo.write({"plan.md": "---\nid: p\nspecs: [{id: s, tasks: [{id: a}]}]\n---\n# P\n"})
    repo.write({".gitignore": "specs/\n"} if ignored else {})
    repo.loopr("start", "plan.md")
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=all")
    assert ("specs/p/s/spec.md" in repo.git("ls-files")) is not ignored
    assert "p: nothing to do" in repo.loopr("start", "plan.md").err
    repo.write({"plan.md": "---\nid: p\nspecs: [{id: s, tasks: [{id: a}, {id: b}]}]\n---\n# P\n"})
    repo.loopr("start", "plan.md")
    assert [each[0] for each in repo.landed("p")] == ["p/s/a"]
    assert repo.statuses()["p/s/b"] == "complete", "it found nothing to change"
