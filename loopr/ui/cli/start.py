"""The verb that enqueues plans."""

from __future__ import annotations

import sys

import click

from loopr.errors import UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.folding import fold
from loopr.ui.requests import Enqueued, enqueue, read_plans


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
    with workspace.rehearsal() if dry_run else workspace.turn() as engine:
        done = [enqueue(engine, workspace, plan, lambda text: dry_run or _confirm(text, yes)) for plan in found]
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
        frame.note(
            f"  gone: {', '.join(done.gone[:5])}{', …' if len(done.gone) > 5 else ''}; new: {_names(done.declared)}"
        )
    for problem in done.problems:
        frame.note(f"  problem: {render.plain(problem, keep_lines=True)}")
    if not dry_run and not done.known:
        frame.note(f"  see it with `loopr tree {done.plan}`, or play it with `loopr simulate {done.plan}`")


def _names(loops: tuple[str, ...]) -> str:
    """Name a few loops."""
    return ", ".join(loops[:5]) + (", …" if len(loops) > 5 else "") if loops else "nothing"
