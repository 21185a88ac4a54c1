"""Files that a person puts beside the place where they belong: whoever waits for one is told what to type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from tests.e2e.repos import Process, Repo, opened

SPEC = "# By hand\n\n## Phases\n\n1. **One**\n   do\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository in which a person writes specs, and a command does the rest."""
    with opened(tmp_path) as found:
        found.found()
        found.gate("gate")
        command = found.script("code", "tell x; wait_at gate")
        found.settings(f"types:\n  plan: {{child: spec}}\n  phase: {{child: code}}\n  code: {{run: '{command}'}}\n")
        found.write({"plan.md": "---\nid: demo\nspecs:\n- id: tokens\n- id: busy\n  phases: [{id: p}]\n---\n# Demo\n"})
        yield found


def busy(repo: Repo) -> Process:
    """Start an engine that has something to do."""
    process = repo.begin("start", "plan.md")
    repo.heard()
    return process


@pytest.mark.parametrize(
    "slip", ["demo/tokens/Spec.md", "demo/tokens/spec (1).md", "demo/spec.md", "demo/token/spec.md", "tokens/spec.md"]
)
def test_a_file_beside_its_place(repo: Repo, slip: str) -> None:
    """The engine says at once which command puts it right; after that the report is gone and the file counts."""
    process = busy(repo)
    repo.drop(slip, SPEC)
    line = process.says("is read by nobody")
    assert line.endswith(f"if it is meant for demo/tokens: mv {quote(f'specs/{slip}')} specs/demo/tokens/spec.md\n")
    why = " ".join(repo.loopr("why", "tokens").out.split())
    assert f"perhaps meant for it: specs/{slip}" in why
    place = repo.root / "specs/demo/tokens/spec.md"
    place.parent.mkdir(exist_ok=True)
    (repo.root / "specs" / slip).rename(place)
    repo.until("problem_gone", words=f"specs/{slip}")
    repo.gates["gate"].open()
    process.ended()
    assert set(repo.statuses().values()) == {"complete"}


def test_a_file_that_is_copied(repo: Repo) -> None:
    """The report is taken back as well where the file stays, and what was waited for is written beside it."""
    process = busy(repo)
    repo.drop("demo/tokens/Spec.md", SPEC)
    process.says("is read by nobody")
    repo.drop("demo/tokens/spec.md", SPEC)
    repo.until("problem_gone", words="specs/demo/tokens/Spec.md")
    repo.gates["gate"].open()
    process.ended()


def test_a_file_that_was_there_before(repo: Repo) -> None:
    """What lies beside its place when an engine begins is told by it too, and in its last word; the tree counts it."""
    repo.drop("demo/tokens/Spec.md", SPEC)
    repo.gates["gate"].open()
    said = repo.loopr("start", "plan.md", code=4).err
    assert "problem  specs/demo/tokens/Spec.md: is read by nobody" in said
    assert "1 problem: `loopr status` tells" in repo.loopr("tree").out


def test_what_is_nobodys_slip(repo: Repo) -> None:
    """A person's own files beside an artifact, and copies of one that is there, are told of by nobody."""
    process = busy(repo)
    for name in ("demo/notes.md", "demo/tokens/README.md", "demo/busy/Spec.md", "notes/todo.md", "demo/other/x.md"):
        repo.drop(name, SPEC)
    repo.drop("demo/tokens/spec.md", SPEC)
    repo.gates["gate"].open()  # an engine does not end before it knows what has come
    process.ended()
    assert repo.events("problem_seen") == []
