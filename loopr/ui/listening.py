"""What has happened and what happens next: the journal's events as rows, read once or followed as it grows.

Knows the journal, for reading. Must never know how an event is shown, nor what one means.
"""

from __future__ import annotations

import gc
import select
from collections.abc import Iterator
from typing import NamedTuple

from loopr.core.codec import EVENTS
from loopr.core.slugs import nearest
from loopr.errors import NotFound, UserError
from loopr.ui import story
from loopr.ui.names import find_id
from loopr.ui.views import Row
from loopr.wiring import Workspace
from loopr.world.journal import Journal, Record

TICK_SECS = 1.0  # how often whoever hears of each write looks all the same
LOOK_SECS = 0.1  # and how often where nothing is heard, or nothing is written yet


class Wanted(NamedTuple):
    """Which events are asked for: after a number, of some kinds, about one loop, and only the last so many."""

    after: int = 0
    kinds: tuple[str, ...] = ()
    loop: str | None = None
    limit: int | None = None


def happened(workspace: Workspace, wanted: Wanted) -> list[Row]:
    """Return the events until now."""
    _check(wanted)
    try:
        with workspace.journal() as journal:
            return _last(_rows(journal, _settled(journal, wanted)), wanted.limit)
    except NotFound:
        if workspace.place.journal.exists():
            raise
        return []


def happening(workspace: Workspace, wanted: Wanted, reader: int | None) -> Iterator[list[Row]]:
    """Give the events until now, then each time what is new; it ends when nobody reads the descriptor any more."""
    from loopr.world.growth import Growth

    _check(wanted)
    gc.enable()
    while not workspace.remembers():
        if not _wait(None, reader, LOOK_SECS):
            return
    with workspace.journal() as journal, Growth(workspace.place.state) as growth:
        wanted = _settled(journal, wanted)
        limit = wanted.limit
        while True:
            growth.hear()  # before it is read: what is written from now on is heard anew
            seq = journal.last_seq()
            if seq > wanted.after:
                yield _last(_rows(journal, wanted, seq), limit)
                wanted, limit = wanted._replace(after=seq), None
            if not _wait(growth.fileno(), reader, TICK_SECS if growth.hears else LOOK_SECS):
                return


def _wait(growth: int | None, reader: int | None, secs: float) -> bool:
    """Wait for growth, or a while; say whether there is a reader still, which a pipe tells without being written to."""
    poll = select.poll()
    if growth is not None:
        poll.register(growth, select.POLLIN)
    if reader is not None:
        poll.register(reader, 0)
    return all(number != reader for number, _ in poll.poll(secs * 1000))


def _check(wanted: Wanted) -> None:
    """Refuse a kind of event that does not exist."""
    unknown = [kind for kind in wanted.kinds if kind not in EVENTS]
    if unknown:
        near = nearest(unknown[0], EVENTS)
        hint = f"did you mean {near}?" if near else "docs/reference/events.md lists them"
        raise UserError(f"there is no event {unknown[0]!r}", hint=hint)


def _settled(journal: Journal, wanted: Wanted) -> Wanted:
    """Find the loop that is meant."""
    if wanted.loop is None:
        return wanted
    return wanted._replace(loop=find_id((key for key, _ in journal.rows("loops")), wanted.loop))


def _rows(journal: Journal, wanted: Wanted, until: int | None = None) -> Iterator[Row]:
    """Give the events that are wanted, up to one of them; each number is given once and none is left out."""
    limit = None if until is None else until - wanted.after
    return (story.event_row(each) for each in journal.since(wanted.after, limit) if _is_wanted(each, wanted))


def _is_wanted(record: Record, wanted: Wanted) -> bool:
    """Say whether an event is one of those that are asked for."""
    return (not wanted.kinds or record.event in wanted.kinds) and wanted.loop in (None, record.loop)


def _last(rows: Iterator[Row], limit: int | None) -> list[Row]:
    """Return the last so many, all of them where there is no limit."""
    found = list(rows)
    return found[-limit:] if limit else found
