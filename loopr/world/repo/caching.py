"""What a setup has made, kept so that the next worktree gets a copy of it and runs no setup.

An entry is a folder below the state folder, named after all that a setup rests on. It is made
beside its place and renamed, so it is there as a whole or not at all; what is copied from it is
counted, since a power cut may have emptied files. Must never run a setup, nor share a file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.ground import Ground
from loopr.world.repo.include import included
from loopr.world.repo.locks import held
from loopr.world.repo.slots import opened, slot_of

STORE, FILES, COUNT = "cache", "files", "count"
MOST_KEPT = 3
_DRAFT, _GONE = ".new", ".old"
_FICLONE = 0x40049409  # both files share their blocks until one is written to
_HEAD = 64 * 1024
_MARK = "pyvenv.cfg"


class Counted(NamedTuple):
    """How much was copied."""

    entries: int = 0
    size: int = 0

    def plus(self, other: Counted) -> Counted:
        """Add what else was copied."""
        return Counted(self.entries + other.entries, self.size + other.size)


class OddFile(OSError):
    """Something that is neither a file nor a folder nor a link."""


class Basis(NamedTuple):
    """What a setup rests on: its words, files that it goes by, files that it names, what it makes."""

    setup: str
    key: tuple[str, ...]
    named: tuple[str, ...]
    paths: tuple[str, ...]


def entry_of(ground: Ground, commit: str, basis: Basis) -> str:
    """Name the entry of a commit: by its files, the words of the setup and the kind of machine.

    It has none where none of the files that the setup goes by is in the commit.
    """
    found = [_blobs(ground, commit, each) for each in (basis.key, basis.named)]
    rests_on = repr((found, basis.setup, sorted(basis.paths), sys.platform, os.uname().machine))
    return hashlib.sha256(rests_on.encode()).hexdigest()[:32] if found[0] else ""


def _blobs(ground: Ground, commit: str, paths: Sequence[str]) -> list[str]:
    """List files of a commit with what is in them."""
    if not paths:
        return []
    return ground.door.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths).parts


def restore(ground: Ground, entry: str, paths: Sequence[str], place: Path, own: Path) -> bool:
    """Copy an entry into a worktree, say whether it is there now; `own` is a folder of ours in it."""
    source, draft = ground.state / STORE / entry, own / STORE
    _remove(draft)
    if any(os.path.lexists(place / each) for each in paths) or not _may_lie(place, paths):
        return False
    try:
        sound = _copy(source / FILES, draft) == _noted(source)
    except FileNotFoundError:  # there is none, or it had to make room for another at this moment
        _remove(draft)
        return False
    except OSError:
        _remove(draft)
        raise
    if not sound:
        _remove(draft)
        _drop(source)
        return False
    for each in paths:
        (place / each).parent.mkdir(parents=True, exist_ok=True)
        (draft / each).rename(place / each)
    _remove(draft)
    with suppress(FileNotFoundError):
        os.utime(source)
    return True


def _noted(entry: Path) -> Counted | None:
    """Read how much an entry holds; None where a power cut has taken the note."""
    try:
        return Counted(*json.loads((entry / COUNT).read_bytes()))
    except (ValueError, TypeError):
        return None


def _may_lie(place: Path, paths: Sequence[str]) -> bool:
    """Say whether paths lie in a worktree, through no link out of it."""
    top = place.resolve()
    return all((place / each).parent.resolve().is_relative_to(top) for each in paths)


def keep(ground: Ground, name: str, entry: str, paths: Sequence[str], place: Path) -> str:
    """Make an entry of what a setup has just made in the worktree of a loop; say why if that may not be."""
    store = ground.state / STORE
    why = _uncopiable(ground, name, paths, place)
    if why:
        return why
    with held(ground.state / f"{STORE}.lock"):
        store.mkdir(mode=0o700, exist_ok=True)
        _sweep(store)
        if (store / entry).is_dir():
            return ""
        draft = store / f"{_DRAFT}.{entry}"
        try:
            _fill(draft, paths, place)
        except OSError:
            _remove(draft)
            raise
        draft.rename(store / entry)
        for each in entries(ground)[:-MOST_KEPT]:
            _drop(each)
    return ""


def _fill(draft: Path, paths: Sequence[str], place: Path) -> None:
    """Copy paths of a worktree into a draft, and note how much it is."""
    files = draft / FILES
    files.mkdir(mode=0o700, parents=True)
    for each in paths:
        (files / each).parent.mkdir(parents=True, exist_ok=True)
        _copy(place / each, files / each)
    (draft / COUNT).write_text(json.dumps(_count(files)))


def _sweep(store: Path) -> None:
    """Remove what a killed engine has left half made or half removed; only for whoever has the lock."""
    for each in (*store.glob(f"{_DRAFT}*"), *store.glob(f"{_GONE}*")):
        _remove(each)


def forget_cache(ground: Ground) -> None:
    """Remove all entries, and what a killed engine has left beside them."""
    with held(ground.state / f"{STORE}.lock"):
        for each in entries(ground):
            _drop(each)
        _sweep(ground.state / STORE)


def entries(ground: Ground) -> list[Path]:
    """List the entries, those used last at the end."""
    store = ground.state / STORE
    found = [each for each in store.iterdir() if each.name[0] != "."] if store.is_dir() else []
    return sorted(found, key=lambda each: each.stat().st_mtime_ns)


def _drop(entry: Path) -> None:
    """Take an entry away: at once for those who look for it, then from the disk."""
    gone = entry.with_name(f"{_GONE}.{entry.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        entry.rename(gone)
    _remove(gone)


def _remove(folder: Path) -> None:
    """Remove a folder, also one in which nothing may be written."""
    if folder.is_dir():
        folder.chmod(0o700)
    for path, names, _ in os.walk(folder):
        for each in (Path(path, name) for name in names):
            if not each.is_symlink():
                each.chmod(0o700)
    if folder.is_dir():
        shutil.rmtree(folder)


# --- what may be copied ----------------------------------------------------------------------------


def _uncopiable(ground: Ground, name: str, paths: Sequence[str], place: Path) -> str:
    """Say why what a setup has made cannot be copied, nothing where it can."""
    for each in paths:
        if not os.path.lexists(place / each):
            return f"the setup has not made {each}: take it out of worktrees.cache.paths"
        tied = next(_tied(place / each, os.fsencode(place)), None)
        if tied is not None:
            where = tied.relative_to(place)
            return (
                f"{where} holds the path of its worktree: {each} cannot be copied, take it out of worktrees.cache.paths"
            )
    beside = _beside(ground, name, paths)
    if beside:
        return f"the setup makes {beside} too, which a copy would lack: name it in worktrees.cache.paths"
    return ""


def _tied(top: Path, place: bytes) -> Iterator[Path]:
    """Find the files that tie a folder to its place: of a virtual environment, scripts, links."""
    if top.is_symlink():
        if os.fsencode(top.readlink()).startswith(place):
            yield top
    elif top.is_dir():
        for each in sorted(top.iterdir()):
            yield from _tied(each, place)
    elif top.is_file() and (top.name == _MARK or (_is_suspect(top) and place in _head_of(top))):
        yield top


def _is_suspect(path: Path) -> bool:
    """Say whether a file is of a kind that names folders by their whole path."""
    return path.suffix == ".pth" or "__editable__" in path.name or path.parent.name in ("bin", ".bin")


def _head_of(path: Path) -> bytes:
    """Read the beginning of a file; of a program only its first line counts."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return head.partition(b"\n")[0] if path.parent.name in ("bin", ".bin") else head


