"""What is done without starting git is what git would have done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loopr.world.repo import calls, commits, landing, returning, watch, worktrees
from loopr.world.repo.calls import Door, GitFailed
from loopr.world.repo.checkouts import read_line
from loopr.world.repo.entries import leaves_at
from loopr.world.repo.making import make_commit
from loopr.world.repo.merging import merge_trees
from loopr.world.repo.objects import loose_commit
from loopr.world.repo.own_refs import drop_refs, put_refs, put_together
from loopr.world.repo.packed import PACKED
from loopr.world.repo.protection import Protect, changed_protected
from loopr.world.repo.ref_locks import lock_file, lock_ref
from loopr.world.repo.refs import Move, RefRaced, merge_base, read_refs, refs_below
from loopr.world.repo.scanning import changed_entries
from loopr.world.repo.trees import Leaf, NotLoose, grafted
from loopr.world.repo.words import Message
from tests.world.repo.grounds import PLAN, begin, build, git, ground_of, land, log, plant, say, stands, take, write

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


def open_files() -> int:
    """Count what this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


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


@pytest.mark.parametrize("mark", ["\r", "\v", "\f", "\x1c"])
def test_nobody_becomes_a_parent_by_a_name(mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An author may be called what looks like a line of a commit: its parents are those that git sees."""
    root = plant(tmp_path / "repo")
    door, tree = ground_of(root).door, git(root, "rev-parse", "HEAD^{tree}")
    other = git(root, "commit-tree", "-m", "other", tree)
    monkeypatch.setenv("GIT_AUTHOR_NAME", f"x{mark}parent {other}{mark}y")
    found = loose_commit(door, git(root, "commit-tree", "-m", "x", tree))
    assert found == (tree, ())


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


def test_trees_are_made_as_git_makes_them(tmp_path: Path) -> None:
    """Whatever is added, changed and deleted, a tree that was grafted is the one of git's index, or is left to git."""
    root = plant(tmp_path / "repo")
    door, made = ground_of(root).door, 0
    names = ["a", "a.b", "a-b", "a0", "ä", "x y", "dir", "dir.c"]
    for _ in range(30):
        old = git(root, "rev-parse", "HEAD")
        chosen = [random.choice(["", "deep/", "deep/er/", "dir/"]) + name for name in random.sample(names, 3)]
        for path in chosen:
            if any(each.is_file() for each in (root / path).parents if each != root) or (root / path).is_dir():
                continue
            (root / path).unlink(missing_ok=True)
            if random.random() < 0.7:
                write(root, {path: str(random.random())})
                (root / path).chmod(random.choice([0o644, 0o755]))
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "more")
        new = git(root, "rev-parse", "HEAD")
        paths = [each.path for each in changed_entries(door, old, new)]
        leaves = leaves_at(root / ".git" / "index", [*paths, "src/b.py", "not/there"], 40)
        if leaves is None:  # of a path that has gone, another ends with the same letters
            continue
        rows = git(root, "ls-files", "-s", "-z", "--", *(f":(literal){path}" for path in leaves)).split("\0")[:-1]
        listed = {row.partition("\t")[2]: Leaf(*row.split()[:2]) for row in rows}
        assert leaves == {path: listed.get(path) for path in leaves}
        try:
            assert grafted(door, old, leaves) == git(root, "rev-parse", "HEAD^{tree}")
            made += 1
        except NotLoose:
            assert any("dir" in path or "a" in path for path in paths)  # where a file and a folder change places
    assert made


def test_an_entry_of_an_index_is_never_mistaken(tmp_path: Path) -> None:
    """A version that is not known is left to git, and so is a long name, and a name at the end of another's."""
    long = "x" * 250 + "/" + "y" * 50
    root = plant(tmp_path / "repo", {"b": "b\n", "ab": "ab\n", "d/aa": "", "d/ab": "", long: "long\n"})
    index = root / ".git" / "index"
    assert leaves_at(index, ["b"], 40) == {"b": Leaf("100644", git(root, "rev-parse", "HEAD:b"))}
    git(root, "rm", "-q", "--cached", "b")
    assert leaves_at(index, ["b"], 40) is None
    assert leaves_at(index, [long], 40) is None
    git(root, "update-index", "--index-version", "4")
    assert leaves_at(index, ["d/ab"], 40) is None
    git(root, "update-index", "--index-version", "2")
    git(root, "update-index", "--assume-unchanged", "ab")
    assert leaves_at(index, ["ab"], 40) is None


