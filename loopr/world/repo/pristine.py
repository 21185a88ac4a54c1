"""How a worktree becomes as if it were new, whatever a command has done to it.

Knows what can be wrong with a checkout and its administrative folder. Must never know whose work was in it: whoever
asks for this has made sure that nothing is lost.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from loopr.errors import WorldError
from loopr.world.repo.slots import PRIVATE_INDEX, Opened, copy_over, write_line

_KEPT = frozenset({"HEAD", "commondir", "gitdir", "locked", "index", PRIVATE_INDEX})
_FLAGGED = re.compile(rb"(?:^|\0)(?!H )[^\0]")
_GITLINK = re.compile(rb"(?:^|\0)H 160000 [0-9a-f]+ 0\t([^\0]+)")


class Unclean(WorldError):
    """A worktree does not come clean; it is set aside with the reason, never deleted."""


def make_pristine(at: Opened, commit: str) -> None:
    """Make the worktree hold exactly this commit on its branch, and nothing else; `Unclean` if that cannot be."""
    admin = at.admin
    thorough = (admin / "modules").exists() or not (admin / PRIVATE_INDEX).exists()
    purge(admin)
    write_line(admin / "HEAD", f"ref: {at.branch}")
    with suppress(FileNotFoundError):  # our copy has no odd flags: commands write to the other
        (admin / PRIVATE_INDEX).replace(admin / "index")
    left = _clean(at, commit, thorough)
    if left:  # the index hides something: without one, every file is written anew
        remove(admin / "index")
        left = _clean(at, commit, True)
    if left:
        raise Unclean(f"{at.place} does not come clean: {left}")
    copy_over(admin / "index", admin / PRIVATE_INDEX)


def _clean(at: Opened, commit: str, thorough: bool) -> str:
    """Write the files of a commit, take away all else, and say what is still not right."""
    door = at.door
    read = door.ask("read-tree", "--reset", "-u", "--no-sparse-checkout", commit)
    if read.code:
        door.ask("clean", "-ffdxq")
        return read.err.strip()
    if thorough or (at.place / ".gitmodules").exists():
        listed = door.ask("ls-files", "-v", "-f", "-s", "-z")
        if listed.code or _FLAGGED.search(listed.out):
            return listed.err.strip() or "its index has odd flags"
        _empty_submodules(at.place, listed.out)
    _sweep(at.place)
    cleaned = door.ask("clean", "-ffdxq")
    said = door.ask(
        *("status", "--porcelain", "-z", "--ignored=traditional", "--untracked-files=all", "--ignore-submodules=none"),
        variables={"GIT_OPTIONAL_LOCKS": "1"},
    )
    if said.code or cleaned.code:
        return said.err.strip() or cleaned.err.strip() or "git clean failed"
    return ", ".join(said.parts[:3])


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


def _empty_submodules(place: Path, listed: bytes) -> None:
    """Take the files of submodules away; the shared settings, which deinit would change, are left alone."""
    for path in _GITLINK.findall(listed):
        folder = place / os.fsdecode(path)
        if folder.is_dir() and any(folder.iterdir()):
            remove(folder)
            folder.mkdir()


def _sweep(place: Path) -> None:
    """Remove pipes, sockets and devices, which git does not see."""
    folders = [place]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                    remove(Path(entry.path))
