"""A workspace for each hazard of real repositories: it works, or is refused before anything runs, with the cure."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.repos import Repo, opened

LADDER = "types: {plan: {child: task}, task: {check: none}}\n"
LOCAL = "git -c protocol.file.allow=always"
FILL = f"{LOCAL} submodule update --init"


def nothing(repo: Repo) -> None:
    """Leave it as it is."""


class Hazard(NamedTuple):
    """How a workspace is made, what its one loop does, what `start` says, and what is so afterwards."""

    make: Callable[[Repo], None] = nothing
    run: str = "echo new > new.txt"
    check: str = "test -s new.txt"
    settings: str = ""
    setup: str = ""
    told: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    code: int = 0
    after: Callable[[Repo], None] = nothing
    environ: dict[str, str] = {}
    needs: str = ""


# --- how they are made ------------------------------------------------------------------------------------------------


def empty(repo: Repo) -> None:
    """Begin a repository without a commit."""
    repo.root.mkdir(parents=True)
    repo.git("init", "--quiet", "--initial-branch=main")


def hook(name: str, text: str) -> Callable[[Repo], None]:
    """Put a hook into the repository."""

    def make(repo: Repo) -> None:
        path = repo.root / ".git" / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    return make


def settings(*pairs: str) -> Callable[[Repo], None]:
    """Set what is set in git."""

    def make(repo: Repo) -> None:
        for each in pairs:
            repo.git("config", *each.split("=", 1))

    return make


def attributes(line: str, name: str, text: str, *pairs: str) -> Callable[[Repo], None]:
    """Commit a file with an attribute, under settings that say what that means, or none."""

    def make(repo: Repo) -> None:
        settings(*pairs)(repo)
        repo.write({".gitattributes": f"{line}\n", name: text})
        repo.git("add", "--all")
        repo.git("commit", "--quiet", "--message=attributes")

    return make


def submodule(repo: Repo) -> None:
    """Commit a submodule."""
    library = repo.root.parent / "library"
    library.mkdir()
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("commit", "--quiet", "--allow-empty", "--message=empty"),
    ):
        repo.git(*words, cwd=library)
    (library / "code.txt").write_text("old\n")
    repo.git("add", "--all", cwd=library)
    repo.git("commit", "--quiet", "--message=code", cwd=library)
    repo.git(*LOCAL.split()[1:], "submodule", "--quiet", "add", str(library), "lib")
    repo.git("commit", "--quiet", "--message=with a library")


def clone(*options: str) -> Callable[[Repo], None]:
    """Go on in a clone of the repository."""

    def make(repo: Repo) -> None:
        repo.write({"src/a.txt": "a\n", "docs/b.txt": "b\n"})
        repo.git("add", "--all")
        repo.git("commit", "--quiet", "--message=more")
        origin = repo.root.rename(repo.root.with_name("origin"))
        repo.git("config", "uploadpack.allowFilter", "true", cwd=origin)
        repo.git("clone", "--quiet", *options, f"file://{origin}", str(repo.root), cwd=origin)

    return make


def sparse(repo: Repo) -> None:
    """Go on in a sparse clone."""
    clone("--sparse")(repo)
    repo.git("sparse-checkout", "set", "docs")


def linked(repo: Repo) -> None:
    """Go on in a linked worktree of the repository."""
    main = repo.root.rename(repo.root.with_name("main"))
    repo.git("worktree", "add", "--quiet", "-b", "side", str(repo.root), cwd=main)


def detached(repo: Repo) -> None:
    """Have no branch checked out."""
    repo.git("switch", "--quiet", "--detach")


def colliding(repo: Repo) -> None:
    """Commit names that differ in their case only."""
    repo.write({"readme": "the other\n", "ünï çödé/大.txt": "x\n", 'a "quoted"\tname': "y\n"})
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message=names")


# --- what is so afterwards --------------------------------------------------------------------------------------------


def landed(**files: str) -> Callable[[Repo], None]:
    """Expect files as the plan's branch has them; `_` in a name stands for a dot."""

    def after(repo: Repo) -> None:
        found = {name: repo.git("show", f"loopr/p:{name.replace('_', '.')}") for name in files}
        assert found == files

    return after


