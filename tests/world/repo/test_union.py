"""Merges that keep both sides of the files that the settings name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loopr.world.repo.merging import merge_trees
from tests.world.repo.grounds import git, ground_of, plant, write


def sides(root: Path, path: str) -> tuple[str, str]:
    """Let two branches add a line to the end of the same file, and return their tips."""
    write(root, {path: "first\n"})
    git(root, "add", ".")
    git(root, "commit", "-qm", "base")
    base = git(root, "rev-parse", "HEAD")
    tips = []
    for side in ("ours", "theirs"):
        git(root, "checkout", "-q", "--detach", base)
        write(root, {path: f"first\n{side}\n"})
        git(root, "commit", "-qam", side)
        tips.append(git(root, "rev-parse", "HEAD"))
    return tips[0], tips[1]


@pytest.mark.parametrize(
    ("pattern", "path", "merges"),
    [
        ("CHANGE*", "CHANGELOG.md", True),
        ("CHANGE*", "docs/CHANGES", True),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "other/a.md", False),
        ("two words.md", "two words.md", True),
        ('q"uote', 'q"uote', True),
        ("CHANGE*", "code.py", False),
    ],
)
def test_patterns_are_those_of_git(tmp_path: Path, pattern: str, path: str, merges: bool) -> None:
    """What fits a pattern keeps the lines of both sides, anything else is in conflict."""
    root = plant(tmp_path / "repo")
    ground = replace(ground_of(root), union=(pattern,))
    merged = merge_trees(ground.door, *sides(root, path))
    assert bool(merged.files) is not merges
    if merges:
        assert git(root, "show", f"{merged.tree}:{path}") == "first\nours\ntheirs"


def test_what_a_person_says_of_all_repositories_holds_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attributes of a person are read beside ours, and those of the repository before both."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write(tmp_path / "config", {"git/attributes": "notes merge=union"})
    root = plant(tmp_path / "repo")
    ground = replace(ground_of(root), union=("CHANGE*",))
    assert not merge_trees(ground.door, *sides(root, "notes")).files
    git(root, "checkout", "-q", "--detach", "HEAD~")
    write(root, {".gitattributes": "CHANGES -merge\n"})
    door = replace(ground.users_door, work_tree=root)
    assert merge_trees(door, *sides(root, "CHANGES")).files == ("CHANGES",)
