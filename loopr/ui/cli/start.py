"""The verb that enqueues plans and drives them."""

from __future__ import annotations

import sys
from functools import cache

import click

from loopr.core.settled import is_settled, standing
from loopr.engine import Engine
from loopr.errors import EngineHeld
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.driving import detach as detach_engine
from loopr.ui.driving import drive, refuse_nested
from loopr.ui.folding import fold
from loopr.ui.following import follow
from loopr.ui.progress import on_stderr
from loopr.ui.requests import Confirm, Enqueued, Plan, enqueue, read_plans

MOST_PROBLEMS = 10


@click.command("start")
@click.argument("plans", metavar="PLAN...", nargs=-1, required=True)
@click.option("-n", "--dry-run", is_flag=True, help="show what would be enqueued; write nothing")
@click.option("--no-run", is_flag=True, help="enqueue, complete what is declared, and start nothing")
@click.option("--detach", is_flag=True, help="enqueue, and leave the work to an engine in the background")
@click.option("-y", "--yes", is_flag=True, help="go on where a person would be asked")
@click.option("--allow-nested", is_flag=True, help="work even though a loop's command started this")
@framed
def start_verb(
    frame: Frame, *, plans: tuple[str, ...], dry_run: bool, no_run: bool, detach: bool, yes: bool, allow_nested: bool
) -> int:
    """Enqueue plan files, or bring the tree in line with changed ones, and drive the work until it has settled."""
    if not dry_run:
        refuse_nested(allow_nested)
    workspace = frame.workspace
    found = read_plans(workspace, [frame.directory / each for each in plans])
    ask = cache(lambda text: dry_run or _confirm(text, yes))
    if len(found) > 1 and not dry_run:  # all of them or none
        with workspace.rehearsal() as engine:
            for plan in found:
                enqueue(engine, workspace, plan, ask)
    if dry_run:
        with workspace.rehearsal() as engine:
            return _enqueue_only(frame, engine, found, ask, dry_run=True)
    if no_run or detach:
        code = _beside_or_turn(frame, found, ask)
        if detach and code == 0:
            pid = detach_engine(workspace, [word for each in frame.sets for word in ("--set", each)])
            frame.note(f"an engine works in the background (pid {pid}): `loopr tree`, `loopr wait`, `loopr stop`")
        return code
    return _drive(frame, found, ask)


def _drive(frame: Frame, found: list[Plan], ask: Confirm) -> int:
    """Enqueue and drive; where an engine serves the workspace already, enqueue and follow it."""
    workspace, ids = frame.workspace, [plan.id for plan in found]
    progress = on_stderr(frame.color, ids)
    try:
        with workspace.serve() as driver:
            done = [enqueue(driver.engine, workspace, plan, ask) for plan in found]
            _tell(frame, done)
            driven = drive(driver, ids, progress)
            _document(frame, driver.engine, done)
            return driven.code
    except EngineHeld as held:
        if workspace.engine() is None:
            raise
        frame.note(f"{held.problems[0].message}: it takes the plans, and this command follows it")
    with workspace.visit() as engine:
        done = [enqueue(engine, workspace, plan, ask) for plan in found]
    _tell(frame, done)
    forest, now, _ = follow(workspace, ids, progress, lambda forest, now: is_settled(forest, now, ids), None)
    if workspace.engine() is None and not is_settled(forest, now, ids):
        return _drive(frame, found, ask)  # that engine was about to end when it was told
    progress.close(forest, now)
    if frame.as_json:
        loops = [loop for each in ids for loop in forest.tree.walk(each)]
        frame.document(views.tree(forest, now, str(workspace.place.root), loops) | _outcome(done, dry_run=False))
    return int(standing(forest, ids, now))


def _beside_or_turn(frame: Frame, found: list[Plan], ask: Confirm) -> int:
    """Enqueue in a turn of our own, or beside the engine that serves the workspace."""
    try:
        with frame.workspace.turn() as engine:
            return _enqueue_only(frame, engine, found, ask, dry_run=False)
    except EngineHeld as held:
        frame.note(f"{held.problems[0].message}: it takes the plans")
    with frame.workspace.visit() as engine:
        return _enqueue_only(frame, engine, found, ask, dry_run=False)


def _enqueue_only(frame: Frame, engine: Engine, found: list[Plan], ask: Confirm, *, dry_run: bool) -> int:
    """Enqueue and say what came of it."""
    done = [enqueue(engine, frame.workspace, plan, ask) for plan in found]
    _document(frame, engine, done, dry_run=dry_run)
    if frame.as_json:
        return 0
    if dry_run:
        forest, now = engine.forest, engine.forest.at
        lines = fold(forest, [each.plan for each in done], 60)
        frame.lines(render.tree_lines(forest, lines, now, frame.width, render.Paint(frame.color)))
    for each in done:
        _report(frame, each, dry_run)
    return 0


def _document(frame: Frame, engine: Engine, done: list[Enqueued], *, dry_run: bool = False) -> None:
    """Print the document of the plans, if that was asked for."""
    if not frame.as_json:
        return
    forest, root = engine.forest, str(frame.workspace.place.root)
    loops = [loop for each in done for loop in forest.tree.walk(each.plan)]
    frame.document(views.tree(forest, forest.at, root, loops) | _outcome(done, dry_run=dry_run))


def _outcome(done: list[Enqueued], *, dry_run: bool) -> views.Row:
    """Say what became of each plan."""
    return {"dry_run": dry_run, "plans": [each._asdict() for each in done]}


def _tell(frame: Frame, done: list[Enqueued]) -> None:
    """Say what is new before the work begins."""
    for each in done:
        if each.known and not (each.declared or each.changed or each.gone or each.problems):
            continue
        _report(frame, each._replace(known=True), dry_run=False)


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
