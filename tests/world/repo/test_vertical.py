"""From a worktree to a landed commit."""

from __future__ import annotations

from pathlib import Path

from loopr.world.repo.words import Landed
from tests.world.repo.grounds import begin, digest, git, ground_of, log, plant, shows, take, try_to_land, work


def test_a_loops_change_becomes_one_commit_on_a_linear_plan_branch(tmp_path: Path) -> None:
    """Two loops land one after the other: two commits with trailers on top of the base, nothing else moved."""
    root = plant(tmp_path / "repo")
    before = digest(root)
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    assert git(tree.folder, "rev-parse", "--show-toplevel") == str(tree.folder)
    work(ground, "oauth.two.g1", {"two.txt": "2\n", "src/b.py": "b = 2\n"})
    assert isinstance(try_to_land(ground, "oauth.one.g1"), Landed)
    assert isinstance(try_to_land(ground, "oauth.two.g1"), Landed)
    assert log(root, "loopr/oauth") == ["first", "Work of oauth.one.g1", "Work of oauth.two.g1"]
    assert log(root, "loopr/oauth", "%P")[-1].count(" ") == 0
    assert "Loopr-Loop: oauth.two.g1" in git(root, "log", "-1", "--format=%(trailers)", "loopr/oauth")
    assert shows(root, "loopr/oauth", "one.txt") == "1"
    assert git(tree.folder, "status", "--porcelain") == ""
    assert digest(root) == before


def test_taking_twice_gives_the_same_worktree(tmp_path: Path) -> None:
    """A loop that has a worktree keeps it, with what is in it."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    first = take(ground, "oauth.one.g1")
    (first.folder / "half.txt").write_text("half")
    second = take(ground, "oauth.one.g1")
    assert first.fresh
    assert not second.fresh
    assert (second.folder / "half.txt").read_text() == "half"
