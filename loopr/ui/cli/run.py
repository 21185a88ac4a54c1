"""The verbs that begin and end driving without adding anything."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import click

from loopr.core.offering import offered_words
from loopr.errors import SettingsError, UserError, WorldError
from loopr.ui import render, views
from loopr.ui.bases import follow_base, is_home
from loopr.ui.cli.behind import begin_behind
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.held import offer_held
from loopr.ui.cli.word import word_of
from loopr.ui.driving import again, drive, limit_of
from loopr.ui.gate import pass_gate
from loopr.ui.newer_inputs import newer_inputs
from loopr.ui.offers import ask_on_offers
from loopr.ui.preparing import setups_of
from loopr.ui.progress import Progress, on_stderr
from loopr.ui.unfinished import unfinished, unfinished_line
from loopr.wiring import Workspace, wall_clock
from loopr.world.lock import Holder, end_at_once

PATIENCE_SECS = 2.0  # beside the grace of commands


@click.command("run")
@click.option("--once", is_flag=True, help="start what may start now, see it through, and end")
@click.option("--for", "span", metavar="DURATION", help="start nothing more after, say, 2h")
@click.option("--stay", is_flag=True, help="go on watching when all has settled, until `stop`, or the end of --for")
@click.option("--detach", "background", is_flag=True, help="leave the work to an engine in the background")
@framed
def run_verb(frame: Frame, *, once: bool, span: str | None, stay: bool, background: bool) -> int:
    """Drive the whole workspace until it has settled, adding nothing."""
    if once and stay:
        raise UserError("--once ends after a round, and --stay does not end", hint="leave one of the two out")
    pass_gate(frame.workspace, "run")
    offer_held(frame)
    limit = limit_of(once=once, span=span, stay=stay)
    if background:
        pid = begin_behind(frame, [*(["--once"] if once else []), *again(span, stay=stay)], stay=stay)
        if frame.as_json:
            frame.document(views.document(wall_clock(), {"pid": pid}))
        return 0
    with frame.workspace.serve(stays=stay) as driver:
        for plan in driver.forest.tree.children(None):
            with suppress(WorldError):  # what is in the way is told by whoever needs the branch
                if said := follow_base(driver.engine, frame.workspace, plan):
                    frame.note(said)
        ask_on_offers(driver.engine, (), word_of(frame))
        for each in sorted(driver.forest.tree.offered):
            frame.note(f"offered: {render.plain(offered_words(driver.forest, driver.forest.loops[each]))}")
        progress = _progress(frame)
        driven = drive(driver, (), progress, limit=limit)
        if frame.as_json:
            frame.document(views.tree(driver.forest, driven.now, str(frame.workspace.place.root)))
        return driven.code


def _progress(frame: Frame) -> Progress:
    """Make the progress of all that is there."""
    told = partial(is_home, frame.workspace), partial(newer_inputs, frame.workspace)
    return on_stderr(frame.color, (), *told, setups_of(frame.workspace))


@click.command("stop")
@click.option("--now", "at_once", is_flag=True, help="end live tries too; it costs them nothing")
@framed
def stop_verb(frame: Frame, at_once: bool) -> int:
    """Ask the engine to start nothing more, and to end once what runs has ended."""
    workspace = frame.workspace
    pass_gate(workspace, "stop", ["--now"] if at_once else [])
    holder = workspace.engine()
    if holder is None or holder["kind"] != "engine":
        frame.note("no engine runs here")
        _report(frame, None, 0, ended=True)
        return 0
    if at_once:
        return _stop_at_once(frame, holder)
    running = stop_engine(workspace, at_once=False)
    if running:
        attempts = f"{running} {'try that runs' if running == 1 else 'tries that run'}"
        frame.note(
            f"the engine ends after {attempts}; `loopr stop --now` ends {'it' if running == 1 else 'them'} at once"
        )
    else:
        frame.note("the engine ends")
    _report(frame, holder["pid"], running, ended=False)
    return 0


def _stop_at_once(frame: Frame, holder: Holder) -> int:
    """End the engine with all that runs, and say what it leaves to the next one."""
    workspace = frame.workspace
    try:
        stop_engine(workspace, at_once=True)
    except (WorldError, SettingsError) as error:  # a full disk: the engine is told all the same
        frame.note(f"the stop cannot be written down: {error.message}")
    end_at_once(holder)
    _wait_for_end(workspace, holder["pid"])
    frame.note("the engine has ended")
    left: list[str] = []
    with suppress(WorldError, SettingsError):  # a journal that is gone, say
        scene = workspace.look().scene
        left = unfinished(scene)
        if words := unfinished_line(scene):
            frame.note(words)
    _report(frame, holder["pid"], 0, ended=True, left=left)
    return 0


def _report(
    frame: Frame,
    pid: int | None,
    live: int,
    *,
    ended: bool,
    left: Sequence[str] = (),
) -> None:
    """Tell a program which engine was asked to stop, what keeps it, and what it has left."""
    if frame.as_json:
        body = {"pid": pid, "live": live, "ended": ended, "left": list(left)}
        frame.document(views.document(wall_clock(), body))


def stop_engine(workspace: Workspace, *, at_once: bool) -> int:
    """Ask the engine to stop, and return how many attempts live."""
    from loopr.core.intake import interpret
    from loopr.core.observations import EngineDrains
    from loopr.core.wishes import stop_all

    with workspace.visit() as engine:
        engine.mind.decide(lambda forest, now: interpret(forest, EngineDrains(workspace.actor), now))
        if at_once:
            engine.mind.decide(lambda forest, now: stop_all(forest, workspace.actor))
        return engine.forest.occupancy.total


def _wait_for_end(workspace: Workspace, pid: int) -> None:
    """Wait until the engine has given the workspace back."""
    ends_secs = _longest_grace_secs(workspace) + PATIENCE_SECS
    ends = time.monotonic() + ends_secs
    while (holder := workspace.engine()) is not None and holder["pid"] == pid:
        if time.monotonic() > ends:
            hint = f"`kill -KILL {pid}` ends it, and the next run goes on where it was"
            words = f"the engine (pid {pid}) has not ended within {ends_secs:g} s"
            raise WorldError(words, hint=hint)
        time.sleep(0.02)


def _longest_grace_secs(workspace: Workspace) -> float:
    """Return how long commands may take to end, by the settings of now, or by usual ones."""
    from loopr.driving.leaving import longest_grace_secs
    from loopr.world.settings import load

    try:
        return longest_grace_secs(workspace.settings)
    except SettingsError:
        return longest_grace_secs(load(None, environ={}, home=None))
