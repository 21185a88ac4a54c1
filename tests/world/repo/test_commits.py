"""The engine's commit: everything that an attempt left, but for what must never be committed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopr.errors import WorldError
from loopr.world.repo import commits, landing, returning
from loopr.world.repo.words import Candidate, Committed
from tests.world.repo.grounds import begin, build, git, ground_of, land, log, plant, say, shows, take, work, write

NAME = "oauth.one.g1"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n"


def commit(ground: object, attempt: int = 1) -> Committed:
    """Commit as the engine does."""
    return commits.commit_attempt(ground, NAME, attempt, say(NAME, attempt))  # type: ignore[arg-type]


def test_everything_is_committed_with_trailers(tmp_path: Path) -> None:
    """New, changed, deleted, renamed, odd-named and executable files are in the commit; a second time adds nothing."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    write(tree.folder, {"new\nline.txt": "n", "ä ö.txt": "ü", "src/b.py": "b = 3\n", "-x": "dash"})
    (tree.folder / os.fsdecode(b"latin-\xe4.txt")).write_text("bytes")
    (tree.folder / "a.txt").rename(tree.folder / "src" / "a.txt")
    (tree.folder / "run.sh").write_text("#!/bin/sh\n")
    (tree.folder / "run.sh").chmod(0o755)
    done = commit(ground)
    assert done.moved
    assert done.refused == ()
    assert git(tree.folder, "status", "--porcelain") == ""
    assert git(root, "ls-tree", tree.branch, "run.sh").startswith("100755")
    assert shows(root, tree.branch, "src/a.txt").startswith("one")
    assert "Loopr-Attempt: 1" in git(root, "log", "-1", "--format=%(trailers)", tree.branch)
    assert not commit(ground).moved
    assert log(root, tree.branch) == ["first", f"Work of {NAME}"]


