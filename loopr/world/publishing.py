"""Puts a file in its place so that nobody ever sees half of it, and a power cut does not take it back.

Knows files, folders and the disk. Must never know what is in a file, nor write over one that it was not asked to:
`may_go` says of which content that is asked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from loopr.errors import WorldError
from loopr.world.swapping import content, name_if_free, take_place

MayGo = Callable[[bytes], bool]

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EROFS: "the file system is read-only: mount it writable",
    errno.EACCES: "give yourself write permission there",
    errno.EPERM: "give yourself write permission there",
    errno.ENOTDIR: "move the file that stands where a folder belongs",
    errno.EISDIR: "move the folder that stands where the file belongs",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


class _Text(NamedTuple):
    """What is published, and which content may give way to it."""

    raw: bytes
    may_go: MayGo


def anything(raw: bytes) -> bool:
    """Let whatever is there give way."""
    return True


def publish(path: Path, raw: bytes, may_go: MayGo = anything) -> bool:
    """Put bytes at a path as a whole or not at all, safe from a power cut; say whether they are there now."""
    return publishing(path, raw, may_go)()


def publishing(path: Path, raw: bytes, may_go: MayGo = anything) -> Callable[[], bool]:
    """Begin to publish bytes, and return what is left to do: that waits for the disk, or for somebody else.

    A file that already holds exactly this is left alone, so that nobody is told of a change that is none.
    """
    with _telling(f"cannot write {path}"):
        if _holds(path, raw):
            if may_go is not anything:
                _clear_drafts(path, raw)
            return lambda: True
        made = _make_folders(path.parent)
        draft = path.with_name(f".{path.name}.tmp")
        file = _take(draft, fcntl.LOCK_NB)
        if file is None:
            return lambda: _publish_in_turn(path, draft, _Text(raw, may_go), made)
        return _write_draft(file, draft, path, _Text(raw, may_go), made)


def _publish_in_turn(path: Path, draft: Path, text: _Text, made: Sequence[Path]) -> bool:
    """Publish once whoever writes the same hidden file has done so."""
    with _telling(f"cannot write {path}"):
        file = _take(draft)
        assert file is not None
        return _write_draft(file, draft, path, text, made)()


def clear(path: Path, may_go: MayGo) -> bool:
    """Take a file away if its content may go; say whether that was done. Another one that came meanwhile stays."""
    with _telling(f"cannot take away {path}"):
        aside = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
        try:
            path.rename(aside)
        except FileNotFoundError:
            return False
        raw = content(aside)
        if raw is not None and may_go(raw):
            aside.unlink(missing_ok=True)
            _sync_folder(path.parent)
            return True
        with suppress(FileNotFoundError):  # this very text was published meanwhile
            name_if_free(aside, path)
        return False


def put_back(path: Path, raw: bytes) -> bool:
    """Put bytes at a path where nothing is, as a whole or not at all; say whether that was done.

    The name is given by linking, which never takes it from a file that came there meanwhile.
    """
    with _telling(f"cannot put back {path}"):
        made = _make_folders(path.parent)
        done = _place(path.with_name(f".{path.name}.back"), path, raw)
        for each in (path.parent, *made):
            _sync_folder(each)
    return done


def _place(draft: Path, path: Path, raw: bytes) -> bool:
    """Write a hidden file and give it a second name, unless that is taken; then let the first go."""
    file = _take(draft)
    assert file is not None
    try:
        if os.fstat(file).st_nlink > 1:  # one who was killed had come this far
            return False
        os.ftruncate(file, 0)
        _write_all(file, raw)
        os.fsync(file)
        return _name_it(draft, path)
    finally:
        draft.unlink(missing_ok=True)
        os.close(file)


def _name_it(draft: Path, path: Path) -> bool:
    """Give a file its name if nothing has that; where there are no links, looking first must do."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            return False
        draft.replace(path)
    return True


