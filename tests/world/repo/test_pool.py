"""The pool: whatever a command did to its worktree, the next loop gets a pristine one, and the user's is as it was."""

from __future__ import annotations

import os
import random
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from loopr.errors import WorldError
from loopr.world.repo import commits, returning, slots, worktrees
from loopr.world.repo.ground import Ground
from loopr.world.repo.words import Worktree
from tests.world.repo.grounds import begin, digest, git, ground_of, plant, say, shows, take, work, write

Poison = Callable[[Worktree], None]


def _flags(tree: Worktree) -> None:
    git(tree.folder, "update-index", "--skip-worktree", "a.txt")
    git(tree.folder, "update-index", "--assume-unchanged", "src/b.py")
    (tree.folder / "a.txt").write_text("hidden\n")
    (tree.folder / "src/b.py").write_text("hidden\n")


def _sparse(tree: Worktree) -> None:
    git(tree.folder, "sparse-checkout", "set", "src")


def _rebase(tree: Worktree) -> None:
    git(tree.folder, "checkout", "-q", "-b", "side", "main")
    write(tree.folder, {"a.txt": "side\n"})
    git(tree.folder, "commit", "-qam", "side")
    git(tree.folder, "checkout", "-q", tree.branch)
    write(tree.folder, {"a.txt": "mine\n"})
    git(tree.folder, "commit", "-qam", "mine")
    git(tree.folder, "rebase", "side", check=False)
    assert (tree.git_dir / "rebase-merge").exists()


def _merge(tree: Worktree) -> None:
    git(tree.folder, "checkout", "-q", "-b", "other", "main")
    write(tree.folder, {"a.txt": "other\n"})
    git(tree.folder, "commit", "-qam", "other")
    git(tree.folder, "checkout", "-q", tree.branch)
    write(tree.folder, {"a.txt": "mine\n"})
    git(tree.folder, "commit", "-qam", "mine")
    git(tree.folder, "merge", "other", check=False)


def _worktree_ref(tree: Worktree) -> None:
    git(tree.folder, "update-ref", "refs/worktree/mine", "HEAD")
    git(tree.folder, "bisect", "start")


def _other_branch(tree: Worktree) -> None:
    git(tree.folder, "checkout", "-q", "-b", "elsewhere")


def _detached(tree: Worktree) -> None:
    git(tree.folder, "checkout", "-q", "--detach")


def _orphan(tree: Worktree) -> None:
    git(tree.folder, "checkout", "-q", "--orphan", "nothing")


def _no_dot_git(tree: Worktree) -> None:
    (tree.folder / ".git").unlink()


def _wrong_dot_git(tree: Worktree) -> None:
    (tree.folder / ".git").write_text("gitdir: ../../.git\n")


def _broken_head(tree: Worktree) -> None:
    (tree.git_dir / "HEAD").write_text("nonsense\n")


def _broken_index(tree: Worktree) -> None:
    (tree.git_dir / "index").write_bytes(b"DIRC nonsense")
    (tree.git_dir / "loopr-index").write_bytes(b"nonsense")


def _index_lock(tree: Worktree) -> None:
    (tree.git_dir / "index.lock").write_bytes(b"")


def _intent_to_add(tree: Worktree) -> None:
    write(tree.folder, {"new.txt": "new\n", "staged.txt": "staged\n"})
    git(tree.folder, "add", "-N", "new.txt")
    git(tree.folder, "add", "staged.txt")
    git(tree.folder, "rm", "-q", "--cached", "a.txt")


def _untracked(tree: Worktree) -> None:
    write(tree.folder, {".gitignore": "build/\n", "build/x/y.o": "o", "deep/er/z.txt": "z", "line\nbreak.txt": "n"})
    (tree.folder / "empty" / "dir").mkdir(parents=True)


def _nested(tree: Worktree) -> None:
    write(tree.folder, {".gitignore": "vendor/\n"})
    (tree.folder / "vendor" / "lib").mkdir(parents=True)
    git(tree.folder / "vendor" / "lib", "init", "-q")
    write(tree.folder, {"vendor/lib/f": "f"})


def _deleted(tree: Worktree) -> None:
    (tree.folder / "a.txt").unlink()
    (tree.folder / "src" / "b.py").unlink()
    (tree.folder / "src").rmdir()
    (tree.folder / "src").write_text("a file where a folder was")


def _links_and_modes(tree: Worktree) -> None:
    (tree.folder / "a.txt").chmod(0o755)
    (tree.folder / "src" / "b.py").unlink()
    (tree.folder / "src" / "b.py").symlink_to("../a.txt")


