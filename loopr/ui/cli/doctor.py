"""The verb that checks the workspace, its journal and the machine.

Must never know a check: those are in `loopr.ui.checkup`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from loopr.errors import LooprError
from loopr.ui import render, views
from loopr.ui.checkup import checkup
from loopr.ui.checkup.rows import Finding, finding_lines, stopped
from loopr.ui.cli.clock import Clock
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.gate import pass_gate
from loopr.ui.mending import Mended, mend
from loopr.wiring import wall_clock

WRONG = 78
MOST_NAMED = 10
GROUND = ("git", "workspace", "settings", "repository", "base")
"""The checks without whose yes nothing can be tried."""


def _put_back(mended: Mended) -> Iterator[str]:
    """Say which artifacts are in their places again."""
    yield from (f"put back  {each}" for each in mended.back[:MOST_NAMED])
    if len(mended.back) > MOST_NAMED:
        yield f"put back  … and {len(mended.back) - MOST_NAMED} more"
    if not mended.back:
        yield "put back  nothing: no artifact is gone of which a copy is kept"


def _tried(frame: Frame) -> Iterator[Finding]:
    """Try setup and checks, and give each finding as it comes; what stops that is the last one."""
    from loopr.ui.trying import tried  # slow to import

    try:
        with Clock() as clock:
            yield from tried(frame.workspace, clock.say)
    except (LooprError, OSError) as error:
        yield from stopped("try", error)


@click.command("doctor")
@click.option(
    "--fix", is_flag=True, help="first put back artifacts that are gone, from what is kept; no file is replaced"
)
@click.option(
    "--try", "tries", is_flag=True, help="also run setup and check on the base, and with a fault planted in its files"
)
@framed
def doctor_verb(frame: Frame, *, fix: bool, tries: bool) -> int:
    """Check the workspace, its journal and the machine; without --fix it changes nothing.

    With --try it runs worktrees.setup and each check in a scratch worktree of the base, and once more
    with a fault in its source files, which a check has to notice.
    """
    for option in [*(["--fix"] * fix), *(["--try"] * tries)]:
        pass_gate(frame.workspace, f"doctor {option}")
    mended = mend(frame.workspace) if fix else Mended()
    found = checkup(lambda: frame.workspace)
    size = max(len(each.check) for each in found)
    if fix and not frame.as_json:
        frame.lines(_put_back(mended))
    _tell(frame, found, size)
    sound = all(each.ok is not False or each.check not in GROUND for each in found)
    for each in _tried(frame) if tries and sound else ():
        _tell(frame, [each], size)
        found.append(each)
    failed = sum(each.ok is False for each in found)
    if frame.as_json:
        rows = [each._asdict() | {"hint": each.hint or None} for each in found]
        frame.document(views.document(wall_clock(), {"ok": not failed, "checks": rows, "put_back": mended.back}))
    else:
        count = f"{failed} thing{'s are' if failed != 1 else ' is'} wrong"
        frame.lines([count if failed else "nothing is wrong"])
    return WRONG if failed else 0


def _tell(frame: Frame, found: Sequence[Finding], size: int) -> None:
    """Print findings, their names in `size` columns."""
    if not frame.as_json:
        frame.lines(finding_lines(found, render.Paint(frame.color), size, wall_clock()))
