"""The verb that checks the workspace, its journal and the machine.

Must never know a check: those are in `loopr.ui.checkup`.
"""

from __future__ import annotations

import click

from loopr.ui import render, views
from loopr.ui.checkup import checkup
from loopr.ui.checkup.rows import finding_lines
from loopr.ui.cli.frame import Frame, framed
from loopr.wiring import wall_clock

WRONG = 78


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
        size = max(len(each.check) for each in found)
        frame.lines(finding_lines(found, render.Paint(frame.color), size))
        count = f"{failed} thing{'s are' if failed != 1 else ' is'} wrong"
        frame.lines([count if failed else "nothing is wrong"])
    return WRONG if failed else 0
