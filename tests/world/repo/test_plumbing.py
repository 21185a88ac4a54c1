"""What is done without starting git is what git would have done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loopr.world.repo import branches, calls, commits, landing, returning, watch, worktrees
from loopr.world.repo.making import make_commit
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.protection import Protect, changed_protected
from loopr.world.repo.ref_locks import lock_file
from loopr.world.repo.refs import Move, RefRaced, refs_below
from loopr.world.repo.scanning import changed_entries
from loopr.world.repo.words import Message
from tests.world.repo.grounds import PLAN, begin, git, ground_of, log, plant, say, take, write

REF = "refs/loopr/candidate/oauth.one.g1"
MESSAGE = Message(
    "Sübject\nmore", "A body\0 with \udce4\n\nin two parts\n", (("Loopr-Loop", "oauth.one.g1"),), 1_700_000_000_999
)
KILLED = """
import os, sys
from pathlib import Path
from loopr.world.repo.ground import open_ground
from loopr.world.repo.own_refs import put_refs
from loopr.world.repo.refs import Move
ground = open_ground(Path(sys.argv[1]), worktrees=Path(sys.argv[1]) / "worktrees")
setattr(Path, sys.argv[4], lambda *_, **__: os.kill(os.getpid(), 9))
put_refs(ground.door, [Move(sys.argv[2], sys.argv[3])], "killed")
"""


@pytest.mark.parametrize("config", [(), ("core.sharedRepository", "group"), ("user.name", "Someone Else")])
def test_a_commit_is_the_one_that_git_makes(
    config: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same tree, parents, words, time and identity give the very object that `git commit-tree` makes."""
    for name in ("AUTHOR", "COMMITTER"):
        for what in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{name}_{what}")
    root = plant_with_identity(tmp_path / "repo")
    if config:
        git(root, "config", *config)
    door = ground_of(root).door
    tree, tip = (git(root, "rev-parse", name) for name in ("HEAD^{tree}", "HEAD"))
    made = make_commit(door, tree, [tip, tip], MESSAGE)
    text = git(root, "log", "-1", "--format=%B", made)
    assert text == "Sübject more\n\nA body with ?\n\nin two parts\n\nLoopr-Loop: oauth.one.g1"
    monkeypatch.setenv("GIT_AUTHOR_DATE", "@1700000000 +0000")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1700000000 +0000")
    assert git(root, "commit-tree", tree, "-p", tip, "-m", text) == made
    assert git(root, "fsck", "--strict", "--no-dangling") == ""
    assert make_commit(door, tree, [tip], MESSAGE) == made


def plant_with_identity(folder: Path) -> Path:
    """Make a repository whose own settings say who commits."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Grace <Tester>")
    git(folder, "config", "user.email", "grace@example.invalid")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_commit_is_made_by_nobody_where_nobody_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any identity the engine commits under its own name, and under the user's as soon as there is one."""
    root = plant(tmp_path / "repo")
    for name in ("AUTHOR", "COMMITTER"):
        for what in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{name}_{what}")
    door, tree = ground_of(root).door, git(root, "rev-parse", "HEAD^{tree}")
    assert git(root, "log", "-1", "--format=%an %cn", make_commit(door, tree, [], Message("x"))) == "loopr loopr"
    git(root, "config", "user.name", "Grace")
    git(root, "config", "user.email", "grace@example.invalid")
    assert git(root, "log", "-1", "--format=%an %ce", make_commit(door, tree, [], Message("x"))) == (
        "Grace grace@example.invalid"
    )


def test_trees_are_compared_as_git_compares_them(tmp_path: Path) -> None:
    """Whatever files, folders, links and modes change, loose trees give what `git diff-tree` says, in its order."""
    root = plant(tmp_path / "repo")
    door = ground_of(root).door
    commits = [git(root, "rev-parse", "HEAD")]
    names = ["a", "a.b", "a-b", "a0", "ä", "x y", "dir", "dir.c"]
    for _ in range(8):
        for name in random.sample(names, 4):
            path = root / random.choice(["", "deep/", "deep/er/"]) / name
            if any(each.is_file() or each.is_symlink() for each in path.parents if each != root):
                continue
            subprocess.run(["rm", "-rf", path], check=True)
            kind = random.choice(["file", "folder", "link", "program", "nothing"])
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "link":
                path.symlink_to("a")
            elif kind == "folder":
                write(path, {"inside": str(random.random())})
            elif kind != "nothing":
                path.write_text(str(random.random()))
                path.chmod(0o755 if kind == "program" else 0o644)
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "more")
        commits.append(git(root, "rev-parse", "HEAD"))
    for old in commits:
        for new in random.sample(commits, 3):
            assert changed_entries(door, old, new) == changed_entries(door, old, new, ":(top)")
    git(root, "gc", "-q", "--prune=now")
    assert changed_entries(door, commits[0], commits[-1]) == changed_entries(door, commits[0], commits[-1], ":(top)")


