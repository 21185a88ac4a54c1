"""A new file takes the place of an old one, unless that is a file which nobody has expected there.

Knows names and the one step in which the kernel changes them; which content may give way is for the
caller to say. A person may save at any moment, so nothing is decided by looking first: two files
swap their names, and what came out is looked at; a surprise goes back. Must never know what a text
means.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MOST_BYTES = 2 * 1024 * 1024  # of a file that may be one of ours
_MOST_SAVES = 8  # in the instant of one swap; whoever is faster than that has their file kept beside
_AT_FDCWD = -100
_NO_REPLACE, _EXCHANGE = 1, 2
_CANNOT = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
_Identity = tuple[int, int, int, int]


def exchange(one: Path, other: Path) -> bool:
    """Let two files swap their names in one step; tell whether this system can."""
    return _rename(one, other, _EXCHANGE)


def take_place(fresh: Path, path: Path, may_go: Callable[[bytes], bool]) -> bool:
    """Give a fresh file the name of another, and say whether that was done; `fresh` is gone afterwards.

    A file that is there goes only if `may_go` says so of its content. Anything else stays as it is.
    """
    while True:
        with _gone_if_it_fails(fresh):
            if name_if_free(fresh, path):
                return True
            there = content(path)
            if there is None or not may_go(there):
                fresh.unlink()
                return False
            mine = identity(fresh)
            try:
                if not exchange(fresh, path):
                    fresh.replace(path)  # a system that cannot: to have looked a moment ago must do
                    return True
            except FileNotFoundError:
                continue  # the name is free by now
        came = content(fresh)
        if came is not None and may_go(came):
            fresh.unlink(missing_ok=True)
            return True
        _give_back(fresh, path, mine)
        return False


@contextmanager
def _gone_if_it_fails(fresh: Path) -> Iterator[None]:
    """Leave no hidden file behind where something goes wrong, as long as that is still our own."""
    try:
        yield
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def content(path: Path) -> bytes | None:
    """Return what an ordinary file holds; None for anything else, and for one that is larger than any of ours."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                return None
            with os.fdopen(file, "rb", closefd=False) as stream:
                return stream.read(MOST_BYTES + 1)
        finally:
            os.close(file)
    except OSError:
        return None


def identity(path: Path) -> _Identity | None:
    """Return what tells a file and its content from any other, None if there is none."""
    try:
        return identity_of(path.lstat())
    except FileNotFoundError:
        return None


def identity_of(status: os.stat_result) -> _Identity:
    """Return what tells a file and its content from any other, from its status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _give_back(theirs: Path, path: Path, mine: _Identity | None) -> None:
    """Let a file that came out have its name again; what comes out then, if it is newer still, goes there in turn."""
    for _ in range(_MOST_SAVES):
        try:
            exchange(theirs, path)
        except FileNotFoundError:  # ours was taken away in this very moment
            with suppress(FileNotFoundError):  # or this very text was published by another
                name_if_free(theirs, path)
            return
        if identity(theirs) == mine:
            theirs.unlink()
            return


def name_if_free(fresh: Path, path: Path) -> bool:
    """Give a file a name that nothing has; say whether that was done."""
    try:
        if _rename(fresh, path, _NO_REPLACE):
            return True
    except FileExistsError:
        return False
    if os.path.lexists(path):
        return False
    fresh.replace(path)
    return True


def _rename(one: Path, other: Path, flags: int) -> bool:
    """Change names as the flags say; tell whether this system can."""
    import ctypes  # slow to import, and whoever only reads never gets here

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), flags) == 0:
        return True
    error = ctypes.get_errno()
    if error in _CANNOT:
        return False
    raise OSError(error, os.strerror(error), str(other))