def test_commits_are_merged_as_git_merges_them(tmp_path: Path) -> None:
    """Two lines of commits give git's own base, and git's own tree or conflict, with or without its help."""
    names = ["a", "b", "d/a", "d/b"]
    root = plant(tmp_path / "repo", {name: f"{name}\n" * 9 for name in names})
    door, merged = ground_of(root).door, {}
    for _ in range(16):
        tips = []
        for side in ("one", "two"):
            git(root, "checkout", "-q", "--detach", "main")
            for path in random.sample([*names, side, f"{side}/{side}", "new/er", "new"], random.randint(1, 3)):
                if (root / path).is_dir() or (root / path).parent.is_file():
                    continue
                if path in names and random.random() < 0.4:
                    git(root, "mv", path, f"moved-{side}-{path.replace('/', '-')}")
                else:
                    write(root, {path: f"{path}\n" * 8 + f"{side}\n"})
                git(root, "add", "-A")
                git(root, "commit", "-q", "-m", side)
            tips.append(git(root, "rev-parse", "HEAD"))
        one, two = tips
        assert merge_base(door, one, two) == git(root, "merge-base", one, two)
        merged[one, two] = merge_trees(door, one, two)
    git(root, "repack", "-adq")
    git(root, "prune-packed", "-q")  # what is packed is left to git
    for (one, two), before in merged.items():
        assert merge_trees(door, one, two) == before


