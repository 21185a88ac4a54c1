"""What a setup has made is copied into the next worktree, and never shared for writing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

INSTALL = """
say "setup for $(cat lock.json)"
mkdir -p deps/bin
cp lock.json deps/lock.json
printf 'echo tool\\n' > deps/tool.sh
chmod 755 deps/tool.sh
ln -s ../tool.sh deps/bin/tool
"""
LOOK = 'say "$(basename "$LOOPR_LOOP") $(cat deps/lock.json) $(deps/bin/tool)"'


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def plan(repo: Repo, tasks: str, *, setup: str = INSTALL, paths: str = "deps", more: str = "") -> None:
    """Set a repository up whose setup makes ignored files by a lock file, for a plan of some tasks."""
    cache = f"cache: {{key: [lock.json], paths: [{paths}]}}"
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{check: 'true'}}\n{more}",
        worktrees=f", setup: '{repo.script('setup', setup)}', pool: 0, {cache}",
    )
    repo.write({"plan.md": f"---\nid: demo\ntasks:\n{tasks}---\n# Demo\n"})
    repo.write({"lock.json": "one", ".gitignore": "deps/\nmore/\n.venv/\n"})
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=what the setup goes by")


def looks(repo: Repo) -> str:
    """Return a command that notes what it finds of the setup."""
    return str(repo.script("look", LOOK))


def task(name: str, run: str, needs: str = "") -> str:
    """Write a task of the plan."""
    return f"  - {{id: {name}, run: {json.dumps(run)}, needs: [{needs}]}}\n"


def entries(repo: Repo) -> list[Path]:
    """List what is kept."""
    return sorted((repo.state / "cache").iterdir()) if (repo.state / "cache").is_dir() else []


def test_a_setup_runs_once_for_each_lock_file(repo: Repo) -> None:
    """The next worktree gets a copy, with links and modes, until a loop has landed another lock file."""
    look = looks(repo)
    spoil = "echo spoiled > deps/lock.json"
    plan(
        repo,
        task("a", f"{look}; {spoil}; echo x > a.txt")
        + task("b", f"{look}; {spoil}; printf two > lock.json", "a")
        + task("c", f"{look}; echo x > c.txt", "b")
        + task("d", f"{look}; echo x > d.txt", "c"),
    )
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["setup for one", "a one tool", "b one tool", "setup for two", "c two tool", "d two tool"]
    assert len(entries(repo)) == 2
    assert len(json.loads(repo.loopr("gc", "--cache", "--json").out)["removed"]) == 2
    assert not entries(repo)
    repo.loopr("retry", "--fresh", "--yes", "d")
    repo.loopr("run")
    assert repo.diary()[6:] == ["setup for two", "d two tool"]


@pytest.mark.parametrize("emptied", ["files/deps/lock.json", "count"])
def test_what_is_kept_may_be_half_gone(repo: Repo, emptied: str) -> None:
    """An entry whose files a power cut has emptied is made anew, and drafts of a killed engine go."""
    plan(repo, task("a", "echo x > a.txt"))
    repo.loopr("start", "plan.md")
    (entry,) = entries(repo)
    (entry / emptied).write_text("")
    (entry.parent / ".new.dead/files").mkdir(parents=True)
    tasks = task("a", "echo x > a.txt") + task("b", f"{looks(repo)}; echo x > b.txt", "a")
    repo.write({"plan.md": f"---\nid: demo\ntasks:\n{tasks}---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["setup for one", "setup for one", "b one tool"]
    assert [each.name for each in entries(repo)] == [entry.name]


REFUSED = [
    (
        "mkdir -p deps/bin; printf '#!%s/deps/bin/python\\n' \"$PWD\" > deps/bin/pip",
        "deps",
        "deps/bin/pip holds the path",
    ),
    ("mkdir -p .venv; touch .venv/pyvenv.cfg", ".venv", ".venv/pyvenv.cfg holds the path of its worktree"),
    ('mkdir -p deps; ln -s "$PWD/lock.json" deps/link', "deps", "deps/link holds the path of its worktree"),
    ("mkdir -p deps more; touch deps/x more/x", "deps", "the setup makes more too"),
    ("true", "deps", "the setup has not made deps"),
]


@pytest.mark.parametrize(("setup", "paths", "words"), REFUSED)
def test_what_cannot_be_copied_is_told(repo: Repo, setup: str, paths: str, words: str) -> None:
    """What would lead back to another worktree, or would be lacking, is not kept; loops go on with their setup."""
    tasks = task("a", "echo x > a.txt") + task("b", "echo x > b.txt", "a")
    plan(repo, tasks, setup=f"say setup; {setup}", paths=paths)
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["setup", "setup"]
    assert words in " ".join(repo.loopr("status").out.split())
    assert not [each for each in entries(repo) if each.name[0] != "."]


def test_paths_need_a_key(repo: Repo) -> None:
    """Paths without a key are refused with their line: nothing would tell when the setup has to run again."""
    repo.settings("types: {}\n", worktrees=", cache: {paths: [deps]}")
    said = repo.loopr("config", "check", code=78)
    assert "has no meaning without worktrees.cache.key" in said.out + said.err