def _beside(ground: Ground, name: str, paths: Sequence[str]) -> str:
    """Name one thing that a setup has made or changed outside its paths; nothing if there is none."""
    slot = slot_of(ground, name)
    if slot is None:
        return ""
    with opened(ground, slot, mend=False) as at:
        new = at.door.run("ls-files", "-z", "--others", "--directory", "--no-empty-directory").parts
        changed = at.door.run("diff-files", "-z", "--name-only").parts
    copied = set(included(ground))
    for each in (*(path.rstrip("/") for path in new), *changed):
        inside = any(each == path or each.startswith(f"{path}/") for path in paths)
        if not (inside or ground.is_left_out(each) or any(path.startswith(each) for path in copied)):
            return each
    return ""


# --- copying ---------------------------------------------------------------------------------------


def _copy(source: Path, target: Path) -> Counted:
    """Copy a file, a link or a folder with its modes and times, and count it; a link stays a link."""
    state = source.lstat()
    if stat.S_ISLNK(state.st_mode):
        target.symlink_to(source.readlink())
        return Counted(1)
    if stat.S_ISREG(state.st_mode):
        _clone(source, target)
        shutil.copystat(source, target)
        return Counted(1, state.st_size)
    if not stat.S_ISDIR(state.st_mode):
        raise OddFile(f"{source} is no file, folder or link")
    target.mkdir(mode=0o700)
    done = Counted(1)
    with os.scandir(source) as entries:
        for each in entries:
            done = done.plus(_copy(Path(each.path), target / each.name))
    shutil.copystat(source, target)
    return done


def _clone(source: Path, target: Path) -> None:
    """Copy what is in a file, without its bytes where the disk can."""
    with source.open("rb") as old, target.open("xb") as new:
        try:
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        except OSError:  # this disk cannot
            shutil.copyfileobj(old, new, 1024 * 1024)


def _count(top: Path) -> Counted:
    """Count what is there."""
    state = top.lstat()
    if not stat.S_ISDIR(state.st_mode):
        return Counted(1, state.st_size if stat.S_ISREG(state.st_mode) else 0)
    found = Counted(1)
    for each in top.iterdir():
        found = found.plus(_count(each))
    return found