def test_a_folder_that_was_moved_is_merged_by_git(tmp_path: Path) -> None:
    """Where one side has moved a folder to which the other has added a file, git says what it thinks of that."""
    root = plant(tmp_path / "repo", {"d/a": "a\n" * 9, "d/b": "b\n" * 9})
    git(root, "checkout", "-q", "-b", "one")
    git(root, "mv", "d", "e")
    git(root, "commit", "-q", "-m", "moved")
    git(root, "checkout", "-q", "-b", "two", "main")
    write(root, {"d/new": "new\n"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "added")
    one, two = (git(root, "rev-parse", side) for side in ("one", "two"))
    assert merge_trees(ground_of(root).users_door, one, two).files == ("e/new",)


@pytest.mark.parametrize("pattern", ["tests", "tests/", "a.txt", "src/b.py", "src/b", ".", "./a.txt", "..x", "*.py"])
def test_plain_patterns_protect_what_git_says_they_do(pattern: str, tmp_path: Path) -> None:
    """A pattern that is just a path covers what it covers for git."""
    root = plant(tmp_path / "repo")
    write(root, {"a.txt": "x\n", "src/b.py": "x\n", "tests/t.py": "x\n", "tests/new.py": "x\n", "..x": "x\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    ground = ground_of(root)
    words = ("diff", "--name-only", "HEAD^", "HEAD", "--", f":(top){pattern}", f":(top,glob){pattern}")
    before, after = git(root, "rev-parse", "HEAD^"), git(root, "rev-parse", "HEAD")
    found = changed_protected(ground, ground.door, before, after, Protect((pattern,)))
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


def test_refs_of_a_shared_repository_may_be_moved_by_others(tmp_path: Path) -> None:
    """Where several people write to a repository, what loopr makes there is as open to them as what git makes."""
    root = plant(tmp_path / "repo")
    git(root, "config", "core.sharedRepository", "group")
    tip, refs = git(root, "rev-parse", "HEAD"), root / ".git" / "refs" / "heads"
    put_refs(ground_of(root).door, [Move("refs/heads/loopr/one", tip, "")], "made")
    git(root, "branch", "ours/one")
    for place in ("", "/one"):
        assert (refs / f"loopr{place}").stat().st_mode == (refs / f"ours{place}").stat().st_mode


def test_the_log_of_a_branch_goes_on(tmp_path: Path) -> None:
    """Where git keeps a log of a branch, a move of ours is in it."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    tip = git(root, "rev-parse", "HEAD")
    git(root, "branch", "loopr/one")
    new = make_commit(ground.door, git(root, "rev-parse", "HEAD^{tree}"), [tip], Message("new"))
    put_refs(ground.door, [Move("refs/heads/loopr/one", new, tip)], "loopr: commit")
    assert git(root, "reflog", "--format=%gs", "loopr/one").splitlines()[0] == "loopr: commit"


@pytest.mark.parametrize("odd", ["", "moved", "packed", "locked"])
def test_refs_are_set_or_deleted_together_or_not_at_all(odd: str, tmp_path: Path) -> None:
    """Where one of several refs is elsewhere none is set or deleted; where git has them otherwise git does it."""
    root = plant(tmp_path / "repo")
    door, tip = ground_of(root).door, git(root, "rev-parse", "HEAD")
    new = git(root, "commit-tree", "-p", tip, "-m", "new", f"{tip}^{{tree}}")
    refs = ["refs/heads/loopr/one", "refs/loopr/work/one", "refs/loopr/landed/one"]
    put_together(door, [Move(ref, tip, "") for ref in refs], "made")
    if odd == "moved":
        git(root, "update-ref", refs[2], new)
    elif odd == "packed":
        git(root, "pack-refs", "--all")
    elif odd == "locked":
        (root / ".git" / "packed-refs.lock").touch()
    before = dict.fromkeys(refs, tip) | ({refs[2]: new} if odd == "moved" else {})
    if odd == "moved":
        with pytest.raises(RefRaced):
            put_together(door, [Move(ref, new, tip) for ref in refs], "moved")
        with pytest.raises(RefRaced):
            drop_refs(door, dict.fromkeys(refs, tip), "dropped")
        assert refs_below(door, *refs) == before
        return
    put_together(door, [Move(ref, new, tip) for ref in refs], "moved")
    assert git(root, "for-each-ref", "--format=%(objectname)", *refs).split() == [new] * 3
    if odd == "locked":
        hasty = Door(door.git_dir, door.common, door.work_tree, (("core.packedRefsTimeout", "0"),))
        with pytest.raises(GitFailed, match="Another git process"):
            drop_refs(hasty, dict.fromkeys(refs, new), "dropped")
        return
    drop_refs(door, dict.fromkeys(refs, new), "dropped")
    assert git(root, "for-each-ref", *refs) == ""
    assert not (root / ".git" / "logs" / refs[0]).exists()
    assert not [*(root / ".git").glob("*.lock"), *(root / ".git" / "refs").rglob("*.lock")]


def test_a_ref_whose_name_is_too_long_for_our_lock_is_left_to_git(tmp_path: Path) -> None:
    """The lock file of ours has the whole name of a ref in its own; what does not fit there, git moves and deletes."""
    root = plant(tmp_path / "repo")
    door, tip = ground_of(root).door, git(root, "rev-parse", "HEAD")
    ref = f"refs/heads/a-prefix/that-is/long/{'x' * 225}.g1"
    put_refs(door, [Move(ref, tip, "")], "made")
    assert refs_below(door, ref) == {ref: tip}
    drop_refs(door, {ref: tip}, "dropped")
    assert refs_below(door, ref) == {}


@pytest.mark.parametrize("packed", [False, True])
def test_a_ref_that_leads_to_another_moves_alone(packed: bool, tmp_path: Path) -> None:
    """Where a command has made one of our refs lead to a person's branch, that branch stays where it is."""
    root = plant(tmp_path / "repo")
    door, tip = ground_of(root).door, git(root, "rev-parse", "HEAD")
    new = git(root, "commit-tree", "-p", tip, "-m", "new", f"{tip}^{{tree}}")
    if packed:
        put_refs(door, [Move(REF, tip, "")], "made")
        git(root, "pack-refs", "--all")
    git(root, "symbolic-ref", REF, "refs/heads/main")
    put_refs(door, [Move(REF, new)], "moved")
    assert git(root, "for-each-ref", "--format=%(objectname) %(refname)").splitlines() == [
        f"{tip} refs/heads/main",
        f"{new} {REF}",
    ]
    git(root, "symbolic-ref", REF, "refs/heads/main")
    drop_refs(door, {REF: tip}, "dropped")
    assert git(root, "for-each-ref", "--format=%(objectname) %(refname)") == f"{tip} refs/heads/main"


def test_packed_refs_that_a_killed_engine_left_locked_are_freed(tmp_path: Path) -> None:
    """An engine killed while it deletes refs keeps nobody from deleting, or packing, them."""
    root = plant(tmp_path / "repo")
    door, tip = ground_of(root).door, git(root, "rev-parse", "HEAD")
    put_refs(door, [Move(REF, tip, "")], "made")
    assert lock_ref(door.common, PACKED, "")
    drop_refs(door, {REF: tip}, "dropped")
    assert git(root, "for-each-ref", REF) == ""
    git(root, "pack-refs", "--all")


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


@pytest.mark.parametrize(
    "what", ["a file", "a folder", "a pipe", "a pipe that is held", "a link to a folder", "nothing"]
)
def test_reading_leaves_nothing_open(what: str, tmp_path: Path) -> None:
    """Whatever lies at a name of git's, it is read or passed over at once, and closed again."""
    path, held = tmp_path / "HEAD", []
    if what == "a file":
        path.write_text("ref\n")
    elif what == "a folder":
        path.mkdir()
    elif what == "a link to a folder":
        path.symlink_to(tmp_path)
    elif what != "nothing":
        os.mkfifo(path)
    if what == "a pipe that is held":
        held.append(os.open(path, os.O_RDWR))
    before = open_files()
    assert read_line(path) == ("ref" if what == "a file" else "")
    assert open_files() == before
    for each in held:
        os.close(each)


def test_a_loop_leaves_nothing_open(tmp_path: Path) -> None:
    """From its worktree to its landing, and with every look at what is shared, no loop costs a descriptor."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    opened = []
    for number in range(3):
        name = f"oauth.n{number}.g1"
        write(take(ground, name).folder, {f"{number}.txt": "x\n"})
        commits.commit_attempt(ground, name, 1, say(name))
        watch.look(ground)
        built = build(ground, name, 1, Protect(("tests", "loopr.yml")))
        land(ground, landing.make_intent(ground, built, say(name)))  # type: ignore[arg-type]
        assert returning.release(ground, name).outcome == "pooled"
        opened.append(open_files())
    assert opened[0] == opened[-1]


@pytest.mark.parametrize("packed", [False, True])
def test_a_name_may_hold_what_ends_a_line_elsewhere(packed: bool, tmp_path: Path) -> None:
    """Only a line feed ends what git says of a ref: no other ref comes out of the beginning of a name."""
    root = plant(tmp_path / "repo")
    door, tip, ref = ground_of(root).door, git(root, "rev-parse", "HEAD"), "refs/heads/loopr/one\u2028more"
    git(root, "update-ref", ref, tip)
    if packed:
        git(root, "pack-refs", "--all")
    assert read_refs(door, "refs/heads/loopr/", "refs/heads/loopr/one", ref) == {ref: tip}
    assert refs_below(door, "refs/heads/loopr") == {ref: tip}


def test_looking_twice_asks_git_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shared is looked at around every attempt, so where nothing has changed no process is started."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    before = watch.look(ground)
    with monkeypatch.context() as patch:
        patch.setattr("loopr.world.repo.calls.call", lambda *_: pytest.fail("git was started"))
        assert watch.look(ground) == before


def test_a_loop_takes_few_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a pooled worktree to its return, one loop that lands starts git four times: that is what a loop costs."""
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
        tree = worktrees.take(ground, name, stands(ground))
        write(tree.folder, {f"{number}.txt": "x\n"})
        commits.commit_attempt(ground, name, 1, say(name))
        built = build(ground, name, 1, Protect(("tests", "loopr.yml")))
        land(ground, landing.make_intent(ground, built, say(name)))  # type: ignore[arg-type]
        assert returning.release(ground, name).outcome == "pooled"
    assert len(words) <= 4
    assert len(log(root, f"loopr/{PLAN}")) == 4
    assert take(ground, "oauth.last.g1").base == git(root, "rev-parse", f"loopr/{PLAN}")