def _holds(path: Path, raw: bytes) -> bool:
    """Tell whether an ordinary file holds exactly these bytes already."""
    try:
        status = path.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_size == len(raw) and path.read_bytes() == raw
    except (FileNotFoundError, PermissionError):
        return False


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder with its parents; return the folders that have a new name in them, so that these can be synced."""
    if folder.is_dir():
        return []
    changed = _make_folders(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
    return [folder.parent, *changed]


def _write_draft(file: int, draft: Path, path: Path, text: _Text, made: Sequence[Path]) -> Callable[[], bool]:
    """Write a hidden file beside the target; return what gives it the target's name once it is safely on disk.

    The hidden file has one name and a lock, so that one which a crash left behind is taken by the next try.
    """
    held = ExitStack()
    held.callback(os.close, file)
    with held:
        with _gone_if_it_fails(draft):
            os.ftruncate(file, 0)
            _write_all(file, text.raw)
            with suppress(FileNotFoundError):
                os.fchmod(file, stat.S_IMODE(path.stat().st_mode))
            folders = [held.enter_context(_opened(each, os.O_RDONLY | os.O_DIRECTORY)) for each in (path.parent, *made)]
        rest = held.pop_all()

    def finish() -> bool:
        with _telling(f"cannot write {path}"), rest:
            with _gone_if_it_fails(draft):
                os.fsync(file)
                done = _take_name(draft, path, text.may_go)
            if text.may_go is not anything:
                _clear_drafts(path, text.raw)
            for each in folders:
                os.fsync(each)
        return done

    return finish


def _take_name(draft: Path, path: Path, may_go: MayGo) -> bool:
    """Let a draft take the target's name; on the way there it has a name that no other draft ever has.

    So what came out of its place, should we be killed at that moment, is never written over.
    """
    if may_go is anything:
        draft.replace(path)
        return True
    fresh = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    draft.rename(fresh)
    return take_place(fresh, path, may_go)


def _clear_drafts(path: Path, raw: bytes) -> None:
    """Remove hidden drafts of this very text whose writers were killed: one that lives holds its own.

    Any other text stays: it may be a person's, which came out of its place at that moment.
    """
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\.tmp")
    with suppress(OSError):
        for draft in [each for each in path.parent.iterdir() if name.fullmatch(each.name)]:
            if _holds(draft, raw):
                _clear_draft(draft)


def _clear_draft(draft: Path) -> None:
    """Remove a hidden draft, unless somebody holds it."""
    with suppress(OSError), _opened(draft, os.O_RDONLY | os.O_NONBLOCK) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(file, draft):
            draft.unlink()


@contextmanager
def _gone_if_it_fails(draft: Path) -> Iterator[None]:
    """Leave no hidden file behind where something goes wrong."""
    try:
        yield
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """Say of an error of the disk what could not be done, and what to do about it."""
    try:
        yield
    except OSError as error:
        hint = _REMEDIES.get(error.errno or 0, "mend that, then try again")
        raise WorldError(f"{what}: {error.strerror or error}", hint=hint) from error


def _take(draft: Path, flags: int = 0) -> int | None:
    """Open a hidden file that nobody else writes to; None where somebody does and the flags say not to wait.

    Whoever had it before has made it the target by now.
    """
    while True:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | flags)
            if _is_at(file, draft):
                return file
        except BlockingIOError:
            os.close(file)
            return None
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _is_at(file: int, path: Path) -> bool:
    """Say whether an open file still has its name."""
    try:
        return path.lstat().st_ino == os.fstat(file).st_ino
    except FileNotFoundError:
        return False


def _write_all(file: int, raw: bytes) -> None:
    """Write every byte, however many calls it takes."""
    left = memoryview(raw)
    while left:
        left = left[os.write(file, left) :]


def _sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder survive a power cut."""
    with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as file:
        os.fsync(file)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """Open a file without following a link at its end, and close it whatever happens."""
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        yield file
    finally:
        os.close(file)
