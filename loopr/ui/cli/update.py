"""The verb that brings the base branch into a plan's: what others have done there is there for the next attempt.

It works beside an engine as well as without one. Must never know how that is done.
"""

from __future__ import annotations

import click

from loopr import wiring
from loopr.errors import UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.home import count
from loopr.ui.gate import pass_gate
from loopr.ui.names import find_id
from loopr.ui.updating import Updated, update

REFUSED = 1


@click.command("update")
@click.argument("plan")
@framed
def update_verb(frame: Frame, *, plan: str) -> int:
    """Merge the branch that a plan began at into the plan's, judged by land.check, where there is one."""
    pass_gate(frame.workspace, "update", [plan])
    scene = frame.workspace.look().scene
    found = scene.loops[find_id(scene.loops, plan)]
    if found.parent is not None:
        raise UserError(f"{found.id} is a {found.type}, and plans are updated", hint=f"loopr update {found.plan}")
    done = update(frame.workspace, found.id, frame.note)
    if frame.as_json:
        frame.document(views.document(wiring.wall_clock(), _document(done)))
    else:
        _report(frame, done)
    return REFUSED if done.problems else 0


def _report(frame: Frame, done: Updated) -> None:
    """Say what came of it."""
    for each in done.problems:
        frame.note(f"refused: {render.plain(each.message, keep_lines=True)}")
        if each.hint:
            frame.note(f"  hint: {render.plain(each.hint)}")
    if done.problems:
        frame.note("nothing was changed")
    elif done.new == done.old:
        frame.note(f"{done.plan} has all of {done.branch} already")
    else:
        new = f" ({count(done.commits, 'commit')})" if done.commits else ""
        judged = f"; {done.judge} said yes" if done.judge else ""
        frame.lines([f"{done.plan} stands at {done.new[:12]}, with {done.branch} as it is now{new}{judged}"])
        for name, _, why in (each.partition(" ") for each in done.others):
            frame.note(f"{name} has other inputs: {render.plain(why)}")
        if folder := _lagging(done):
            frame.note(f"its branch lags: checked out in {render.plain(folder)}")


def _document(done: Updated) -> views.Row:
    """Return what came of it as data."""
    commits = [each.partition(" ") for each in done.commits]
    return {
        "plan": done.plan,
        "base": done.branch,
        "commit": done.base,
        "from": done.old,
        "to": done.old if done.problems else done.new,
        "commits": [{"commit": name, "subject": subject} for name, _, subject in commits],
        "judged": bool(done.judge),
        "inputs": [{"loop": name, "reason": why} for name, _, why in (each.partition(" ") for each in done.others)],
        "checkout": _lagging(done) or None,
        "problems": [
            {"message": each.message, "where": each.where or None, "hint": each.hint or None} for each in done.problems
        ],
    }


def _lagging(done: Updated) -> str:
    """Name the checkout that keeps a branch from following."""
    return done.brought.folder if done.brought is not None and done.brought.outcome in ("lags", "left") else ""