@pytest.mark.parametrize("pattern", ["tests", "tests/", "a.txt", "src/b.py", "src/b", ".", "./a.txt", "..x", "*.py"])
def test_plain_patterns_protect_what_git_says_they_do(pattern: str, tmp_path: Path) -> None:
    """A pattern that is just a path covers what it covers for git."""
    root = plant(tmp_path / "repo")
    write(root, {"a.txt": "x\n", "src/b.py": "x\n", "tests/t.py": "x\n", "tests/new.py": "x\n", "..x": "x\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    door = ground_of(root).door
    words = ("diff", "--name-only", "HEAD^", "HEAD", "--", f":(top){pattern}", f":(top,glob){pattern}")
    found = changed_protected(
        door, git(root, "rev-parse", "HEAD^"), git(root, "rev-parse", "HEAD"), Protect((pattern,))
    )
    assert [each.path for each in found] == git(root, *words).splitlines()


def test_a_ref_is_put_where_git_finds_it(tmp_path: Path) -> None:
    """A ref that is put is there for git, packed or not, and only from where it was expected."""
    root = plant(tmp_path / "repo")
    door, tip = ground_of(root).door, git(root, "rev-parse", "HEAD")
    other = git(root, "commit-tree", "-m", "x", "HEAD^{tree}")
    put_refs(door, [Move(REF, tip, "")], "made")
    git(root, "pack-refs", "--all", "--prune")
    with pytest.raises(RefRaced):
        put_refs(door, [Move(REF, other, other)], "wrong")
    with pytest.raises(RefRaced):
        put_refs(door, [Move(REF, other, "")], "wrong")
    assert git(root, "rev-parse", REF) == tip
    put_refs(door, [Move(REF, other, tip)], "moved")
    assert git(root, "rev-parse", REF) == other
    assert git(root, "fsck", "--strict", "--no-dangling") == ""
    assert not list((root / ".git" / "refs").rglob("*.lock"))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("taken", ["loopr", "loopr/one/two"])
def test_a_ref_is_never_put_above_or_below_another(taken: str, packed: bool, tmp_path: Path) -> None:
    """What git refuses because another name is in the way is refused here too, and leaves nothing behind."""
    root = plant(tmp_path / "repo")
    git(root, "branch", taken)
    if packed:
        git(root, "pack-refs", "--all", "--prune")
    door, tip = ground_of(root).door, git(root, "rev-parse", "HEAD")
    with pytest.raises(Exception, match="could not be moved"):
        put_refs(door, [Move("refs/heads/loopr/one", tip, "")], "in the way")
    assert sorted(git(root, "for-each-ref", "--format=%(refname:short)").split()) == sorted([taken, "main"])
    assert not list((root / ".git" / "refs").rglob("*.lock"))


def test_the_log_of_a_branch_goes_on(tmp_path: Path) -> None:
    """Where git keeps a log of a branch, a move of ours is in it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    tip = git(root, "rev-parse", "HEAD")
    git(root, "branch", "loopr/one")
    new = make_commit(ground.door, git(root, "rev-parse", "HEAD^{tree}"), [tip], Message("new"))
    put_refs(ground.door, [Move("refs/heads/loopr/one", new, tip)], "loopr: commit")
    assert git(root, "reflog", "--format=%gs", "loopr/one").splitlines()[0] == "loopr: commit"


@pytest.mark.parametrize("step", ["hardlink_to", "replace", "unlink"])
def test_a_lock_of_a_killed_engine_is_freed(step: str, tmp_path: Path) -> None:
    """After kill -9 between any two steps of a move the next goes through at once; a lock of git's is left alone."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    tip = git(root, "rev-parse", "HEAD")
    put_refs(ground.door, [Move(REF, tip, "")], "made")
    other = git(root, "commit-tree", "-m", "x", "HEAD^{tree}")
    command = [sys.executable, "-c", KILLED, str(root), REF, other, step]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": "."}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert git(root, "rev-parse", REF) == (other if step == "unlink" else tip)
    theirs = lock_file(ground.common, "refs/heads/main")
    theirs.touch()
    begin(ground)
    put_refs(ground.door, [Move(REF, tip)], "again")
    assert git(root, "rev-parse", REF) == tip
    assert list((root / ".git" / "refs").rglob("*.lock")) == [theirs]


def test_refs_are_listed_as_git_lists_them(tmp_path: Path) -> None:
    """Branches, tags and the stash are seen where git sees them, loose and packed and both."""
    root = plant(tmp_path / "repo")
    git(root, "tag", "-a", "-m", "v", "v1")
    git(root, "branch", "topic/deep")
    git(root, "pack-refs", "--all")
    git(root, "commit", "-q", "--allow-empty", "-m", "on")
    git(root, "branch", "headstrong")
    said = git(root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/stash")
    found = refs_below(ground_of(root).door, "refs/heads", "refs/tags", "refs/stash")
    assert found == dict(line.split() for line in said.splitlines())


def test_looking_twice_asks_git_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shared is looked at around every attempt, so where nothing has changed no process is started."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    before = watch.look(ground)
    with monkeypatch.context() as patch:
        patch.setattr("loopr.world.repo.calls.call", lambda *_: pytest.fail("git was started"))
        assert watch.look(ground) == before


def test_a_loop_takes_few_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a pooled worktree to its return, one loop that lands starts git eight times: that is what a loop costs."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    real, words = calls.call, []

    def counting(*given: object, **more: object) -> object:
        words.append(given[1])
        return real(*given, **more)  # type: ignore[arg-type]

    for number in range(3):
        if number == 2:
            monkeypatch.setattr(calls, "call", counting)
        name = f"oauth.n{number}.g1"
        tree = worktrees.take(ground, name, branches.plan_tip(ground, PLAN).tip)
        write(tree.folder, {f"{number}.txt": "x\n"})
        commits.commit_attempt(ground, name, 1, say(name))
        built = landing.build_candidate(ground, name, "oauth", 1, Protect(("tests", "loopr.yml")))
        landing.land(ground, landing.make_intent(ground, built, say(name)))  # type: ignore[arg-type]
        assert returning.release(ground, name).outcome == "pooled"
    assert len(words) <= 8
    assert len(log(root, f"loopr/{PLAN}")) == 4
    assert take(ground, "oauth.last.g1").base == git(root, "rev-parse", f"loopr/{PLAN}")
