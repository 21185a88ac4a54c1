"""The verb that sums up what attempts have used.

What was reported and what was derived from time are never added up. Must never know how a cost is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

import click

from loopr import wiring
from loopr.errors import NotFound, UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, reading
from loopr.ui.times import read_duration, read_instant, say_duration, say_tokens
from loopr.world.journal import USAGE_KEYS, Spent

_HEAD = ("measured", "tokens", "money", "estimated", "tokens", "money", "time")
_KEYS: Mapping[str, Callable[[Spent], str]] = {
    "project": lambda each: each.project,
    "type": lambda each: each.type,
    "lane": lambda each: each.lane,
    "plan": lambda each: each.plan,
    "loop": lambda each: each.loop,
    "day": lambda each: (views.instant(each.at) or "")[:10],
}


class Sum(NamedTuple):
    """What attempts of one kind come to; money is None where nobody reported any and no price is known."""

    attempts: int = 0
    millitokens: int = 0
    micro_usd: int | None = None
    ms: int = 0

    def plus(self, each: Spent) -> Sum:
        """Add one attempt."""
        usd = self.micro_usd if each.micro_usd is None else (self.micro_usd or 0) + each.micro_usd
        return Sum(self.attempts + 1, self.millitokens + each.cost, usd, self.ms + each.ms)

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

    def plus(self, each: Spent) -> Group:
        """Add one attempt to its side."""
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


def usage(spent: Iterable[Spent], by: str) -> tuple[dict[str, Group], Group]:
    """Group what was used by a key, in the order of the keys, and sum all of it up."""
    found: dict[str, Group] = {}
    total, key_of = Group(), _KEYS[by]
    for each in spent:
        key = key_of(each)
        found[key] = found.get(key, Group()).plus(each)
        total = total.plus(each)
    return dict(sorted(found.items())), total


@click.command("usage")
@click.option(
    "--by", type=click.Choice(list(USAGE_KEYS)), default="project", show_default=True, help="what to group by"
)
@click.option("--since", metavar="TIME", help="only attempts that ended since then: 7d, or 2026-01-31T02:00:00Z")
@reading
def usage_verb(frame: Frame, by: str, since: str | None) -> None:
    """Sum up what the attempts that have ended used; a day is one of UTC."""
    now = wiring.wall_clock() if frame.at is None else frame.at
    begin = _begin(since, now) if since is not None else 0
    try:
        with frame.workspace.journal() as journal:
            groups, total = usage((each for each in journal.spent_since(begin) if each.at <= now), by)
    except NotFound:
        groups, total = {}, Group()
    if frame.as_json:
        rows = [{"key": key, **group.row()} for key, group in groups.items()]
        body = {"by": by, "since": views.instant(begin), "rows": rows, "total": total.row()}
        frame.document(views.document(now, body))
        return
    if not groups:
        frame.note("no attempt has ended" + (" since then" if since is not None else " yet"))
        return
    lines = [_cells(render.plain(key), group) for key, group in groups.items()]
    frame.lines(_table([(by, *_HEAD), *lines, *([_cells("in all", total)] if len(groups) > 1 else [])]))


def _begin(text: str, now: int) -> int:
    """Read since when: an instant, or so long ago."""
    try:
        return read_instant(text, now)
    except UserError as error:
        with suppress(UserError):
            return max(0, now - read_duration(text))
        raise UserError(error.message, hint="write 7d for that long ago, or 2026-01-31T02:00:00Z") from None


def _cells(key: str, group: Group) -> tuple[str, ...]:
    """Write one line of the table; what there is nothing of stays empty."""
    measured, estimated = group
    return (
        key,
        *_side(measured),
        *_side(estimated),
        say_duration(measured.ms + estimated.ms),
    )


def _side(one: Sum) -> tuple[str, str, str]:
    """Write the cells of what was measured, or of what was estimated."""
    if not one.attempts:
        return "", "", ""
    usd = "" if one.micro_usd is None else f"${one.micro_usd / 1e6:.2f}"
    return str(one.attempts), say_tokens(one.millitokens / 1000), usd


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Set names to the left and numbers to the right; nothing is cut, so that no sum is ever wrong."""
    sizes = [max(map(render.columns, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [render.pad(row[0], sizes[0]), *(f"{cell:>{size}}" for cell, size in zip(row[1:], sizes[1:], strict=True))]
        )
        for row in rows
    ]
