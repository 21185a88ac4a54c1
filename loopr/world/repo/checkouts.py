"""The checkouts of the repository, the user's and ours: which branch each holds, and what is under way in it.

Knows where git writes such things down. Must never know what follows from them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.ground import HEADS, Ground

_UNDER_WAY = {
    "rebase-merge": "rebased",
    "rebase-apply": "rebased",
    "BISECT_START": "bisected",
}
_BRANCH_FILES = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")


class Checkout(NamedTuple):
    """One folder with files of the repository; `busy` maps branches to what is under way with them there."""

    folder: Path
    git_dir: Path
    branch: str
    busy: dict[str, str]
    ours: bool

    @property
    def mark(self) -> str:
        """Tells it from one that is made later in its place."""
        try:
            facts = (self.git_dir / "commondir").stat()
        except OSError:  # the one that came with the repository
            return str(self.git_dir)
        return f"{self.git_dir} {facts.st_ino} {facts.st_ctime_ns}"


def checkouts(ground: Ground) -> list[Checkout]:
    """List every checkout of the repository, read from git's own files: asking git takes longer by far."""
    return [_read(ground, *each) for each in _all(ground)]


def holders(ground: Ground, branch: str) -> list[Checkout]:
    """List the checkouts that are not ours and have this branch, checked out or in the middle of something."""
    others = [_read(ground, *each) for each in _all(ground) if not _is_ours(ground, each[0])]
    return [each for each in others if each.branch == branch or branch in each.busy]


def heads_of_people(ground: Ground) -> list[Path]:
    """List the files that say which branch each checkout has that is not ours."""
    return [git_dir / "HEAD" for folder, git_dir in _all(ground) if not _is_ours(ground, folder)]


def is_checked_out(ground: Ground, branch: str) -> bool:
    """Say whether any checkout, ours or not, has this branch."""
    return any(_branch(git_dir) == branch for _, git_dir in _all(ground))


def _all(ground: Ground) -> Iterator[tuple[Path, Path]]:
    """Pair the folder of each checkout with its git directory."""
    if ground.main is not None:
        yield ground.main, ground.common
    yield from _linked(ground)


def _read(ground: Ground, folder: Path, git_dir: Path) -> Checkout:
    """Read what a checkout has."""
    return Checkout(folder, git_dir, _branch(git_dir), dict(_busy(git_dir)), _is_ours(ground, folder))


def _is_ours(ground: Ground, folder: Path) -> bool:
    """Say whether a checkout is one of our worktrees."""
    return folder.is_relative_to(ground.worktrees)


def _linked(ground: Ground) -> Iterator[tuple[Path, Path]]:
    """Pair the folder of each linked worktree with its administrative folder."""
    for admin in _listed(ground.common / "worktrees"):
        text = read_line(admin / "gitdir")
        if text:
            yield (admin / text).parent, admin


def _listed(folder: Path) -> list[Path]:
    """List a folder that git may take away at any moment."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _branch(git_dir: Path) -> str:
    """Return the full name of the branch that is checked out, nothing where HEAD is detached."""
    head = read_line(git_dir / "HEAD")
    return head.removeprefix("ref:").strip() if head.startswith("ref:") else ""


def _busy(git_dir: Path) -> Iterator[tuple[str, str]]:
    """Name the branches that a rebase or a bisection will come back to."""
    for name in _BRANCH_FILES:
        text = read_line(git_dir / name)
        if text:
            branch = text if text.startswith("refs/") else HEADS + text
            yield branch, _UNDER_WAY[name.partition("/")[0]]


def read_lines(path: Path) -> list[str]:
    """Read the lines of a file of git's; what is said in one may hold what ends a line for Python only."""
    text = read_line(path)
    return text.split("\n") if text else []


def read_line(path: Path) -> str:
    """Read a small file of git's as text, without what is around it."""
    return os.fsdecode(read_whole(path)).strip()


def read_whole(path: Path) -> bytes:
    """Read a small file of git's, nothing if it is not there or no file."""
    return read_regular(path) or b""


def read_regular(path: Path) -> bytes | None:
    """Read a file at once, None if it is not there or no file; a pipe is not waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
            return file.readall()
    except OSError:
        return None
    finally:
        os.close(descriptor)  # also that of a folder, which no file object takes over
