"""What all worktrees share is watched: a change is told with its name, and with whether a person's checkout made it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from loopr.core.observations import HarmSeen
from loopr.driving import sentry
from loopr.driving.sentry import NOTHING, Changed, Sentry
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


def test_what_comes_while_something_is_put_back_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes between two looks is told and taken back, too: else it would be right from then on."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1").folder
    watching, real = Sentry(ground), sentry.put_back
    watching.begin("one")
    _worktree(root, tree)

    def slowly(*given: Any) -> Any:
        _hook(root, tree)
        return real(*given)

    monkeypatch.setattr(sentry, "put_back", slowly)
    setting, hook = watching.changed("one").touched
    assert setting == "config core.worktree (is put back)"
    assert hook.startswith("hooks/pre-push (is put back; ")
    assert not (root / ".git/hooks/pre-push").exists()


def test_what_is_planted_again_while_it_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same setting that comes again at each look never counts as right, and goes once nothing sets it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1").folder
    watching, real, times = Sentry(ground), sentry.put_back, [1]
    watching.begin("one")
    _worktree(root, tree)

    def beaten(*given: Any) -> Any:
        done = real(*given)
        if times[0]:
            times[0] -= 1
            _worktree(root, tree)
        return done

    monkeypatch.setattr(sentry, "put_back", beaten)
    assert watching.changed("two").news
    assert not git(root, "config", "--default", "", "core.worktree")
    times[0] = 2 * sentry.MOST_LOOKS
    _worktree(root, tree)
    assert watching.changed("three").news
    times[0] = 0
    assert watching.changed("four").news
    assert not git(root, "config", "--default", "", "core.worktree")


def test_a_change_that_hides_its_time_is_seen(tmp_path: Path) -> None:
    """A file that is as long as before and says that it is as old has been changed all the same."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    watching, config = Sentry(ground), root / ".git" / "config"
    git(root, "config", "core.abbrev", "10")
    watching.begin("one")
    facts = config.stat()
    config.write_text(config.read_text().replace("abbrev = 10", "abbrev = 11"))
    os.utime(config, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert watching.changed("one").grown == ("config core.abbrev (is put back)",)


CASES: dict[str, tuple[Callable[[Path, Path], None], str, str]] = {
    "config": (_config, "config", "config core.hookspath"),
    "core.worktree": (_worktree, "config", "config core.worktree"),
    "hook": (_hook, "hooks", "hooks/pre-push"),
    "info": (_info, "info", "info/attributes"),
    "stash": (_stash, "stash", "refs/stash"),
    "replace": (_replace, "replace", "refs/replace/"),
    "ref": (_ref, "ref", "refs/heads/main"),
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
    assert (found.what, found.by_person, found.harmless) == (what, False, False)
    assert found.name.startswith(name)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository with a remote, a tag, a branch and a note of a person's, in which a plan has begun."""
    folder = tmp_path_factory.mktemp("model")
    root, origin = plant(folder / "repo"), plant(folder / "origin")
    git(root, "remote", "add", "origin", "../origin")
    git(root, "fetch", "-q", "origin")
    git(root, "remote", "set-head", "origin", "main")
    git(origin, "tag", "v2")
    git(root, "tag", "old")
    git(root, "branch", "side/one")
    git(root, "notes", "add", "-m", "seen")
    begin(ground_of(root))
    return folder


MAY_STAY = [
    "git tag v1",
    "git tag -a -m 'the first' v1",
    "git tag 20261119",
    "git tag side/two",
    "git fetch -q --tags origin",
    "git branch feature",
    "git branch notes",
    "git branch made-good",
    "git branch side/two",
    "git branch --track topic origin/main",
    "git branch -u origin/main side/one",
    "git push -q -u origin side/one",
    "git config branch.main.vscode-merge-base origin/main",
    "git config branch.main.description 'all of it'",
    "git config branch.main.remote .",
    "git config user.name Somebody; git config user.email somebody@example.com",
    "git config gui.geometry 1x1",
    "git config color.ui never",
]
MAY_NOT = [
    "git tag main",  # `git merge main` would take the tag
    "git tag side/one",
    "git update-ref refs/main HEAD",
    "git tag loopr/oauth",
    "git tag loopr/other",  # a plan that begins later
    "git tag origin",  # as origin/HEAD is called
    "git tag origin/main",
    "git tag ORIG_HEAD",
    "git tag $(git rev-parse --short HEAD)",
    "git branch old",  # `git checkout old` would take the branch
    "git tag v1-2-g$(git rev-parse --short HEAD)",
    "git branch origin/main",
    "git branch tags/old",  # `git checkout tags/old` would take the branch
    "git branch heads/main",
    "git branch remotes/origin/main",
    "git branch refs/tags/old",
    "git tag fresh; git branch fresh",
    "git symbolic-ref refs/heads/alias refs/heads/main",
    "mkdir .git/refs/heads/gone && echo 1234567890123456789012345678901234567890 > .git/refs/heads/gone/x",
    "git rev-parse HEAD^{tree} > .git/refs/heads/tree",
    "echo main > .git/refs/heads/broken",
    "git pack-refs --all; rm -rf .git/refs/heads/side; mkdir -p .git/refs/heads/side/one; "
    "git rev-parse HEAD > .git/refs/heads/side/one/more",  # side/one could not be moved any more
    "git pack-refs --all; rm -rf .git/refs/heads/loopr; git rev-parse HEAD > .git/refs/heads/loopr",
    "git tag -f old HEAD^{tree}",
    "git tag -d old",
    "git branch -f side/one $(git commit-tree -m x HEAD^{tree})",
    "git branch -D side/one",
    "git branch -m side/one side/two",
    "git notes add -f -m 'seen by nobody'",
    "git notes --ref other add -m more",
    "git notes remove",
    "git replace HEAD $(git commit-tree -m x HEAD^{tree})",
    "git config core.fsmonitor ./watch",
    "printf '[core]\\n\\tsparseCheckout\\n' >> .git/config",  # a key alone is a yes
    "git config alias.st '!touch stolen'",
    "git config include.path ../settings",
    "git config filter.lfs.clean cat",
    "git config merge.ours.driver true",
    "git config credential.helper store",
    "git config url.ssh://elsewhere/.insteadOf https://",
    "git config remote.origin.url elsewhere",
    "git config remote.origin.pushurl elsewhere",
    "git config http.proxy elsewhere",
    "git config user.signingKey other",
    "git config branch.main.remote ssh://elsewhere/x",
    "git config branch.main.pushRemote elsewhere",
    "git config branch.main.mergeOptions '--strategy other'",
    "git config branch.loopr/oauth.mergeOptions '--strategy other'",
    "git config branch.autoSetupMerge false",
    "git config submodule.lib.update '!touch stolen'",
    "git config --unset core.bare",
    "echo '[' >> .git/config",
]


def _seen(model: Path, folder: Path, deed: str) -> Changed:
    """Do something to a copy of the repository while an attempt is at work, and return what was seen of it."""
    shutil.copytree(model, folder, dirs_exist_ok=True)
    sentry = Sentry(ground_of(folder / "repo"))
    sentry.begin("run")
    subprocess.run(["sh", "-ec", deed], cwd=folder / "repo", check=True, capture_output=True)
    return sentry.changed("run")


@pytest.mark.parametrize("deed", MAY_STAY)
def test_what_is_only_added_or_only_describes_may_stay(deed: str, model: Path, tmp_path: Path) -> None:
    """A person's ordinary work with git is seen with its name, and harms nobody."""
    found = _seen(model, tmp_path, deed)
    assert found.grown and not found.touched, found


@pytest.mark.parametrize("deed", MAY_NOT)
def test_what_changes_somebody_elses_git_may_not_stay(deed: str, model: Path, tmp_path: Path) -> None:
    """What moves or hides what was there, stands in its way, or is obeyed by somebody's git is seen as a harm."""
    assert _seen(model, tmp_path, deed).touched


def test_only_one_that_was_alone_is_to_blame(model: Path, tmp_path: Path) -> None:
    """Of several at work between two looks none is to blame, and what was seen is told once with all their names."""
    shutil.copytree(model, tmp_path, dirs_exist_ok=True)
    sentry = Sentry(ground_of(tmp_path / "repo"))
    for run in ("first#1", "second#2", "unborn#1"):
        sentry.begin(run)
    sentry.forget("unborn#1")
    git(tmp_path / "repo", "config", "alias.st", "status")
    git(tmp_path / "repo", "tag", "v9")
    sentry.begin("late#1")
    git(tmp_path / "repo", "config", "alias.lg", "log")
    told = {run: sentry.changed(run) for run in ("first#1", "late#1", "second#2")}
    assert [each.touched for each in told.values()] == [(), (), ()]
    assert [(each.names, each.during) for each in told["first#1"].news] == [
        (("config alias.st (is put back)",), ("first", "second")),
        (("config alias.lg (is put back)",), ("first", "late", "second")),
    ]
    assert [each.grown for each in told.values()] == [("refs/tags/v9",), (), ()], "what harms nobody is told once"
    sentry.begin("next#1")
    assert sentry.changed("next#1") == NOTHING
    sentry.begin("alone#1")
    git(tmp_path / "repo", "config", "alias.st", "status")
    assert sentry.changed("alone#1").touched == ("config alias.st (is put back)",)


def test_what_was_not_told_yet_is_told_by_the_next_engine(model: Path, tmp_path: Path) -> None:
    """What an engine saw before it was killed is told by the next one, and what that sees counts as something newer."""
    shutil.copytree(model, tmp_path, dirs_exist_ok=True)
    ground = ground_of(tmp_path / "repo")
    killed, after = Sentry(ground, clock=lambda: 5), Sentry(ground, clock=lambda: 7)
    for run in ("first#1", "second#2"):
        killed.begin(run)
    git(tmp_path / "repo", "config", "alias.st", "status")
    killed.begin("late#1")
    after.resume(["first#1", "second#2", "late#1"])
    (told,) = after.changed("other#1").news
    git(tmp_path / "repo", "config", "alias.lg", "log")
    (more,) = after.changed("another#1").news
    assert isinstance(told, HarmSeen) and isinstance(more, HarmSeen)
    assert (told.names, told.during) == (("config alias.st (is put back)",), ("first", "second"))
    assert more.number > told.number


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
    moved = {change.name: change.by_person for change in found if change.what == "ref"}
    assert moved == {"refs/heads/main": True, "refs/heads/topic": True}
    (switched,) = (change for change in found if change.what == "head")
    assert (switched.name, switched.before, switched.after) == (str(root), "refs/heads/main", "refs/heads/topic")


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


def test_a_homecoming_is_told_as_no_move(tmp_path: Path) -> None:
    """A branch that `land` has moved was moved as a person wished: it is known for that."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    watching = Sentry(ground)
    watching.begin("one#1")
    commit = git(root, "commit-tree", "-p", "main", "-m", "home", "HEAD^{tree}")
    watch.note_move(ground, "refs/heads/main", commit)
    git(root, "merge", "-q", "--ff-only", commit)
    assert watching.changed("one#1") == NOTHING
    watching.begin("two#1")
    git(root, "commit", "-q", "--allow-empty", "-m", "mine")
    (told,) = watching.changed("two#1").news
    assert (told.branch, told.explained) == ("main", True)
