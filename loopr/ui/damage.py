"""Names the place where a journal is damaged, when something in it could not be read.

Must never mend anything, nor hide a bug: where every row and event can be read, the error stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from loopr.errors import Impossible, LooprError, SettingsError
from loopr.wiring import Workspace
from loopr.world.journal import Journal

BROKEN = (ValueError, LookupError, TypeError, AttributeError, Impossible)
"""Raised where a row or an event does not hold what was written to it."""


@contextmanager
def naming_damage(opened: Callable[[], Workspace | None]) -> Iterator[None]:
    """Turn a failure over a damaged row or event into an error that names it."""
    try:
        yield
    except BROKEN as error:
        workspace, place = opened(), ""
        if workspace is not None:
            with suppress(LooprError), workspace.journal() as journal:
                place = first_damaged(journal)
        if workspace is None or not place:
            raise
        raise SettingsError(
            f"the journal is damaged: {place} cannot be read",
            where=str(workspace.place.journal),
            hint=_hint(workspace),
        ) from error


def first_damaged(journal: Journal) -> str:
    """Name the first row or event that cannot be read, nothing if each can."""
    from loopr.core.codec import decode

    for table, read in _READERS.items():
        for key, body in journal.rows(table):
            try:
                read(key, body)
            except BROKEN:
                return f"the row {key} of {table}"
    for each in journal.since(0):
        try:
            decode(each.event, each.version, each.data)
        except BROKEN:
            return f"event {each.seq} ({each.event})"
    return ""


def _read_loop(key: str, body: str) -> None:
    """Read the row of a loop."""
    from loopr.core.model import decode_loop

    if json.loads(body, object_pairs_hook=decode_loop).id != key:
        raise ValueError(key)


def _read_record(key: str, body: str) -> None:
    """Read the row of a record, as a scene does."""
    from loopr.core.policy import Policy, decode_policy
    from loopr.core.scene import Scene

    policy = decode_policy(json.loads(body)) if key == "policy" else Policy()
    Scene(policy).read([], {key: body}, [])


def _read_entry(key: str, body: str) -> None:
    """Read the row of an entry."""
    from loopr.core.entries import decode_entry

    decode_entry(json.loads(body))


_READERS: dict[str, Callable[[str, str], None]] = {
    "loops": _read_loop,
    "records": _read_record,
    "entries": _read_entry,
}


def _hint(workspace: Workspace) -> str:
    """Say how a damaged journal is replaced."""
    from loopr.world.journal_copies import newest_copy, put_back_line

    journal = workspace.place.journal
    line = put_back_line(journal, newest_copy(journal))
    return f"keep a copy of it, then {line}, or begin a new one: `loopr init --anew`"
