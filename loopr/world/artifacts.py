"""The tree as files: finds artifacts, names the place of one, and puts one there so that nobody sees half of it.

Knows folders and links. Must never know what an artifact means for its loop, nor follow a link or an id out of the
folder it was given. What is inside a file is the business of `artifact_text.py`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from loopr.core.outline import MAX_DEPTH, Ladder, id_problem, shown, slug
from loopr.core.policy import TypePolicy
from loopr.errors import PlanError, Problem, WorldError
from loopr.world.artifact_text import MAX_BYTES, digest, parse_artifact, read_artifact_file

__all__ = [
    "MAX_BYTES",
    "Found",
    "Scan",
    "artifact_path",
    "digest",
    "parse_artifact",
    "publish",
    "put_back",
    "read_artifact_file",
    "scan",
]

SUFFIX = ".md"
_LONGEST_PATH = 400  # of a path in a message
_TYPE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
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


class Found(NamedTuple):
    """One artifact on disk, as a listing tells it."""

    loop_id: str
    type: str
    path: Path
    mtime_ns: int
    size: int


class Scan(NamedTuple):
    """What lies in the tree: its artifacts in the order of their ids, and what stands there but cannot be a loop."""

    found: tuple[Found, ...]
    odd: tuple[Problem, ...]


def scan(specs_dir: Path, types: Mapping[str, TypePolicy]) -> Scan:
    """List the artifacts below a folder without opening one; what cannot be a loop is named, not raised."""
    levels = Ladder(types).levels()
    found: list[Found] = []
    odd: list[Problem] = []
    folders: list[tuple[tuple[str, ...], str]] = [((), str(specs_dir))]
    while folders:
        parts, folder = folders.pop()
        for entry in _listing(folder, odd):
            if entry.name.startswith("."):
                continue
            if not entry.is_dir(follow_symlinks=False):
                seen = _look_at(entry, parts, levels)
                if isinstance(seen, Problem):
                    odd.append(seen)
                elif seen:
                    found.append(seen)
            elif len(parts) < len(levels) and _is_id(entry, odd):
                folders.append(((*parts, entry.name), entry.path))
    return Scan(tuple(sorted(found)), tuple(sorted(odd, key=str)))


def _listing(folder: str, odd: list[Problem]) -> list[os.DirEntry[str]]:
    """List a folder; one that is gone is empty, one that cannot be read is named."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        odd.append(Problem(f"cannot be listed: {error.strerror}", folder, "check its permissions"))
        return []


def _is_id(entry: os.DirEntry[str], odd: list[Problem]) -> bool:
    """Tell a folder that can be a loop's from one that is named otherwise."""
    problem = id_problem(entry.name)
    if problem:
        where = shown(entry.path, _LONGEST_PATH)
        odd.append(Problem(f"is not a loop's folder: {problem}", where, f"rename it {slug(entry.name)}"))
    return problem is None


def _look_at(entry: os.DirEntry[str], parts: tuple[str, ...], levels: tuple[str, ...]) -> Found | Problem | None:
    """Take a file in a loop's folder if it is called after a type; anything else there is the user's own."""
    name = entry.name.removesuffix(SUFFIX)
    ours = bool(parts) and name != entry.name and name in levels
    if entry.is_symlink() and (ours or entry.is_dir()):
        return _link(entry.path)
    if not ours or not entry.is_file(follow_symlinks=False):
        return None
    expected = levels[len(parts) - 1]
    if name != expected:
        return Problem(f"is at the level of a {expected}", entry.path, f"move it, or call it {expected}{SUFFIX}")
    with suppress(FileNotFoundError):  # it was there a moment ago; the next scan will agree
        status = entry.stat(follow_symlinks=False)
        return Found("/".join(parts), name, Path(entry.path), status.st_mtime_ns, status.st_size)
    return None


