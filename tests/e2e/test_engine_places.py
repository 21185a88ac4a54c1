"""Repositories of all kinds, and a user's own things in them that must not matter, or that must be told clearly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = "---\nid: demo\nchildren: [{id: a}, {id: b, needs: [a]}]\n---\n# Demo\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository that is not founded yet."""
    with opened(tmp_path) as found:
        yield found


def types(repo: Repo, script: str = "", check: str = "test -e README") -> str:
    """Return settings with a code type that adds a file, and a check."""
    run = repo.script("code", f'{script}\necho x > "$(basename "$LOOPR_LOOP").txt"')
    return f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', check: {check}}}\n"


def ready(repo: Repo, script: str = "") -> Repo:
    """Found the repository, with settings and a plan of two loops."""
    repo.found()
    repo.settings(types(repo, script))
    repo.write({"plan.md": PLAN})
    return repo


def both_landed(repo: Repo) -> None:
    """See that both loops have landed."""
    assert set(repo.statuses().values()) == {"complete"}
    assert [each[0] for each in repo.landed("demo")] == ["demo/a", "demo/b"]


@pytest.mark.parametrize("name", ["with spaces in it", "Ünïcödé ☃ 文", "a'quote\"d $HOME", "-dash", "new\nline"])
def test_odd_paths(tmp_path: Path, name: str) -> None:
    """Spaces, quotes, other alphabets and a line break in the path of a repository make no difference."""
    with opened(tmp_path / "x", root=tmp_path / name / "repo") as repo:
        ready(repo)
        users = repo.users()
        repo.loopr("start", "plan.md")
        both_landed(repo)
        assert repo.users() == users


def test_a_workspace_that_was_moved(tmp_path: Path) -> None:
    """What waited for a word is judged and lands where it lies now, and nothing is made where it lay before."""
    before, after = tmp_path / "before", tmp_path / "after/repo"
    work = '{run: \'echo x > "$(basename "$LOOPR_LOOP").txt"\', check: test -e README, approve: true}'
    with opened(tmp_path / "x", root=before) as repo:
        repo.found()
        repo.settings(f"types:\n  plan: {{child: code}}\n  code: {work}\n")
        repo.write({"plan.md": PLAN.replace(", needs: [a]", "")})
        repo.loopr("start", "plan.md", code=4)
    after.parent.mkdir()
    before.rename(after)
    with opened(tmp_path / "y", root=after) as repo:
        repo.loopr("approve", "demo/a", "demo/b")  # whichever lands later is judged once more, upon the other
        repo.loopr("run")
        both_landed(repo)
    assert not before.exists()


def test_odd_names_of_files(repo: Repo) -> None:
    """Files whose names have spaces, line breaks, quotes or bytes that are no text land as they are."""
    odd = """touch 'a b' 'ü"' "$(printf 'new\\nline')" "$(printf 'no\\377text')"; mkdir -- -x; touch ./-x/-y"""
    ready(repo, f'test "$LOOPR_LOOP" = demo/b || {{ {odd}; }}')
    repo.loopr("start", "plan.md")
    both_landed(repo)
    files = repo.git("-c", "core.quotePath=true", "ls-tree", "-r", "--name-only", "loopr/demo").splitlines()
    assert {"a b", '"\\303\\274\\""', '"new\\nline"', '"no\\377text"', "-x/-y"} <= set(files)


def test_from_a_folder_below(repo: Repo) -> None:
    """A start from a folder below the workspace is a start of the same workspace."""
    ready(repo)
    (repo.root / "deep/er").mkdir(parents=True)
    repo.loopr("start", "../../plan.md", cwd=repo.root / "deep/er")
    both_landed(repo)
    assert not (repo.root / "deep/er/specs").exists()


