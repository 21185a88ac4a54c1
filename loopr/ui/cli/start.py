"""The verb that enqueues plans and drives them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import cache, partial

import click

from loopr.core.forest import Forest
from loopr.core.ladder import plurals
from loopr.core.model import Status
from loopr.core.offering import offered_words
from loopr.core.settled import is_settled, standing
from loopr.errors import EngineHeld, UserError
from loopr.ui import render, views
from loopr.ui.bases import Wants, is_home
from loopr.ui.cli.behind import begin_behind
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.held import offer_held
from loopr.ui.cli.listed import KINDS, with_lists
from loopr.ui.cli.word import word_of
from loopr.ui.driving import NOT_YET, Limit, again, drive, limit_of
from loopr.ui.edits import details, headline, is_unchanged
from loopr.ui.enqueueing import Admitted, admit, bring_in, rehearse, unchanged
from loopr.ui.folding import fold
from loopr.ui.following import follow
from loopr.ui.gate import pass_gate
from loopr.ui.idle import Idle, idle
from loopr.ui.older import doubt_lines, stale_lines
from loopr.ui.progress import on_stderr
from loopr.ui.requests import Confirm, Enqueued, Plan, read_plans
from loopr.ui.stands import footer

MOST_PROBLEMS = 10
NOTHING_TO_DO = "nothing to do: it is done, and nothing has changed"


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
    workspace, limit = frame.workspace, limit_of(span=span, stay=stay)
    if no_run and limit is not None:
        raise UserError("--no-run drives nothing", hint="leave out --no-run, or --stay and --for")
    ask = cache(lambda text: _foretell(frame, text) if dry_run else _confirm(text, yes))
    paths, listed = with_lists(frame, plans, lists, ask, dry_run=dry_run)
    if not (dry_run or no_run or stay or merge) and (done := idle(workspace, paths)) is not None:
        return _report_idle(frame, done)
    offer_held(frame, ask=not yes and not dry_run)
    found = [*read_plans(workspace, paths), *listed]
    if not dry_run:
        asker, *_ = pass_gate(workspace, "start", plans, lambda scene: [each.id for each in found])
        if asker.lease and not no_run:
            frame.note("a loop drives nothing: an engine that runs takes the plans")
            no_run, detach = True, False
    if dry_run:
        return _report_all(frame, rehearse(workspace, found, ask, to_run=False))
    if len(found) > 1:  # all of them or none
        rehearse(workspace, found, ask, to_run=not no_run)
    wants = Wants(merge, say=frame.note)
    if not no_run and not detach:
        return _drive(frame, found, ask, limit, wants)
    code = _report_all(frame, admit(workspace, found, ask, to_run=detach, word=word_of(frame), wants=wants))
    if detach and code == 0:
        begin_behind(frame, again(span, stay=stay), stay=stay)
    return code


def _report_idle(frame: Frame, done: Idle) -> int:
    """Say of plans that nothing is left to do, in the words of an engine that has looked."""
    if frame.as_json:
        frame.document(unchanged(frame.workspace, done.scene, done.plans, done.now))
        return 0
    for plan in done.plans:
        frame.note(f"{plan}: {NOTHING_TO_DO}")
        for line in stale_lines(done.scene, [plan]):
            frame.note(f"  {line}")
    loops = [loop for plan in done.plans for loop in done.scene.tree.walk(plan)]
    for line in footer(views.counts(loops), done.scene.tree.done_of(done.plans), frame.width):
        frame.note(line)
    frame.note(f"next: `loopr land {done.away}`" if done.away else "next: `loopr tree`")
    return 0


def _drive(frame: Frame, found: list[Plan], ask: Confirm, limit: Limit | None, wants: Wants) -> int:
    """Enqueue and drive; where an engine serves the workspace already, enqueue and follow it."""
    workspace, ids = frame.workspace, [plan.id for plan in found]
    progress = on_stderr(frame.color, ids, partial(is_home, workspace))
    stays = limit is not None and limit.stays
    try:
        with workspace.serve(stays=stays) as driver:
            done = bring_in(driver.engine, workspace, found, ask, to_run=True, word=word_of(frame), wants=wants)
            _tell(frame, done, driver.forest)
            driven = drive(driver, ids, progress, limit=limit)
            if frame.as_json:
                frame.document(Admitted(driver.forest, done).document(workspace))
            return driven.code
    except EngineHeld as held:
        if (holder := workspace.engine()) is None:
            raise
        frame.note(f"{held.problems[0].message}: it takes the plans, and this command follows it")
    with workspace.visit() as engine:
        done = bring_in(engine, workspace, found, ask, to_run=True, word=word_of(frame), wants=wants)
        _tell(frame, done, engine.forest)
    waits = stays and not holder["stays"]  # for that engine to end: then it is on us to stay

    def until(forest: Forest, now: int) -> bool:
        return not waits and is_settled(forest, now, ids)

    forest, now, late = follow(workspace, ids, progress, until, _left_ms(limit))
    if not late and workspace.engine() is None and (waits or not is_settled(forest, now, ids)):
        return _drive(frame, found, ask, limit, wants)  # that engine was about to end when it was told
    progress.close(forest, now)
    if frame.as_json:
        frame.document(Admitted(forest, done).document(workspace, now))
    return NOT_YET if late and not is_settled(forest, now, ids) else int(standing(forest, ids, now))


def _left_ms(limit: Limit | None) -> int | None:
    """Return how long a limit leaves us, None if it does not end."""
    return None if limit is None or limit.ends is None else max(0, round((limit.ends - time.monotonic()) * 1000))


def _report_all(frame: Frame, admitted: Admitted) -> int:
    """Say what came of plans that nobody drives here."""
    if admitted.beside:
        frame.note(f"{admitted.beside}: it takes the plans")
    if frame.as_json:
        frame.document(admitted.document(frame.workspace))
        return 0
    if admitted.dry_run:
        forest, now = admitted.forest, admitted.forest.at
        lines = fold(forest, [each.plan for each in admitted.done], 60)
        frame.lines(render.tree_lines(forest, lines, now, frame.room, render.Paint(frame.color), ways=True, whole=True))
    for each in admitted.done:
        _report(frame, each, admitted.forest, ends=not admitted.dry_run)
    if admitted.dry_run:
        frame.note("nothing was written")
    return 0


def _tell(frame: Frame, done: Sequence[Enqueued], forest: Forest) -> None:
    """Say what is new before the work begins, or that nothing is."""
    for each in done:
        offers = any(forest.loops[loop].plan == each.plan for loop in forest.tree.offered)
        if each.known and forest.tree.at_rest(each.plan) and not offers and is_unchanged(each):
            frame.note(f"{each.plan}: {NOTHING_TO_DO}")
        else:
            _report(frame, each, forest, ends=False)
        for line in doubt_lines(forest, each.plan, each.changed):
            frame.note(f"  {line}")


def _confirm(text: str, yes: bool) -> bool:
    """Ask a person, if there is one; without one only --yes goes on."""
    return yes or (sys.stdin.isatty() and click.confirm(f"{text}. Go on?", err=True))


def _foretell(frame: Frame, text: str) -> bool:
    """Say what would be asked, and go on as if that were answered."""
    frame.note(f"it would ask: {render.plain(text)}")
    return True


def _report(frame: Frame, done: Enqueued, forest: Forest, *, ends: bool = True) -> None:
    """Say what became of a plan, and what to type next where this verb `ends` with that."""
    frame.note(f"{done.plan}: {headline(done)}")
    if without := _without_outline(forest, done.plan):
        frame.note(f"  {without}")
    for remark in filter(None, (*done.remarks, done.base, *done.uncommitted, *done.unjudged, *done.absent)):
        frame.note(f"  {remark}")
    for loop in sorted(forest.tree.offered):
        if forest.loops[loop].plan == done.plan:
            frame.note(f"  offered: {render.plain(offered_words(forest, forest.loops[loop]))}")
    for line in details(done):
        frame.note(f"  {line}")
    for problem in done.problems[:MOST_PROBLEMS]:
        frame.note(f"  problem: {render.plain(problem, keep_lines=True)}")
    if len(done.problems) > MOST_PROBLEMS:
        frame.note(f"  … and {len(done.problems) - MOST_PROBLEMS} more: `loopr status` lists them")
    if ends and not done.known:
        frame.note(f"  see it with `loopr tree {done.plan}`, or play it with `loopr simulate {done.plan}`")


def _without_outline(forest: Forest, plan: str) -> str:
    """Say how a plan that declares nothing would, where nobody is set to write what it declares."""
    loop = forest.loops[plan]
    own = forest.policy.type_of(loop.type)
    if loop.status is not Status.PENDING or loop.command or own.has_command or own.child is None:
        return ""
    words = plurals(own.child)[-1]
    return f"it declares no {words}: list them under `## {words.capitalize()}`, or as `{words}:` in front matter"
