"""What lies where a declared artifact belongs, and is no file, keeps one loop waiting, and no engine from its end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = """\
---
id: p
specs:
  - {id: s, phases: [{id: f, tasks: [{id: c}]}]}
  - {id: t, phases: [{id: g, tasks: [{id: d}]}]}
---
# Plan
"""
SPEC = "specs/p/s/spec.md"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def link_to_a_folder(path: Path) -> None:
    """Put a link in the place of the loop's folder."""
    elsewhere = path.parents[3] / "elsewhere"
    elsewhere.mkdir()
    path.parent.symlink_to(elsewhere)


def link_in_the_workspace(path: Path) -> None:
    """Put a link in the place of the loop's folder, to one that has such a file."""
    elsewhere = path.parents[3] / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "spec.md").write_text("# Other\n")
    path.parent.symlink_to(elsewhere)


def link_to_nothing(path: Path) -> None:
    """Put a link in the place of the file that leads nowhere."""
    path.parent.mkdir()
    path.symlink_to("nothing.md")


def link_in_a_circle(path: Path) -> None:
    """Put a link in the place of the file that leads to itself."""
    path.parent.mkdir()
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    """Put a folder in the place of the file."""
    path.mkdir(parents=True)


def pipe(path: Path) -> None:
    """Put a pipe in the place of the file."""
    path.parent.mkdir()
    os.mkfifo(path)


def file_for_a_folder(path: Path) -> None:
    """Put a file in the place of the loop's folder."""
    path.parent.write_text("mine\n")


WAYS = {
    each.__name__: each
    for each in (
        link_to_a_folder,
        link_in_the_workspace,
        link_to_nothing,
        link_in_a_circle,
        folder,
        pipe,
        file_for_a_folder,
    )  # fmt: skip
}
KIND = {"folder": "is not a regular file", "pipe": "is not a regular file", "file_for_a_folder": "stands where"}


def clear(path: Path) -> None:
    """Take away what is in the way, as a person would."""
    for each in (path, path.parent):
        if each.is_symlink() or each.is_file() or each.is_fifo():
            each.unlink()
        elif each.is_dir():
            shutil.rmtree(each)


@pytest.mark.parametrize("verb", [("start",), ("start", "--no-run")], ids=" ".join)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_no_file_keeps_one_loop_waiting(repo: Repo, way: str, verb: tuple[str, ...]) -> None:
    """The loop says what lies there and waits; all else goes on, the engine ends, and goes on once it is mended."""
    put: Callable[[Path], None] = WAYS[way]
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', 'say ran')}'}}\n")
    repo.write({"plan.md": PLAN})
    (repo.root / "specs/p").mkdir(parents=True)
    put(repo.root / SPEC)
    repo.loopr(*verb, "plan.md", code=0 if "--no-run" in verb else 4)
    repo.loopr("run", code=4)
    loops = repo.loops()
    assert (loops["p/s"]["status"], loops["p/t/g/d"]["status"]) == ("pending", "complete")
    body = repo.loopr("why", "p/s", "--json").document
    said = {each["gate"]: each["reason"] for each in body["gates"]}["artifact"]
    assert SPEC in said
    assert KIND.get(way, "") in said
    rows = repo.loopr("status", "--json").document["problems"]
    assert [(each["place"], each["loop"]) for each in rows] == [(SPEC, "p/s")]
    before = len(repo.events("problem_seen", "problem_gone", "artifact_unread"))
    repo.loopr("run", code=4)
    assert len(repo.events("problem_seen", "problem_gone", "artifact_unread")) == before
    clear(repo.root / SPEC)
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.diary() == ["ran", "ran"]


def test_a_place_that_is_mended_while_the_engine_runs(repo: Repo) -> None:
    """Whoever takes away what is in the way while an engine works has the loop go on at once."""
    repo.settings(f"types:\n  code: {{run: '{repo.script('code', 'tell $LOOPR_LOOP; wait_at gate')}'}}\n")
    repo.gate("gate")
    repo.write({"plan.md": PLAN})
    (repo.root / "specs/p").mkdir(parents=True)
    link_to_a_folder(repo.root / SPEC)
    engine = repo.begin("start", "plan.md")
    assert repo.heard() == ["p/t/g/d"]
    repo.until("artifact_unread")
    clear(repo.root / SPEC)
    assert repo.heard() == ["p/s/f/c"]
    repo.gates["gate"].open()
    engine.ended()
