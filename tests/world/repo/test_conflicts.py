"""Conflicts: laid where an editor can mend them, told in full, and landed once they are mended."""

from __future__ import annotations

import shutil
from pathlib import Path

from loopr.world.repo import commits, conflicts
from loopr.world.repo.ground import Ground
from loopr.world.repo.words import Candidate, Clash
from tests.world.repo.grounds import (
    Landed,
    begin,
    build,
    git,
    ground_of,
    log,
    plant,
    say,
    shows,
    take,
    try_to_land,
    work,
    write,
)


def clashing(tmp_path: Path) -> tuple[Path, Ground, Clash]:
    """Let two loops change the same line, and one of them land."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.late.g1", {"a.txt": "one\nlate\nthree\n", "late.txt": "late\n"})
    work(ground, "oauth.early.g1", {"a.txt": "one\nearly\nthree\n"})
    assert isinstance(try_to_land(ground, "oauth.early.g1"), Landed)
    clash = try_to_land(ground, "oauth.late.g1")
    assert isinstance(clash, Clash)
    return root, ground, clash


def test_a_conflict_is_laid_out_and_lands_once_it_is_mended_by_editing(tmp_path: Path) -> None:
    """Markers in the file, a clean index, the rest of the change in place; editing alone makes it land."""
    root, ground, clash = clashing(tmp_path)
    laid = conflicts.lay_clash(ground, clash)
    folder = root / "worktrees" / "oauth.late.g1"
    assert (folder / "a.txt").read_text() == (
        "one\n<<<<<<< loopr/oauth (the plan)\nearly\n=======\nlate\n>>>>>>> loopr/oauth.late.g1 (this loop)\nthree\n"
    )
    assert git(folder, "diff", "--cached", "--name-only") == ""
    assert git(folder, "ls-files", "-u") == ""
    assert (folder / "late.txt").read_text() == "late\n"
    assert [(file.path, file.hunks[0].first, file.hunks[0].last) for file in laid.files] == [("a.txt", 2, 6)]
    assert laid.others[0].endswith("Work of oauth.early.g1")
    assert shows(root, laid.backup, "a.txt") == "one\nlate\nthree"
    told = laid.feedback()
    assert "a.txt lines 2-6" in told
    assert "Merge conflict in a.txt" in told
    write(folder, {"a.txt": "one\nearly and late\nthree\n"})
    commits.commit_attempt(ground, "oauth.late.g1", 2, say("oauth.late.g1", 2))
    assert isinstance(try_to_land(ground, "oauth.late.g1", 2), Landed)
    assert shows(root, "loopr/oauth", "a.txt") == "one\nearly and late\nthree"
    assert shows(root, "loopr/oauth", "late.txt") == "late"
    assert log(root, "loopr/oauth")[-1] == "Work of oauth.late.g1"


def test_markers_that_are_left_are_a_refusal(tmp_path: Path) -> None:
    """A candidate that adds conflict markers says in which file; a file that always had them does not matter."""
    root, ground, clash = clashing(tmp_path)
    conflicts.lay_clash(ground, clash)
    commits.commit_attempt(ground, "oauth.late.g1", 2, say("oauth.late.g1", 2))
    built = build(ground, "oauth.late.g1", 2)
    assert isinstance(built, Candidate)
    assert [(each.where, each.message) for each in built.refused] == [("a.txt", "has conflict markers left")]
    write(root / "worktrees" / "oauth.late.g1", {"a.txt": "Title\n=======\n"})
    commits.commit_attempt(ground, "oauth.late.g1", 3, say("oauth.late.g1", 3))
    built = build(ground, "oauth.late.g1", 3)
    assert isinstance(built, Candidate)
    assert built.refused == ()


def test_a_conflict_is_the_same_when_it_is_asked_for_again(tmp_path: Path) -> None:
    """Until the next attempt, commit and candidate answer with the conflict that lies there, and change nothing."""
    root, ground, clash = clashing(tmp_path)
    first = conflicts.lay_clash(ground, clash)
    done = commits.commit_attempt(ground, "oauth.late.g1", 1, say("oauth.late.g1"))
    assert not done.moved
    again = build(ground, "oauth.late.g1", 1)
    assert isinstance(again, Clash)
    assert again.laid
    assert conflicts.lay_clash(ground, again) == first
    assert "<<<<<<<" in (root / "worktrees" / "oauth.late.g1" / "a.txt").read_text()


def test_a_conflict_survives_the_loss_of_its_folder(tmp_path: Path) -> None:
    """If somebody removes the worktree with the conflict, the next one has it again."""
    root, ground, clash = clashing(tmp_path)
    conflicts.lay_clash(ground, clash)
    shutil.rmtree(root / "worktrees" / "oauth.late.g1")
    tree = take(ground, "oauth.late.g1")
    assert tree.fresh
    assert "<<<<<<< loopr/oauth" in (tree.folder / "a.txt").read_text()
    assert (tree.folder / "late.txt").read_text() == "late\n"


def test_a_file_that_one_side_deleted_is_a_conflict_in_words(tmp_path: Path) -> None:
    """A conflict that has no lines is told with git's words for it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.late.g1", {"a.txt": "changed\n"})
    tree = take(ground, "oauth.early.g1")
    (tree.folder / "a.txt").unlink()
    commits.commit_attempt(ground, "oauth.early.g1", 1, say("oauth.early.g1"))
    try_to_land(ground, "oauth.early.g1")
    clash = try_to_land(ground, "oauth.late.g1")
    assert isinstance(clash, Clash)
    laid = conflicts.lay_clash(ground, clash)
    assert laid.files[0].hunks == ()
    assert "deleted in loopr/oauth (the plan)" in laid.feedback()
    assert (root / "worktrees" / "oauth.late.g1" / "a.txt").read_text() == "changed\n"


def test_a_second_conflict_keeps_both_old_versions(tmp_path: Path) -> None:
    """Each conflict keeps the tip it found, under a ref of its own."""
    root, ground, clash = clashing(tmp_path)
    conflicts.lay_clash(ground, clash)
    write(root / "worktrees" / "oauth.late.g1", {"a.txt": "one\nlater\nthree\n"})
    commits.commit_attempt(ground, "oauth.late.g1", 2, say("oauth.late.g1", 2))
    work(ground, "oauth.third.g1", {"a.txt": "one\nthird\nthree\n"})
    assert isinstance(try_to_land(ground, "oauth.third.g1"), Landed)
    second = try_to_land(ground, "oauth.late.g1", 2)
    assert isinstance(second, Clash)
    conflicts.lay_clash(ground, second)
    backups = git(root, "for-each-ref", "--format=%(refname)", "refs/loopr/backup/oauth.late.g1").splitlines()
    assert {shows(root, each, "a.txt").splitlines()[1] for each in backups} == {"late", "later"}