def test_a_branch_that_was_taken_away_with_its_mark_comes_back_at_its_base(tmp_path: Path) -> None:
    """Whoever deletes the refs of a loop at work takes nothing of it: its files are committed upon its base."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    write(tree.folder, {"new.txt": "new\n"})
    for ref in (f"refs/heads/{tree.branch}", f"refs/loopr/work/{NAME}"):
        git(root, "update-ref", "-d", ref)
    with pytest.raises(WorldError, match="is gone"):
        commit(ground)
    commits.commit_attempt(ground, NAME, 1, say(NAME, 1), tree.base)
    assert git(root, "show", "--name-only", "--format=", tree.branch) == "new.txt"
    assert log(root, tree.branch) == ["first", f"Work of {NAME}"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_replaced_commit_is_what_git_shows_for_it(packed: bool, tmp_path: Path) -> None:
    """Where a person has git show another commit for the tip, a loop changes that one's files and takes none back."""
    root = plant(tmp_path / "repo")
    first = git(root, "rev-parse", "HEAD")
    write(root, {"a.txt": "shown\n"})
    git(root, "add", "-A")
    git(root, "replace", first, git(root, "commit-tree", "-m", "shown", git(root, "write-tree")))
    if packed:
        git(root, "pack-refs", "--all")
    ground = ground_of(root)
    begin(ground)
    work(ground, NAME, {"new.txt": "new\n"})
    assert git(root, "show", "--name-only", "--format=", f"loopr/{NAME}") == "new.txt"


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_a_file_may_become_a_folder(form: str, tmp_path: Path) -> None:
    """Where a folder lies in the place of a file the file is gone, however long the names of objects are."""
    root = tmp_path / "repo"
    git(tmp_path, "init", "-q", "-b", "main", f"--object-format={form}", str(root))
    write(root, {"a.txt": "a\n", "src/b.py": "b = 1\n"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    (tree.folder / "a.txt").unlink()
    write(tree.folder, {"a.txt/inside": "inside\n"})
    assert commit(ground).moved
    assert git(root, "ls-tree", "-r", "--name-only", tree.branch).split() == ["a.txt/inside", "src/b.py"]


def test_the_commands_own_commits_are_kept(tmp_path: Path) -> None:
    """What the command committed stays as it is, and what it left beside goes on top."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    write(tree.folder, {".gitignore": "dist/\n", "dist/kept.js": "1\n", "dist/built.js": "2\n"})
    git(tree.folder, "add", ".gitignore")
    git(tree.folder, "add", "-f", "dist/kept.js")
    git(tree.folder, "commit", "-qm", "by the command")
    write(tree.folder, {"more.txt": "m\n", "dist/forced.js": "3\n"})
    git(tree.folder, "add", "-f", "dist/forced.js")
    commit(ground)
    assert log(root, tree.branch) == ["first", "by the command", f"Work of {NAME}"]
    listed = git(root, "ls-tree", "-r", "--name-only", tree.branch, "dist").splitlines()
    assert listed == ["dist/forced.js", "dist/kept.js"]


def test_a_rewritten_history_is_taken_and_the_old_one_kept(tmp_path: Path) -> None:
    """A command may amend; the engine's last commit stays under refs/loopr/backup/."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})
    old = git(root, "rev-parse", tree.branch)
    git(tree.folder, "commit", "-q", "--amend", "-m", "amended")
    commit(ground, 2)
    assert log(root, tree.branch) == ["first", "amended"]
    assert old in git(root, "for-each-ref", "--format=%(objectname)", f"refs/loopr/backup/{NAME}")


def test_work_on_another_branch_is_kept_and_refused(tmp_path: Path) -> None:
    """A worktree that stands on a line without its own branch comes back to it; what lay there is kept and named."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    git(root, "branch", "release")
    tree = work(ground, NAME, {"one.txt": "1\n"})
    git(tree.folder, "checkout", "-q", "release")
    write(tree.folder, {"late.txt": "late\n"})
    done = commit(ground, 2)
    assert "release" in done.refused[0].message
    assert shows(root, done.backup, "late.txt") == "late"
    assert git(tree.folder, "symbolic-ref", "HEAD") == f"refs/heads/{tree.branch}"
    assert (tree.folder / "one.txt").read_text() == "1\n"
    assert not (tree.folder / "late.txt").exists()
    assert git(tree.folder, "status", "--porcelain") == ""
    assert git(root, "rev-parse", "release") == git(root, "rev-parse", "main")


def test_work_on_a_branch_that_contains_its_own_is_taken(tmp_path: Path) -> None:
    """A branch that the command cut from its own and went on with is the loop's work."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})
    git(tree.folder, "checkout", "-q", "-b", "feature")
    write(tree.folder, {"two.txt": "2\n"})
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "on a branch of its own")
    done = commit(ground, 2)
    assert done.refused == ()
    assert log(root, tree.branch)[-1] == "on a branch of its own"
    assert git(tree.folder, "symbolic-ref", "HEAD") == f"refs/heads/{tree.branch}"


def test_a_sparse_checkout_deletes_nothing(tmp_path: Path) -> None:
    """Files that the command hid from its own view are not deleted by the engine's commit."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    git(tree.folder, "sparse-checkout", "set", "src")
    assert not (tree.folder / "tests" / "t.py").exists()
    write(tree.folder, {"src/new.py": "n\n"})
    commit(ground)
    assert git(root, "diff", "--name-status", "main", tree.branch) == "A\tsrc/new.py"
    assert (tree.folder / "tests" / "t.py").exists()


REFUSED = {
    ".env": "secrets",
    "conf/.env.production": "secrets",
    "deploy.key": "private key",
    "large.bin": "MB",
    "out": "link out of the tree",
    "abs": "link out of the tree",
    "nested": "repository of its own",
    "empty-nested": "repository of its own",
}


def put_refused(folder: Path) -> None:
    """Put one of each thing that must not be committed into a folder."""
    write(folder, {".env": "TOKEN=1\n", "conf/.env.production": "X=1\n", "deploy.key": KEY})
    write(folder, {"large.bin": "x" * 2_000_000})
    (folder / "out").symlink_to("../../elsewhere")
    (folder / "abs").symlink_to("/etc/hostname")
    for name in ("nested", "empty-nested"):
        (folder / name).mkdir()
        git(folder / name, "init", "-q")
        write(folder / name, {"f": "f"})
    git(folder / "nested", "add", "f")
    git(folder / "nested", "commit", "-qm", "n")


def test_what_must_not_be_committed_is_named_and_left_out(tmp_path: Path) -> None:
    """Each thing is refused by name and stays on disk; the rest is committed; none becomes an object."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root, max_file_mb=1)
    begin(ground)
    tree = take(ground, NAME)
    put_refused(tree.folder)
    write(tree.folder, {"fine.txt": "f\n", ".env.example": "TOKEN=\n"})
    (tree.folder / "inside").symlink_to("src/b.py")
    done = commit(ground)
    found = {problem.where: problem.message for problem in done.refused}
    assert found.keys() == REFUSED.keys()
    assert all(word in found[path] for path, word in REFUSED.items())
    names = git(root, "diff", "--name-only", "main", tree.branch).splitlines()
    assert names == [".env.example", "fine.txt", "inside"]
    assert (tree.folder / ".env").exists()
    assert len(commit(ground, 2).refused) == len(REFUSED)


def test_what_the_command_committed_itself_is_refused_where_it_would_land(tmp_path: Path) -> None:
    """A command's own commits pass the same gate: the candidate names what must not land."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root, max_file_mb=1)
    begin(ground)
    tree = take(ground, NAME)
    put_refused(tree.folder)
    (tree.folder / "empty-nested" / ".git").rename(tmp_path / "away")
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "all of it")
    commit(ground)
    built = build(ground, NAME, 1)
    assert isinstance(built, Candidate)
    assert {problem.where for problem in built.refused} == REFUSED.keys() - {"empty-nested"}
    assert root.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("mode", [0, 0o311])
def test_a_folder_that_cannot_be_read_is_refused(mode: int, tmp_path: Path) -> None:
    """What git passes over because it may not look into a folder is named, and stays where it is until somebody may."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    begin(ground)
    tree = take(ground, NAME)
    write(tree.folder, {"data/deep/file": "mine\n", "new.txt": "new\n"})
    (tree.folder / "data" / "deep").chmod(mode)
    assert [each.where for each in commit(ground).refused] == ["data/deep"]
    assert shows(root, tree.branch, "new.txt") == "new"
    assert returning.release(ground, NAME).outcome == "kept"
    (tree.folder / "data" / "deep").chmod(0o755)
    assert commit(ground, 2).refused == ()
    assert shows(root, tree.branch, "data/deep/file") == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    """A file that cannot be read is refused with its name."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    tree = take(ground, NAME)
    write(tree.folder, {"shut.txt": "s\n"})
    (tree.folder / "shut.txt").chmod(0)
    assert [problem.where for problem in commit(ground).refused] == ["shut.txt"]


def test_failing_hooks_of_the_user_do_not_matter(tmp_path: Path) -> None:
    """Hooks that always fail stop neither worktree, commit nor landing; the command's own commits still run them."""
    root = plant(tmp_path / "repo")
    for hook in ("pre-commit", "post-checkout", "reference-transaction", "commit-msg", "post-merge"):
        path = root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran-{hook}'\nexit 1\n")
        path.chmod(0o755)
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})
    built = build(ground, NAME, 1)
    assert isinstance(built, Candidate)
    land(ground, landing.make_intent(ground, built, say(NAME)))
    assert list(tmp_path.glob("ran-*")) == []
    write(tree.folder, {"two.txt": "2\n"})
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-m", "refused by a hook", check=False)
    assert (tmp_path / "ran-pre-commit").exists()


def test_an_identity_is_supplied_where_none_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a configured name and address the engine's commits carry loopr's."""
    root = plant(tmp_path / "repo")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.delenv(name)
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})
    assert git(root, "log", "-1", "--format=%an %ce", tree.branch) == "loopr loopr@localhost"


def test_variables_of_an_outer_git_do_not_reach_our_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started from a hook, with GIT_DIR, GIT_INDEX_FILE and the like set, the engine still works on its own places."""
    root = plant(tmp_path / "repo")
    other = plant(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git" / "objects"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare'='true'")
    ground = ground_of(root)
    begin(ground)
    tree = work(ground, NAME, {"one.txt": "1\n"})
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_PARAMETERS"):
        monkeypatch.delenv(name)
    assert shows(root, tree.branch, "one.txt") == "1"
    assert git(other, "status", "--porcelain") == ""
