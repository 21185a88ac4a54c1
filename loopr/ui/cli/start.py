"""The verb that enqueues plans and drives them: its options, and plans of which nothing is left to do.

What enqueues and drives is imported once there is something to do (`starting.py`).
"""

from __future__ import annotations

import sys
from functools import cache

import click

from loopr.core.inbox import land_line
from loopr.errors import UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.listed import KINDS, with_lists
from loopr.ui.idle import NOTHING_TO_DO, Idle, idle
from loopr.ui.older import stale_lines
from loopr.ui.stands import footer
from loopr.ui.times import read_duration


@click.command("start")
@click.argument("plans", metavar="PLAN...", nargs=-1, required=True)
@click.option("--from", "kind", type=click.Choice(KINDS), help="the files are lists of work, exported from there")
@click.option("--id", "own_id", metavar="ID", help="with --from: the id of the plan that the list becomes")
@click.option("-n", "--dry-run", is_flag=True, help="show what would be enqueued; write nothing")
@click.option("--no-run", is_flag=True, help="enqueue, complete what is declared, and start nothing")
@click.option("--detach", is_flag=True, help="enqueue, and leave the work to an engine in the background")
@click.option("--stay", is_flag=True, help="go on watching when all has settled, until `stop`, or the end of --for")
@click.option("--for", "span", metavar="DURATION", help="start nothing more after, say, 2h")
@click.option("--update", "merge", is_flag=True, help="merge the base branch first, once land.check says yes")
@click.option("-y", "--yes", is_flag=True, help="go on where a person would be asked")
@framed
def start_verb(
    frame: Frame,
    *,
    plans: tuple[str, ...],
    dry_run: bool,
    no_run: bool,
    detach: bool,
    stay: bool,
    span: str | None,
    merge: bool,
    yes: bool,
    **lists: str | None,
) -> int:
    """Enqueue plan files, or bring the tree in line with changed ones, and drive the work until it has settled."""
    if span is not None:
        read_duration(span)
    if no_run and (stay or span is not None):
        raise UserError("--no-run drives nothing", hint="leave out --no-run, or --stay and --for")
    if sys.stdin.isatty() and not (dry_run or yes):
        from loopr.ui.cli.apart import keep_apart

        keep_apart(frame)
    ask = cache(lambda text: _foretell(frame, text) if dry_run else _confirm(text, yes))
    paths, listed = with_lists(frame, plans, lists, ask, dry_run=dry_run)
    done = None if dry_run or no_run or stay or merge else idle(frame.workspace, paths)
    if done is not None and not _takes_held(frame, done, ask=not yes):
        return _report_idle(frame, done)
    from loopr.ui.cli.starting import Asked, begin

    return begin(frame, paths, listed, Asked(plans, ask, dry_run, no_run, detach, stay, span, merge, yes))


def _takes_held(frame: Frame, done: Idle, *, ask: bool) -> bool:
    """Show held settings beside plans that are done; return whether a person takes them."""
    if not done.scene.shared.accepted.held:
        return False
    from loopr.ui.cli.held import offer_held

    return offer_held(frame, ask=ask)


def _report_idle(frame: Frame, done: Idle) -> int:
    """Say of plans that nothing is left to do, in the words of an engine that has looked."""
    if frame.as_json:
        from loopr.ui.enqueueing import unchanged

        frame.document(unchanged(frame.workspace, done.scene, done.plans, done.now))
        return 0
    for plan in done.plans:
        frame.note(f"{plan}: {NOTHING_TO_DO}")
        for line in (*done.news[plan], *stale_lines(done.scene, [plan])):
            frame.note(f"  {line}")
    loops = [loop for plan in done.plans for loop in done.scene.tree.walk(plan)]
    for line in footer(views.counts(loops), done.scene.tree.done_of(done.plans), frame.width):
        frame.note(line)
    home = land_line(done.scene, done.away) if done.away else "loopr tree"
    frame.note(f"next: `{home}`")
    return 0


def _confirm(text: str, yes: bool) -> bool:
    """Ask a person, if there is one; without one only --yes goes on."""
    return yes or (sys.stdin.isatty() and click.confirm(f"{text}. Go on?", err=True))


def _foretell(frame: Frame, text: str) -> bool:
    """Say what would be asked, and go on as if that were answered."""
    frame.note(f"it would ask: {render.plain(text)}")
    return True
