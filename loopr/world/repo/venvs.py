"""Virtual environments in a checkout: folders whose programs run the files of that very checkout.

Knows the mark of one. Must never make one, nor run its programs.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from loopr.world.repo.pip_needs import needs_of

MARK = "pyvenv.cfg"


def environment_of(top: Path, path: str) -> str:
    """Return the virtual environment that a path of a checkout lies in; nothing for none."""
    folders = (str(each) for each in PurePosixPath(path).parents if str(each) != ".")
    return next((each for each in folders if (top / each / MARK).is_file()), "")


def environments_among(top: Path, paths: Iterable[str]) -> list[str]:
    """List the virtual environments that some files of a checkout lie in."""
    folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
    above = (each for folder in folders for each in PurePosixPath(f"{folder}/-").parents)
    names = dict.fromkeys(str(each) for each in above if str(each) != ".")
    return [each for each in names if (top / each / MARK).is_file()]


def made_anew(top: Path, folder: str, texts: Iterable[str] = ()) -> str:
    """Write the setting that makes a virtual environment in each worktree.

    It installs the needs of the project's tests, and the tools that texts of commands name besides.
    """
    steps = steps_anew(top, folder, texts)
    return f"worktrees: {{setup: {json.dumps(steps, ensure_ascii=False)}}}"


def steps_anew(top: Path, folder: str, texts: Iterable[str] = ()) -> str:
    """Write the commands that make such an environment, as one text for the shell."""
    at = shlex.quote(folder)
    there = ("pytest",) if (top / folder / "bin/pytest").exists() else ()
    needs = needs_of(top, texts, there)
    steps = [f"python -m venv {at}"]
    steps += [f"{at}/bin/pip install --upgrade pip"] * needs.by_group
    steps += [f"{at}/bin/pip install {needs}"] if needs.words else []
    return " && ".join(steps)
