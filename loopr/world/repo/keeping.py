"""Copies of the files that all worktrees share, kept beside the state: what they were can be put back as a whole.

Kept at each look that finds them sound, for their owner alone, since settings may hold secrets.
The very bytes that are kept are asked about: a command may write between a look and the copy. What
is put back takes nothing away: what lay there is set aside, and named. Must never know who changed
a file.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from loopr.world.repo.checkouts import read_line, read_regular
from loopr.world.repo.ground import KEPT, Ground

ASIDE, SEEN, PROGRAMS = "set-aside", "seen.json", "programs.json"
MOST_BYTES = 8 << 20  # packed refs may be many


def digest_of(path: Path) -> str:
    """Digest a file, with whether it may be executed; nothing if it is not there. A pipe is not waited for."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "unreadable"
        content = path.read_bytes()
    except FileNotFoundError:
        return ""
    except OSError:
        return "unreadable"
    return digest_of_bytes(content) + ("x" if os.access(path, os.X_OK) else "")


def digest_of_bytes(content: bytes) -> str:
    """Digest the content of a file."""
    return hashlib.sha256(content).hexdigest()[:16]


def keep(ground: Ground, names: Iterable[str], is_sound: Callable[[str, bytes], bool]) -> None:
    """Keep a copy of each file that is sound, by its name in the git directory, and of no other."""
    folder, wanted = _folder(ground), set(names)
    for name in wanted:
        content, copy = read_regular(ground.common / name), folder / name
        if content is None or len(content) > MOST_BYTES:
            continue
        if digest_of_bytes(content) != digest_of(copy).rstrip("x") and is_sound(name, content):
            _write(copy, content)
    for copy in folder.rglob("*"):
        if copy.is_file() and copy.relative_to(folder).as_posix() not in wanted | {SEEN, PROGRAMS}:
            copy.unlink(missing_ok=True)


def is_kept(ground: Ground, name: str) -> bool:
    """Say whether there is a copy of a file."""
    return (_folder(ground) / name).is_file()


def bring_back(ground: Ground, name: str, wanted: str | None = None) -> str:
    """Put a file back as it was kept, or away where none was; return what came of it, nothing where nothing was done.

    `wanted` is the digest that it had, empty where it was not there; None takes whatever was kept.
    """
    place, copy = ground.common / name, _folder(ground) / name
    known = digest_of(copy)
    if wanted != "" and (not known or (wanted or known).rstrip("x") != known.rstrip("x")):
        return ""
    aside = _set_aside(ground, place)
    if wanted != "":
        _write(place, copy.read_bytes(), 0o755 if (wanted or "").endswith("x") else 0o644)
    if aside:
        _let_go(Path(aside))
    return f"is put back; what it was is kept as {aside}" if aside else "is put back"


def note_seen(ground: Ground, text: str, name: str = SEEN) -> None:
    """Keep what was seen, for an engine that takes over."""
    _write(_folder(ground) / name, text.encode())


def read_seen(ground: Ground, name: str = SEEN) -> str:
    """Return what an earlier engine has seen last, nothing if that is not known."""
    return read_line(_folder(ground) / name)


def _folder(ground: Ground) -> Path:
    """Return where copies are kept."""
    folder = ground.state / KEPT
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file whole, by rename, with a mode of its own from the first byte on."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.loopr-new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    fresh.replace(path)


def _set_aside(ground: Ground, place: Path) -> str:
    """Move what lies at a place to where nothing obeys it, and return that path, nothing if nothing lay there."""
    if not os.path.lexists(place):
        return ""
    name = place.relative_to(ground.common).as_posix().replace("/", "-")
    aside = ground.state / ASIDE / f"{name}.{digest_of(place) or 'link'}"
    aside.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.replace(aside)
    if not aside.is_symlink():
        aside.chmod(0o600)
    return str(aside)


def _let_go(aside: Path) -> None:
    """Let those go on who have opened a pipe and wait for whatever comes out of it."""
    if not aside.is_symlink() and aside.is_fifo():
        with suppress(OSError):
            os.close(os.open(aside, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