def test_a_detached_head(repo: Repo) -> None:
    """With a detached HEAD the plan begins at that commit, and HEAD stays where it is."""
    ready(repo)
    repo.git("checkout", "--quiet", "--detach")
    head = repo.git("rev-parse", "HEAD")
    line = "loopr land demo --onto BRANCH"
    assert f"next: `{line}`" in repo.loopr("start", "plan.md").err
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.git("rev-parse", "HEAD") == head
    assert f"`{line}`" in repo.loopr("status").out
    assert f"next: `{line}`" in repo.loopr("start", "plan.md").err
    assert repo.git("merge-base", "loopr/demo", "HEAD") == head
    repo.loopr("land", "demo", "--onto", "main", "--yes")
    assert line not in repo.loopr("status").out
    assert "next: `loopr tree`" in repo.loopr("start", "plan.md").err


def test_without_a_commit(repo: Repo) -> None:
    """In a repository without a commit a start is refused with 78, in words that say what to do."""
    repo.root.mkdir()
    repo.git("init", "--quiet")
    text = "worktrees: {min_free_gb: 0}\nretry: {max_attempts: 1}\n" + types(repo)
    repo.write({"loopr.yml": text, "plan.md": PLAN})
    end = repo.loopr("start", "plan.md", code=78)
    assert "commit" in end.err
    assert repo.git("for-each-ref") == ""
    assert repo.loopr("start", "plan.md", "--json", code=78).document["error"]["hint"]


def test_without_a_repository(repo: Repo) -> None:
    """Without a repository loops work in folders of their own, and their artifacts are all that counts."""
    repo.root.mkdir()
    script = 'pwd >> "$DESK/places"; ls >> "$DESK/seen"; printf "# By %s\\n" "$LOOPR_LOOP" > "$LOOPR_OUTPUT"'
    run = repo.script("code", script)
    repo.write(
        {
            "loopr.yml": f"worktrees: {{min_free_gb: 0}}\ntypes:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\n",
            "plan.md": PLAN,
        }
    )
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    assert len(set(repo.note("places").splitlines())) == 2
    assert repo.note("seen") == ""
    assert (repo.root / "specs/demo/b/code.md").read_text() == "# By demo/b\n"
    assert (repo.root / ".loopr/loopr.db").exists()
    repo.loopr("start", "plan.md")
    assert len(repo.note("places").splitlines()) == 2


def test_a_bare_repository(repo: Repo) -> None:
    """In a bare repository loops work and land as in any other; it has no checkout that could be touched."""
    repo.root = repo.desk.parent / "source"
    repo.found()
    repo.settings(types(repo))
    bare = repo.desk.parent / "bare.git"
    repo.git("clone", "--quiet", "--bare", str(repo.root), str(bare))
    repo.root = bare
    repo.write({"plan.md": PLAN, "loopr.yml": "worktrees: {min_free_gb: 0}\n" + types(repo)})
    repo.loopr("start", "plan.md")
    both_landed(repo)
    assert not (bare / ".git").exists()


def test_a_linked_worktree(repo: Repo) -> None:
    """In a linked worktree of the user's, loops work and land, and both checkouts are left alone."""
    ready(repo)
    linked = repo.desk.parent / "linked"
    repo.git("worktree", "add", "--quiet", "-b", "mine", str(linked))
    before = repo.users()
    repo.root, main = linked, repo.root
    repo.write({"plan.md": PLAN})
    repo.loopr("start", "plan.md")
    both_landed(repo)
    assert repo.git("status", "--porcelain", "--untracked-files=no") == ""
    repo.root = main
    assert repo.users() == before


@pytest.mark.parametrize("hook", ["pre-commit", "post-checkout", "reference-transaction", "commit-msg", "post-commit"])
def test_a_hook_that_fails(repo: Repo, hook: str) -> None:
    """The engine's own calls run no hook of the user's, so that one that fails, or writes, is no matter."""
    ready(repo)
    path = repo.root / ".git/hooks" / hook
    path.write_text(f'#!/bin/sh\necho {hook} >> "$DESK/hooks"\nexit 1\n')
    path.chmod(0o755)
    repo.loopr("start", "plan.md")
    both_landed(repo)
    assert repo.note("hooks") == ""