def untouched(repo: Repo) -> None:
    """Expect that nothing was begun."""
    assert repo.loops() == {}
    assert not (repo.root / "worktrees").exists()


def without_hooks_path(repo: Repo) -> None:
    """Expect that the folder of hooks is a person's to set, and that this is told once, with the line."""
    assert "core.hookspath" not in repo.git("config", "--list")
    (told,) = (each["data"]["names"] for each in repo.events("shared_grew"))
    assert told == ["config core.hookspath (is put back, `git config core.hooksPath .husky/_` sets it, if it is yours)"]


def worded(repo: Repo) -> None:
    """Expect that a hook for messages takes each that loopr has written."""
    repo.loopr("land", "--yes", "p")
    message = repo.desk / "message"
    for commit in repo.git("rev-list", "main", "--grep=Loopr-").splitlines():
        message.write_text(repo.git("log", "-1", "--format=%B", commit))
        subprocess.run([repo.root / ".git/hooks/commit-msg", message], check=True)


def sparse_still(repo: Repo) -> None:
    """Expect that a loop saw all, and that a landing leaves the checkout sparse."""
    repo.loopr("land", "--yes", "p")
    assert repo.git("show", "main:docs/c.txt") == "a"
    assert not (repo.root / "src").exists()
    assert (repo.root / "docs/c.txt").exists()
    assert repo.git("status", "--porcelain") == ""


def home_by_name(repo: Repo) -> None:
    """Expect that landing asks for a branch, and takes one."""
    refused = repo.loopr("land", "--yes", "p", code=None)
    assert refused.code != 0
    assert "--onto" in refused.err
    repo.loopr("land", "--yes", "--onto", "main", "p")
    assert repo.git("show", "main:new.txt") == "new"


def as_named(repo: Repo) -> None:
    """Expect each name by itself, landed and brought home."""
    repo.loopr("land", "--yes", "p")
    assert (repo.root / "README").read_text() == "what was there\n"
    assert (repo.root / "readme").read_text() == "the other\nmore\n"
    assert (repo.root / "ünï çödé" / "größe.txt").read_text() == "x\n"
    assert repo.git("status", "--porcelain") == ""


def with_line_feeds(repo: Repo) -> None:
    """Expect line feeds in what is committed, and what git makes of them in the checkout."""
    landed(new_txt="one\ntwo", old_txt="old\nmore")(repo)
    repo.loopr("land", "--yes", "p")
    assert (repo.root / "old.txt").read_bytes() == b"old\r\nmore\r\n"
    assert repo.git("status", "--porcelain") == ""


def is_pointer(repo: Repo) -> None:
    """Expect a pointer in what is committed, and the file itself in the checkout."""
    assert repo.git("show", "loopr/p:big.bin").startswith("version https://git-lfs")
    repo.loopr("land", "--yes", "p")
    assert (repo.root / "big.bin").read_text() == "big\nmore\n"
    assert repo.git("status", "--porcelain") == ""


def is_published(repo: Repo) -> None:
    """Expect that whoever has the library has the commit."""
    mode, kind, commit, _ = repo.git("ls-tree", "loopr/p", "lib").split()
    assert (mode, kind) == ("160000", "commit")
    assert repo.git("rev-parse", "topic", cwd=repo.root.parent / "library") == commit


