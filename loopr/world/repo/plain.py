"""The plain folders of loops that work without git, `worktree: false`: made, told from a person's, taken away.

Knows the folder of worktrees, where nothing else may be removed. Must never know git: where there is no repository it
does the same.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from pathlib import Path

from loopr.errors import WorldError
from loopr.world.repo.words import Leftover

_MARK = Path(".loopr") / "plain"
_GOING = ".gone"
_OWN = frozenset({".pool", _GOING})


def ensure_plain(worktrees: Path, name: str) -> Path:
    """Give a loop its plain folder, the one that it has or a new one, and return where it is."""
    folder = worktrees / name
    if (folder / _MARK).is_file():
        return folder
    if os.path.lexists(folder / ".git") or folder.is_symlink():
        raise WorldError(f"{folder} is in the way: it is not a plain folder", hint="move it away; `loopr gc` names it")
    (folder / _MARK).parent.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).write_text(name, encoding="utf-8")
    return folder


def plain_folders(worktrees: Path, in_use: Set[str], occupied: Callable[[Path], str]) -> Iterator[Leftover]:
    """Judge the plain folders, and those with nothing in them; of all others nothing is known here."""
    for folder in sorted(worktrees.iterdir()) if worktrees.is_dir() else ():
        if folder.is_symlink() or not folder.is_dir() or folder.name in _OWN or os.path.lexists(folder / ".git"):
            continue
        plain = (folder / _MARK).is_file()
        if not plain and any(folder.iterdir()):
            continue
        why = "in use" if folder.name in in_use else occupied(folder)
        text = why or ("its loop is over" if plain else "it is empty")
        yield Leftover("folder", folder.name, str(folder), not why, text)


def remove_plain(worktrees: Path, name: str) -> bool:
    """Remove a plain or empty folder: out of sight by rename first, so that no half of one is ever there."""
    folder, going = worktrees / name, worktrees / _GOING
    if Path(name).name != name or name in _OWN:
        return False
    going.mkdir(exist_ok=True)
    with suppress(OSError):
        if not folder.is_symlink() and ((folder / _MARK).is_file() or not any(folder.iterdir())):
            folder.rename(Path(tempfile.mkdtemp(dir=going)) / name)
    shutil.rmtree(going, ignore_errors=True)  # also what a crash has left there
    return not folder.exists()
