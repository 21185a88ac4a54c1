"""Files that lead back into the checkout when they are copied: which there are, and that none is copied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopr.errors import SettingsError
from loopr.world.repo.ties import naming, ties_among
from tests.world.repo.grounds import begin, git, ground_of, plant, take, write

NAME = "oauth.one.g1"


def ties(top: Path, *paths: str) -> list[str]:
    """Name the files of a folder that lead back into it."""
    return [each.place for each in ties_among(top, paths)]


def test_a_virtual_environment_is_one_wherever_it_lies(tmp_path: Path) -> None:
    """The files of an environment are told once, as the folder with its mark."""
    write(tmp_path, {".tox/py311/pyvenv.cfg": "", ".tox/py311/bin/a": "", ".tox/log/b": ""})
    assert ties(tmp_path, ".tox/py311/bin/a", ".tox/py311/lib/x.py", ".tox/log/b") == [".tox/py311"]


@pytest.mark.parametrize(
    ("name", "text", "leads"),
    [
        ("lib/x.pth", "{top}/src\n", True),
        ("lib/x.pth", "{top}-other/src\n", False),
        ("lib/x.pth", "import sys\n", False),
        ("lib/__editable___x_finder.py", "MAPPING = {{'x': '{top}/src/x'}}\n", True),
        ("lib/x.egg-link", "{top}\n.", True),
        ("bin/x", "#!{top}/py/bin/python\nimport x\n", True),
        ("bin/x", "#!/bin/sh\n'''exec' {top}/py/bin/python \"$0\" \"$@\"\n", True),
        ("bin/x", "#!/usr/bin/python3\nROOT = 1\nAT = '{top}'\n", False),
        ("bin/x", "\x7fELF {top}", False),
        ("x.cfg", "#!{top}/py/bin/python\n", False),
    ],
)
def test_a_file_leads_back_by_its_kind(tmp_path: Path, name: str, text: str, *, leads: bool) -> None:
    """Lists of folders and first lines lead somewhere; other text that names the checkout does not."""
    write(tmp_path, {name: text.format(top=tmp_path)})
    assert ties(tmp_path, name) == ([name] if leads else [])


def test_a_link_leads_back_if_it_leaves_and_returns(tmp_path: Path) -> None:
    """One within the checkout leads to the worktree's own files there; one to elsewhere is its own."""
    top, far = tmp_path / "top", tmp_path / "far"
    write(top, {"packages/a/index.js": "", "node_modules/.keep": ""})
    write(far, {"b": ""})
    (far / "a").symlink_to(top / "packages/a")
    links = {
        "node_modules/npm-linked": "../../far/a",
        "node_modules/absolute": f"{top}/packages/a",
        "node_modules/workspace": "../packages/a",
        "node_modules/store": f"{far}/b",
        "node_modules/gone": "../../nowhere",
        "node_modules/itself": "itself",
        "here": ".",
    }
    for name, target in links.items():
        (top / name).symlink_to(target)
    assert ties(top, *links) == ["node_modules/npm-linked", "node_modules/absolute"]


def test_a_link_to_an_environment_outside(tmp_path: Path) -> None:
    """It leads back only where a list of folders in there names the checkout."""
    top, home = tmp_path / "top", tmp_path / "env"
    site = "lib/python3.11/site-packages"
    write(home, {"pyvenv.cfg": "", f"{site}/a.pth": "/elsewhere\n"})
    top.mkdir()
    (top / ".venv").symlink_to(home)
    assert ties(top, ".venv") == []
    write(home, {f"{site}/__editable__.a.pth": f"{top}/src\n"})
    assert ties(top, ".venv") == [".venv"]


def test_small_files_that_name_the_checkout(tmp_path: Path) -> None:
    """They are found by its whole path; a pipe among them is not waited for."""
    write(tmp_path, {"a.env": f"A={tmp_path}\n", "b.env": f"A={tmp_path}2\n"})
    os.mkfifo(tmp_path / "pipe")
    assert naming(tmp_path, ["pipe", "a.env", "b.env"]) == ["a.env"]


def test_nothing_is_copied_that_leads_back(tmp_path: Path) -> None:
    """The worktree is refused with the line that names it; once that is mended it is made."""
    root = plant(tmp_path / "repo")
    write(root, {".gitignore": ".env\n.venv/\n", ".worktreeinclude": ".env\n# all of it\n.venv/**\n"})
    write(root, {".env": "A=1\n", ".venv/pyvenv.cfg": "", ".venv/bin/pytest": "#!/bin/sh\n"})
    git(root, "add", ".gitignore", ".worktreeinclude")
    git(root, "commit", "-qm", "ignore")
    ground = ground_of(root)
    begin(ground)
    with pytest.raises(SettingsError, match=r"\.worktreeinclude:3 copies \.venv, a virtual"):
        take(ground, NAME)
    write(root, {".worktreeinclude": ".env\n"})
    assert take(ground, NAME).copied == (".env",)
