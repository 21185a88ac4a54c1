"""What attempts have used, summed up: what was reported and what was derived from time are never added up.

Knows the sums that the journal has. Must never know how a cost is made, nor a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from loopr import wiring
from loopr.errors import NotFound, UserError
from loopr.ui import views
from loopr.ui.times import read_duration, read_instant
from loopr.world.journal import Usage


class Sum(NamedTuple):
    """What attempts of one kind come to; money is None where nobody reported any and no price is known."""

    attempts: int = 0
    millitokens: int = 0
    micro_usd: int | None = None
    ms: int = 0

    def plus(self, each: Usage) -> Sum:
        """Add some attempts."""
        usd = self.micro_usd if each.micro_usd is None else (self.micro_usd or 0) + each.micro_usd
        return Sum(self.attempts + each.attempts, self.millitokens + each.cost, usd, self.ms + each.ms)

    def row(self) -> views.Row:
        """Return it as data."""
        usd = None if self.micro_usd is None else self.micro_usd / 1e6
        whole, part = divmod(self.millitokens, 1000)
        tokens = self.millitokens / 1000 if part else whole
        return {"attempts": self.attempts, "tokens": tokens, "usd": usd, "seconds": self.ms / 1000}


class Group(NamedTuple):
    """What one key has used: measured, and estimated from time."""

    measured: Sum = Sum()
    estimated: Sum = Sum()

    def plus(self, each: Usage) -> Group:
        """Add some attempts to their side."""
        if each.estimated:
            return self._replace(estimated=self.estimated.plus(each))
        return self._replace(measured=self.measured.plus(each))

    def row(self) -> views.Row:
        """Return both sides as data."""
        both = self.measured, self.estimated
        return {
            "attempts": sum(each.attempts for each in both),
            "measured": self.measured.row(),
            "estimated": self.estimated.row(),
            "seconds": sum(each.ms for each in both) / 1000,
        }


def grouped(rows: Iterable[Usage]) -> tuple[dict[str, Group], Group]:
    """Put the two sides of each group beside each other, and sum all of it up."""
    found: dict[str, Group] = {}
    total = Group()
    for each in rows:
        found[each.key] = found.get(each.key, Group()).plus(each)
        total = total.plus(each)
    return found, total


class Used(NamedTuple):
    """What has been used since an instant, by the groups that were asked for."""

    now: int
    by: str
    begin: int
    groups: dict[str, Group]
    total: Group

    def document(self) -> views.Row:
        """Return it as a document."""
        rows = [{"key": key, **group.row()} for key, group in self.groups.items()]
        body = {"by": self.by, "since": views.instant(self.begin), "rows": rows, "total": self.total.row()}
        return views.document(self.now, body)


def used(workspace: wiring.Workspace, at: int | None, by: str, since: str | None) -> Used:
    """Sum up what the attempts used that have ended until an instant."""
    now = wiring.wall_clock() if at is None else at
    begin = _begin(since, now) if since is not None else 0
    try:
        with workspace.journal() as journal:
            groups, total = grouped(journal.usage(by, begin, now))
    except NotFound:
        groups, total = {}, Group()
    return Used(now, by, begin, groups, total)


def _begin(text: str, now: int) -> int:
    """Read since when: an instant, or so long ago."""
    try:
        return read_instant(text, now)
    except UserError as error:
        with suppress(UserError):
            return max(0, now - read_duration(text))
        raise UserError(error.message, hint="write 7d for that long ago, or 2026-01-31T02:00:00Z") from None
