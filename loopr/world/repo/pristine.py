"""How a worktree becomes as if it were new, whatever a command has done to it.

Knows what can be wrong with a checkout and its administrative folder. Must never know whose work was in it: whoever
asks for this has made sure that nothing is lost.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loopr.errors import WorldError
from loopr.world.repo.checkouts import read_line
from loopr.world.repo.rules import RULES_MARK, note_rules, put_seal, rules_differ, sealed, some_rules
from loopr.world.repo.slots import INDEX_MARK, LAST_LOOP, PRIVATE_INDEX, Opened, copy_over, note_index, write_line

_KEPT = frozenset({"HEAD", "commondir", "gitdir", "locked", PRIVATE_INDEX, INDEX_MARK, LAST_LOOP, RULES_MARK})
_OPEN = os.R_OK | os.W_OK | os.X_OK
_GITLINK = re.compile(rb"(?:^|\0)160000 [0-9a-f]+ 0\t([^\0]+)")


class Unclean(WorldError):
    """A worktree does not come clean; it is set aside with the reason, never deleted."""


def make_pristine(at: Opened, commit: str) -> None:
    """Make the worktree hold exactly this commit on its branch, and nothing else; `Unclean` if that cannot be."""
    admin, before = at.admin, read_line(at.admin / "HEAD")
    filled = (admin / "modules").exists() or (at.place / ".gitmodules").exists()
    as_noted = sealed(at)  # looked at before the worktree's own settings go
    note_rules(at)  # for whoever comes after a crash
    purge(admin)  # with the index that commands could write to; ours has no odd flags
    if as_noted:
        with suppress(FileNotFoundError):
            (admin / PRIVATE_INDEX).replace(admin / "index")
    else:
        _empty(at.place)  # rules that lie about, tracked or not, would have a say in how files are written
    ruled = some_rules(admin / "index")
    left = _clean(at, commit, filled)
    ruled = ruled or some_rules(admin / "index")
    if left or (as_noted and ruled and rules_differ(at.door, before, commit)):
        remove(admin / "index")  # without an index every file is written anew
        left = _clean(at, commit, filled)
    if left:
        raise Unclean(f"{at.place} does not come clean: {left}")
    make_ready(at, commit)


def make_ready(at: Opened, commit: str) -> None:
    """Put a worktree that has the files and the index of a commit onto its branch."""
    remove(at.admin / "logs")  # it would tell of the last loop's commits
    put_seal(at)
    write_line(at.admin / "HEAD", f"ref: {at.branch}")
    copy_over(at.admin / "index", at.admin / PRIVATE_INDEX)
    note_index(at.admin, commit)


def _clean(at: Opened, commit: str, filled: bool) -> str:
    """Write the files of a commit, take away all else, and say what that met with."""
    written = at.door.ask("checkout", "--quiet", "--force", "--detach", commit)
    if written.code:
        at.door.ask("clean", "-ffdxq")
        return written.err.strip()
    if filled:
        _empty_submodules(at.place, at.door.run("ls-files", "-s", "-z").out)
    cleaned = at.door.ask("clean", "-ffdxq")
    if cleaned.code:
        return cleaned.err.strip() or "git clean failed"
    inner = sweep(at.place).repositories
    if inner:  # whose commits a checkout without an index would take away
        raise Unclean(f"{at.place} does not come clean: {inner[0]} is a repository of its own")
    return ""


def purge(admin: Path) -> None:
    """Remove all but the few known files from an administrative folder: half-done work, refs, settings, submodules."""
    for entry in os.scandir(admin):
        if entry.name not in _KEPT or (entry.is_dir(follow_symlinks=False) or entry.is_symlink()):
            remove(Path(entry.path))


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _empty(place: Path) -> None:
    """Take all files away but what ties the folder to git."""
    for entry in os.scandir(place):
        if entry.name != ".git":
            remove(Path(entry.path))


def _empty_submodules(place: Path, listed: bytes) -> None:
    """Take the files of submodules away; the shared settings, which deinit would change, are left alone."""
    for path in _GITLINK.findall(listed):
        folder = place / os.fsdecode(path)
        if folder.is_dir() and any(folder.iterdir()):
            remove(folder)
            folder.mkdir()


def _made_writable(folder: Path) -> bool:
    """Let files be made in a folder of ours, and say whether they may be; what was hidden in one stays so."""
    if os.access(folder, os.R_OK | os.X_OK):
        with suppress(OSError):
            folder.chmod(folder.stat().st_mode | stat.S_IWUSR)
    return os.access(folder, _OPEN)


class Swept(NamedTuple):
    """What git does not tell of a checkout: repositories in tracked folders, and folders with nothing in them."""

    repositories: list[str]
    empty: list[str]


def sweep(place: Path) -> Swept:
    """Remove pipes, sockets and devices, which git does not see, and say what else it does not.

    `Unclean` where a folder cannot be looked into, as git passes over it, or would keep the next loop from writing.
    """
    folders, found = [str(place)], Swept([], [])
    for folder in folders:  # it grows meanwhile
        is_empty = True
        if not os.access(folder, _OPEN) and not _made_writable(Path(folder)):
            raise Unclean(f"{folder} cannot be read or written to")
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == ".git" and folder is not folders[0]:
                    found.repositories.append(folder)
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    is_empty = False
                elif entry.is_dir(follow_symlinks=False):
                    is_empty = False
                    folders.append(entry.path)
                else:
                    remove(Path(entry.path))
        if is_empty:
            found.empty.append(folder)
    return found
