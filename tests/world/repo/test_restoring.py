"""What keeps a person's checkout from working is put back, and nothing that may be a person's own."""

from __future__ import annotations

import shutil
from pathlib import Path

from loopr.world.repo import watch
from loopr.world.repo.ground import Ground
from loopr.world.repo.restoring import put_back
from tests.world.repo.grounds import begin, git, ground_of, plant, take


def made(tmp_path: Path) -> tuple[Path, Ground, Path, watch.Sight]:
    """Make a repository with a worktree of ours, and look at what is shared."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1").folder
    return root, ground, tree, watch.look(ground)


def other(tree: Path) -> str:
    """Make a commit that is on no branch."""
    return git(tree, "commit-tree", "-m", "x", "HEAD^{tree}")


def test_what_a_branch_was_moved_to_is_kept(tmp_path: Path) -> None:
    """A commit of a person's whose program keeps no logs is taken off the branch like a loop's, but is not lost."""
    root, ground, tree, before = made(tmp_path)
    first, moved = git(root, "rev-parse", "main"), other(tree)
    (root / ".git" / "refs" / "heads" / "main").write_text(f"{moved}\n")
    kept = f"refs/loopr/backup/put-back/{moved[:12]}"
    assert put_back(ground, watch.changes(ground, before, watch.look(ground))) == {
        "refs/heads/main": f"is put back; what it was moved to is kept as {kept}"
    }
    assert git(root, "rev-parse", "main", kept).split() == [first, moved]


def test_a_branch_that_leads_nowhere_is_put_back(tmp_path: Path) -> None:
    """Where a branch was moved to what is no commit, there is nothing to keep."""
    root, ground, tree, before = made(tmp_path)
    first = git(root, "rev-parse", "main")
    (root / ".git" / "refs" / "heads" / "main").write_text("12" * 20 + "\n")
    assert put_back(ground, watch.changes(ground, before, watch.look(ground))) == {"refs/heads/main": "is put back"}
    assert git(root, "rev-parse", "main") == first


def test_a_branch_that_no_checkout_holds_is_put_back(tmp_path: Path) -> None:
    """No checkout explains its move, and none is wrong once it is back; what it was moved to is kept."""
    root, ground, tree, _ = made(tmp_path)
    git(root, "branch", "side")
    before, moved = watch.look(ground), other(tree)
    git(tree, "update-ref", "refs/heads/side", moved)
    (said,) = put_back(ground, watch.changes(ground, before, watch.look(ground))).values()
    assert said == f"is put back; what it was moved to is kept as refs/loopr/backup/put-back/{moved[:12]}"
    assert git(root, "rev-parse", "side") == before.refs["refs/heads/side"]


def test_a_checkout_that_keeps_no_log_is_left_alone(tmp_path: Path) -> None:
    """Where the checkout does not say that it has not moved, its branch may be where the person has brought it."""
    root, ground, tree, _ = made(tmp_path)
    git(root, "config", "core.logAllRefUpdates", "false")
    before = watch.look(ground)
    shutil.rmtree(root / ".git" / "logs")
    git(root, "commit", "--quiet", "--allow-empty", "--message=mine")
    mine, first = git(root, "rev-parse", "main"), before.refs["refs/heads/main"][:12]
    (said,) = put_back(ground, watch.changes(ground, before, watch.look(ground))).values()
    assert said == f"stays: `git -C {root} reset --keep {first}` takes it back"
    assert git(root, "rev-parse", "main") == mine


def test_what_has_changed_once_more_is_left_alone(tmp_path: Path) -> None:
    """Nothing is put back that is not as it was seen: somebody is at it."""
    root, ground, tree, before = made(tmp_path)
    git(tree, "config", "core.worktree", "/nowhere")
    moved = other(tree)
    git(tree, "update-ref", "refs/heads/main", moved)
    found = watch.changes(ground, before, watch.look(ground))
    last = git(tree, "commit-tree", "-m", "y", "HEAD^{tree}")
    git(tree, "update-ref", "refs/heads/main", last)
    git(tree, "config", "core.worktree", "/elsewhere")
    assert put_back(ground, found) == {}
    assert (git(tree, "rev-parse", "main"), git(tree, "config", "core.worktree")) == (last, "/elsewhere")


def test_a_setting_without_a_value_is_put_back(tmp_path: Path) -> None:
    """What is only named is on, as git reads it: a repository that became bare so is a checkout again."""
    root, ground, tree, before = made(tmp_path)
    with (root / ".git" / "config").open("a") as file:
        file.write("[core]\n\tbare\n")
    assert put_back(ground, watch.changes(ground, before, watch.look(ground))) == {"config core.bare": "is put back"}
    assert git(root, "config", "--get-all", "core.bare") == "false"


def test_what_cannot_be_put_back_is_told(tmp_path: Path) -> None:
    """A setting that somebody has locked stays as it is, and is told with what git says of it."""
    root, ground, tree, before = made(tmp_path)
    git(root, "config", "core.worktree", "/elsewhere")
    (root / ".git" / "config.lock").touch()
    found = watch.changes(ground, before, watch.look(ground))
    (said,) = put_back(ground, found).values()
    assert said.startswith("could not be put back: ")
    assert "config" in said
    assert "File exists" in said
    (root / ".git" / "config.lock").unlink()
    assert put_back(ground, found) == {"config core.worktree": "is put back"}


def test_a_log_that_is_broken_says_nothing(tmp_path: Path) -> None:
    """Logs whose last lines were lost with the power are no reason to stumble, nor to move anything."""
    root, ground, tree, before = made(tmp_path)
    moved = other(tree)
    for ref in ("refs/heads/main", "refs/stash"):
        git(tree, "update-ref", "--create-reflog", ref, moved)
        (root / ".git" / "logs" / ref).write_bytes(bytes(64))
    (root / ".git" / "logs" / "HEAD").write_bytes(bytes(64))
    (said,) = put_back(ground, watch.changes(ground, before, watch.look(ground))).values()
    assert said.startswith("stays: ")
    assert git(root, "rev-parse", "main") == moved


def test_a_history_that_is_cut_comes_back(tmp_path: Path) -> None:
    """What a loop names as the end of the history is taken back, unless what comes before was never there."""
    root, ground, tree, before = made(tmp_path)
    git(root, "commit", "--quiet", "--allow-empty", "--message=second")
    before, shallow = watch.look(ground), root / ".git" / "shallow"
    shallow.write_text(git(root, "rev-parse", "main") + "\n")
    found = watch.changes(ground, before, watch.look(ground))
    assert [each.name for each in found] == ["shallow"]
    assert put_back(ground, found)["shallow"].startswith("is put back; what it was is kept as")
    assert git(root, "rev-list", "--count", "main") == "2"
    body = git(root, "cat-file", "commit", "main").replace(git(root, "rev-parse", "main~1"), "12" * 20)
    (tmp_path / "body").write_text(f"{body}\n")
    fetched = git(root, "hash-object", "-t", "commit", "-w", "--literally", str(tmp_path / "body"))
    shallow.write_text(fetched + "\n")
    found = watch.changes(ground, before, watch.look(ground))
    assert put_back(ground, found) == {"shallow": "stays: commits before those that it names are not here"}
    assert shallow.exists()


def test_hooks_below_each_checkout_go(tmp_path: Path) -> None:
    """A path of hooks that is relative, as tools of package managers set it, takes a person's own hooks off."""
    root, ground, tree, before = made(tmp_path)
    git(tree, "config", "core.hooksPath", ".husky/_")
    (found,) = watch.changes(ground, before, watch.look(ground))
    assert (found.name, found.slip) == ("config core.hookspath", True)
    assert put_back(ground, [found]) == {found.name: "is put back"}
    assert git(root, "config", "core.hooksPath", check=False) == ""
