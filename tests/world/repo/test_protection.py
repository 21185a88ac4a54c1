"""Protected paths: what a loop is judged by lands as the plan has it, and the loop is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.world.repo import commits, landing
from loopr.world.repo.protection import Protect
from loopr.world.repo.words import Candidate, PutBack
from tests.world.repo.grounds import (
    Landed,
    begin,
    build,
    git,
    ground_of,
    plant,
    say,
    shows,
    take,
    try_to_land,
    work,
    write,
)

TESTS = Protect(("tests/**", "loopr.yml"))
FILES = {"a.txt": "a\n", "loopr.yml": "version: 1\n", "tests/t.py": "assert 1\n", "tests/deep/u.py": "assert 2\n"}


def cheat(tmp_path: Path) -> tuple[Path, Path]:
    """Let a loop change, delete and add what it is judged by, beside its work."""
    root = plant(tmp_path / "repo", FILES)
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    write(tree.folder, {"tests/t.py": "pass\n", "tests/new.py": "pass\n"})
    write(tree.folder, {"a.txt": "done\n", "loopr.yml": "check: no\n"})
    (tree.folder / "tests" / "deep" / "u.py").unlink()
    commits.commit_attempt(ground, "oauth.one.g1", 1, say("oauth.one.g1"))
    return root, tree.folder


def test_changed_deleted_and_added_files_are_put_back_and_told(tmp_path: Path) -> None:
    """The tree that is judged and lands has every protected file as the plan has it, and the loop learns which."""
    root, folder = cheat(tmp_path)
    ground = ground_of(root)
    built = build(ground, "oauth.one.g1", 1, TESTS)
    assert isinstance(built, Candidate)
    assert set(built.put_back) == {
        PutBack("loopr.yml", "changed"),
        PutBack("tests/t.py", "changed"),
        PutBack("tests/new.py", "added"),
        PutBack("tests/deep/u.py", "deleted"),
    }
    assert built.changed == ("a.txt",)
    landing.lay_candidate(ground, built, 1)
    assert (folder / "tests" / "t.py").read_text() == "assert 1\n"
    assert (folder / "tests" / "deep" / "u.py").exists()
    assert not (folder / "tests" / "new.py").exists()
    landing.end_judging(ground, "oauth.one.g1")
    assert isinstance(try_to_land(ground, "oauth.one.g1", protect=TESTS), Landed)
    assert git(root, "diff", "--name-only", "main", "loopr/oauth") == "a.txt"


def test_added_files_may_stay_where_that_is_allowed(tmp_path: Path) -> None:
    """With protect_added: keep a new test lands, and a changed one does not."""
    root, _ = cheat(tmp_path)
    ground = ground_of(root)
    assert isinstance(try_to_land(ground, "oauth.one.g1", protect=Protect(TESTS.patterns, keep_added=True)), Landed)
    assert sorted(git(root, "diff", "--name-only", "main", "loopr/oauth").splitlines()) == ["a.txt", "tests/new.py"]


def test_a_conflict_in_a_protected_file_is_none(tmp_path: Path) -> None:
    """A loop that changed what it may not change still lands when the plan changed the same lines."""
    root, _ = cheat(tmp_path)
    ground = ground_of(root)
    work(ground, "oauth.two.g1", {"tests/t.py": "assert 'better'\n"})
    assert isinstance(try_to_land(ground, "oauth.two.g1"), Landed)
    assert isinstance(try_to_land(ground, "oauth.one.g1", protect=TESTS), Landed)
    assert shows(root, "loopr/oauth", "tests/t.py") == "assert 'better'"
    assert shows(root, "loopr/oauth", "a.txt") == "done"


def test_a_protected_folder_replaced_by_a_file_comes_back(tmp_path: Path) -> None:
    """A file in the place of a protected folder makes way for it."""
    root = plant(tmp_path / "repo", FILES)
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    git(tree.folder, "rm", "-rq", "tests")
    write(tree.folder, {"tests": "gone\n", "a.txt": "done\n"})
    commits.commit_attempt(ground, "oauth.one.g1", 1, say("oauth.one.g1"))
    assert isinstance(try_to_land(ground, "oauth.one.g1", protect=TESTS), Landed)
    assert git(root, "diff", "--name-only", "main", "loopr/oauth") == "a.txt"


@pytest.mark.parametrize("pattern", ["tests", "tests/", "tests/*", "**/t.py", "*.py", ":/tests", "te?ts/t.py"])
def test_a_pattern_protects_in_every_way_that_git_reads_it(pattern: str, tmp_path: Path) -> None:
    """However a pattern is written, the file that a person would think of is protected, or git is not confused."""
    root = plant(tmp_path / "repo", FILES)
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"tests/t.py": "pass\n", "a.txt": "done\n"})
    assert isinstance(try_to_land(ground, "oauth.one.g1", protect=Protect((pattern,))), Landed)
    protected = pattern != ":/tests"  # a file of that odd name
    assert (shows(root, "loopr/oauth", "tests/t.py") == "assert 1") == protected
