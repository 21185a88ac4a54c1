"""A virtual environment that is active in the checkout, as a worktree sees it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopr.world.activated import leads_to, left_out, seen_from
from loopr.world.repo.venvs import made_anew

OUTER = "/usr/bin"


def environment(top: Path, *, editable: bool) -> Path:
    """Make what counts as a virtual environment in a checkout."""
    home = top / ".venv"
    site = home / "lib/python3.12/site-packages"
    for folder in (home / "bin", site):
        folder.mkdir(parents=True)
    (home / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (site / "own.pth").write_text(f"{top}/src\n" if editable else "import site\n")
    return home


@pytest.mark.parametrize("editable", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("strict", [True, False])
def test_a_worktree_gets_its_own(tmp_path: Path, *, editable: bool, is_there: bool, strict: bool) -> None:
    """It is the one at the same place of the worktree; where none is, one that runs the checkout's files is none."""
    top, folder = tmp_path / "top", tmp_path / "tree"
    home = environment(top, editable=editable)
    (folder / ".venv/bin" if is_there else folder).mkdir(parents=True)
    said = {"PATH": f"{home}/bin{os.pathsep}{OUTER}", "VIRTUAL_ENV": str(home), "A": "1"}
    seen = seen_from(said, top, folder, strict=strict)
    if is_there:
        found = folder / ".venv"
    else:
        found = None if editable and strict else home
    path = [f"{found}/bin"] if found else []
    assert seen["PATH"].split(os.pathsep) == [*path, OUTER]
    assert seen.get("VIRTUAL_ENV") == (str(found) if found else None)
    assert seen["A"] == "1"
    assert left_out(said, top) == (".venv" if editable else "")
    assert leads_to(home, top) is editable


def test_what_lies_elsewhere_stays(tmp_path: Path) -> None:
    """An environment outside the checkout, and the checkout itself, are as they were."""
    top, folder = tmp_path / "top", tmp_path / "tree"
    home = environment(tmp_path / "other", editable=True)
    top.mkdir()
    folder.mkdir()
    said = {"PATH": f"{home}/bin:{OUTER}", "VIRTUAL_ENV": str(home)}
    assert seen_from(said, top, folder) == said
    assert seen_from(said, tmp_path / "other", tmp_path / "other") == said


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("[project.optional-dependencies]\ntest = ['pytest']\n", "'.[test]'"),
        ("[project.optional-dependencies]\ndocs = ['mkdocs']\n", "."),
        ("[project]\nname = 'x'\n", "."),
        ("not toml", "."),
    ],
)
def test_the_line_has_the_extra_that_tests_need(tmp_path: Path, text: str, needs: str) -> None:
    """What makes one anew installs the project with the extra of its tests, if it names one."""
    (tmp_path / "pyproject.toml").write_text(text)
    assert made_anew(tmp_path, ".venv").endswith(f'.venv/bin/pip install -e {needs}"}}')