def test_hostile_settings_of_git(repo: Repo) -> None:
    """Signing, a template, automatic maintenance and line endings that the user has set do not get in the way."""
    ready(repo)
    for key, value in {
        "commit.gpgSign": "true",
        "gpg.program": "false",
        "core.autocrlf": "true",
        "merge.ff": "only",
        "core.fsmonitor": "false",
        "gc.auto": "1",
        "user.useConfigOnly": "true",
        "core.hooksPath": "/nowhere",
        "status.showUntrackedFiles": "no",
        "diff.noprefix": "true",
        "core.logAllRefUpdates": "always",
    }.items():
        repo.git("config", key, value)
    repo.loopr("start", "plan.md")
    both_landed(repo)
    assert repo.git("cat-file", "-p", "loopr/demo:a.txt") == "x"


def test_without_an_identity(repo: Repo) -> None:
    """Where git knows no name and no address, the engine supplies one for its commits."""
    ready(repo)
    for name in [each for each in repo.env if each.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))]:
        del repo.env[name]
    repo.loopr("start", "plan.md")
    both_landed(repo)


@pytest.mark.parametrize("branch", ["loopr/demo", "loopr"])
def test_a_branch_of_that_name(repo: Repo, branch: str) -> None:
    """A branch of the user's where the plan's should be is told with 78, by its name, and is left as it is."""
    ready(repo)
    repo.git("commit", "--quiet", "--allow-empty", "--message=other")
    repo.git("branch", branch)
    repo.git("reset", "--quiet", "--hard", "HEAD~1")
    tip = repo.git("rev-parse", branch)
    end = repo.loopr("start", "plan.md", code=78)
    assert branch in end.err
    assert repo.git("rev-parse", branch) == tip


def test_the_plan_branch_is_checked_out(repo: Repo) -> None:
    """While a person has the plan's branch checked out it stays, and all land; it follows once that is over."""
    ready(repo, 'if test "$LOOPR_LOOP" = demo/a; then tell a; wait_at gate; fi')
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard()
    place = repo.desk.parent / "look here"
    repo.git("worktree", "add", "--quiet", str(place), "loopr/demo")
    gate.open()
    process.ended()
    assert repo.git("rev-parse", "loopr/demo") == repo.git("rev-parse", "main")
    assert "look here" in repo.events("problem_seen")[-1]["data"]["text"]
    repo.git("worktree", "remove", "--force", str(place))
    repo.loopr("run")
    both_landed(repo)


def test_a_plan_branch_that_moved_forward(repo: Repo) -> None:
    """What a person commits on the plan's branch meanwhile is kept until it is adopted; nothing lands on top of it."""
    ready(repo, 'if test "$LOOPR_LOOP" = demo/a; then tell a; wait_at gate; fi')
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard()
    commit = repo.git("commit-tree", "-m", "mine", "-p", "loopr/demo", "loopr/demo^{tree}")
    repo.git("update-ref", "refs/heads/loopr/demo", commit)
    gate.open()
    process.ended()
    assert commit not in repo.git("log", "--format=%H", "loopr/demo").splitlines()
    assert [each[0] for each in repo.landed("demo")] == ["demo/a", "demo/b"]
    repo.loopr("adopt", "demo")
    assert commit in repo.git("log", "--format=%H", "loopr/demo").splitlines()


