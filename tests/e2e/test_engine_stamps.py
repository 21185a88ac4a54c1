"""Stamps in artifacts, where a workspace wants them: a remark in the file, and nothing but a remark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = """\
---
# what this plan is about
id: 'demo'   # in quotes
children:
  - {id: a,  title: "First" }   # odd spaces
  - id: b
    title: >-
      Second
---
# Demo
"""
WANTED = "artifacts: {stamp: true}\n"
CODE = 'test "$LOOPR_LOOP $LOOPR_ITERATION" != "demo/a 1"; echo "$LOOPR_LOOP" > "${LOOPR_LOOP##*/}"'


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a plan of two loops, one of which is refused once."""
    with opened(tmp_path) as found:
        found.found({"plan.md": PLAN})
        yield found


def settings(repo: Repo, more: str = "") -> None:
    """Write settings for that plan."""
    repo.settings(f"{more}types:\n  plan: {{child: code}}\n  code: {{run: '{repo.script('code', CODE)}'}}\n")


def artifact(repo: Repo, name: str) -> str:
    """Return what stands in an artifact."""
    return (repo.root / "specs/demo" / name).read_text()


def stamp(repo: Repo, name: str) -> dict[str, str]:
    """Return the plain fields of the stamp of an artifact."""
    front = artifact(repo, name).split("---\n")[1].partition("loopr:\n")[2]
    return dict(line.strip().split(": ", 1) for line in front.partition("  history:\n")[0].splitlines())


def test_every_artifact_says_how_its_loop_stands(repo: Repo) -> None:
    """A plan's file, which was there before the engine, is stamped too; all that a person wrote stays in its place."""
    settings(repo, WANTED)
    repo.loopr("start", "plan.md")
    told = {name: stamp(repo, name) for name in ("plan.md", "a/code.md", "b/code.md")}
    assert {each["status"] for each in told.values()} == {"complete"}
    assert [told[each]["attempt"] for each in ("a/code.md", "b/code.md")] == ["2", "1"]
    head, _, rest = artifact(repo, "plan.md").partition("loopr:\n")
    assert PLAN.startswith(head) and rest.endswith("---\n# Demo\n"), artifact(repo, "plan.md")
    assert (repo.root / "plan.md").read_text() == PLAN


def test_a_stamp_is_no_news(repo: Repo) -> None:
    """Stamps change nothing: a second start writes no byte, decides nothing, and finds the plan's file as it was."""
    settings(repo, WANTED)
    repo.loopr("start", "plan.md")
    files = {path: path.read_bytes() for path in (repo.root / "specs").rglob("*.md")}
    seen = len(repo.events())
    said = repo.loopr("start", "plan.md").err
    assert "demo: nothing to do" in said, said
    assert repo.events()[seen:] == []
    assert {path: path.read_bytes() for path in (repo.root / "specs").rglob("*.md")} == files


def test_stamps_that_are_wanted_later(repo: Repo) -> None:
    """Without the setting no file is touched; once it is made, the next engine stamps what was done before."""
    settings(repo)
    repo.loopr("start", "plan.md")
    assert artifact(repo, "plan.md") == PLAN
    assert "loopr:" not in artifact(repo, "a/code.md")
    settings(repo, WANTED)
    repo.loopr("run")
    assert {stamp(repo, name)["status"] for name in ("plan.md", "a/code.md", "b/code.md")} == {"complete"}


def history(repo: Repo, name: str) -> list[str]:
    """List what became of a loop by the stamp of its artifact, without when."""
    lines = artifact(repo, name).split("---\n")[1].partition("  history:\n")[2].splitlines()
    return [line.strip().removeprefix('- "').partition(" ")[2].rstrip('"') for line in lines]


@pytest.mark.parametrize("wanted", [True, False])
def test_its_history_goes_on_where_it_is_published_anew(repo: Repo, wanted: bool) -> None:
    """`retry --fresh` and a plan that is started again keep what the stamps said before, if stamps are wanted still."""
    settings(repo, WANTED)
    repo.loopr("start", "plan.md")
    before = {name: history(repo, name) for name in ("plan.md", "b/code.md")}
    assert all(before.values())
    if not wanted:
        settings(repo, "artifacts: {stamp: false}\n")
    repo.loopr("retry", "--fresh", "--yes", "demo/b")
    repo.write({"plan.md": PLAN.replace("# Demo", "# Demo of more") + "\nMore.\n"})
    repo.loopr("start", "plan.md")
    assert "# Demo of more" in artifact(repo, "plan.md")
    if not wanted:
        assert "history:" not in artifact(repo, "b/code.md") + artifact(repo, "plan.md")
        return
    for name, lines in before.items():
        assert history(repo, name)[: len(lines)] == lines
    assert history(repo, "b/code.md")[-1].startswith("complete, attempt 2")
    assert "nothing is wrong" in repo.loopr("doctor").out
