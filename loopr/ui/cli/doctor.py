"""The verb that checks the workspace, its journal and the machine.

Must never know a check: those are in `loopr.ui.checkup`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from loopr.ui import render, views
from loopr.ui.checkup import Finding, checkup
from loopr.ui.cli.frame import Frame, framed
from loopr.wiring import wall_clock

WRONG = 78
_WORDS = {True: ("ok", "good"), False: ("wrong", "bad"), None: ("note", "warn")}


@click.command("doctor")
@framed
def doctor_verb(frame: Frame) -> int:
    """Check the workspace, its journal and the machine; change nothing."""
    found = checkup(lambda: frame.workspace)
    failed = sum(each.ok is False for each in found)
    if frame.as_json:
        rows = [each._asdict() | {"hint": each.hint or None} for each in found]
        frame.document(views.document(wall_clock(), {"ok": not failed, "checks": rows}))
    else:
        frame.lines(_lines(found, render.Paint(frame.color)))
        count = f"{failed} thing{'s are' if failed != 1 else ' is'} wrong"
        frame.lines([count if failed else "nothing is wrong"])
    return WRONG if failed else 0


def _lines(found: Iterable[Finding], paint: render.Paint) -> Iterator[str]:
    """Set each finding on a line, its remedy below it."""
    rows = list(found)
    size = max(len(each.check) for each in rows)
    for each in rows:
        word, color = _WORDS[each.ok]
        text = render.plain(each.text, keep_lines=True).replace("\n", "\n" + " " * (size + 9))
        yield f"{paint(color, f'{word:5}')}  {each.check:{size}}  {text}"
        if each.hint:
            yield f"{'':5}  {'':{size}}  {paint('dim', '→ ' + render.plain(each.hint))}"