@pytest.mark.parametrize(
    "deed",
    [
        "rm -rf .git",
        "git checkout --quiet --detach",
        "git commit --quiet --allow-empty -m x",
        "git reset --quiet --hard; git clean -qfdx",
        "rm -rf .loopr",
    ],
)
def test_what_commands_do_to_their_worktree(repo: Repo, deed: str) -> None:
    """Whatever a command does to its own worktree, what it wrote lands, and the user's checkout is as it was."""
    repo.found()
    write = 'echo x > "$(basename "$LOOPR_LOOP").txt"'
    run = repo.script("code", f"{write}\n{{ {deed}; }} > /dev/null\n{write}")
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'}}\nretry: {{max_attempts: 1}}\n")
    repo.write({"plan.md": PLAN})
    users = repo.users()
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    assert {"a.txt", "b.txt"} <= set(repo.git("ls-tree", "--name-only", "loopr/demo").splitlines())
    mine = [each for each in repo.users() if "refs/heads/mine" not in each]
    assert tuple(mine) == users


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("git tag main", "refs/tags/main"),
        ("git update-ref refs/heads/main $(git commit-tree -m x HEAD^{tree})", "refs/heads/main"),
        ("git config core.editor false", "config core.editor"),
        ('echo exit 1 > "$LOOPR_WORKSPACE/.git/hooks/pre-push"', "hooks"),
        ("echo y > y; git add y; git stash --quiet", "stash"),
    ],
    ids=["tag", "main", "config", "hook", "stash"],
)
def test_what_all_worktrees_share(repo: Repo, deed: str, words: str) -> None:
    """A command that changes what is not its own parks its loop, with the name of what was changed; nothing is lost."""
    ready(repo, f'test "$LOOPR_LOOP" = demo/b || {{ {deed}; }}')
    repo.loopr("start", "plan.md", code=1)
    loop = repo.loops()["demo/a"]
    assert loop["status"] == "parked"
    assert words in loop["reason"]
    assert repo.git("show", "loopr/demo.a.g1:a.txt") == "x"
    assert repo.landed("demo") == [] if words != "refs/heads/main" else True


def test_what_harms_nobody_parks_nobody(repo: Repo) -> None:
    """New tags and branches, and what a person or a branch is said to be, park no loop, and are told in the events."""
    deeds = "git tag v1; git branch mine; git config user.email me@here; git config branch.mine.merge refs/heads/main"
    ready(repo, f'test "$LOOPR_LOOP" = demo/b || {{ {deeds}; }}')
    told = repo.loopr("start", "plan.md")
    both_landed(repo)
    (grown,) = repo.events("shared_grew")
    names = ["config branch.mine.merge", "config user.email", "refs/heads/mine", "refs/tags/v1"]
    assert sorted(grown["data"]["names"]) == names
    assert "config user.email" in told.err


def test_work_that_may_not_land(repo: Repo) -> None:
    """Secrets, a link out of the tree and a repository within are refused by name, as feedback for the next try."""
    script = """
    cp "$LOOPR_FEEDBACK_FILE" "$DESK/feedback.$LOOPR_ITERATION"
    if test $LOOPR_ITERATION = 1; then
      echo TOKEN=1 > .env; ln -s /etc/passwd out
      git init --quiet within; git -C within commit --quiet --allow-empty -m x
    else rm -rf .env out within; fi
    """
    ready(repo, script)
    repo.loopr("start", "plan.md")
    said = repo.note("feedback.2")
    assert ".env" in said and "out" in said and "within" in said, said
    both_landed(repo)
    assert repo.git("log", "--all", "--format=%H", "--", ".env") == ""


def test_an_ignored_specs_folder(repo: Repo) -> None:
    """specs/ and worktrees/ never land, whether or not a command forces them into its commits."""
    write = "mkdir -p specs/demo worktrees; echo mine > specs/demo/plan.md; echo x > worktrees/x"
    ready(repo, f"{write}; git add -f specs worktrees || true")
    repo.loopr("start", "plan.md")
    both_landed(repo)
    files = repo.git("ls-tree", "-r", "--name-only", "loopr/demo").splitlines()
    assert not [each for each in files if each.startswith(("specs/", "worktrees/"))]
    assert "children" in (repo.root / "specs/demo/plan.md").read_text()
