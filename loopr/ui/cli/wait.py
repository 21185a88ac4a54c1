"""The verb that waits for loops and convoys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from loopr.core.forest import Forest
from loopr.core.gates import first_closed
from loopr.core.grouping import ready_loops
from loopr.core.model import Status
from loopr.core.scene import Scene
from loopr.core.settled import Standing, is_settled, standing
from loopr.ui import render, views
from loopr.ui.bases import is_home
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.convoys import find_convoy
from loopr.ui.following import follow
from loopr.ui.groups import CONVOY, PROJECT, plans_of
from loopr.ui.names import find_id
from loopr.ui.preparing import setups_of
from loopr.ui.progress import on_stderr
from loopr.ui.stands import word_of
from loopr.ui.telling import within
from loopr.ui.times import read_duration

TIMED_OUT = 75
ALONE = "no engine runs here, so nothing goes on by itself: `loopr run`"


@click.command("wait")
@click.argument("names", metavar="ID|@CONVOY|project:NAME...", nargs=-1, required=True)
@click.option("--timeout", metavar="DURATION", help="wait no longer than, say, 10m")
@framed
def wait_verb(frame: Frame, names: tuple[str, ...], timeout: str | None) -> int:
    """Wait until loops, convoys and projects are done, or can get no further by themselves."""
    timeout_ms = read_duration(timeout) if timeout is not None else None
    known = frame.workspace.look().scene
    wanted = [_meant(known, name) for name in names]
    loops = members(known, wanted)
    if not loops:
        return _wait_for_nobody(frame, wanted)
    setups = setups_of(frame.workspace)
    show = on_stderr(frame.color, loops, partial(is_home, frame.workspace), setups=setups)

    def over(forest: Forest, now: int) -> bool:
        return is_settled(forest, now, members(forest, wanted))

    forest, now, timed_out = follow(frame.workspace, loops, show, over, timeout_ms)
    found = stands(forest, wanted, now)
    show.close(forest, now)
    runnable = any(within(set(loops), each.id) for each in ready_loops(forest, now))
    rests = found is Standing.STUCK and not runnable  # what is stuck no engine lets go on
    if not timed_out and found is not Standing.DONE and not rests and frame.workspace.engine() is None:
        frame.note(ALONE)
    _report(frame, forest, wanted, now, {"standing": found.name.lower(), "timed_out": timed_out})
    return TIMED_OUT if timed_out else found.value


def _wait_for_nobody(frame: Frame, wanted: Sequence[str]) -> int:
    """Say that groups have no loops: nothing of them moves, and nothing of them is done."""
    forest, _, now = frame.workspace.ponder()
    frame.note(f"there is no loop in {', '.join(dict.fromkeys(wanted))}")
    found = stands(forest, wanted, now)
    _report(frame, forest, wanted, now, {"standing": found.name.lower(), "timed_out": False})
    return found.value


def _meant(scene: Scene, name: str) -> str:
    """Return the id of the loop, or the name of the convoy or project, that a person means."""
    if name.startswith(PROJECT):
        plans_of(scene, name)
    elif name.startswith(CONVOY):
        find_convoy(scene, name)
    else:
        return find_id(scene.loops, name)
    return name


def members(scene: Scene, wanted: Sequence[str]) -> list[str]:
    """List the loops that are waited for, each once: groups stand for the members, or the plans, that they have now."""
    found: dict[str, None] = {}
    for name in wanted:
        convoy = scene.shared.convoys.get(name[1:]) if name.startswith("@") else None
        plans = plans_of(scene, name) if name.startswith(PROJECT) else None
        found |= dict.fromkeys(plans if plans is not None else convoy.members if convoy is not None else (name,))
    return list(found)


def stands(forest: Forest, wanted: Sequence[str], now: int) -> Standing:
    """Say how all that was named stands: done only if all of it is, and a convoy without members never is."""
    loops = members(forest, wanted)
    found = standing(forest, loops, now)
    if found is not Standing.DONE:
        return found
    if not all(map(forest.tree.done, loops)):
        return Standing.STUCK  # a person cancelled some of it, and whoever waits for it needs it
    return Standing.DONE if all(members(forest, [name]) for name in wanted) else Standing.WAITING


def _report(frame: Frame, forest: Forest, wanted: Sequence[str], now: int, more: views.Row) -> None:
    """Print the loops that were waited for."""
    loops = [forest.loops[each] for each in members(forest, wanted)]
    if frame.as_json:
        frame.document(views.tree(forest, now, str(frame.workspace.place.root), loops) | more)
        return
    rows = []
    for loop in loops:
        gate = first_closed(forest, loop, now) if loop.status is Status.PENDING else None
        rows.append((loop.id, loop.type, word_of(forest, loop, gate), render.detail(forest, loop, gate, now)))
    frame.lines(render.table(rows, frame.room, whole=True))
