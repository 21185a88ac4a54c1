"""How a folder becomes a workspace: what it lacks, what stands in the way, and how each thing is made.

Overwrites nothing, and tells of every obstacle before the first byte is written. Must never know which files and
folders a workspace has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from loopr.errors import Problem, SettingsError, WorldError

_STARTER = Path(__file__).with_name("starter.yml")
_NONE: Mapping[str, Sequence[str]] = {}
_PERMISSIONS = "check its owner, its permissions and whether the file system is mounted read-only"


class Step(NamedTuple):
    """One thing that a workspace has: what it is called, whether it is there, and how to make it."""

    name: str
    done: bool
    make: Callable[[], object]

    def take(self) -> None:
        """Make it, or say why that cannot be."""
        try:
            self.make()
        except OSError as error:
            raise WorldError(f"{self.name} cannot be made: {error.strerror or error}", hint=_PERMISSIONS) from error


def starter(blocks: Mapping[str, Sequence[str]] = _NONE) -> str:
    """Return the settings file that a workspace begins with, these blocks in the place of its examples."""
    text = _STARTER.read_text(encoding="utf-8")
    for name, lines in blocks.items():
        head, mark, rest = text.partition(f"#{name}:\n")
        behind = rest.partition("\n\n")[2] if mark else ""
        own = "".join(f"{each}\n" for each in lines)
        text = f"{head}{own}\n{behind}".rstrip("\n") + "\n" if mark else f"{text}\n{own}"
    return text


def file_step(root: Path, name: str, text: str) -> Step:
    """Return the step that writes a file which is not there; whoever is faster keeps theirs."""
    return Step(name, (root / name).is_file(), lambda: _write_new(root / name, text))


def folder_step(root: Path, name: str) -> Step:
    """Return the step that makes a folder."""
    return Step(f"{name}/", (root / name).is_dir(), lambda: (root / name).mkdir(parents=True, exist_ok=True))


def lines_step(file: Path, name: str, lines: Iterable[str]) -> Step:
    """Return the step that adds lines to a file which lacks them, anchored or not, and keeps all that is in it."""
    known = _lines(file)
    missing = [line for line in lines if known.isdisjoint({line, line.lstrip("/"), line.rstrip("/"), line.strip("/")})]
    return Step(name, not missing, lambda: _append(file, missing))


def ignore_line(folder: str) -> str:
    """Write the path of a folder as git reads it in a list of what to ignore."""
    return "/" + re.sub(r"([*?\[\\])", r"\\\1", folder) + "/"


def check_room(root: Path, files: Sequence[str], folders: Sequence[str]) -> None:
    """Refuse whatever stands in the way of these files and folders, all of it at once."""
    problems = [
        Problem("is not a file", name, "move it away: a file of that name belongs there")
        for name in files
        if os.path.lexists(root / name) and not (root / name).is_file()
    ]
    for name in folders:
        problems += [
            Problem("is a file where a folder belongs", way, "move it away, or name another folder in loopr.yml")
            for way in _ways(name)
            if os.path.lexists(root / way) and not (root / way).is_dir()
        ]
    lacking = not all((root / name).exists() for name in (*files, *folders))
    if lacking and not os.access(root, os.W_OK | os.X_OK):
        problems.append(Problem("cannot be written to", str(root), _PERMISSIONS))
    if problems:
        raise SettingsError("", problems=problems)


def _ways(name: str) -> list[str]:
    """List the folders on the way to one, itself included."""
    path = Path(name)
    return [str(each) for each in (*reversed(path.parents), path) if each.name]


def _write_new(file: Path, text: str) -> None:
    """Write a file that does not exist."""
    with file.open("x", encoding="utf-8") as opened:
        opened.write(text)


def _lines(file: Path) -> set[str]:
    """Return the lines of a file, none if there is no file."""
    try:
        return {line.strip() for line in os.fsdecode(file.read_bytes()).splitlines()}
    except FileNotFoundError:
        return set()


def _append(file: Path, lines: Sequence[str]) -> None:
    """Add lines at the end of a file, and change nothing before them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    old = file.read_bytes() if file.exists() else b""
    gap = b"" if not old or old.endswith(b"\n") else b"\n"
    with file.open("ab") as opened:
        opened.write(gap + os.fsencode("".join(f"{line}\n" for line in lines)))
