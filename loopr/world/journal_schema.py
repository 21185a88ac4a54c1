"""The file under the journal: its tables and versions, the ways to open it, and plain words for what SQLite refuses.

Knows SQLite. Must never know what an event or a row means, who holds the workspace, or the clock.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from loopr.errors import Impossible, LooprError, NotFound, SettingsError, WorldError

Migration = Sequence[str]

SQLITE_NEEDED = (3, 51, 3)  # the first release without the bug that could damage a WAL while it is being reset
APPLICATION_ID = 0x6C6F6F70
WAL_TRIES = 10
ROW_TABLES = ("loops", "entries", "records")

# The n-th entry takes a file from version n to n + 1. An entry that was released is never edited again.
MIGRATIONS: tuple[Migration, ...] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, event TEXT NOT NULL,"
        " version INTEGER NOT NULL, loop TEXT, actor TEXT NOT NULL, data TEXT NOT NULL) STRICT",
        "CREATE INDEX events_of_loop ON events (loop, seq) WHERE loop IS NOT NULL",
        # Without a rowid the rows lie in key order: all of them are read 2.5 times as fast as through an index.
        *(
            f"CREATE TABLE {name} (key TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID"
            for name in ROW_TABLES
        ),
        "CREATE TABLE spent (seq INTEGER NOT NULL, at INTEGER NOT NULL, loop TEXT NOT NULL, plan TEXT NOT NULL,"
        " project TEXT NOT NULL, type TEXT NOT NULL, lane TEXT NOT NULL, tokens INTEGER, micro_usd INTEGER,"
        " ms INTEGER NOT NULL, cost INTEGER NOT NULL, estimated INTEGER NOT NULL) STRICT",
        "CREATE INDEX spent_by_time ON spent (at)",
    ),
    # What is held as a whole has a name that no plan can have.
    tuple(
        f"UPDATE records SET key = '{kind}/workspace:' WHERE key = '{kind}/workspace'" for kind in ("hold", "lifted")
    ),
)


def sqlite_version() -> str:
    """Return the version of the SQLite library in use."""
    return apsw.sqlite_lib_version()


def sqlite_is_sound() -> bool:
    """Tell whether the SQLite library in use is free of the known damage to write-ahead logs."""
    return tuple(int(part) for part in sqlite_version().split(".")[:3]) >= SQLITE_NEEDED


def open_writer(path: Path, *, create: bool, busy_ms: int, migrations: Sequence[Migration]) -> apsw.Connection:
    """Open the file for writing and bring it to the current version; with `create`, make it if it is missing."""
    _ensure_files(path)
    if create:
        _make_folder(path)
        _make_private(path)
    elif not path.exists():
        raise _missing(path)
    connection = apsw.Connection(_uri(path, "mode=rwc" if create else "mode=rw"), flags=_URI_READWRITE)
    with _closing_on_error(connection):
        connection.set_busy_timeout(busy_ms)
        if connection.readonly("main"):
            raise _not_writable(path)
        version = _checked_version(connection, path, migrations)
        if version == 0 and not create:
            raise _missing(path)
        _use_wal(connection)
        if version < len(migrations):
            _migrate(connection, migrations)
    return connection


def open_reader(path: Path, *, busy_ms: int, migrations: Sequence[Migration]) -> apsw.Connection:
    """Open the file so that its folder is the same afterwards, whoever else has it open or died with it.

    One of an older version is read as it would be once somebody writes to it, and stays as it is.

    A log that holds something belongs to a live writer or to one that was killed: it is read where it lies, and left.
    Without one, an ordinary connection is the safe reader: it takes part in the locking, and its empty log goes when
    it closes. Only where nothing can be written, or the disk is full, is the file read as one that cannot change.
    """
    _ensure_files(path)
    if not path.exists():
        raise _missing(path)
    tries = _LOGGED if _log_size(path) else _IDLE
    for query in tries[:-1]:
        with suppress(apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError):
            return _reader(path, query, busy_ms, migrations)
    return _reader(path, tries[-1], busy_ms, migrations)


_INDEX_BYTES = 32 * 1024  # of the file beside the journal that its readers and writers share
_URI_READWRITE = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
# `readonly_shm` leaves even the shared index as it was; it fails where there is none or it is damaged.
_LOGGED = ("mode=ro&readonly_shm=1", "mode=ro")
_IDLE = ("mode=rw", "mode=ro&immutable=1")


def _reader(path: Path, query: str, busy_ms: int, migrations: Sequence[Migration]) -> apsw.Connection:
    """Open one way, and read once: most refusals come with the first read."""
    connection = apsw.Connection(_uri(path, query), flags=_URI_READWRITE)
    with _closing_on_error(connection):
        connection.set_busy_timeout(busy_ms)
        if query == "mode=rw" and connection.readonly("main"):
            raise apsw.ReadOnlyError("a reader that could not clear away its log")
        connection.execute("PRAGMA query_only = ON")
        version = _checked_version(connection, path, migrations)
        if version == 0:
            raise _missing(path)
        if version < len(migrations):
            return _lifted(connection, migrations)
    return connection


def _lifted(connection: apsw.Connection, migrations: Sequence[Migration]) -> apsw.Connection:
    """Copy a file of an older version into memory, and bring the copy up to date: a reader writes nothing."""
    copy = _Copy(":memory:")
    with _closing_on_error(copy):
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step()
        connection.close()
        _migrate(copy, migrations)
        copy.execute("PRAGMA query_only = ON")
    return copy


class _Copy(apsw.Connection):
    """A connection to a copy in memory; a file's own may have a name that is no text."""