def _odd_files(tree: Worktree) -> None:
    os.mkfifo(tree.folder / "pipe")
    here = Path.cwd()
    os.chdir(tree.folder)
    try:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind("sock")
    finally:
        os.chdir(here)


def _pointers(tree: Worktree) -> None:
    (tree.git_dir / "gitdir").write_text("/nowhere/.git\n")
    (tree.git_dir / "commondir").write_text("/nowhere\n")
    (tree.git_dir / "locked").unlink()


def _worktree_config(tree: Worktree) -> None:
    (tree.git_dir / "config.worktree").write_text("[core]\n\tworktree = /nowhere\n\tsparseCheckout = true\n")
    (tree.git_dir / "info").mkdir()
    (tree.git_dir / "info" / "sparse-checkout").write_text("nothing\n")


def _cherry_pick(tree: Worktree) -> None:
    (tree.git_dir / "CHERRY_PICK_HEAD").write_text("0" * 40 + "\n")
    (tree.git_dir / "sequencer").mkdir()
    (tree.git_dir / "sequencer" / "todo").write_text("pick\n")


def _split_index(tree: Worktree) -> None:
    git(tree.folder, "update-index", "--split-index")
    git(tree.folder, "update-index", "--untracked-cache")
    git(tree.folder, "update-index", "--index-version", "4")