LFS = (
    "process=git-lfs filter-process",
    "clean=git-lfs clean -- %f",
    "smudge=git-lfs smudge -- %f",
    "required=true",
)
HAZARDS = {
    "submodule, empty": Hazard(
        submodule,
        check="cat lib/code.txt",
        told=(
            "submodules are empty in worktrees: lib\n    `loopr set worktrees.setup 'git submodule update --init'`",
            "lib/code.txt was in your checkout, in a submodule: worktrees.setup has to fill it",
        ),
        untold=("not committed as here",),
        code=1,
    ),
    "submodule, not published": Hazard(
        submodule,
        run="cd lib; echo more >> code.txt; git commit -qam more; "
        'test "$LOOPR_ITERATION" = 1 || git push -q origin HEAD:refs/heads/topic',
        check="grep -q more lib/code.txt",
        setup=FILL,
        told=("is nowhere but here (`git -C lib push origin ", "p/a  landed  2 tries"),
        untold=("not committed as here", "submodules are empty"),
        after=is_published,
    ),
    "submodule": Hazard(submodule, check="grep old lib/code.txt", setup=FILL, after=landed(new_txt="new")),
    "lfs": Hazard(
        attributes("*.bin filter=lfs -text", "big.bin", "big\n", *(f"filter.lfs.{each}" for each in LFS)),
        run="echo more >> big.bin",
        check="grep -q big big.bin",
        after=is_pointer,
        needs="git-lfs",
    ),
    "lfs, no program": Hazard(
        attributes("*.bin filter=none -text", "big.bin", "big\n", "filter.none.required=true", "filter.none.clean=cat"),
        told=("big.bin goes through filter.none, and no-such-lfs is not here: no worktree can be made",
              "hint: install no-such-lfs"),
        code=78,
        environ={"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "filter.none.process",
                 "GIT_CONFIG_VALUE_0": "no-such-lfs filter-process"},
        after=untouched,
    ),
    "lfs, not set": Hazard(
        attributes("*.bin filter=lfs -text", "big.bin", "version https://git-lfs.github.com/spec/v1\n"),
        told=("filter.lfs is not set: loops see pointers in place of big.bin", "`git lfs install` and `git lfs pull`"),
        environ={"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"},
        after=landed(new_txt="new"),
    ),
    "husky": Hazard(
        run="echo new > new.txt; git config core.hooksPath .husky/_",
        setup="git config core.hooksPath .husky/_",
        told=("p/a  landed",),
        after=without_hooks_path,
    ),
    "pre-commit": Hazard(
        hook("pre-commit", "exit 1"),
        told=("loopr's commits run no hook of .git/hooks: pre-commit\n    a check can run what they run",),
        after=landed(new_txt="new"),
    ),
    "commit-msg": Hazard(
        hook("commit-msg", "head -n 1 $1 | grep -Eq '^feat(\\([a-z]+\\))?: .' && grep -q '^Signed-off-by: ' $1"),
        settings='commit: {message: "feat({plan}): {title}", signoff: true}\n',
        told=("loopr's commits run no hook of .git/hooks: commit-msg\n    commit.message words commits",),
        after=worded,
    ),
    "gpgsign": Hazard(
        settings("commit.gpgsign=true", "gpg.program=false"),
        told=("commit.gpgsign is set, and loopr's commits are not signed\n    `git merge --squash loopr/PLAN`",),
        after=landed(new_txt="new"),
    ),
    "shallow": Hazard(clone("--depth=1"), after=landed(new_txt="new")),
    "partial": Hazard(clone("--filter=blob:none", "--no-checkout"), check="cat src/a.txt", after=landed(new_txt="new")),
    "sparse": Hazard(sparse, run="cp src/a.txt docs/c.txt", check="test -s src/a.txt", after=sparse_still),
    "worktree of a worktree": Hazard(linked, after=landed(new_txt="new")),
    "detached": Hazard(detached, after=home_by_name),
    "no commit": Hazard(empty, told=("the repository has no commit yet", "git commit --allow-empty"), code=78),
    "autocrlf": Hazard(
        attributes("*.txt text", "old.txt", "old\n", "core.autocrlf=true"),
        run="printf 'one\\ntwo\\n' > new.txt; printf 'more\\r\\n' >> old.txt",
        after=with_line_feeds,
    ),
    "own filter": Hazard(
        attributes(
            "*.up filter=up", "a.up", "OLD\n", "filter.up.clean=tr A-Z a-z", "filter.up.smudge=tr a-z A-Z",
            "filter.up.required=true",
        ),
        run="cp a.up new.up",
        check="grep -q OLD new.up",
        after=landed(new_up="old"),
    ),
    "names": Hazard(
        colliding,
        run="echo more >> readme; cp 'ünï çödé/大.txt' 'ünï çödé/größe.txt'",
        check="test -s 'ünï çödé/größe.txt'",
        after=as_named,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HAZARDS)
def test_it_works_or_is_refused_before_anything_runs(name: str, tmp_path: Path) -> None:
    """What is told is told by `start`, and the work lands, or nothing is begun."""
    hazard = HAZARDS[name]
    if hazard.needs and shutil.which(hazard.needs) is None:
        pytest.skip(f"{hazard.needs} is not here")
    with opened(tmp_path) as repo:
        if hazard.make is not empty:
            repo.found()
        hazard.make(repo)
        task = f"{{id: a, run: {quoted(hazard.run)}, check: {quoted(hazard.check)}}}"
        repo.write({"plan.md": f"---\nid: p\ntasks: [{task}]\n---\n# A plan\n"})
        (repo.desk / "ignored").write_text("plan.md\nloopr.yml\nspecs\n")
        repo.git("config", "core.excludesFile", str(repo.desk / "ignored"))
        text = f"{LADDER}{hazard.settings}retry: {{no_progress: 2, base_secs: 0.05}}\n"
        repo.write({"loopr.yml": f"worktrees: {{min_free_gb: 0, setup: {quoted(hazard.setup) or 'null'}}}\n{text}"})
        said = repo.loopr("start", "plan.md", code=hazard.code, **hazard.environ)
        assert [each for each in hazard.told if each not in said.err] == [], said.err
        assert [each for each in hazard.untold if each in said.err] == [], said.err
        if not (hazard.told or hazard.untold):
            assert said.err.startswith("p: 2 new\n")
        hazard.after(repo)


def quoted(text: str) -> str:
    """Write a text as YAML."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"' if text else ""


def test_a_real_husky_parks_nobody(tmp_path: Path) -> None:
    """`npm install` in each worktree sets the folder of hooks for all: it is put back, told once, and work goes on."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not here")
    package = '{"private": true, "scripts": {"prepare": "husky"}, "devDependencies": {"husky": "9.1.7"}}'
    install = "npm install --no-audit --no-fund --prefer-offline"
    with opened(tmp_path) as repo:
        repo.found(
            {
                "package.json": package,
                ".gitignore": "node_modules\n",
                ".husky/pre-commit": "exit 1\n",
            }
        )
        tried = subprocess.run(install.split(), cwd=repo.root, capture_output=True, check=False, env=repo.env)
        if tried.returncode:
            pytest.skip("husky cannot be had")
        doctor = repo.loopr("doctor").out
        assert "loopr's commits run no hook of .husky: pre-commit\n" in doctor
        repo.git("config", "--unset", "core.hooksPath")
        repo.git("add", "--all")
        repo.git("commit", "--quiet", "--message=lock")
        repo.settings(LADDER, worktrees=f", setup: {install}")
        tasks = ", ".join(f"{{id: {each}, run: echo x > {each}.txt}}" for each in "ab")
        repo.write({"plan.md": f"---\nid: p\ntasks: [{tasks}]\n---\n"})
        repo.loopr("start", "plan.md")
        assert set(repo.statuses().values()) == {"complete"}
        without_hooks_path(repo)


