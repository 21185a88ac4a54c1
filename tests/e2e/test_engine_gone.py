"""Artifacts that somebody has taken away: nothing is done again, and each comes back byte for byte."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

SPEC = 'printf "# %s\\n\\n## Phases\\n\\n1. **One**\\n   do\\n2. **Two**\\n   do\\n" "$LOOPR_LOOP" > "$LOOPR_OUTPUT"'
PLAN = "---\nid: demo\n---\n# Demo\n\n## Specs\n\n- a: A\n- b: B\n"
ALL = Counter({"demo/a": 1, "demo/b": 1, **{f"demo/{s}/{p}/code": 1 for s in "ab" for p in ("one", "two")}})


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def ready(repo: Repo, code: str = "true") -> None:
    """Write settings in which specs are written by a command, and a plan that git does not know."""
    repo.settings(
        "types:\n  plan: {child: spec}\n"
        f"  spec: {{child: phase, run: '{repo.script('spec', SPEC)}'}}\n"
        f"  phase: {{child: code}}\n  code: {{run: '{repo.script('code', code)}'}}\n"
    )
    repo.write({"plan.md": PLAN})


def files(repo: Repo) -> dict[str, bytes]:
    """Return every file among the artifacts."""
    return {str(each.relative_to(repo.root)): each.read_bytes() for each in (repo.root / "specs").rglob("*.*")}


@pytest.mark.parametrize("way", ["doctor", "start"])
def test_all_is_gone_in_the_morning(repo: Repo, way: str) -> None:
    """After `git clean -fdx` one command puts back every artifact, a person's too, and no loop runs again."""
    ready(repo)
    repo.loopr("start", "plan.md")
    repo.drop("demo/a/one/code/code.md", "# By hand\n")
    repo.loopr("start", "plan.md")
    before = files(repo)
    assert len(before) == 11
    repo.git("clean", "-fdxq")
    assert not (repo.root / "specs").exists() and not (repo.root / "plan.md").exists()
    assert "specs/demo/a/spec.md is gone" in repo.loopr("doctor").out
    again = repo.loopr("start", "plan.md", code=3).err
    assert "its copy is specs/demo/plan.md once `loopr doctor --fix` has put it back" in again
    if way == "doctor":
        assert "put back  demo/a/one/code" in repo.loopr("doctor", "--fix").out
    else:
        repo.write({"plan.md": PLAN})
        assert "10 put back from what is kept" in repo.loopr("start", "plan.md").err
    assert files(repo) == before
    repo.loopr("run")
    assert repo.granted() == ALL
    assert "is gone" not in repo.loopr("doctor").out


def test_all_is_gone_while_an_engine_works(repo: Repo) -> None:
    """An engine whose artifacts go as a whole says so and waits for them; put back beside it, the work goes on."""
    repo.gate("gate")
    ready(repo, 'case $LOOPR_LOOP in demo/a/*) ;; *) tell "$LOOPR_LOOP"; wait_at gate ;; esac')
    repo.loopr("set", "concurrency.per_type.code", "1")
    process = repo.begin("start", "plan.md")
    repo.heard()
    shutil.rmtree(repo.root / "specs")
    assert "artifacts are gone  `loopr doctor --fix`" in process.says("artifacts are gone")
    reason = repo.loopr("why", "demo/b/two/code").out
    assert "is not on disk; `loopr doctor --fix` puts it back" in " ".join(reason.split())
    assert "put back  demo/b" in repo.loopr("doctor", "--fix").out
    repo.until("artifact_seen", words="demo/b/two")
    repo.gates["gate"].open()
    process.ended()
    assert repo.granted() == ALL
    assert set(repo.statuses().values()) == {"complete"}


def test_one_that_a_person_has_taken_away(repo: Repo) -> None:
    """`start` leaves one missing artifact to whoever took it, as long as the plan's own is there; nothing runs."""
    ready(repo)
    repo.loopr("start", "plan.md")
    (repo.root / "specs/demo/a/spec.md").unlink()
    repo.loopr("start", "plan.md")
    assert not (repo.root / "specs/demo/a/spec.md").exists()
    assert repo.granted() == ALL


def test_a_newer_file_is_never_replaced(repo: Repo) -> None:
    """What a person has written where an artifact was gone stays as it is, and counts."""
    ready(repo)
    repo.loopr("start", "plan.md")
    shutil.rmtree(repo.root / "specs/demo/a")
    repo.drop("demo/a/spec.md", "# Mine\n\n## Phases\n\n1. **One**\n   do\n")
    repo.loopr("doctor", "--fix")
    assert (repo.root / "specs/demo/a/spec.md").read_text().startswith("# Mine")
    assert (repo.root / "specs/demo/a/one/phase.md").exists()


def test_the_run_that_wrote_it_is_gone_too(repo: Repo) -> None:
    """An artifact comes back after `gc` has taken away the run folder that it came from."""
    ready(repo)
    repo.loopr("start", "plan.md")
    before = files(repo)
    for folder in (repo.state / "runs").rglob("*"):
        os.utime(folder, (1, 1))
    os.utime(repo.state / "runs/demo.a.g1", (1, 1))
    repo.loopr("gc")
    assert not (repo.state / "runs/demo.a.g1").exists()
    shutil.rmtree(repo.root / "specs")
    repo.loopr("doctor", "--fix")
    assert files(repo) == before
