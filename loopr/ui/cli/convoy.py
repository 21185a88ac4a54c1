"""The verbs for convoys: named sets of loops that land when all of them are done.

`create` and `add` are wishes like any other. Must never know when a convoy lands.
"""

from __future__ import annotations

import click

from loopr.core.model import Status
from loopr.core.scene import Scene
from loopr.core.shared import Convoy
from loopr.ui import render
from loopr.ui.cli.frame import Frame, framed, reading
from loopr.ui.cli.steer import steer
from loopr.ui.convoys import convoy_document, convoy_row, convoys_document, find_convoy, progress_words
from loopr.ui.names import counted
from loopr.ui.times import say_clock
from loopr.ui.vocabulary import Wish

MOST_HOLDING = 10
_NONE_YET = "there is no convoy yet: `loopr convoy create @NAME ID...`"


@click.group("convoy")
def convoy_verb() -> None:
    """Group loops and plans, to wait for all of them together."""


@convoy_verb.command("create")
@click.argument("name", metavar="@NAME")
@click.argument("loops", metavar="ID...", nargs=-1)
@framed
def create_verb(frame: Frame, name: str, loops: tuple[str, ...]) -> None:
    """Form a convoy of loops and plans that exist; one without members never lands."""
    steer(frame, Wish("convoy", loops, {"name": name, "new": True}))


@convoy_verb.command("add")
@click.argument("name", metavar="@NAME")
@click.argument("loops", metavar="ID...", nargs=-1, required=True)
@framed
def add_verb(frame: Frame, name: str, loops: tuple[str, ...]) -> None:
    """Let loops and plans join a convoy that has not landed."""
    steer(frame, Wish("convoy", loops, {"name": name, "new": False}))


@convoy_verb.command("list")
@reading
def list_verb(frame: Frame) -> None:
    """List all convoys, one a line."""
    seen = frame.workspace.look(frame.at)
    body = convoys_document(seen.scene, seen.now)
    if frame.as_json:
        frame.document(body)
        return
    convoys = sorted(seen.scene.shared.convoys.items())
    rows = [(f"@{name}", _stands(seen.scene, name, convoy, seen.now)) for name, convoy in convoys]
    frame.lines(render.table(rows, frame.room, whole=True))
    if not rows:
        frame.note(_NONE_YET)


@convoy_verb.command("show")
@click.argument("name", metavar="@NAME")
@reading
def show_verb(frame: Frame, name: str) -> None:
    """Count what is done of a convoy, and name what holds it up."""
    seen = frame.workspace.look(frame.at)
    scene, found = seen.scene, find_convoy(seen.scene, name)
    body = convoy_document(scene, found, seen.now)
    if frame.as_json:
        frame.document(body)
        return
    stands = _stands(scene, found, scene.shared.convoys[found], seen.now)
    frame.lines(render.wrap(f"@{found}  ", stands, frame.width))
    rows = [(each["id"], each["type"], each["state"]) for each in body["loops"]]
    frame.lines(render.table(rows, frame.room, whole=True))
    held = body["holding"]
    size = max((len(each["id"]) for each in held[:MOST_HOLDING]), default=0)
    lines = ["", "held up by:"] if held else []
    for each in held[:MOST_HOLDING]:
        lines += render.wrap(f"  {each['id']:{size}}  ", render.plain(each["reason"]), frame.width)
    lines += [f"  … and {len(held) - MOST_HOLDING} more"] if len(held) > MOST_HOLDING else []
    frame.lines(lines)


def _stands(scene: Scene, name: str, convoy: Convoy, now: int) -> str:
    """Say how far a convoy has come."""
    row = convoy_row(scene, name, now)
    counts = f"{row['done']} of {row['total']} done"
    if convoy.landed_at is not None:
        return f"{counts}, landed {say_clock(convoy.landed_at, now)}"
    if not convoy.members:
        return f"{counts}: without members it never lands"
    if row["done"] == row["total"]:
        return f"{counts}: it lands at the engine's next turn"
    below = row["progress"]
    more = f" ({below['done']} of {counted(below['of'], 'loop')})" if below["total"] != row["total"] else ""
    gone = sum(scene.loops[each].status is Status.INVALIDATED for each in convoy.members)
    lacks = f"{gone} not declared any more, so it does not land" if gone else ""
    return f"{counts}{more}: {'; '.join(filter(None, [progress_words(below), lacks]))}"
