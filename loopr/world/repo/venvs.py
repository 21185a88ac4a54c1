"""Virtual environments in a checkout: folders whose programs run the files of that very checkout.

Knows the mark of one. Must never make one, nor run its programs.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

MARK = "pyvenv.cfg"
_EXTRAS = ("test", "tests", "testing", "dev")
_PROJECTS, _LIST = ("pyproject.toml", "setup.py"), "requirements.txt"


def environment_of(top: Path, path: str) -> str:
    """Return the virtual environment that a path of a checkout lies in; nothing for none."""
    folders = (str(each) for each in PurePosixPath(path).parents if str(each) != ".")
    return next((each for each in folders if (top / each / MARK).is_file()), "")


def environments_among(top: Path, paths: Iterable[str]) -> list[str]:
    """List the virtual environments that some files of a checkout lie in."""
    folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
    return list(dict.fromkeys(filter(None, (environment_of(top, f"{each}/-") for each in folders))))


def made_anew(top: Path, folder: str) -> str:
    """Write the setting that makes a virtual environment in each worktree."""
    is_list = (top / _LIST).is_file() and not any((top / each).is_file() for each in _PROJECTS)
    needs, at = f"-r {_LIST}" if is_list else f"-e {_with_tests(top)}", shlex.quote(folder)
    return f'worktrees: {{setup: "python -m venv {at} && {at}/bin/pip install {needs}"}}'


def _with_tests(top: Path) -> str:
    """Name the project with the extra that its tests need, if it has one."""
    try:
        found = tomllib.loads((top / _PROJECTS[0]).read_text("utf-8"))
        extras = found["project"]["optional-dependencies"]
    except (OSError, ValueError, KeyError, TypeError):
        return "."
    name = next((each for each in _EXTRAS if each in extras), "")
    return f"'.[{name}]'" if name else "."
