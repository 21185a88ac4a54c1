"""Commands that name the checkout by its whole path are told; a check that runs its files is asked about."""

from __future__ import annotations

import pytest

from tests.ui.scenes import Desk

SETTINGS = "version: 1\ntypes: {plan: {child: task}, task: {check: none}}\n"
PLAN = "---\nid: p\ntasks:\n  - {id: a, run: make a, check: '%s'}\n---\n"


@pytest.fixture
def env(desk: Desk) -> Desk:
    """Give a workspace whose checkout has a virtual environment that runs its files."""
    desk.write("loopr.yml", SETTINGS)
    desk.write(".venv/pyvenv.cfg", "home = /usr/bin\n")
    desk.write(".venv/lib/python3.11/site-packages/__editable__.p.pth", f"{desk.folder}/src\n")
    desk.write(".venv/bin/pytest", f"#!{desk.folder}/.venv/bin/python\n")
    desk.write(".venv/bin/ruff", b"\x7fELF")
    return desk


@pytest.mark.parametrize(
    "check", ["{}/.venv/bin/python -m pytest", "{}/.venv/bin/pytest -q", ". {}/.venv/bin/activate"]
)
def test_a_check_that_runs_the_checkout_is_asked_about(env: Desk, check: str) -> None:
    """It would judge the checkout: nothing is enqueued without a word, and the dry run says that it is asked."""
    text = PLAN % check.format(env.folder)
    refused = env.start(text)
    assert refused.code == 2
    assert "plan.md:4:5 check: " in refused.err
    assert "runs the files of your checkout, not those that would land" in refused.err
    assert "--yes takes it as it is" in refused.err
    assert "it would ask: plan.md:4:5 check: " in env("start", "-n", env.folder / "plan.md").err
    taken = env.start(text, "plan.md", "--yes")
    assert taken.code == 0
    assert "is in your checkout, and not in the worktree of a loop (write .venv/bin/" in taken.err


def test_the_check_of_landing_is_asked_about_too(env: Desk) -> None:
    """It judges what comes home, and would judge the checkout."""
    env.write("loopr.yml", f"{SETTINGS}land: {{check: '{env.folder}/.venv/bin/pytest'}}\n")
    refused = env.start(PLAN % "test -s a")
    assert (refused.code, "loopr.yml:3:" in refused.err, "land.check: " in refused.err) == (2, True, True), refused


@pytest.mark.parametrize("check", ["{}/.venv/bin/ruff check", "test -s {}/data/big", "test {}x -ot {}-2/y"])
def test_other_paths_are_told_at_most(env: Desk, check: str) -> None:
    """A program that reads no package of the checkout, a file, and a folder beside it keep nothing from starting."""
    told = env.start(PLAN % check.replace("{}", str(env.folder)))
    assert told.code == 0
    assert ("is in your checkout, and not" in told.err) is ("-ot" not in check), told.err


def test_an_environment_without_the_checkout_judges_well(env: Desk) -> None:
    """One into which the checkout is not installed runs the files of the worktree."""
    (env.folder / ".venv/lib/python3.11/site-packages/__editable__.p.pth").unlink()
    assert env.start(PLAN % f"{env.folder}/.venv/bin/pytest").code == 0
