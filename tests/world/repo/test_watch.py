"""What all worktrees share is watched: a change is told with its name, and with whether a person's checkout made it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from loopr.world.repo import watch
from tests.world.repo.grounds import begin, git, ground_of, plant, take, work, write


def _config(root: Path, tree: Path) -> None:
    git(tree, "config", "core.hooksPath", "hooks")


def _worktree(root: Path, tree: Path) -> None:
    git(tree, "config", "core.worktree", str(tree))


def _hook(root: Path, tree: Path) -> None:
    write(root / ".git" / "hooks", {"pre-push": "#!/bin/sh\n"})


def _info(root: Path, tree: Path) -> None:
    write(root / ".git" / "info", {"attributes": "* -text\n"})


def _stash(root: Path, tree: Path) -> None:
    write(tree, {"a.txt": "stashed\n"})
    git(tree, "stash")


def _replace(root: Path, tree: Path) -> None:
    write(tree, {"a.txt": "other\n"})
    git(tree, "commit", "-qam", "other")
    git(tree, "replace", "main", "HEAD")


def _ref(root: Path, tree: Path) -> None:
    git(tree, "update-ref", "refs/heads/main", git(tree, "commit-tree", "-m", "x", "HEAD^{tree}"))


def _branch(root: Path, tree: Path) -> None:
    git(tree, "branch", "feature")


def _tag(root: Path, tree: Path) -> None:
    git(tree, "tag", "v1")


CASES: dict[str, tuple[Callable[[Path, Path], None], str, str]] = {
    "config": (_config, "config", "config"),
    "core.worktree": (_worktree, "config", "config"),
    "hook": (_hook, "hooks", "hooks/pre-push"),
    "info": (_info, "info", "info/attributes"),
    "stash": (_stash, "stash", "refs/stash"),
    "replace": (_replace, "replace", "refs/replace/"),
    "ref": (_ref, "ref", "refs/heads/main"),
    "branch": (_branch, "ref", "refs/heads/feature"),
    "tag": (_tag, "ref", "refs/tags/v1"),
}


@pytest.mark.parametrize("case", list(CASES))
def test_each_shared_thing_that_a_loop_changes_is_told(case: str, tmp_path: Path) -> None:
    """Settings, hooks, info, stash, replacements and other people's refs: each change is named, and only it."""
    change, what, name = CASES[case]
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    before = watch.look(ground)
    assert watch.changes(ground, before, watch.look(ground)) == []
    change(root, tree.folder)
    (found,) = watch.changes(ground, before, watch.look(ground))
    assert (found.what, found.by_person) == (what, False)
    assert found.name.startswith(name)


def test_what_loopr_and_loops_do_all_day_is_no_change(tmp_path: Path) -> None:
    """Commits, landings, new plans, fetched remotes and registered submodules are not told."""
    root = plant(tmp_path / "repo")
    library = plant(tmp_path / "library")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    before = watch.look(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    begin(ground, "other")
    git(tree.folder, "fetch", "-q", str(library), "main:refs/remotes/library/main")
    git(tree.folder, "config", "submodule.lib.url", str(library))
    git(tree.folder, "config", "branch.loopr/oauth.one.g1.remote", "origin")
    assert watch.changes(ground, before, watch.look(ground)) == []


def test_a_move_that_the_users_checkout_made_is_a_persons(tmp_path: Path) -> None:
    """The user may commit while loops run: the move of the branch is in the log of the checkout that has it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    before = watch.look(ground)
    git(root, "commit", "-q", "--allow-empty", "-m", "by the user")
    git(root, "checkout", "-q", "-b", "topic")
    found = watch.changes(ground, before, watch.look(ground))
    assert {change.name: change.by_person for change in found} == {"refs/heads/main": True, "refs/heads/topic": True}


def test_a_stash_that_the_users_checkout_made_is_a_persons(tmp_path: Path) -> None:
    """The user may stash while loops run; what a loop has stashed, or taken from the user's, is none of theirs."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree, texts = take(ground, "oauth.one.g1"), count()

    def by_person(deed: Callable[[], object]) -> bool:
        """Do something to the stash, and say whether it is taken for a person's doing."""
        before = watch.look(ground)
        deed()
        (found,) = watch.changes(ground, before, watch.look(ground))
        assert found.what == "stash"
        return found.by_person

    def stash(folder: Path, *words: str) -> None:
        write(folder, {"a.txt": f"{next(texts)}\n"})
        git(folder, "stash", "push", *words)

    assert by_person(lambda: stash(root))
    assert by_person(lambda: (stash(root, "-m", "mine"), stash(root)))
    assert not by_person(lambda: stash(tree.folder))
    assert not by_person(lambda: (stash(tree.folder), stash(root)))
    assert not by_person(lambda: git(tree.folder, "stash", "drop"))
