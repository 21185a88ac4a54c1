"""The journal: every event in order and, in the same transaction, the rows that the events lead to.

One SQLite file, `loopr.db`, written ahead and synced at every commit. Several processes may write: who appends names
the last event it saw, and is refused if there are later ones. A `Journal` is used by one thread at a time.

Knows records, rows and sums. Must never know what an event means, when one is due, or who holds the workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import apsw

from loopr.errors import Impossible, Moved, WorldError
from loopr.world.journal_schema import (
    MIGRATIONS,
    ROW_TABLES,
    SQLITE_NEEDED,
    Migration,
    is_copy,
    open_reader,
    open_writer,
    plain_words,
    sqlite_is_sound,
    sqlite_version,
    transaction,
)

__all__ = [
    "MIGRATIONS",
    "ROW_TABLES",
    "SQLITE_NEEDED",
    "USAGE_KEYS",
    "Change",
    "Draft",
    "Journal",
    "Record",
    "Spent",
    "Usage",
    "sqlite_is_sound",
    "sqlite_version",
]

BUSY_MS, CHUNK = 5_000, 1_000


class Draft(NamedTuple):
    """One event before the journal has numbered it."""

    at: int
    event: str
    version: int
    loop: str | None
    actor: str
    data: str


class Record(NamedTuple):
    """One event as it is kept; `at` is in milliseconds UTC, `data` is JSON text that the caller decodes."""

    seq: int
    at: int
    event: str
    version: int
    loop: str | None
    actor: str
    data: str


class Change(NamedTuple):
    """One row to write, or to delete if it has no body; the last change of a key counts."""

    table: str
    key: str
    body: str | None


class Spent(NamedTuple):
    """What one attempt used; `seq` is the event that ended it, and what is unknown is None, never zero."""

    seq: int
    at: int
    loop: str
    plan: str
    project: str
    type: str
    lane: str
    tokens: int | None
    micro_usd: int | None
    ms: int
    cost: int
    estimated: bool


class Usage(NamedTuple):
    """What the attempts of one group come to, all measured or all estimated; money is None where nobody knows any."""

    key: str
    estimated: bool
    attempts: int
    cost: int
    micro_usd: int | None
    ms: int


USAGE_KEYS = {
    "project": "project",
    "type": "type",
    "lane": "lane",
    "plan": "plan",
    "loop": "loop",
    "day": "date(at / 1000, 'unixepoch')",
}

_EVENT = "seq, at, event, version, loop, actor, data"
_INSERT_EVENT = f"INSERT INTO events ({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_SPENT = ", ".join(Spent._fields)
_INSERT_SPENT = f"INSERT INTO spent ({_SPENT}) VALUES ({', '.join('?' * len(Spent._fields))})"
_COUNTED = "sum(CASE WHEN tokens IS NULL AND NOT estimated THEN 0 ELSE cost END)"  # what told no tokens used none
_PUT = {
    name: f"INSERT INTO {name} (key, body) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET body = excluded.body"
    for name in ROW_TABLES
}
_DELETE = {name: f"DELETE FROM {name} WHERE key = ?" for name in ROW_TABLES}
_ALL = {name: f"SELECT key, body FROM {name} ORDER BY key" for name in ROW_TABLES}
_BODIES = {name: f"SELECT body FROM {name} ORDER BY key" for name in ROW_TABLES}
_ONE = {name: f"SELECT body FROM {name} WHERE key = ?" for name in ROW_TABLES}


class Journal:
    """An open journal; `open` is the way to get one, a `with` block the way to close it."""

    def __init__(
        self, connection: apsw.Connection, path: Path, busy_ms: int, again: Callable[[], apsw.Connection]
    ) -> None:
        """Take over a connection that has been opened and checked; `again` opens the file to be read once more."""
        self.path = path
        self._connection = connection
        self._busy_ms = busy_ms
        self._again = again
        self._file = _file_at(path)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = False,
        readonly: bool = False,
        busy_ms: int = BUSY_MS,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> Self:
        """Open the file; a missing one is `NotFound` unless `create`; `readonly` leaves its folder as it was."""
        with plain_words(path, busy_ms):
            if readonly:
                connection = open_reader(path, busy_ms=busy_ms, migrations=migrations)
            else:
                connection = open_writer(path, create=create, busy_ms=busy_ms, migrations=migrations)
        return cls(connection, path, busy_ms, partial(open_reader, path, busy_ms=busy_ms, migrations=migrations))

    def _look_again(self) -> None:
        """Read an older file anew, which was copied to be read: it may have gone on, or have become current."""
        if is_copy(self._connection) and not self._connection.in_transaction:
            old, self._connection = self._connection, self._again()
            old.close()

    def close(self) -> None:
        """Close the file; the last one to close it leaves no log behind."""
        with plain_words(self.path, self._busy_ms):
            self._connection.close()

    def __enter__(self) -> Self:
        """Return the journal itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file."""
        self.close()

    def append(
        self,
        drafts: Sequence[Draft],
        changes: Iterable[Change] = (),
        spent: Iterable[Spent] = (),
        *,
        after: int,
        moved_ms: int = 0,
    ) -> int:
        """Keep events, rows and usage, all or none, and return the last seq; `Moved` if `after` is not the last one.

        `moved_ms` is by how much the clock moved: the usage that is kept already moves with it.
        """
        with plain_words(self.path, self._busy_ms), transaction(self._connection):
            found = self.last_seq()
            if found != after:
                raise Moved(f"the journal is at {found}, not at {after}", hint="read on from there and decide again")
            last = after + len(drafts)
            self._connection.executemany(_INSERT_EVENT, ((seq, *draft) for seq, draft in enumerate(drafts, after + 1)))
            if moved_ms:
                self._connection.execute("UPDATE spent SET at = at + ?", (moved_ms,))
            written = self._apply(changes) + self._spend(spent, after, last)
            if written and not drafts:
                raise Impossible("rows would change without an event that says why")
        return last

    def _apply(self, changes: Iterable[Change]) -> int:
        """Write the rows table by table, the last change of each key only; return how many."""
        last: dict[tuple[str, str], str | None] = {(change.table, change.key): change.body for change in changes}
        for name in {table for table, _ in last}:
            if name not in _PUT:
                raise Impossible(f"there is no table of rows named {name!r}")
            ours = [(key, body) for (table, key), body in last.items() if table == name]
            gone = [(key,) for key, body in ours if body is None]
            self._connection.executemany(_PUT[name], [row for row in ours if row[1] is not None])
            if gone:
                self._connection.executemany(_DELETE[name], gone)
        return len(last)

    def _spend(self, spent: Iterable[Spent], after: int, last: int) -> int:
        """Write the usage of attempts that these very events ended; return how many."""
        lines = list(spent)
        for line in lines:
            if not after < line.seq <= last:
                raise Impossible(f"usage of {line.loop} names event {line.seq}, which is not among {after + 1}-{last}")
        if lines:
            self._connection.executemany(_INSERT_SPENT, lines)
        return len(lines)

    def last_seq(self) -> int:
        """Return the number of the last event, 0 before the first."""
        with plain_words(self.path, self._busy_ms):
            self._look_again()
            return int(self._connection.execute("SELECT max(seq) FROM events").get or 0)

    def last_at(self) -> int:
        """Return the instant of the last event, 0 before the first."""
        with plain_words(self.path, self._busy_ms):
            return int(self._connection.execute("SELECT at FROM events ORDER BY seq DESC LIMIT 1").get or 0)

    def changed_since(self, seq: int) -> bool:
        """Tell whether the journal is anywhere else than at `seq`; a few microseconds."""
        return self.last_seq() != seq

    def ensure_in_place(self) -> None:
        """Raise if another file, or none, is where this one was opened: nobody else would see what is written here."""
        if _file_at(self.path) != self._file:
            hint = "put it back as it was; or else start the plans again: what has landed is kept, and found"
            raise WorldError(f"the journal {self.path} was taken away or replaced while it was in use", hint=hint)

    def since(self, seq: int, limit: int | None = None) -> Iterator[Record]:
        """Yield the events after `seq` in order, in portions, so that a slow reader holds nobody up."""
        query = f"SELECT {_EVENT} FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        left = limit
        while left is None or left > 0:
            portion = CHUNK if left is None else min(CHUNK, left)
            with plain_words(self.path, self._busy_ms):
                records = [Record._make(row) for row in self._connection.execute(query, (seq, portion))]
            yield from records
            if len(records) < portion:
                return
            seq = records[-1].seq
            left = None if left is None else left - portion

    def story(self, loop: str, limit: int | None = None) -> list[Record]:
        """Return the events of one loop, oldest first; with a limit, the latest ones."""
        query = f"SELECT {_EVENT} FROM events WHERE loop = ? ORDER BY seq DESC LIMIT ?"
        with plain_words(self.path, self._busy_ms):
            rows = self._connection.execute(query, (loop, -1 if limit is None else limit)).fetchall()
        return [Record._make(row) for row in reversed(rows)]

    def rows(self, table: str) -> list[tuple[str, str]]:
        """Return every key and body of a table in the order of the keys."""
        with plain_words(self.path, self._busy_ms):
            rows: list[Any] = self._connection.execute(_ALL[table]).fetchall()
        return rows

    def bodies(self, table: str) -> list[str]:
        """Return every body of a table in the order of the keys."""
        with plain_words(self.path, self._busy_ms):
            return [body for (body,) in self._connection.execute(_BODIES[table])]

    def row(self, table: str, key: str) -> str | None:
        """Return the body of one row, None if there is none."""
        with plain_words(self.path, self._busy_ms):
            body: str | None = self._connection.execute(_ONE[table], (key,)).get
        return body

    @contextmanager
    def snapshot(self) -> Iterator[int]:
        """Read all of one moment inside the block, and get its last seq; others go on writing meanwhile."""
        with plain_words(self.path, self._busy_ms):
            self._connection.execute("BEGIN")
            try:
                yield self.last_seq()
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def spent_since(self, at: int) -> list[Spent]:
        """Return what the attempts used that ended at `at` or later, oldest first."""
        query = f"SELECT {_SPENT} FROM spent WHERE at >= ? ORDER BY at, seq, rowid"
        with plain_words(self.path, self._busy_ms):
            rows = self._connection.execute(query, (at,)).fetchall()
        return [Spent._make((*row[:-1], bool(row[-1]))) for row in rows]

    def usage(self, by: str, since: int = 0, until: int | None = None) -> list[Usage]:
        """Sum what was used between two instants, grouped by one of `USAGE_KEYS`, in the order of the keys.

        What was measured and what was estimated are never added up: each side of a group is a row of its own.
        """
        query = (
            f"SELECT {USAGE_KEYS[by]} AS grouped, estimated, count(*), {_COUNTED}, sum(micro_usd), sum(ms)"
            " FROM spent WHERE at >= ?1 AND (?2 IS NULL OR at <= ?2) GROUP BY grouped, estimated"
            " ORDER BY grouped, estimated"
        )
        with plain_words(self.path, self._busy_ms):
            rows = [Usage._make(row) for row in self._connection.execute(query, (since, until))]
        return [each._replace(estimated=bool(each.estimated)) for each in rows]

    def integrity(self) -> list[str]:
        """Return what is wrong with the file, one line each; an empty list is a sound journal."""
        try:
            found = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check(20)")]
            count, first, last = next(self._connection.execute("SELECT count(*), min(seq), max(seq) FROM events"))
        except (apsw.CorruptError, apsw.NotADBError, apsw.IOError) as error:
            return [str(error)]
        problems = [line for line in found if line != "ok"]
        if count and (first != 1 or last != count):
            problems.append(f"{count} events are numbered {first} to {last}: some are missing")
        return problems

    def size(self) -> int:
        """Return the bytes on disk, the log included."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(each.stat().st_size for each in files if each.exists())


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at a place from another one there, None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
