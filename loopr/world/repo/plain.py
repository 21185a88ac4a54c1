"""The plain folders of loops that work without git, `worktree: false`: made, told from a person's, taken away.

Knows the folder of worktrees, where nothing else may be removed. Must never know git: where there is no repository it
does the same.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL

from loopr.errors import WorldError
from loopr.world.repo.words import Leftover

_MARK = Path(".loopr") / "plain"
_GOING = ".gone"
_CLEAR = 'rm -rf -- "$0"; rmdir -- "$1"'  # all of it: an engine that ends does not wait for this


def ensure_plain(worktrees: Path, name: str) -> Path:
    """Give a loop its plain folder, the one that it has or a new one, and return where it is."""
    folder = worktrees / name
    try:
        folder.mkdir()
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        _check_ours(folder)
    mark = folder / _MARK
    mark.parent.mkdir(exist_ok=True)
    os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
    return folder


def _check_ours(folder: Path) -> None:
    """Refuse a folder that is a worktree, or that is none at all."""
    if folder.is_symlink() or not folder.is_dir() or os.path.lexists(folder / ".git"):
        raise WorldError(f"{folder} is in the way: it is not a plain folder", hint="move it away; `loopr gc` names it")


def plain_folders(worktrees: Path, in_use: Set[str], occupied: Callable[[Path], str]) -> Iterator[Leftover]:
    """Judge the plain folders, and those with nothing in them; of all others nothing is known here."""
    for folder in sorted(worktrees.iterdir()) if worktrees.is_dir() else ():
        ours = folder.is_dir() and not folder.is_symlink() and not folder.name.startswith(".")
        if not ours or os.path.lexists(folder / ".git"):
            continue
        plain = (folder / _MARK).is_file()
        if not plain and any(folder.iterdir()):
            continue
        why = "in use" if folder.name.partition("~")[0] in in_use else occupied(folder)
        text = why or ("its loop is over" if plain else "it is empty")
        yield Leftover("folder", folder.name, str(folder), not why, text)


def remove_plain(worktrees: Path, names: Iterable[str]) -> set[str]:
    """Remove plain or empty folders, out of sight by rename first, so that no half of one is ever there; say which."""
    gone: set[str] = set()
    there = [name for name in names if os.path.lexists(worktrees / name)]
    if not there:  # nothing is made that an engine which ends just now would leave behind
        return gone
    with _out_of_sight(worktrees / _GOING) as place:
        for name in there:
            folder = worktrees / name
            if Path(name).name == name and not name.startswith(".") and not folder.is_symlink():
                with suppress(OSError):
                    if (folder / _MARK).is_file() or not any(folder.iterdir()):
                        folder.rename(place / name)
                        gone.add(name)
    clear_going(worktrees)
    return gone


@contextmanager
def _out_of_sight(going: Path) -> Iterator[Path]:
    """Give a place that is nobody else's to clear, until it is left: other threads and processes clear theirs."""
    while True:
        if going.is_symlink():
            going.unlink()
        going.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # another one found it empty, and cleared it before it was held
            place = Path(tempfile.mkdtemp(dir=going))
            descriptor = _hold(place)
            if descriptor is not None:
                break
    try:
        yield place
    finally:
        os.close(descriptor)


def _hold(place: Path) -> int | None:
    """Hold a place out of sight; None where another one does, or has cleared it."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.lexists(place):  # no other place ever has its name
            return descriptor
    os.close(descriptor)
    return None


def clear_going(worktrees: Path) -> None:
    """Remove what is out of sight already, and what a crash has left there, but for what another one holds.

    A process of its own does it as far as it can: a thread of ours would hold up all others at every file.
    """
    going = worktrees / _GOING
    with suppress(OSError):
        if going.is_symlink():  # what lies where it leads is not ours
            going.unlink()
        for place in sorted(going.iterdir()):
            _clear(place)
        going.rmdir()


def _clear(place: Path) -> None:
    """Remove a place out of sight, unless another one is about to fill it."""
    with suppress(OSError):
        descriptor = _hold(place)
        if descriptor is None:
            return
        try:
            rm = ["sh", "-c", _CLEAR, str(place), str(place.parent)]
            subprocess.run(rm, check=False, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
            shutil.rmtree(place, ignore_errors=True)
        finally:
            os.close(descriptor)
