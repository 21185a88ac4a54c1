"""The verb that prints what a loop's command is asked.

Changes no byte on disk. Must never know how a prompt is made.
"""

from __future__ import annotations

import click

from loopr.core.gates import closed_gates
from loopr.core.model import Status
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.names import find_id
from loopr.wiring import wall_clock

_AT_WORK = frozenset({Status.RUNNING, Status.CHECKING, Status.LANDING, Status.AWAITING})


@click.command("prompt")
@click.argument("loop")
@click.option("--review", is_flag=True, help="what an agent is asked that reviews the work, not the command")
@click.option("--pass", "number", type=click.IntRange(1), metavar="N", help="that one of several reviews")
@framed
def prompt_verb(frame: Frame, loop: str, review: bool, number: int | None) -> None:
    """Print what a loop's command is asked: what it was given if it is at work, else what it would be given now."""
    from loopr.driving.materials import would_be_asked, would_be_reviewed

    workspace = frame.workspace
    with workspace.rehearsal() as engine:
        forest, now = engine.forest, engine.forest.at
        found = forest.loops[find_id(forest.loops, loop)]
        kit, entry = workspace.kit(), engine.mind.find_entry(found.id)
        kit.entries = engine.mind.find_entry
        if review or number is not None:
            asked = would_be_reviewed(kit, forest, found, entry, number or 1)
        else:
            asked = would_be_asked(kit, forest, found, entry, _AT_WORK)
    if frame.as_json:
        body = {"id": found.id, "attempt": asked.attempt, "sent": asked.sent, "prompt": asked.text}
        frame.document(views.document(wall_clock(), body))
        return
    frame.lines([render.plain(asked.text.rstrip("\n"), keep_lines=True)])
    if not asked.sent and found.status is Status.PENDING:
        waits = [each for each in closed_gates(forest, found, now) if each.gate in ("parent", "needs", "artifact")]
        if waits:
            frame.note(f"it may still change: {render.plain(waits[0].reason)}")
