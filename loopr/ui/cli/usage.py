"""The verb that shows what attempts have used. Must never know how it is summed up."""

from __future__ import annotations

import click

from loopr.ui import render
from loopr.ui.cli.frame import Frame, reading
from loopr.ui.times import say_duration, say_tokens
from loopr.ui.usage import Group, Sum, used
from loopr.world.journal import USAGE_KEYS

_HEAD = ("measured", "tokens", "money", "estimated", "est. tokens", "est. money", "time")


@click.command("usage")
@click.option(
    "--by", type=click.Choice(list(USAGE_KEYS)), default="project", show_default=True, help="what to group by"
)
@click.option("--since", metavar="TIME", help="only tries that ended since then: 7d, or 2026-01-31T02:00:00Z")
@reading
def usage_verb(frame: Frame, by: str, since: str | None) -> None:
    """Sum up what the tries that have ended used; a day is one of UTC."""
    found = used(frame.workspace, frame.at, by, since)
    if frame.as_json:
        frame.document(found.document())
        return
    groups = found.groups
    if not groups:
        frame.note("no try has ended" + (" since then" if since is not None else " yet"))
        return
    lines = [_cells(render.plain(key), group) for key, group in groups.items()]
    frame.lines(_table([(by, *_HEAD), *lines, *([_cells("in all", found.total)] if len(groups) > 1 else [])]))


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
    """Set names to the left and numbers to the right, each kind that there is; nothing is cut: no sum is ever wrong."""
    filled = [place for place, column in enumerate(zip(*rows[1:], strict=True)) if any(column)]
    rows = [tuple(row[place] for place in filled) for row in rows]
    sizes = [max(map(render.columns, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [render.pad(row[0], sizes[0]), *(f"{cell:>{size}}" for cell, size in zip(row[1:], sizes[1:], strict=True))]
        )
        for row in rows
    ]