def _link(path: str) -> Problem:
    """Say that a link is not followed."""
    where = shown(path, _LONGEST_PATH)
    return Problem("is a symbolic link, which is not followed here", where, "put the file or folder itself there")


def artifact_path(specs_dir: Path, loop_id: str, type_name: str) -> Path:
    """Return where a loop's artifact lies; refuse an id, or a link on the way, that would lead anywhere else."""
    parts = loop_id.split("/")
    for part in parts:
        if problem := id_problem(part):
            raise PlanError(problem, where=shown(loop_id), hint=f"such as {slug(part)}")
    if len(parts) > MAX_DEPTH + 1:
        raise PlanError(f"is deeper than {MAX_DEPTH}", where=shown(loop_id), hint="use fewer levels")
    if not _TYPE_NAME.fullmatch(type_name):
        raise PlanError(
            f'"{shown(type_name)}" is no name of a type', where=shown(loop_id), hint="see `types` in loopr.yml"
        )
    folder = str(specs_dir)
    for part in parts:
        folder = f"{folder}/{part}"
        if os.path.islink(folder):  # noqa: PTH114 # asked for every level of every loop
            link = _link(folder)
            raise PlanError(link.message, where=link.where, hint=link.hint)
    return Path(f"{folder}/{type_name}{SUFFIX}")


def publish(path: Path, text: str) -> str:
    """Put a text at a path as a whole or not at all, safe from a power cut; return its digest.

    A file that already holds exactly this is left alone, so that nobody is told of a change that is none.
    """
    raw = text.encode("utf-8")
    try:
        if not _holds(path, raw):
            _ensure_folder(path.parent)
            _replace(path, raw)
    except OSError as error:
        hint = _REMEDIES.get(error.errno or 0, "mend that, then try again")
        raise WorldError(f"cannot write {path}: {error.strerror or error}", hint=hint) from error
    return digest(raw)


def put_back(path: Path, raw: bytes) -> bool:
    """Put bytes at a path where nothing is, as a whole or not at all; say whether that was done.

    The name is given by linking, which never takes it from a file that came there meanwhile.
    """
    try:
        _ensure_folder(path.parent)
        done = _place(path.with_name(f".{path.name}.back"), path, raw)
        _sync_folder(path.parent)
    except OSError as error:
        hint = _REMEDIES.get(error.errno or 0, "mend that, then try again")
        raise WorldError(f"cannot put back {path}: {error.strerror or error}", hint=hint) from error
    return done


def _place(draft: Path, path: Path, raw: bytes) -> bool:
    """Write a hidden file and give it a second name, unless that is taken; then let the first go."""
    with _drafted(draft) as file:
        try:
            if os.fstat(file).st_nlink > 1:  # one who was killed had come this far
                return False
            os.ftruncate(file, 0)
            _write_all(file, raw)
            os.fsync(file)
            return _name_it(draft, path)
        finally:
            draft.unlink(missing_ok=True)


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


def _ensure_folder(folder: Path) -> None:
    """Make a folder with its parents, and make sure that a power cut does not take them back."""
    if folder.is_dir():
        return
    _ensure_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
    _sync_folder(folder.parent)


def _replace(path: Path, raw: bytes) -> None:
    """Write a hidden file beside the target, and give it the target's name when it is safely on disk.

    The hidden file has one name and a lock, so that one which a crash left behind is taken by the next try.
    """
    draft = path.with_name(f".{path.name}.tmp")
    with _drafted(draft) as file:
        try:
            os.ftruncate(file, 0)
            _write_all(file, raw)
            with suppress(FileNotFoundError):
                os.fchmod(file, stat.S_IMODE(path.stat().st_mode))
            os.fsync(file)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)


@contextmanager
def _drafted(draft: Path) -> Iterator[int]:
    """Open a hidden file that nobody else writes to: whoever had it before has made it the target by now."""
    while True:
        with _opened(draft, os.O_WRONLY | os.O_CREAT) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file, draft):
                yield file
                return


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