def _attributes(tree: Worktree) -> None:
    write(tree.folder, {".gitattributes": "*.txt text eol=crlf\n"})
    git(tree.folder, "add", ".gitattributes")
    (tree.folder / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    _looks_old(tree.folder / "a.txt")


def _line_ends_of_its_own(tree: Worktree) -> None:
    git(tree.folder, "config", "extensions.worktreeConfig", "true")
    git(tree.folder, "config", "--worktree", "core.autocrlf", "true")
    _check_out_anew(tree)


def _looks_old(file: Path) -> None:
    """Git looks only once at what is older than its index."""
    os.utime(file, (1_600_000_000, 1_600_000_000))


def _check_out_anew(tree: Worktree) -> None:
    (tree.folder / "a.txt").unlink()
    git(tree.folder, "checkout", "-q", "--", "a.txt")
    assert b"\r\n" in (tree.folder / "a.txt").read_bytes()
    _looks_old(tree.folder / "a.txt")


POISONS: list[Poison] = [
    *(_flags, _sparse, _rebase, _merge, _worktree_ref, _other_branch, _detached, _orphan, _no_dot_git),
    *(_wrong_dot_git, _broken_head, _broken_index, _index_lock, _intent_to_add, _untracked, _nested, _deleted),
    *(_links_and_modes, _odd_files, _pointers, _worktree_config, _cherry_pick, _split_index, _attributes),
    _line_ends_of_its_own,
]


def pristine(folder: Path, git_dir: Path) -> None:
    """Assert that a worktree is as if it were new."""
    assert git(folder, "status", "--porcelain", "--ignored") == ""
    assert sorted(path.name for path in folder.iterdir()) == [".git", "a.txt", "src", "tests"]
    assert [path.name for path in (folder / "src").iterdir()] == ["b.py"]
    assert (folder / "a.txt").read_bytes() == b"one\ntwo\nthree\n"
    assert not (folder / "src" / "b.py").is_symlink()
    flags = git(folder, "ls-files", "-v", "-f").splitlines()
    assert all(line.startswith("H ") for line in flags)
    known = {
        "HEAD",
        "ORIG_HEAD",
        "commondir",
        "gitdir",
        "index",
        "locked",
        "loopr-index",
        "loopr-index-at",
        "loopr-rules",
    }
    assert {path.name for path in git_dir.iterdir()} <= known
    assert git(folder, "rev-parse", "--show-toplevel") == str(folder)


@pytest.mark.parametrize("poison", POISONS, ids=lambda each: each.__name__.strip("_"))
def test_a_poisoned_worktree_comes_back_pristine(poison: Poison, tmp_path: Path) -> None:
    """Whatever was done to a worktree, its attempt can be committed, and the next loop gets it as if new."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    before = digest(root)
    poison(tree)
    commits.commit_attempt(ground, "oauth.one.g1", 1, say("oauth.one.g1"))
    assert git(tree.folder, "symbolic-ref", "HEAD") == f"refs/heads/{tree.branch}"
    released = returning.release(ground, "oauth.one.g1")
    assert released.outcome == "pooled", released.why
    for branch in ("side", "other", "elsewhere"):
        git(root, "branch", "-D", branch, check=False)
    after = take(ground, "oauth.two.g1")
    assert after.git_dir == tree.git_dir
    pristine(after.folder, after.git_dir)
    if poison in (_sparse, _line_ends_of_its_own):  # that is written into the settings all worktrees share
        git(root, "config", "--unset", "extensions.worktreeConfig", check=False)
        git(root, "config", "core.repositoryformatversion", "0")
    assert digest(root) == before


def test_a_new_worktree_that_git_cannot_fill_is_taken_away(tmp_path: Path) -> None:
    """Where git itself fails, what it says is told, no folder is left and none is tried in its place."""
    root = plant(tmp_path / "repo", {"a.txt": "a\n", "big.bin": "b\n"})
    write(root, {".gitattributes": "*.bin filter=big\n"})
    git(root, "add", ".gitattributes")
    git(root, "commit", "-qm", "big files")
    git(root, "config", "filter.big.smudge", "no-such-filter")
    git(root, "config", "filter.big.required", "true")
    ground = ground_of(root)
    begin(ground)
    with pytest.raises(WorldError, match="smudge filter big failed"):
        take(ground, "oauth.one.g1")
    assert slots.load(ground) == {}
    assert [path for path in ground.worktrees.rglob("*") if path.is_file()] == []
    assert len(git(root, "worktree", "list").splitlines()) == 1
    git(root, "config", "--unset", "filter.big.required")
    assert (take(ground, "oauth.one.g1").folder / "big.bin").read_text() == "b\n"


def test_all_poisons_one_after_the_other_end_pristine(tmp_path: Path) -> None:
    """One worktree that goes through every poisoning, in any order, serves the last loop as well as the first."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    poison_in_turn(ground, random.sample(POISONS, len(POISONS)))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_poisons_in_any_order_and_number_end_pristine(seed: int, tmp_path: Path) -> None:
    """Whatever was done to a worktree before and in which order, it comes clean."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    poison_in_turn(ground, random.Random(seed).choices(POISONS, k=30))


def poison_in_turn(ground: Ground, poisons: list[Poison]) -> None:
    """Give one worktree to one loop after the other, each of which does something else to it."""
    done = []
    for number, poison in enumerate(poisons):
        name = f"oauth.n{number}.g1"
        tree = take(ground, name)
        pristine(tree.folder, tree.git_dir)
        done.append(poison.__name__)
        poison(tree)
        commits.commit_attempt(ground, name, 1, say(name))
        assert returning.release(ground, name).outcome == "pooled", done
        for branch in ("side", "other", "elsewhere"):
            git(ground.common, "branch", "-D", branch, check=False)
    last = take(ground, "oauth.last.g1")
    pristine(last.folder, last.git_dir)
    assert len(slots.load(ground)) == 1, done


@pytest.mark.parametrize("rule", ["settings", "attributes"])
def test_shared_rules_that_came_and_went_leave_no_file_as_they_had_it(rule: str, tmp_path: Path) -> None:
    """Rules that a command set for all worktrees, and a person took back, leave plain files to the next loop."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    shared = root / ".git" / ("config" if rule == "settings" else "info/attributes")
    before = shared.read_bytes() if shared.exists() else b""
    shared.write_bytes(before + (b"[core]\n\tautocrlf = true\n" if rule == "settings" else b"*.txt text eol=crlf\n"))
    _check_out_anew(tree)
    commits.commit_attempt(ground, "oauth.one.g1", 1, say("oauth.one.g1"))
    shared.write_bytes(before)
    returning.release(ground, "oauth.one.g1")
    after = take(ground, "oauth.two.g1")
    assert after.git_dir == tree.git_dir
    pristine(after.folder, after.git_dir)


def test_a_worktree_with_submodules_is_emptied_without_touching_shared_settings(tmp_path: Path) -> None:
    """Submodules that a loop filled are empty again for the next, and the user's stay registered."""
    library = plant(tmp_path / "library", {"lib.txt": "lib\n"})
    root = plant(tmp_path / "repo")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    git(root, "commit", "-qm", "with a submodule")
    ground = ground_of(root)
    begin(ground)
    before = digest(root)
    tree = take(ground, "oauth.one.g1")
    git(tree.folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    assert (tree.folder / "lib" / "lib.txt").exists()
    assert not commits.commit_attempt(ground, "oauth.one.g1", 1, say("oauth.one.g1")).moved
    assert returning.release(ground, "oauth.one.g1").outcome == "pooled"
    after = take(ground, "oauth.two.g1")
    assert after.git_dir == tree.git_dir
    assert list((after.folder / "lib").iterdir()) == []
    assert git(after.folder, "status", "--porcelain", "--ignored") == ""
    assert digest(root) == before


def test_a_submodule_with_unpushed_commits_keeps_its_worktree(tmp_path: Path) -> None:
    """A commit that exists only in a worktree's submodule is a reason to keep the worktree."""
    library = plant(tmp_path / "library", {"lib.txt": "lib\n"})
    root = plant(tmp_path / "repo")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    git(root, "commit", "-qm", "with a submodule")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    git(tree.folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    write(tree.folder, {"lib/lib.txt": "changed\n"})
    git(tree.folder / "lib", "commit", "-qam", "only here")
    commits.commit_attempt(ground, "oauth.one.g1", 1, say("oauth.one.g1"))
    released = returning.release(ground, "oauth.one.g1")
    assert released.outcome == "kept"
    assert "not pushed" in released.why
    assert tree.folder.is_dir()


def test_settings_of_a_submodule_run_nothing_when_its_worktree_is_given_back(tmp_path: Path) -> None:
    """A filter that a command has set in a submodule of its worktree is not run to see what has changed there."""
    library = plant(tmp_path / "library", {"lib.txt": "lib\n", "b.more": "b\n"})
    root = plant(tmp_path / "repo")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    git(root, "commit", "-qm", "with a submodule")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    git(tree.folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    lib = tree.folder / "lib"
    (tmp_path / "settings").write_text(f'[filter "x=y"]\n\tclean = touch {tmp_path}/ran\n')
    git(lib, "config", "filter.x.clean", f"touch {tmp_path}/ran; cat")
    git(lib, "config", "include.path", str(tmp_path / "settings"))
    store = Path(git(lib, "rev-parse", "--absolute-git-dir"))
    write(store, {"info/attributes": "*.txt filter=x\n*.more filter=x=y\n"})
    write(lib, {"lib.txt": "xib\n", "b.more": "c\n"})
    commits.commit_attempt(ground, "oauth.one.g1", 1, say("oauth.one.g1"))
    released = returning.release(ground, "oauth.one.g1")
    assert "changes that are not committed" in released.why
    assert not (tmp_path / "ran").exists()


def test_a_repository_made_in_the_place_of_the_worktree_is_kept(tmp_path: Path) -> None:
    """A command that deletes .git and runs git init keeps its commits; the worktree is not reused."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    before = digest(root)
    tree = take(ground, "oauth.one.g1")
    (tree.folder / ".git").unlink()
    git(tree.folder, "init", "-q")
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "in a world of its own")
    write(tree.folder, {"a.txt": "changed\n"})
    assert commits.commit_attempt(ground, "oauth.one.g1", 1, say("oauth.one.g1")).moved
    assert git(tree.folder, "symbolic-ref", "HEAD") == "refs/heads/loopr/oauth.one.g1"
    assert returning.release(ground, "oauth.one.g1").outcome == "kept"
    kept = slots.displaced(tree.folder)
    assert subprocess.run(["git", "--git-dir", kept[0], "log", "-1"], capture_output=True, check=True).stdout
    assert digest(root) == before


def test_a_slot_in_which_somebody_lives_is_retired(tmp_path: Path) -> None:
    """A pooled folder with a live process in it is set aside with the reason, and another is made."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    first = take(ground, "oauth.one.g1")
    returning.release(ground, "oauth.one.g1")
    second = take(ground, "oauth.two.g1")
    assert second.git_dir == first.git_dir
    returning.release(ground, "oauth.two.g1", lambda _: "process 7 lives in it")
    third = take(ground, "oauth.three.g1")
    assert third.git_dir != first.git_dir
    assert [slot.why for slot in slots.load(ground).values() if slot.state == "retired"] == ["process 7 lives in it"]


def test_the_pool_keeps_as_many_as_it_is_told(tmp_path: Path) -> None:
    """What is more than the pool keeps is removed by git, folder and all."""
    ground = ground_of(plant(tmp_path / "repo"), pool=1)
    begin(ground)
    names = [f"oauth.n{number}.g1" for number in range(3)]
    trees = [take(ground, name) for name in names]
    outcomes = [returning.release(ground, name).outcome for name in names]
    assert outcomes == ["pooled", "removed", "removed"]
    assert not trees[2].folder.exists()
    assert not trees[2].git_dir.exists()
    assert len(git(ground.common, "worktree", "list").splitlines()) == 2


def test_a_released_loop_keeps_its_commits_until_they_have_landed(tmp_path: Path) -> None:
    """A branch whose work is nowhere else stays when its worktree goes."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    assert returning.release(ground, "oauth.one.g1").outcome == "pooled"
    assert shows(root, "loopr/oauth.one.g1", "one.txt") == "1"


def test_a_slot_that_does_not_come_clean_is_retired_and_named(tmp_path: Path) -> None:
    """A folder that git cannot make clean is set aside with the reason; the loop gets another, and nothing is lost."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, "oauth.one.g1")
    returning.release(ground, "oauth.one.g1")
    (slot,) = slots.load(ground).values()
    stubborn = slot.place(ground) / "stubborn"
    write(stubborn, {"x.txt": "x\n"})
    if subprocess.run(["chattr", "+i", stubborn / "x.txt"], capture_output=True, check=False).returncode:
        pytest.skip("needs a file that even its owner cannot remove")
    try:
        again = take(ground, "oauth.two.g1")
        assert again.git_dir != tree.git_dir
        assert git(again.folder, "status", "--porcelain", "--ignored") == ""
        retired = slots.load(ground)[slot.id]
        assert retired.state == "retired"
        assert "stubborn" in retired.why
        assert (retired.place(ground) / "stubborn" / "x.txt").exists()
    finally:
        for path in root.rglob("stubborn/x.txt"):
            subprocess.run(["chattr", "-i", path], check=True)


@pytest.mark.parametrize("by", ["engine", "command"])
def test_rules_that_came_and_went_leave_no_file_as_they_had_it(by: str, tmp_path: Path) -> None:
    """A loop that checks files out by rules of its own, and drops the rules, leaves plain files to the next loop."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    name, rules = "oauth.one.g1", ".gitattributes"
    tree = take(ground, name)

    def commit(attempt: int) -> None:
        if by == "command" and attempt != 2:
            git(tree.folder, "add", rules)
            git(tree.folder, "commit", "-qm", "rules")
        commits.commit_attempt(ground, name, attempt, say(name, attempt))

    write(tree.folder, {rules: "*.txt text eol=crlf\n"})
    commit(1)
    (tree.folder / "a.txt").write_bytes(b"changed\r\n")
    os.utime(tree.folder / "a.txt", (1_600_000_000, 1_600_000_000))  # git looks at what is old only once
    commit(2)
    (tree.folder / rules).unlink()
    commit(3)
    tip = git(root, "rev-parse", tree.branch)
    returning.release(ground, name)
    after = worktrees.take(ground, "oauth.two.g1", tip)
    assert after.git_dir == tree.git_dir
    assert (after.folder / "a.txt").read_bytes() == b"changed\n"


def test_a_repository_that_is_never_clean_works_all_the_same(tmp_path: Path) -> None:
    """Files that git shows as changed right after a checkout keep no worktree from being used again and again."""
    root = plant(tmp_path / "repo")
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    git(root, "-c", "core.autocrlf=false", "commit", "-qam", "with its line ends")
    write(root, {".gitattributes": "* text=auto\n"})
    git(root, "add", ".gitattributes")
    git(root, "commit", "-qm", "rules that do not fit")
    ground = ground_of(root)
    begin(ground)
    for name in ("oauth.one.g1", "oauth.two.g1"):
        tree = take(ground, name)
        assert (tree.folder / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
        returning.release(ground, name)
    assert len(slots.load(ground)) == 1


def test_a_sparse_checkout_of_the_users_makes_no_sparse_worktree(tmp_path: Path) -> None:
    """Where the user's own checkout is sparse, loops have every file, and the user's stays as it is."""
    root = plant(tmp_path / "repo")
    git(root, "sparse-checkout", "set", "src")
    ground = ground_of(root)
    begin(ground)
    before = digest(root)
    tree = work(ground, "oauth.one.g1", {"one.txt": "1\n"})
    assert (tree.folder / "tests" / "t.py").exists()
    assert git(root, "diff", "--name-status", "main", tree.branch) == "A\tone.txt"
    returning.release(ground, "oauth.one.g1")
    assert (take(ground, "oauth.two.g1").folder / "tests" / "t.py").exists()
    assert not (root / "tests").exists()
    assert digest(root) == before
