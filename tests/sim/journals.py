"""The journals a simulated world remembers with: one in memory for speed, the real one on disk for a sample.

Both keep events as text and the rows that follow from them, all or none, and refuse who did not see the last event.
They know nothing of what an event means, but that a moved clock moves what was spent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from loopr.core import workspace_events as w
from loopr.core.codec import decode, encode, subject
from loopr.core.entries import Entry, decode_entry
from loopr.core.events import Event
from loopr.core.forest import Forest, Rows
from loopr.core.ledger import Charge
from loopr.engine import recall
from loopr.errors import Moved, WorldError
from loopr.world.journal import Change, Draft, Journal, Spent


class Told(NamedTuple):
    """One event as the journal gives it back: read from its text."""

    seq: int
    at: int
    event: Event


class Remembers(Protocol):
    """What a simulated process asks of a journal."""

    turns_back: bool
    full: bool
    listeners: list[Callable[[list[Told]], None]]

    def last_seq(self) -> int:
        """Return the number of the last event."""

    def append(self, events: Sequence[Event], rows: Rows, at: int, after: int) -> int:
        """Keep events and rows, or raise `Moved` or `WorldError` and keep nothing."""

    def since(self, seq: int) -> Iterator[Told]:
        """Read the events after a number."""

    def load(self) -> tuple[Forest, int]:
        """Build a forest from the rows."""

    def rows(self) -> dict[tuple[str, str], str]:
        """Return every row but the entries."""

    def entry(self, loop_id: str) -> Entry | None:
        """Return the entry of a loop."""

    def close(self) -> None:
        """Let go of the file."""


class MemoryJournal:
    """A journal that keeps texts in memory, as the real one keeps them on disk."""

    turns_back = True

    def __init__(self) -> None:
        """Begin empty."""
        self.full = False
        self.listeners: list[Callable[[list[Told]], None]] = []
        self._events: list[tuple[int, str, int, str]] = []
        self._rows: dict[tuple[str, str], str] = {}
        self._charges: list[Charge] = []

    def last_seq(self) -> int:
        """Return the number of the last event."""
        return len(self._events)

    def append(self, events: Sequence[Event], rows: Rows, at: int, after: int) -> int:
        """Keep events and rows, all or none."""
        _may_append(self, after)
        self._events += [(at, *encode(each)) for each in events]
        for table, key, body in rows.changes:
            if body is None:
                self._rows.pop((table, key), None)
            else:
                self._rows[table, key] = body
        moved = sum(each.by_ms for each in events if isinstance(each, w.ClockMoved))
        if moved:
            self._charges = [each._replace(at=each.at + moved) for each in self._charges]
        self._charges += [each for _, each in rows.charges]
        told = list(self.since(after))
        for listener in self.listeners:
            listener(told)
        return len(self._events)

    def since(self, seq: int) -> Iterator[Told]:
        """Read the events after a number, each from its text."""
        for number, (at, name, version, text) in enumerate(self._events[seq:], seq + 1):
            yield Told(number, at, decode(name, version, text))

    def load(self) -> tuple[Forest, int]:
        """Build a forest from the rows, as a start does."""
        loops = [body for (table, _), body in self._rows.items() if table == "loops"]
        records = {key: body for (table, key), body in self._rows.items() if table == "records"}
        at = self._events[-1][0] if self._events else 0
        return Forest.from_rows(loops, records, self._charges, at), len(self._events)

    def rows(self) -> dict[tuple[str, str], str]:
        """Return every row but the entries."""
        return {key: body for key, body in self._rows.items() if key[0] != "entries"}

    def entry(self, loop_id: str) -> Entry | None:
        """Return the entry of a loop."""
        body = self._rows.get(("entries", loop_id))
        return decode_entry(json.loads(body)) if body else None

    def close(self) -> None:
        """Have nothing to let go of."""


class DiskJournal:
    """The real journal behind the same few questions."""

    turns_back = False

    def __init__(self, path: Path) -> None:
        """Make the file."""
        self.full = False
        self.listeners: list[Callable[[list[Told]], None]] = []
        self._journal = Journal.open(path, create=True)

    def last_seq(self) -> int:
        """Return the number of the last event."""
        return self._journal.last_seq()

    def append(self, events: Sequence[Event], rows: Rows, at: int, after: int) -> int:
        """Keep events, rows and usage in one transaction."""
        if self.full:
            _may_append(self, after)
        drafts = []
        for event in events:
            name, version, text = encode(event)
            drafts.append(Draft(at, name, version, subject(event), "sim", text))
        spent = [Spent(after + 1 + place, *charge) for place, charge in rows.charges]
        last = self._journal.append(drafts, [Change(*each) for each in rows.changes], spent, after=after)
        told = list(self.since(after))
        for listener in self.listeners:
            listener(told)
        return last

    def since(self, seq: int) -> Iterator[Told]:
        """Read the events after a number."""
        for record in self._journal.since(seq):
            yield Told(record.seq, record.at, decode(record.event, record.version, record.data))

    def load(self) -> tuple[Forest, int]:
        """Build a forest from the rows, as a start does."""
        return recall(self._journal)

    def rows(self) -> dict[tuple[str, str], str]:
        """Return every row but the entries."""
        return {(table, key): body for table in ("loops", "records") for key, body in self._journal.rows(table)}

    def entry(self, loop_id: str) -> Entry | None:
        """Return the entry of a loop."""
        body = self._journal.row("entries", loop_id)
        return decode_entry(json.loads(body)) if body else None

    def integrity(self) -> list[str]:
        """Return what is wrong with the file."""
        return self._journal.integrity()

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


def _may_append(journal: MemoryJournal | DiskJournal, after: int) -> None:
    """Refuse on a full disk, and who did not see the last event."""
    if journal.full:
        raise WorldError("the disk is full", hint="free some space")
    if journal.last_seq() != after:
        raise Moved(f"the journal is at {journal.last_seq()}, not at {after}")