def test_doctor_names_what_loopr_does_not_share(tmp_path: Path) -> None:
    """Each is a remark with its cure; a filter without which no worktree can be made is wrong."""
    with opened(tmp_path) as repo:
        repo.found()
        submodule(repo)
        attributes("*.bin filter=none", "big.bin", "big\n")(repo)
        repo.settings("commit: {signoff: true}\n")
        hook("prepare-commit-msg", "exit 1")(repo)
        settings(
            "commit.gpgsign=true",
            "filter.none.required=true",
            "filter.none.clean=./no-such-program %f",
        )(repo)
        nobody = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "EMAIL": ""}
        named = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
        for each in named:
            repo.env.pop(each, None)
        found = repo.loopr("doctor", "--json", code=78, **nobody).document["checks"]
        told = {(each["ok"], each["text"]) for each in found}
        assert told >= {
            (None, "submodules are empty in worktrees: lib"),
            (
                False,
                "big.bin goes through filter.none, and ./no-such-program is not here: no worktree can be made",
            ),
            (None, "loopr's commits run no hook of .git/hooks: prepare-commit-msg"),
            (None, "commit.gpgsign is set, and loopr's commits are not signed"),
            (None, "commit.signoff is true, and git does not know who commits"),
        }
        assert all(each["hint"] for each in found if each["check"] in ("submodules", "filters", "commits"))
