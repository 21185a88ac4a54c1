"""Repositories as people really have them: odd paths, bare, detached, unborn, in the middle of something, shared."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loopr.errors import SettingsError, WorldError
from loopr.world.repo import branches, commits, landing, leftovers, locks, returning, slots, worktrees
from loopr.world.repo.ground import Ground, open_ground
from loopr.world.repo.ref_locks import lock_file, lock_ref
from loopr.world.repo.refs import pack_refs, read_refs
from loopr.world.repo.words import Message, Start
from tests.world.repo.grounds import (
    PLAN,
    Landed,
    begin,
    build,
    digest,
    git,
    ground_of,
    land,
    log,
    plant,
    say,
    shows,
    stands,
    take,
    try_to_land,
    work,
    write,
)

NAME = "oauth.one.g1"


def whole_life(ground: Ground, root: Path) -> None:
    """Let one loop live from its worktree to its landing and release."""
    tree = work(ground, NAME, {"one.txt": "1\n"})
    assert git(tree.folder, "rev-parse", "--show-toplevel") == str(tree.folder)
    assert isinstance(try_to_land(ground, NAME), Landed)
    assert returning.release(ground, NAME).outcome == "pooled"
    assert log(root, f"{ground.prefix}{PLAN}")[-1] == f"Work of {NAME}"
    after = take(ground, "oauth.two.g1")
    assert (after.folder / "one.txt").read_text() == "1\n"


@pytest.mark.parametrize("name", ["with space", "ünïcode-目录", "quo'te\"s", "new\nline", "$HOME;x"])
def test_a_repository_with_an_odd_path(name: str, tmp_path: Path) -> None:
    """Spaces, other alphabets, quotes and line breaks in the path make no difference."""
    root = plant(tmp_path / name)
    before = digest(root)
    ground = ground_of(root)
    begin(ground)
    whole_life(ground, root)
    assert digest(root) == before


def test_a_bare_repository(tmp_path: Path) -> None:
    """A bare repository has worktrees and landings like any other, beside it."""
    seed = plant(tmp_path / "seed")
    root = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(seed), str(root))
    ground = open_ground(root, worktrees=tmp_path / "worktrees")
    assert ground.top is None
    assert branches.start_point(ground) == Start("main", git(root, "rev-parse", "main"))
    begin(ground)
    whole_life(ground, root)


def test_a_workspace_in_a_linked_worktree_and_in_a_subfolder(tmp_path: Path) -> None:
    """A workspace may be a folder inside a linked worktree of the user's; its specs/ are known where they are."""
    root = plant(tmp_path / "repo")
    git(root, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    inside = tmp_path / "linked" / "src"
    ground = open_ground(inside, worktrees=inside / "worktrees", artifacts=inside / "specs")
    assert branches.start_point(ground).branch == "topic"
    assert (ground.artifacts, ground.trees) == ("src/specs", "src/worktrees")
    begin(ground)
    whole_life(ground, root)
    assert git(tmp_path / "linked", "status", "--porcelain") == ""


def test_a_detached_head_begins_without_a_branch(tmp_path: Path) -> None:
    """A plan may begin at a commit that no branch is checked out for."""
    root = plant(tmp_path / "repo")
    git(root, "checkout", "-q", "--detach")
    ground = ground_of(root)
    assert branches.start_point(ground) == Start("", git(root, "rev-parse", "HEAD"))
    begin(ground)
    whole_life(ground, root)


def test_an_unborn_branch_says_what_to_do(tmp_path: Path) -> None:
    """A repository without a commit is exit 78, with the command that makes one."""
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    with pytest.raises(SettingsError, match="no commit yet") as caught:
        branches.start_point(ground_of(root))
    assert "git commit --allow-empty" in str(caught.value)


def test_a_base_branch_that_is_named_must_exist(tmp_path: Path) -> None:
    """The setting git.base names a branch, which is looked for by its full name."""
    ground = ground_of(plant(tmp_path / "repo"))
    assert branches.start_point(ground, "main").branch == "main"
    with pytest.raises(SettingsError, match="no branch called"):
        branches.start_point(ground, "--help")


def test_an_untrusted_owner_is_told_in_gits_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository that git refuses for its owner is exit 78 at once, not an attempt that fails later."""
    root = plant(tmp_path / "repo")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(SettingsError, match="dubious ownership"):
        ground_of(root)


def test_a_folder_without_a_repository_is_told(tmp_path: Path) -> None:
    """No repository around a folder is exit 78."""
    with pytest.raises(SettingsError, match="not a git repository"):
        ground_of(tmp_path)


def test_a_rebase_in_the_users_checkout_does_not_matter(tmp_path: Path) -> None:
    """While the user rebases, loops work and land; the rebase goes on as if nothing had been."""
    root = plant(tmp_path / "repo")
    git(root, "checkout", "-q", "-b", "topic")
    write(root, {"a.txt": "topic\n"})
    git(root, "commit", "-qam", "topic")
    git(root, "checkout", "-q", "main")
    write(root, {"a.txt": "main\n"})
    git(root, "commit", "-qam", "main")
    git(root, "checkout", "-q", "topic")
    git(root, "rebase", "main", check=False)
    assert (root / ".git" / "rebase-merge").exists()
    before = digest(root)
    ground = ground_of(root)
    begin(ground)
    whole_life(ground, root)
    assert digest(root) == before
    git(root, "rebase", "--abort")


def test_the_user_may_collect_garbage_prune_and_switch_meanwhile(tmp_path: Path) -> None:
    """Collecting garbage, git worktree prune and git checkout at any moment take nothing from a loop."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)

    def meanwhile() -> None:
        git(root, "gc", "-q", "--prune=now")
        git(root, "worktree", "prune", "--expire", "now")
        git(root, "checkout", "-q", "-B", "somewhere")
        git(root, "reflog", "expire", "--expire=now", "--all")

    tree = take(ground, NAME)
    meanwhile()
    write(tree.folder, {"one.txt": "1\n"})
    work(ground, NAME, {"two.txt": "2\n"})
    meanwhile()
    built = build(ground, NAME, 1)
    intent = landing.make_intent(ground, built, Message("landed"))  # type: ignore[arg-type]
    meanwhile()
    assert isinstance(land(ground, intent), Landed)
    returning.release(ground, NAME)
    meanwhile()
    assert take(ground, "oauth.two.g1").git_dir == tree.git_dir
    assert shows(root, "loopr/oauth", "one.txt") == "1"
    assert git(root, "fsck", "--connectivity-only") == ""


@pytest.mark.parametrize("how", ["folder", "git", "admin"])
def test_a_worktree_that_somebody_removed_is_made_anew(how: str, tmp_path: Path) -> None:
    """A removed worktree comes back from the loop's branch; files that are still there are kept and named."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})
    if how == "folder":
        shutil.rmtree(tree.folder)
    elif how == "git":
        git(root, "worktree", "remove", "-f", "-f", str(tree.folder))
    else:
        write(tree.folder, {"only-here.txt": "x\n"})
        shutil.rmtree(tree.git_dir)
    again = take(ground, NAME)
    assert again.fresh
    assert (again.folder / "one.txt").read_text() == "1\n"
    assert git(again.folder, "status", "--porcelain") == ""
    if how == "admin":
        assert (tree.folder / "only-here.txt").exists()
        kept = [each for each in leftovers.leftovers(ground, {NAME, PLAN}) if each.place == str(tree.folder)]
        assert [each.may_go for each in kept] == [False]


def test_a_deleted_branch_comes_back_at_the_engines_last_commit(tmp_path: Path) -> None:
    """A loop's branch that somebody deleted is made again from what the engine remembers."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})
    tip = git(root, "rev-parse", tree.branch)
    git(root, "update-ref", "-d", f"refs/heads/{tree.branch}")
    assert take(ground, NAME).tip == tip
    assert git(tree.folder, "status", "--porcelain") == ""


@pytest.mark.parametrize("refs", [["heads/loopr"], ["heads/loopr", "loopr/work"]])
def test_a_branch_that_goes_during_an_attempt_is_healed_or_told(refs: list[str], tmp_path: Path) -> None:
    """A loop's branch that is deleted before the commit comes back with it; without any mark of it that is said."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})
    write(tree.folder, {"two.txt": "2\n"})
    for ref in refs:
        git(root, "update-ref", "-d", f"refs/{ref}/{NAME}")
    if len(refs) == 1:
        assert commits.commit_attempt(ground, NAME, 2, say(NAME, 2)).moved
        assert log(root, tree.branch) == ["first", f"Work of {NAME}", f"Work of {NAME}"]
        git(root, "update-ref", "-d", f"refs/heads/loopr/{NAME}")
        assert isinstance(try_to_land(ground, NAME, 2), Landed)
        return
    with pytest.raises(WorldError, match="is gone"):
        commits.commit_attempt(ground, NAME, 2, say(NAME, 2))
    with pytest.raises(WorldError, match="is gone"):
        try_to_land(ground, NAME, 2)
    assert (tree.folder / "two.txt").exists()


def test_whatever_was_done_to_a_worktree_by_hand_the_next_attempt_begins(tmp_path: Path) -> None:
    """Unlocked and pruned, moved away, its lock and pointers gone: the same loop gets a worktree with its work."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})

    def unlock_and_prune() -> None:
        git(root, "worktree", "unlock", str(take(ground, NAME).folder))
        shutil.rmtree(take(ground, NAME).folder)
        git(root, "worktree", "prune", check=False)

    def move_away() -> None:
        git(root, "worktree", "move", "-f", "-f", str(take(ground, NAME).folder), str(tmp_path / "moved"))

    def delete_all_but_refs() -> None:
        shutil.rmtree(root / ".git" / "worktrees")
        shutil.rmtree(root / "worktrees")

    def collect_garbage() -> None:
        git(root, "gc", "-q", "--prune=now", "--aggressive")

    for harm in (unlock_and_prune, move_away, delete_all_but_refs, collect_garbage):
        harm()
        again = take(ground, NAME)
        assert (again.folder / "one.txt").read_text() == "1\n"
        assert git(again.folder, "status", "--porcelain") == ""
        assert again.tip == git(root, "rev-parse", tree.branch)
    assert isinstance(try_to_land(ground, NAME), Landed)


def test_a_worktree_says_where_the_attempt_begins_and_what_it_is_based_on(tmp_path: Path) -> None:
    """The base of an attempt is the newest commit of the plan that its worktree contains; its tip has its work."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    first = begin(ground)
    fresh = take(ground, NAME)
    assert (fresh.base, fresh.tip) == (first, first)
    work(ground, NAME, {"one.txt": "1\n"})
    work(ground, "oauth.two.g1", {"two.txt": "2\n"})
    landed = try_to_land(ground, "oauth.two.g1")
    again = take(ground, NAME)
    assert (again.base, again.tip) == (first, git(root, "rev-parse", fresh.branch))
    taken = landing.take_over(ground, NAME, stands(ground), 1)
    assert isinstance(landed, Landed)
    after = take(ground, NAME)
    assert (after.base, after.tip) == (landed.commit, taken.tip)


def test_a_worktree_that_the_user_locked_is_kept(tmp_path: Path) -> None:
    """A worktree with a lock of the user's goes neither to the pool nor to the gc."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})
    git(root, "worktree", "unlock", str(tree.folder))
    git(root, "worktree", "lock", "--reason", "I look at it", str(tree.folder))
    released = returning.release(ground, NAME)
    assert released.outcome == "kept"
    assert "I look at it" in released.why
    (left,) = [each for each in leftovers.leftovers(ground, set()) if each.kind == "worktree"]
    assert (left.may_go, left.why) == (False, "it is locked: I look at it")


def test_a_worktree_that_is_set_aside_is_never_used_again(tmp_path: Path) -> None:
    """After a lost host the loop gets a fresh folder; a late commit in the old one moves another branch."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    old = work(ground, NAME, {"one.txt": "1\n"})
    write(old.folder, {"half.txt": "half\n"})
    aside = returning.set_aside(ground, NAME, "its host was lost")
    new = take(ground, NAME)
    assert new.folder != old.folder
    assert (new.folder / "one.txt").exists()
    git(old.folder, "add", "-A")
    git(old.folder, "commit", "-qm", "late")
    assert log(root, aside)[-1] == "late"
    assert log(root, new.branch)[-1] == f"Work of {NAME}"
    kept = [each for each in leftovers.leftovers(ground, {NAME, PLAN}) if each.place == str(old.folder)]
    assert [each.may_go for each in kept] == [True]  # its commits are on a branch of their own
    assert "its host was lost" in kept[0].why


def test_ignored_files_that_are_asked_for_are_copied(tmp_path: Path) -> None:
    """.worktreeinclude brings ignored files into a new worktree, and nothing that git would commit."""
    root = plant(tmp_path / "repo")
    write(root, {".gitignore": ".env\nlocal/\n", ".worktreeinclude": ".env\nlocal/*.cfg\nplain.txt\n"})
    write(root, {".env": "TOKEN=1\n", "local/a.cfg": "a\n", "local/b.txt": "b\n", "plain.txt": "p\n"})
    git(root, "add", ".gitignore", ".worktreeinclude")
    git(root, "commit", "-qm", "ignore")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    assert sorted(tree.copied) == [".env", "local/a.cfg"]
    assert (tree.folder / ".env").read_text() == "TOKEN=1\n"
    assert not (tree.folder / "plain.txt").exists()
    assert git(tree.folder, "status", "--porcelain") == ""


def test_our_folders_are_ignored_without_touching_gitignore(tmp_path: Path) -> None:
    """worktrees/ and .loopr/ are ignored through the list that only this clone has."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    write(tree.folder, {".loopr/output.md": "o\n"})
    assert git(root, "status", "--porcelain") == ""
    assert git(tree.folder, "status", "--porcelain") == ""
    assert not (root / ".gitignore").exists()


def test_a_command_finds_no_checkout_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the environment of a command, a worktree without .git leads nowhere, not to the user's checkout."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    set_to, unset = worktrees.command_environment(ground)
    for key, value in set_to.items():
        monkeypatch.setenv(key, value)
    for key in unset:
        monkeypatch.delenv(key, raising=False)
    assert git(tree.folder, "rev-parse", "--show-toplevel") == str(tree.folder)
    (tree.folder / ".git").unlink()
    assert git(tree.folder, "rev-parse", "--show-toplevel", check=False) == ""
    assert "GIT_DIR" in unset


def test_refs_are_packed_past_a_thousand(tmp_path: Path) -> None:
    """Many refs are packed into one file, and are still where they were."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    tip = begin(ground)
    folder = root / ".git" / "refs" / "loopr" / "landed"
    folder.mkdir(parents=True)
    for number in range(30):
        (folder / f"n{number}.g1").write_text(tip + "\n")
    assert not pack_refs(ground)
    assert pack_refs(ground, limit=20)
    assert list(folder.glob("*")) == []
    assert len(read_refs(ground.door, "refs/loopr/landed/")) == 30
    assert read_refs(ground.door, "refs/loopr/landed/n3.g1", "refs/loopr/landed/none") == {
        "refs/loopr/landed/n3.g1": tip
    }
    git(root, "update-ref", "refs/loopr/landed/n3.g1", git(root, "commit-tree", "-m", "x", f"{tip}^{{tree}}"))
    assert read_refs(ground.door, "refs/loopr/landed/n3.g1") != {"refs/loopr/landed/n3.g1": tip}


def test_stale_lock_files_below_our_refs_are_removed(tmp_path: Path) -> None:
    """A lock that a killed git left on a ref of ours goes once it is old; those on the user's refs stay."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    ours = root / ".git" / "refs" / "heads" / "loopr" / "oauth.lock"
    theirs = root / ".git" / "refs" / "heads" / "main.lock"
    for path in (ours, theirs):
        path.touch()
    assert leftovers.remove_stale_locks(ground) == []
    assert locks.remove_stale([ours.parent], older_secs=-1) == [ours]
    assert theirs.exists()


def test_an_old_plan_branch_prefix_can_be_another(tmp_path: Path) -> None:
    """The setting git.branch_prefix names plan and loop branches."""
    root = plant(tmp_path / "repo")
    git(root, "branch", "loopr")
    ground = ground_of(root, prefix="agents/l-")
    begin(ground)
    whole_life(ground, root)
    assert git(root, "branch", "--list", "agents/l-oauth")
    assert len(slots.load(ground)) == 1


def test_what_was_left_locked_is_free_once_an_engine_begins(tmp_path: Path) -> None:
    """Refs that a killed engine had locked do not stay so where the next one has none to move: a person may want to."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    for ref in ("packed-refs", "refs/heads/loopr/oauth"):
        assert lock_ref(ground.common, ref, "")
    assert not pack_refs(ground)
    assert not any(lock_file(ground.common, ref).exists() for ref in ("packed-refs", "refs/heads/loopr/oauth"))
    git(root, "pack-refs", "--all")
