"""The verb that enqueues plans."""

from __future__ import annotations

import sys
from functools import cache

import click

from loopr.errors import UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.folding import fold
from loopr.ui.requests import Enqueued, enqueue, read_plans

MOST_PROBLEMS = 10


@click.command("start")
@click.argument("plans", metavar="PLAN...", nargs=-1, required=True)
@click.option("-n", "--dry-run", is_flag=True, help="show what would be enqueued; write nothing")
@click.option("--no-run", is_flag=True, help="enqueue, complete what is declared, and start nothing")
@click.option("-y", "--yes", is_flag=True, help="go on where a person would be asked")
@framed
def start_verb(frame: Frame, plans: tuple[str, ...], dry_run: bool, no_run: bool, yes: bool) -> None:
    """Enqueue plan files, or bring the tree in line with changed ones."""
    if not dry_run and not no_run:
        hint = "`loopr start --no-run` enqueues, `loopr start --dry-run` shows, `loopr simulate` plays it"
        raise UserError("this version enqueues and explains plans; it does not run commands yet", hint=hint)
    workspace = frame.workspace
    found = read_plans(workspace, [frame.directory / each for each in plans])
    ask = cache(lambda text: dry_run or _confirm(text, yes))
    if len(found) > 1 and not dry_run:  # all of them or none
        with workspace.rehearsal() as engine:
            for plan in found:
                enqueue(engine, workspace, plan, ask)
    with workspace.rehearsal() if dry_run else workspace.turn() as engine:
        done = [enqueue(engine, workspace, plan, ask) for plan in found]
        forest, now = engine.forest, engine.forest.at
        if frame.as_json:
            loops = [loop for each in done for loop in forest.tree.walk(each.plan)]
            root = str(workspace.place.root)
            frame.document(
                views.tree(forest, now, root, loops) | {"dry_run": dry_run, "plans": [each._asdict() for each in done]}
            )
            return
        if dry_run:
            lines = fold(forest, [each.plan for each in done], 60)
            frame.lines(render.tree_lines(forest, lines, now, frame.width, render.Paint(frame.color)))
    for each in done:
        _report(frame, each, dry_run)


def _confirm(text: str, yes: bool) -> bool:
    """Ask a person, if there is one; without one only --yes goes on."""
    return yes or (sys.stdin.isatty() and click.confirm(f"{text}. Go on?", err=True))


def _report(frame: Frame, done: Enqueued, dry_run: bool) -> None:
    """Say what became of a plan, and what to type next."""
    would = "would be " if dry_run else ""
    words = [
        (done.declared, f"{would}declared"),
        (done.settled, f"{would}complete by declaration"),
        (done.changed, f"{would}to do again"),
        (done.gone, f"{would}no longer declared"),
    ]
    said = ", ".join(f"{len(loops)} {word}" for loops, word in words if loops)
    frame.note(f"{done.plan}: {said or 'nothing has changed'}")
    if done.gone:
        frame.note(f"  {_lost(_tops(done.gone), _tops(done.declared))}")
    for problem in done.problems[:MOST_PROBLEMS]:
        frame.note(f"  problem: {render.plain(problem, keep_lines=True)}")
    if len(done.problems) > MOST_PROBLEMS:
        frame.note(f"  … and {len(done.problems) - MOST_PROBLEMS} more: `loopr status` lists them")
    if not dry_run and not done.known:
        frame.note(f"  see it with `loopr tree {done.plan}`, or play it with `loopr simulate {done.plan}`")


def _tops(loops: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out the loops whose parent is among them."""
    return tuple(each for each in loops if each.rpartition("/")[0] not in loops)


def _lost(gone: tuple[str, ...], fresh: tuple[str, ...]) -> str:
    """Say what is gone, and how a renamed entry keeps its work."""
    if len(gone) == len(fresh) == 1:
        old = gone[0].rpartition("/")[2]
        return f"{gone[0]} is gone, {fresh[0]} is new; `id: {old}` in its entry keeps its work"
    kept = "; a renamed entry keeps its work under its old `id:`" if fresh else ""
    return f"gone: {_names(gone)}; new: {_names(fresh)}{kept}"


def _names(loops: tuple[str, ...]) -> str:
    """Name a few loops."""
    return ", ".join(loops[:5]) + (", …" if len(loops) > 5 else "") if loops else "nothing"
