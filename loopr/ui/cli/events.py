"""The verb that prints the journal, also as it grows.

Must never know how news of the journal arrives.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

import click

from loopr.ui import render, story
from loopr.ui.cli.frame import Frame, framed, several
from loopr.ui.listening import Wanted, happened, happening
from loopr.ui.times import localized
from loopr.ui.views import Row


@click.command("events")
@click.argument("loop", required=False)
@click.option("-f", "--follow", "following", is_flag=True, help="go on with what happens, until nobody reads any more")
@click.option("--after", type=click.IntRange(0), default=0, metavar="SEQ", help="only those after this one")
@several("--type", "kinds", metavar="EVENT", help="only these, with commas between")
@click.option("-n", "limit", type=click.IntRange(1), help="only the last so many")
@framed
def events_verb(
    frame: Frame, *, loop: str | None, following: bool, after: int, kinds: tuple[str, ...], limit: int | None
) -> None:
    """Print the journal, one event a line.

    Whoever comes back with the number of the last event it saw (`--after`) misses none and sees none twice.
    """
    wanted = Wanted(after, kinds, loop, limit)
    if not following:
        _print(frame, happened(frame.workspace, wanted))
        return
    for rows in happening(frame.workspace, wanted, sys.stdout.fileno()):
        _print(frame, rows)
        sys.stdout.flush()


def _print(frame: Frame, rows: Iterable[Row]) -> None:
    """Print events, each on a line of its own."""
    frame.lines(json.dumps(each) if frame.as_json else _line(each, frame.now) for each in rows)


def _line(row: Row, now: int) -> str:
    """Tell one event."""
    about = f"{row['loop']}: " if row["loop"] else ""
    told = f"{about}{story.sentence(row['event'], row['data'])}"
    return render.plain(f"{row['seq']:>6}  {localized(row['at'], now):8}  {told}")
