"""A shell in the worktree of a loop: where it opens, and why it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopr.core.model import Failure
from loopr.world.repo import returning, worktrees
from loopr.world.repo.ground import Ground
from tests.ui.calls import git, loopr, program
from tests.ui.scenes import COMMANDS, Desk, flat


@pytest.fixture
def ground(shop: Desk) -> Ground:
    """Give the repository of a workspace in which p/a is leased and has its worktree, and p/b waits."""
    shop.write("loopr.yml", COMMANDS + "concurrency: {per_type: {spec: 1}}\n")
    shop.start(flat(["a", "b"]))
    shop.choose()
    found = shop.branch()
    worktrees.take(found, "p.a.g1", git(shop.folder, "rev-parse", "main"))
    return found


def test_a_command_in_the_worktree(shop: Desk, ground: Ground) -> None:
    """The command runs there, after the folder and the branch were named, and its exit code is the verb's."""
    ran = program(shop.folder, "shell", "a", "--", "sh", "-c", "pwd; git branch --show-current; exit 7")
    folder = ground.worktrees / "p.a.g1"
    assert ran.stdout.decode().splitlines() == [str(folder), "loopr/p.a.g1"]
    assert ran.stderr.decode().splitlines() == [
        "p/a: worktrees/p.a.g1, on loopr/p.a.g1",
        "try 1 is at work there: what you change is committed as its own",
    ]
    assert ran.returncode == 7


def test_the_shell_of_a_person(shop: Desk, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a command $SHELL is started there, with nothing that would lead git elsewhere."""
    shell = tmp_path / "my shell"
    shell.write_text('#!/bin/sh\necho "$PWD" "${GIT_DIR-none}" "$GIT_CEILING_DIRECTORIES"\n')
    shell.chmod(0o755)
    monkeypatch.setenv("SHELL", str(shell))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    ran = program(shop.folder, "shell", "a")
    assert ran.stdout.decode().strip() == f"{ground.worktrees}/p.a.g1 none {ground.worktrees}"


def test_no_warning_while_nothing_runs_there(shop: Desk, ground: Ground) -> None:
    """Between two attempts there is nobody to disturb."""
    shop.run("p/a")
    shop.end("p/a", Failure.REFUSED, "no")
    assert b"at work" not in program(shop.folder, "shell", "a", "--", "true").stderr


def test_where_it_is(shop: Desk, ground: Ground) -> None:
    """As JSON the place is said, and nothing is started."""
    body = shop("shell", "a", "--json").document
    folder = str(ground.worktrees / "p.a.g1")
    assert (body["id"], body["folder"], body["branch"], body["busy"]) == ("p/a", folder, "loopr/p.a.g1", True)
    assert shop("shell", "a", "--json", "--", "true").code == 2


def test_what_has_no_worktree(shop: Desk, ground: Ground) -> None:
    """A loop that was never leased, one whose work is done, and one that waits each say why there is none."""
    answer = shop("shell", "b")
    assert (answer.code, "p/b has no worktree: it never began, and is waiting" in answer.err) == (3, True)
    returning.release(ground, "p.a.g1", derived=True)
    answer = shop("shell", "a")
    assert (answer.code, "p/a has no worktree now: it is starting" in answer.err) == (3, True)
    shop.land("p/a", "k")
    answer = shop("shell", "p/a")
    assert (answer.code, "given back when its work was done" in answer.err) == (3, True)


def test_one_that_was_set_aside_is_named(shop: Desk, ground: Ground) -> None:
    """A worktree that something may still live in is not opened, but named."""
    returning.set_aside(ground, "p.a.g1", "its host was lost")
    answer = shop("shell", "a")
    assert (answer.code, f"lies in {ground.worktrees / 'p.a.g1'}" in answer.err) == (3, True)


def test_a_program_that_is_not_there(shop: Desk, ground: Ground) -> None:
    """A misspelt program is named, without a traceback."""
    ran = program(shop.folder, "shell", "a", "--", "no-such-program")
    assert (ran.returncode, b"no-such-program cannot be started: no such file" in ran.stderr) == (2, True)


def test_without_a_repository(tmp_path: Path) -> None:
    """A loop that works without git has a folder and no branch."""
    (tmp_path / "loopr.yml").write_text(COMMANDS)
    (tmp_path / "plan.md").write_text(flat(["a"]))
    assert loopr("start", "-C", tmp_path, "--no-run", tmp_path / "plan.md").code == 0
    assert loopr("shell", "-C", tmp_path, "a").code == 3
    (tmp_path / "worktrees" / "p.a.g1").mkdir(parents=True)
    assert program(tmp_path, "shell", "a", "--", "pwd").stdout.decode().strip() == str(tmp_path / "worktrees/p.a.g1")
