"""What `start` does with plans of which something is to do: they are enqueued, and driven.

Must never know an option of the command line beyond what was asked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from loopr.core.forest import Forest
from loopr.core.ladder import plurals
from loopr.core.model import Status
from loopr.core.offering import offered_words
from loopr.core.settled import is_settled, standing
from loopr.errors import EngineHeld
from loopr.ui import render
from loopr.ui.bases import Wants, is_home
from loopr.ui.cli.apart import before_start
from loopr.ui.cli.behind import begin_behind
from loopr.ui.cli.frame import Frame
from loopr.ui.cli.held import offer_held
from loopr.ui.cli.word import word_of
from loopr.ui.driven_too import driven_too_words
from loopr.ui.driving import NOT_YET, Limit, again, drive, limit_of
from loopr.ui.edits import details, headline, is_unchanged, remarks_on
from loopr.ui.enqueued import Enqueued
from loopr.ui.enqueueing import Admitted, admit, bring_in, rehearse
from loopr.ui.folding import fold
from loopr.ui.following import follow
from loopr.ui.gate import pass_gate
from loopr.ui.idle import NOTHING_TO_DO
from loopr.ui.newer_inputs import newer_inputs
from loopr.ui.older import doubt_lines, some
from loopr.ui.preparing import setups_of
from loopr.ui.progress import on_stderr
from loopr.ui.requests import Confirm, Plan, read_plans
from loopr.ui.times import localized
from loopr.wiring import wall_clock

MOST_PROBLEMS = 10


class Asked(NamedTuple):
    """What was asked: the words that name the plans, how a person is asked, and the options."""

    given: tuple[str, ...]
    ask: Confirm
    dry_run: bool
    no_run: bool
    detach: bool
    stay: bool
    span: str | None
    merge: bool
    yes: bool


def begin(frame: Frame, paths: Sequence[Path], listed: Sequence[Plan], asked: Asked) -> int:
    """Enqueue plans by their files, and what became of lists, and drive them as was asked."""
    workspace, ask, no_run, detach = frame.workspace, asked.ask, asked.no_run, asked.detach
    offer_held(frame, ask=not asked.yes and not asked.dry_run)
    found = [*read_plans(workspace, paths), *listed]
    if not asked.dry_run:
        asker, *_ = pass_gate(workspace, "start", asked.given, lambda scene: [each.id for each in found])
        if asker.lease and not no_run:
            frame.note("a loop drives nothing: an engine that runs takes the plans")
            no_run, detach = True, False
    before_start(frame, [each.id for each in found], ask=not asked.yes and not asked.dry_run)
    if asked.dry_run:
        return _report_all(frame, rehearse(workspace, found, ask, to_run=False))
    if len(found) > 1:  # all of them or none
        rehearse(workspace, found, ask, to_run=not no_run)
    wants = Wants(asked.merge, say=frame.note)
    if not no_run and not detach:
        return _drive(frame, found, ask, limit_of(span=asked.span, stay=asked.stay), wants)
    admitted = admit(workspace, found, ask, to_run=detach, word=word_of(frame), wants=wants)
    code = _report_all(frame, admitted)
    if detach and code == 0:
        if not admitted.beside:
            _tell_too(frame, admitted.forest, [plan.id for plan in found], wall_clock())
        begin_behind(frame, again(asked.span, stay=asked.stay), stay=asked.stay)
    return code


def _drive(frame: Frame, found: list[Plan], ask: Confirm, limit: Limit | None, wants: Wants) -> int:
    """Enqueue and drive; where an engine serves the workspace already, enqueue and follow it."""
    workspace, ids = frame.workspace, [plan.id for plan in found]
    told = partial(is_home, workspace), partial(newer_inputs, workspace)
    progress = on_stderr(frame.color, ids, *told, setups_of(workspace))
    stays = limit is not None and limit.stays
    try:
        with workspace.serve(stays=stays) as driver:
            done = bring_in(driver.engine, workspace, found, ask, to_run=True, word=word_of(frame), wants=wants)
            _tell(frame, done, driver.forest)
            _tell_too(frame, driver.forest, ids, driver.engine.mind.now())
            driven = drive(driver, ids, progress, limit=limit)
            if frame.as_json:
                frame.document(Admitted(driver.forest, done).document(workspace))
            return driven.code
    except EngineHeld as held:
        if (holder := workspace.engine()) is None:
            raise
        serving = localized(held.problems[0].message, frame.now)
        frame.note(f"{serving}: it takes the plans, and this command follows it")
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
        frame.note(f"{localized(admitted.beside, frame.now)}: it takes the plans")
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


def _tell_too(frame: Frame, forest: Forest, named: Sequence[str], now: int) -> None:
    """Say which other plans an engine drives too, before it does."""
    if words := driven_too_words(forest, named, now):
        frame.note(words)


def _report(frame: Frame, done: Enqueued, forest: Forest, *, ends: bool = True) -> None:
    """Say what became of a plan, and what to type next where this verb `ends` with that."""
    frame.note(f"{done.plan}: {headline(done)}")
    if without := _without_outline(forest, done.plan):
        frame.note(f"  {without}")
    for remark in remarks_on(done):
        frame.note(f"  {remark}")
    for loop in sorted(forest.tree.offered):
        if forest.loops[loop].plan == done.plan:
            frame.note(f"  offered: {render.plain(offered_words(forest, forest.loops[loop]))}")
    for line in details(done):
        frame.note(f"  {line}")
    if stays := _stays(forest, done):
        frame.note(f"  {stays}")
    for problem in done.problems[:MOST_PROBLEMS]:
        frame.note(f"  problem: {render.plain(problem, keep_lines=True)}")
    if len(done.problems) > MOST_PROBLEMS:
        frame.note(f"  … and {len(done.problems) - MOST_PROBLEMS} more: `loopr status` lists them")
    if ends and not done.known:
        frame.note(f"  see it with `loopr tree {done.plan}`, or play it with `loopr simulate {done.plan}`")


def _stays(forest: Forest, done: Enqueued) -> str:
    """Say that the landed work of gone loops is not taken away; nothing if none has landed."""
    landed = [each for each in done.gone if each in forest.loops and forest.loops[each].landed]
    if not landed:
        return ""
    have, branch = "has" if len(landed) == 1 else "have", forest.policy.branch_prefix + done.plan
    takes = "`loopr status` says what takes it away"
    return f"what {some(landed)} {have} landed stays on {branch}: {takes}"


def _without_outline(forest: Forest, plan: str) -> str:
    """Say how a plan that declares nothing would, where nobody is set to write what it declares."""
    loop = forest.loops[plan]
    own = forest.policy.type_of(loop.type)
    if loop.status is not Status.PENDING or loop.command or own.has_command or own.child is None:
        return ""
    words = plurals(own.child)[-1]
    return f"it declares no {words}: list them under `## {words.capitalize()}`, or as `{words}:` in front matter"
