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

from loopr.errors import WorldError
from loopr.world.repo.calls import Door
from loopr.world.repo.ground import Ground
from loopr.world.repo.slots import PRIVATE_INDEX, Slot, point, write_line

_KEPT = frozenset({"HEAD", "commondir", "gitdir", "locked", "index", PRIVATE_INDEX})
_FLAGGED = re.compile(rb"(?:^|\0)(?!H )[^\0]")
_GITLINK = re.compile(rb"(?:^|\0)H 160000 [0-9a-f]+ 0\t([^\0]+)")


class Unclean(WorldError):
    """A worktree does not come clean; it is set aside with the reason, never deleted."""


def make_pristine(ground: Ground, slot: Slot, branch: str, commit: str, door: Door) -> None:
    """Make the worktree hold exactly this commit on this branch, and nothing else; `Unclean` if that cannot be."""
    admin, place = slot.admin(ground), slot.place(ground)
    purge(admin)
    point(ground, slot)
    write_line(admin / "HEAD", f"ref: {branch}")
    _trust_own_index(admin)
    listed = _check_out(door, admin, commit)
    _empty_submodules(place, listed)
    _sweep(place)
    cleaned = door.ask("clean", "-ffdxq")
    said = door.ask(
        *("status", "--porcelain", "-z", "--ignored=traditional", "--untracked-files=all", "--ignore-submodules=none"),
        variables={"GIT_OPTIONAL_LOCKS": "1"},
    )
    if said.code or said.out or cleaned.code:
        left = said.parts[:3] or [said.err.strip() or cleaned.err.strip()]
        raise Unclean(f"{place} does not come clean: {', '.join(left)}")
    shutil.copyfile(admin / "index", admin / PRIVATE_INDEX)


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


def _trust_own_index(admin: Path) -> None:
    """Put our copy of the index in the place of the one that commands could write to."""
    with suppress(FileNotFoundError):
        (admin / PRIVATE_INDEX).replace(admin / "index")


def _check_out(door: Door, admin: Path, commit: str) -> bytes:
    """Write the files of a commit and return the index's list; an index with odd flags, or a broken one, is dropped."""
    for _ in range(2):
        read = door.ask("read-tree", "--reset", "-u", "--no-sparse-checkout", commit)
        listed = door.ask("ls-files", "-v", "-f", "-s", "-z")
        if read.code == 0 and listed.code == 0 and not _FLAGGED.search(listed.out):
            return listed.out
        remove(admin / "index")
        door.ask("clean", "-ffdxq")
    raise Unclean(f"{door.work_tree} cannot be checked out: {read.err.strip() or listed.err.strip()}")


def _empty_submodules(place: Path, listed: bytes) -> None:
    """Take the files of submodules away; the shared settings, which deinit would change, are left alone."""
    for path in _GITLINK.findall(listed):
        folder = place / os.fsdecode(path)
        if folder.is_dir() and any(folder.iterdir()):
            remove(folder)
            folder.mkdir()


def _sweep(place: Path) -> None:
    """Remove pipes, sockets and devices, which git does not see."""
    for folder, _, names in os.walk(place):
        with os.scandir(folder) as entries:
            odd = [entry for entry in entries if not (entry.is_dir() or entry.is_file() or entry.is_symlink())]
        for entry in odd:
            if not stat.S_ISLNK(os.lstat(entry.path).st_mode):
                remove(Path(entry.path))
