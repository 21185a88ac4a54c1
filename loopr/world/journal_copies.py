"""Copies of the journal: one is made whenever an engine starts, and three are kept.

A copy is written beside its place, synced, and renamed. Knows SQLite files and their order. Must never know an event,
nor when a copy is due.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import apsw

from loopr.errors import SettingsError
from loopr.world.journal_schema import plain_words

KEPT = 3
_FOLDER = "copies"
_UNCHANGING = "mode=ro&immutable=1"  # nothing comes to lie beside a copy
_LAST = "SELECT seq, at FROM events ORDER BY seq DESC LIMIT 1"


class Copy(NamedTuple):
    """One copy: the last event in it, and the instant of that event."""

    path: Path
    seq: int
    at: int


def keep_copy(journal: Path) -> None:
    """Copy the journal, unless the newest copy has all of it; a journal that has lost events is not copied."""
    known, now = newest_copy(journal), _look_into(journal, "mode=ro")
    if now is None or (known is not None and known.seq >= now.seq):
        return
    folder = _folder(journal)
    folder.mkdir(mode=0o700, exist_ok=True)
    fresh = folder / "new.db"
    with plain_words(fresh, 0):
        _write(journal, fresh)
    for number in range(KEPT - 1, 0, -1):
        with suppress(FileNotFoundError):
            _place(journal, number).replace(_place(journal, number + 1))
    fresh.replace(_place(journal, 1))


def newest_copy(journal: Path) -> Copy | None:
    """Return the copy with the most events that can be read, None if there is none."""
    places = (_place(journal, number) for number in range(1, KEPT + 1))
    found = (_look_into(each, _UNCHANGING) for each in places)
    return max((each for each in found if each is not None), key=lambda each: each.seq, default=None)


def behind_its_copy(journal: Path) -> str:
    """Say that a journal has fewer events than its newest copy, nothing if it has all of them."""
    copy, now = newest_copy(journal), _look_into(journal, "mode=ro")
    if copy is None or now is None or now.seq >= copy.seq:
        return ""
    line = put_back_line(journal, copy)
    least = f"it ends at event {now.seq}, and its copy at {copy.seq}: tries and costs are missing"
    return f"the journal is older than its own copy: {least} ({line}, or move {copy.path} away)"


def is_gone(journal: Path) -> bool:
    """Say whether there is no journal, or an empty file in its place."""
    try:
        return journal.lstat().st_size == 0 and journal.is_file()
    except OSError:
        return True


def lost(journal: Path, traces: str) -> SettingsError:
    """Say that a journal is gone of which there are traces, and name both ways out."""
    copy = newest_copy(journal)
    return SettingsError(
        f"the journal {journal} is gone, but {traces}; without it attempts, costs and budgets would begin at zero",
        hint=f"{put_back_line(journal, copy)}, or begin a new one and keep the old refs: `loopr init --anew`",
    )


def put_back_line(journal: Path, copy: Copy | None) -> str:
    """Write the line that puts a copy in the place of the journal."""
    if copy is None:
        return "no copy of it is left: restore it from a backup"
    name = quote(str(journal))
    line = f"rm -f {name}-wal {name}-shm; cp {quote(str(copy.path))} {name}"
    return f"put the newest copy back: `{line}`"


def _folder(journal: Path) -> Path:
    """Return where copies are kept."""
    return journal.parent / _FOLDER


def _place(journal: Path, number: int) -> Path:
    """Return the place of the n-th newest copy."""
    return _folder(journal) / f"{number}.db"


def _look_into(path: Path, query: str) -> Copy | None:
    """Look into a file, None if there is none or it is no journal."""
    if not path.is_file():
        return None
    try:
        with closing(_opened(path, query)) as connection:
            row = connection.execute(_LAST).get
    except apsw.Error:
        return None
    return Copy(path, *row) if row is not None else None


def _write(journal: Path, fresh: Path) -> None:
    """Write one copy and have it on the disk."""
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(_opened(journal, "mode=ro")) as source, closing(apsw.Connection(str(fresh))) as target:
        target.pragma("synchronous", "OFF")
        with target.backup("main", source, "main") as backup:
            backup.step(-1)
    descriptor = os.open(fresh, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _opened(path: Path, query: str) -> apsw.Connection:
    """Open a file for reading."""
    flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(f"{path.absolute().as_uri()}?{query}", flags=flags)
    connection.set_busy_timeout(1_000)
    return connection
