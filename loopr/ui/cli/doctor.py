"""The verb that checks the workspace, its journal and the machine.

Must never know a check: those are in `loopr.ui.checkup`.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from loopr.ui import render, views
from loopr.ui.checkup import checkup
from loopr.ui.checkup.rows import finding_lines
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.gate import pass_gate
from loopr.ui.mending import Mended, mend
from loopr.wiring import wall_clock

WRONG = 78
MOST_NAMED = 10


def _put_back(mended: Mended) -> Iterator[str]:
    """Say which artifacts are in their places again."""
    yield from (f"put back  {each}" for each in mended.back[:MOST_NAMED])
    if len(mended.back) > MOST_NAMED:
        yield f"put back  … and {len(mended.back) - MOST_NAMED} more"
    if not mended.back:
        yield "put back  nothing: no artifact is gone of which a copy is kept"


@click.command("doctor")
@click.option(
    "--fix", is_flag=True, help="first put back artifacts that are gone, from what is kept; no file is replaced"
)
@framed
def doctor_verb(frame: Frame, *, fix: bool) -> int:
    """Check the workspace, its journal and the machine; without --fix it changes nothing."""
    if fix:
        pass_gate(frame.workspace, "doctor --fix")
    mended = mend(frame.workspace) if fix else Mended()
    found = checkup(lambda: frame.workspace)
    failed = sum(each.ok is False for each in found)
    if frame.as_json:
        rows = [each._asdict() | {"hint": each.hint or None} for each in found]
        frame.document(views.document(wall_clock(), {"ok": not failed, "checks": rows, "put_back": mended.back}))
    else:
        size = max(len(each.check) for each in found)
        if fix:
            frame.lines(_put_back(mended))
        frame.lines(finding_lines(found, render.Paint(frame.color), size, wall_clock()))
        count = f"{failed} thing{'s are' if failed != 1 else ' is'} wrong"
        frame.lines([count if failed else "nothing is wrong"])
    return WRONG if failed else 0
