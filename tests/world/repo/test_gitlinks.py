"""A submodule that a loop moves: its commit must be where others can have it, and asking for that runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from loopr.world.repo.named import in_submodules
from loopr.world.repo.words import Candidate
from tests.world.repo.grounds import begin, build, commits, git, ground_of, plant, say, take, write

LOCAL = ("-c", "protocol.file.allow=always")
NAME = "oauth.one.g1"


def pushed(_: Path, lib: Path) -> None:
    """Publish it on a branch of the remote."""
    git(lib, "push", "-q", "origin", "HEAD:refs/heads/topic")


def in_store(root: Path, lib: Path) -> None:
    """Bring it into the store of the checkout."""
    git(root / ".git/modules/lib", *LOCAL, "fetch", "-q", str(lib), "HEAD")


def in_plain_checkout(root: Path, lib: Path) -> None:
    """Bring it into a submodule that has its git directory in its own folder, as older clones do."""
    (root / "lib/.git").unlink()
    (root / ".git/modules/lib").rename(root / "lib/.git")
    git(root, "config", "--file", "lib/.git/config", "--unset", "core.worktree")
    git(root / "lib", *LOCAL, "fetch", "-q", str(lib), "HEAD")


def nowhere(_: Path, __: Path) -> None:
    """Leave it in the worktree alone."""


def on_branch_alone(_: Path, lib: Path) -> None:
    """Call it something in the worktree."""
    git(lib, "branch", "topic")
    git(lib, "tag", "v2")


def planted(root: Path, lib: Path) -> None:
    """Let a program bring what the submodule lacks, and have it lack the commit."""
    for key in ("remote.origin.uploadpack", "core.sshCommand"):
        git(lib, "config", key, f"touch {root.parent}/ran;")
    git(lib, "config", "remote.origin.promisor", "true")
    git(lib, "config", "protocol.file.allow", "always")
    commit = git(lib, "rev-parse", "HEAD")
    store = Path(git(lib, "rev-parse", "--absolute-git-dir"))
    (store / "objects" / commit[:2] / commit[2:]).unlink()


@pytest.mark.parametrize(
    ("publish", "may_land"),
    [(nowhere, False), (on_branch_alone, False), (planted, False), (pushed, True), (in_store, True),
     (in_plain_checkout, True)],
)  # fmt: skip
def test_a_commit_of_a_submodule_lands_where_others_can_have_it(
    tmp_path: Path, publish: Callable[[Path, Path], None], may_land: bool
) -> None:
    """What is nowhere but in a worktree is refused with the lines that publish it and that go back."""
    library = plant(tmp_path / "library", {"lib.txt": "lib\n"})
    root = plant(tmp_path / "repo")
    git(root, *LOCAL, "submodule", "--quiet", "add", str(library), "lib")
    git(root, "commit", "-qm", "with a submodule")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    git(tree.folder, *LOCAL, "submodule", "--quiet", "update", "--init")
    lib = tree.folder / "lib"
    old = git(lib, "rev-parse", "HEAD")
    write(lib, {"lib.txt": "changed\n"})
    git(lib, "commit", "-qam", "only here")
    commit = git(lib, "rev-parse", "HEAD")[:12]
    publish(root, lib)
    assert commits.commit_attempt(ground, NAME, 1, say(NAME)).refused == ()
    candidate = build(ground, NAME)
    assert isinstance(candidate, Candidate)
    assert candidate.changed == ("lib",)
    assert not (tmp_path / "ran").exists()
    if may_land:
        assert candidate.refused == ()
        return
    (problem,) = candidate.refused
    assert problem.where == "lib"
    assert commit in problem.message
    assert f"`git -C lib push origin {commit}:refs/heads/BRANCH`" in problem.hint
    if publish is planted:
        return
    git(tree.folder, "-C", "lib", "checkout", "-q", old[:12])  # as the hint says
    commits.commit_attempt(ground, NAME, 2, say(NAME, 2))
    again = build(ground, NAME, 2)
    assert isinstance(again, Candidate)
    assert again.empty


def test_a_commit_that_was_only_written_into_the_index_is_refused(tmp_path: Path) -> None:
    """A made-up commit of a submodule that nobody has filled is to be had nowhere."""
    library = plant(tmp_path / "library", {"lib.txt": "lib\n"})
    root = plant(tmp_path / "repo")
    git(root, *LOCAL, "submodule", "--quiet", "add", str(library), "my lib")
    git(root, "commit", "-qm", "with a submodule")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    git(tree.folder, "update-index", "--cacheinfo", f"160000,{'12' * 20},my lib")
    git(tree.folder, "commit", "-qm", "moved")
    commits.commit_attempt(ground, NAME, 1, say(NAME))
    candidate = build(ground, NAME)
    assert isinstance(candidate, Candidate)
    assert "git -C 'my lib' push" in candidate.refused[0].hint
    assert in_submodules(ground, candidate.plan_tip, ["my lib/lib.txt", "a.txt", "src/b.py", "lib"]) == [
        "my lib/lib.txt"
    ]