def is_copy(connection: apsw.Connection) -> bool:
    """Say whether a connection is to a copy in memory, of a file of an older version."""
    return isinstance(connection, _Copy)


def _uri(path: Path, query: str) -> str:
    """Write the path as SQLite wants it, with any character a folder may have in its name."""
    return f"{path.absolute().as_uri()}?{query}"


def _log_size(path: Path) -> int:
    """Return how much is in the write-ahead log; none and an empty one are the same."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return 0


def _make_folder(path: Path) -> None:
    """Make the folder that the file lives in."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"the folder of the journal cannot be made: {error.strerror}",
            where=str(path.parent),
            hint="check its owner, its permissions and whether the file system is mounted read-only",
        ) from error


def _ensure_files(path: Path) -> None:
    """Refuse what is no file in the place of one: a pipe or a device would never answer."""
    for each in (path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm", "-journal"))):
        with suppress(OSError):
            if not stat.S_ISREG(each.stat().st_mode):
                raise SettingsError(
                    "is no file, and the journal belongs there",
                    where=str(each),
                    hint="move it away, and put the journal or a copy of it there",
                )


def _make_private(path: Path) -> None:
    """Make the file if it is missing, such that only its owner reads it; its log and index get the same mode."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


@contextmanager
def _closing_on_error(connection: apsw.Connection) -> Iterator[None]:
    """Close the connection if what follows fails, so that no log stays behind."""
    try:
        yield
    except BaseException:
        connection.close(True)
        raise


def _checked_version(connection: apsw.Connection, path: Path, migrations: Sequence[Migration]) -> int:
    """Return the version of the file, 0 for an empty one; refuse what is not ours or newer than we are."""
    version = int(connection.pragma("user_version"))
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if version == 0 and tables == 0:
        return 0
    if connection.pragma("application_id") != APPLICATION_ID:
        raise SettingsError(
            "is a database, but not a journal of loopr",
            where=str(path),
            hint="move it away; loopr makes a new journal at the next start",
        )
    if version > len(migrations):
        raise SettingsError(
            f"the journal has version {version} and this loopr knows versions up to {len(migrations)}",
            where=str(path),
            hint="a newer loopr wrote it: use that one, or a later one",
        )
    return version


def _use_wal(connection: apsw.Connection) -> None:
    """Write ahead, and have every commit on the disk before it is reported.

    The change to WAL needs the file for itself and does not wait for it. Who is in its way makes the same change, so
    we wait for them with a lock that does wait, and try again; more than once only if several met at that very moment.
    """
    connection.pragma("synchronous", "FULL")
    for _ in range(WAL_TRIES):
        with suppress(apsw.BusyError):
            connection.pragma("journal_mode", "wal")
            return
        with transaction(connection):
            pass
    connection.pragma("journal_mode", "wal")


def _migrate(connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
    """Take the file to the last version in one transaction, from wherever it is once the lock is ours."""
    with transaction(connection):
        for number in range(int(connection.pragma("user_version")), len(migrations)):
            for statement in migrations[number]:
                connection.execute(statement).fetchall()
            connection.pragma("user_version", number + 1)


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Run one writing transaction: all of it is kept, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def plain_words(path: Path, busy_ms: int) -> Iterator[None]:
    """Turn what SQLite refuses into an error that says what to do."""
    try:
        yield
    except apsw.Error as error:
        raise _worded(error, path, busy_ms) from error


def _worded(error: apsw.Error, path: Path, busy_ms: int) -> LooprError:
    """Choose the words; what is in none of the lists is a statement of ours that cannot be right."""
    for kinds, words in _WORDS:
        if isinstance(error, kinds):
            return words(path, str(error), busy_ms)
    return Impossible(f"{path}: {type(error).__name__}: {error}")


def _missing(path: Path) -> NotFound:
    return NotFound("there is no journal here yet", where=str(path), hint="`loopr start PLAN` begins one")


def _not_writable(path: Path) -> SettingsError:
    return SettingsError(
        "the journal cannot be written",
        where=str(path),
        hint="check the owner and permissions of the file and its folder, and whether the file system is read-only",
    )


def _unreadable(path: Path, said: str, _: int) -> LooprError:
    """Say which of file and folder stands in the way: SQLite has one answer for all of it."""
    return SettingsError(
        f"the journal cannot be opened: {said}",
        where=str(path),
        hint="check the owner and permissions of the file and its folder; a journal with a `-wal` beside it needs to be"
        " in a writable folder",
    )


def _locked(path: Path, _: str, busy_ms: int) -> LooprError:
    return WorldError(
        f"{path}: another process has kept the journal locked for more than {busy_ms / 1000:g} s",
        hint="try again; if it stays so, `loopr status` names the engine, and a stopped process or an open database"
        " browser is the usual cause",
    )


def _full(path: Path, _: str, __: int) -> LooprError:
    return WorldError(
        f"{path}: the disk is full; nothing was written",
        hint="free some space, `loopr gc` finds what loopr no longer needs, then try again",
    )


def _failed(path: Path, said: str, busy_ms: int) -> LooprError:
    found = os.statvfs(path.parent)
    if found.f_bavail * found.f_frsize < _INDEX_BYTES:  # SQLite has no other word for a shared index without room
        return _full(path, said, busy_ms)
    return WorldError(f"{path}: the disk refused: {said}", hint="see the system log; `loopr doctor` checks the journal")


def _corrupt(path: Path, said: str, _: int) -> LooprError:
    return SettingsError(
        f"the journal is damaged: {said}",
        where=str(path),
        hint="keep a copy, then restore it from a backup or move it away; what was landed is safe on its plan branch",
    )


_Words = Callable[[Path, str, int], LooprError]
_WORDS: tuple[tuple[tuple[type[apsw.Error], ...], _Words], ...] = (
    ((apsw.BusyError, apsw.LockedError, apsw.ProtocolError), _locked),
    ((apsw.FullError,), _full),
    ((apsw.IOError, apsw.NoMemError), _failed),
    ((apsw.CorruptError, apsw.NotADBError, apsw.FormatError), _corrupt),
    ((apsw.ReadOnlyError,), lambda path, _, __: _not_writable(path)),
    ((apsw.CantOpenError, apsw.PermissionsError), _unreadable),
)
