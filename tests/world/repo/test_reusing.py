"""What becomes of a worktree between two loops: little is done where nothing came late, and nothing late is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from loopr.world.repo import calls, commits, leftovers, returning, slots, worktrees
from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import take_over
from loopr.world.repo.words import Worktree
from tests.world.repo.grounds import (
    PLAN,
    begin,
    git,
    ground_of,
    plant,
    say,
    shows,
    stands,
    take,
    try_to_land,
    work,
    write,
)
from tests.world.repo.test_pool import pristine

ONE, TWO = "oauth.one.g1", "oauth.two.g1"
Late = Callable[[Path], None]


def _same_size_and_time(folder: Path) -> None:
    facts = (folder / "a.txt").stat()
    (folder / "a.txt").write_bytes(b"ONE\ntwo\nthree\n")
    os.utime(folder / "a.txt", ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _deleted(folder: Path) -> None:
    (folder / "src" / "b.py").unlink()


def _program(folder: Path) -> None:
    (folder / "a.txt").chmod(0o755)


def _link(folder: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to("src/b.py")


def _another_file(folder: Path) -> None:
    write(folder, {"src/late.txt": "late\n", "specs/note.md": "note\n"})


def _ignored(folder: Path) -> None:
    write(folder, {"build/x.o": "x", "src/y.o": "y", ".loopr/ready": ""})


def _our_own_folder(folder: Path) -> None:
    write(folder, {".loopr/ready": "", ".loopr/deep/er": ""})


def _pipes(folder: Path) -> None:
    os.mkfifo(folder / "src" / "pipe")
    (folder / "odd").mkdir()
    os.mkfifo(folder / "odd" / "pipe")


def _empty_folders(folder: Path) -> None:
    (folder / "src" / "empty" / "inside").mkdir(parents=True)


def _other_rules(folder: Path) -> None:
    write(folder, {".gitattributes": "*.txt text eol=crlf\n"})


def _nothing(_: Path) -> None:
    pass


LATE: list[Late] = [
    *(_same_size_and_time, _deleted, _program, _link, _another_file, _ignored, _our_own_folder, _pipes),
    *(_empty_folders, _other_rules, _nothing),
]
SAVED = {_same_size_and_time: "a.txt", _program: "a.txt", _link: "a.txt", _another_file: "src/late.txt"}
SAVED |= {_other_rules: ".gitattributes", _deleted: ""}


def given_back(root: Path) -> tuple[Ground, Worktree]:
    """Let a loop land some work and give its worktree back, in a repository that ignores some files."""
    (root / ".git" / "info" / "exclude").write_text("*.o\n")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, ONE, {"one.txt": "1\n", "src/one.py": "1\n"})
    try_to_land(ground, ONE)
    assert returning.release(ground, ONE).outcome == "pooled"
    return ground, tree


def pooled(ground: Ground) -> Path:
    """Return the folder of the one worktree in the pool."""
    (slot,) = slots.load(ground).values()
    assert slot.state == "free"
    return slot.place(ground)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the verbs of git that are used from now on."""
    found: list[str] = []
    real = calls.Door.ask

    def listening(door: calls.Door, *given: str, **more: object) -> calls.Said:
        found.append(given[0])
        return real(door, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(calls.Door, "ask", listening)
    return found


@pytest.mark.parametrize("late", LATE, ids=lambda each: each.__name__.strip("_"))
def test_whatever_comes_into_the_pool_is_kept_and_no_loop_sees_it(late: Late, tmp_path: Path) -> None:
    """What is done to a worktree while nobody has it is saved if git would have it, and gone for the next loop."""
    root = plant(tmp_path / "repo")
    ground, first = given_back(root)
    late(pooled(ground))
    after = worktrees.take(ground, TWO, git(root, "rev-parse", "main"))
    assert after.git_dir == first.git_dir
    pristine(after.folder, after.git_dir)
    backups = git(root, "for-each-ref", "--format=%(refname)", f"refs/loopr/backup/{ONE}/").splitlines()
    assert len(backups) == (late in SAVED)
    if SAVED.get(late):
        assert git(root, "show", "--name-only", "--format=", backups[0]).split().count(SAVED[late]) == 1


def test_a_worktree_in_which_nothing_came_late_is_not_checked_out_again(tmp_path: Path, words: list[str]) -> None:
    """One look, and only what the next loop has otherwise is written: what was added, changed and taken away."""
    root = plant(tmp_path / "repo")
    ground, first = given_back(root)
    write(pooled(ground), {".loopr/ready": ""})
    kept = (pooled(ground) / "tests" / "t.py").stat()
    words.clear()
    after = worktrees.take(ground, TWO, git(root, "rev-parse", "main"))
    assert words == ["status", "restore"]
    assert after.git_dir == first.git_dir
    pristine(after.folder, after.git_dir)
    assert (after.folder / "tests" / "t.py").stat() == kept


def test_what_is_ignored_goes_without_a_new_checkout(tmp_path: Path, words: list[str]) -> None:
    """Files that git ignores, which most commands leave, are cleaned away and nothing else is done for them."""
    root = plant(tmp_path / "repo")
    ground, _ = given_back(root)
    _ignored(pooled(ground))
    words.clear()
    after = worktrees.take(ground, TWO, git(root, "rev-parse", "main"))
    assert words == ["status", "clean", "restore"]
    pristine(after.folder, after.git_dir)


def test_files_are_written_anew_where_the_next_loop_has_other_rules(tmp_path: Path) -> None:
    """Where attributes have come with what the next loop begins at, every file is as a new checkout would have it."""
    root = plant(tmp_path / "repo")
    ground, first = given_back(root)
    write(root, {".gitattributes": "*.txt text eol=crlf\n"})
    git(root, "add", ".gitattributes")
    git(root, "commit", "-qm", "rules")
    after = worktrees.take(ground, TWO, git(root, "rev-parse", "main"))
    assert after.git_dir == first.git_dir
    assert (after.folder / "a.txt").read_bytes() == b"one\r\ntwo\r\nthree\r\n"


def test_an_index_that_somebody_wrote_to_is_not_believed(tmp_path: Path) -> None:
    """A command that hides a file from the engine's own index hides it from no commit and from no next loop."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, ONE)
    own = {"GIT_INDEX_FILE": str(tree.git_dir / "loopr-index")}
    for flag in ("--assume-unchanged", "--skip-worktree"):
        assert calls.call(tree.folder, ["update-index", flag, "a.txt"], own).code == 0
    write(tree.folder, {"a.txt": "hidden\n"})
    commits.commit_attempt(ground, ONE, 1, say(ONE))
    assert shows(root, tree.branch, "a.txt") == "hidden"
    returning.release(ground, ONE)
    assert calls.call(pooled(ground), ["update-index", "--assume-unchanged", "src/b.py"], own).code == 0
    write(pooled(ground), {"src/b.py": "hidden again\n"})
    after = take(ground, TWO)
    assert after.git_dir == tree.git_dir
    pristine(after.folder, after.git_dir)
    assert (after.folder / "src" / "b.py").read_text() == "b = 1\n"


def test_a_repository_in_a_folder_of_the_trees_own_keeps_its_worktree(tmp_path: Path) -> None:
    """Where somebody has made a repository in a tracked folder, which git does not show, its commits are kept."""
    root = plant(tmp_path / "repo")
    ground, first = given_back(root)
    git(pooled(ground) / "src", "init", "-q")
    after = take(ground, TWO)
    assert after.git_dir != first.git_dir
    (retired,) = [slot for slot in slots.load(ground).values() if slot.state == "retired"]
    assert "a repository of its own" in retired.why
    assert (retired.place(ground) / "src" / ".git").is_dir()


def test_a_repository_in_the_place_of_the_worktrees_own_keeps_it(tmp_path: Path) -> None:
    """Where somebody has begun a repository in a worktree of the pool, its commits do not go with what git ignores."""
    root = plant(tmp_path / "repo")
    ground, first = given_back(root)
    (pooled(ground) / ".git").unlink()
    git(pooled(ground), "init", "-q")
    git(pooled(ground), "commit", "-q", "--allow-empty", "-m", "mine")
    after = take(ground, TWO)
    assert after.git_dir != first.git_dir
    (retired,) = [slot for slot in slots.load(ground).values() if slot.state == "retired"]
    assert "a repository of its own" in retired.why
    assert git(retired.place(ground), "--git-dir=.loopr/displaced-1.git", "log", "--format=%s") == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("mode", [0, 0o311])
@pytest.mark.parametrize("place", ["src", "late"])
def test_a_folder_that_was_shut_keeps_its_worktree(place: str, mode: int, tmp_path: Path) -> None:
    """What git cannot look into is given to no loop and lost to none, and keeps none from having a worktree."""
    root = plant(tmp_path / "repo")
    ground, first = given_back(root)
    write(pooled(ground), {f"{place}/mine.txt": "mine\n"})
    (pooled(ground) / place).chmod(mode)
    after = take(ground, TWO)
    assert after.git_dir != first.git_dir
    (retired,) = [slot for slot in slots.load(ground).values() if slot.state == "retired"]
    (retired.place(ground) / place).chmod(0o755)
    assert (retired.place(ground) / place / "mine.txt").read_text() == "mine\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_to_may_be_again(tmp_path: Path) -> None:
    """What one loop has protected from being written to is open for the next."""
    root = plant(tmp_path / "repo")
    ground, first = given_back(root)
    (pooled(ground) / "src").chmod(0o555)
    after = worktrees.take(ground, TWO, git(root, "rev-parse", f"loopr/{PLAN}"))
    assert after.git_dir == first.git_dir
    write(after.folder, {"src/new.txt": "new\n"})


def test_a_late_file_that_may_not_be_committed_keeps_its_worktree(tmp_path: Path) -> None:
    """What came late and cannot be saved is set aside with its folder, with the reason and whose it was."""
    root = plant(tmp_path / "repo")
    ground, first = given_back(root)
    write(pooled(ground), {".env": "SECRET=1\n"})
    after = take(ground, TWO)
    assert after.git_dir != first.git_dir
    (retired,) = [slot for slot in slots.load(ground).values() if slot.state == "retired"]
    assert ".env" in retired.why
    assert ONE in retired.why
    assert (retired.place(ground) / ".env").read_text() == "SECRET=1\n"


def test_late_files_are_saved_before_a_worktree_is_removed(tmp_path: Path) -> None:
    """Where the pool has no room, what came after the last commit is saved before git removes the folder."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root, pool=0)
    begin(ground)
    tree = work(ground, ONE, {"one.txt": "1\n"})
    write(tree.folder, {"late.txt": "late\n"})
    assert returning.release(ground, ONE).outcome == "removed"
    backup = git(root, "for-each-ref", "--format=%(refname)", f"refs/loopr/backup/{ONE}")
    assert shows(root, backup, "late.txt") == "late"


def test_a_worktree_that_is_too_many_stays_as_long_as_it_holds_something(tmp_path: Path) -> None:
    """Of the worktrees that are more than the pool keeps, none is removed with files that were never committed."""
    root = plant(tmp_path / "repo")
    ground, _ = given_back(root)
    write(pooled(ground), {"late.txt": "late\n"})
    small = ground_of(root, pool=0)
    (found,) = [each for each in leftovers.leftovers(small, set()) if each.kind == "worktree"]
    assert not found.may_go
    assert "not committed" in found.why
    assert leftovers.clear_away(small, [found], set()) == []
    (pooled(ground) / "late.txt").unlink()
    leftovers.forget(small, ONE)
    (found,) = [each for each in leftovers.leftovers(small, set()) if each.kind == "worktree"]
    assert leftovers.clear_away(small, [found], set()) == [found]


def test_what_a_command_left_uncommitted_is_saved_at_once(tmp_path: Path) -> None:
    """Where a command has run since the last commit, its files are saved on release, those too that it forced in."""
    root = plant(tmp_path / "repo")
    (root / ".git" / "info" / "exclude").write_text("*.o\n")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, ONE, {"one.txt": "1\n"})
    take_over(ground, ONE, stands(ground), 1)
    write(tree.folder, {"two.txt": "2\n", "forced.o": "o\n"})
    git(tree.folder, "add", "-f", "forced.o")
    assert returning.release(ground, ONE).outcome == "pooled"
    backup = git(root, "for-each-ref", "--format=%(refname)", f"refs/loopr/backup/{ONE}")
    assert (shows(root, backup, "two.txt"), shows(root, backup, "forced.o")) == ("2", "o")


def test_what_a_commit_refused_keeps_the_worktree_where_it_is(tmp_path: Path) -> None:
    """A file that was refused at the last commit is looked for when the worktree is given back, not only later."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, ONE)
    write(tree.folder, {".env": "SECRET=1\n"})
    assert commits.commit_attempt(ground, ONE, 1, say(ONE)).refused
    assert returning.release(ground, ONE).outcome == "kept"
    assert (tree.folder / ".env").exists()


def test_a_crash_on_the_way_to_the_next_loop_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine killed while files are written leaves no old file to the loop, and saves none as if it came late."""
    root = plant(tmp_path / "repo")
    ground, first = given_back(root)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("loopr.world.repo.reusing.make_ready", killed)
        with pytest.raises(KeyboardInterrupt):
            worktrees.take(ground, TWO, git(root, "rev-parse", "main"))
    after = worktrees.take(ground, TWO, git(root, "rev-parse", "main"))
    assert after.git_dir == first.git_dir
    pristine(after.folder, after.git_dir)
    assert git(root, "for-each-ref", "refs/loopr/backup/") == ""
