"""The verb that plays a plan in virtual time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from loopr.core.durations import Spread, read_durations, read_rate, read_spread, read_type_durations
from loopr.core.forest import Forest
from loopr.core.played import Played
from loopr.core.simulate import Options, simulate
from loopr.core.ways import WAYS, way_of
from loopr.engine import Engine
from loopr.errors import NotFound, PlanError, Problem
from loopr.ui import render, views
from loopr.ui.chart import draw_svg, draw_text, human
from loopr.ui.cli.frame import Frame, reading
from loopr.ui.names import find_id
from loopr.ui.nearby import meant_instead
from loopr.ui.requests import enqueue, read_plans
from loopr.ui.uncommitted import uncommitted

MOST_NAMED, MOST_WAYS = 10, 30
WORTH_A_WORD = 3_000


@click.command("simulate")
@click.argument("plan", metavar="PLAN")
@click.option("--duration", "types", multiple=True, metavar="TYPE=TIME", help="90s, 30s..90s or ~60s for a type")
@click.option("--durations", "file", metavar="FILE", help="lines `id,TIME`, or a JSON object of them")
@click.option("--attempt", default="60s", show_default=True, metavar="TIME", help="how long any other try takes")
@click.option("--judging", default="0s", metavar="TIME", help="how long a check takes")
@click.option("--landing", default="0s", metavar="TIME", help="how long a landing takes")
@click.option("--failures", default="0", metavar="RATE", help="how many tries are refused: 0.2 or 20%")
@click.option("--limits", default="0", metavar="RATE", help="how many tries meet a rate limit")
@click.option("--lost", default="0", metavar="RATE", help="how many tries are lost with their host")
@click.option("--seed", type=click.IntRange(0), default=0, help="the same seed plays the same")
@click.option("--svg", metavar="FILE", help="write the chart as a picture too")
@reading
def simulate_verb(frame: Frame, *, plan: str, file: str | None, svg: str | None, seed: int, **given: Any) -> None:
    """Play a plan, a file or an id, in virtual time; loops without a command run as if a person did them."""
    workspace = frame.workspace
    with workspace.rehearsal(frame.at) as engine:
        top, foretold = _top(frame, engine, plan)
        forest, now = engine.forest, engine.mind.now()
        ways = {loop.id: way_of(forest, loop) for loop in forest.tree.walk(top)}
        options = _options(frame, forest, file, seed, given)
        if len(forest.loops) >= WORTH_A_WORD:
            frame.note(f"playing {len(forest.loops)} loops")
        played = simulate(forest, now, options, plan=top, entries=engine.mind.find_entry)
    if svg:
        (frame.directory / svg).write_text(draw_svg(played, f"loopr simulate {top}"), encoding="utf-8")
    if frame.as_json:
        frame.document(views.document(now, report(played) | {"ways": ways, "foretold": foretold}))
        return
    frame.lines(draw_text(played, width=frame.width).splitlines())
    frame.lines([*_summary(played, frame.room), *_way_lines(ways, frame.width)])
    for each in foretold:
        frame.note(render.plain(each))
    for each in played.unused:
        frame.note(f"no loop is called {each}: its duration was not used")


def _top(frame: Frame, engine: Engine, plan: str) -> tuple[str, list[str]]:
    """Return the loop to play, and what of it will fail: a known one, or the plan in a file, enqueued on paper."""
    path = frame.directory / plan
    if not os.path.isfile(path):  # noqa: PTH113 - a name that is too long for a file is none
        top = _known(frame, engine, plan, path)
        return top, [*uncommitted(engine, frame.workspace, top.partition("/")[0])]
    from loopr.ui.lists import kind_of, read_list

    kind = kind_of(frame.workspace, path, None)
    (found,) = [read_list(frame.workspace, path, kind).plan] if kind else read_plans(frame.workspace, [path])
    done = enqueue(engine, frame.workspace, found, lambda text: True, to_run=False)
    if done.problems:
        raise PlanError("", problems=[Problem(text) for text in done.problems])
    lying = uncommitted(engine, frame.workspace, done.plan)
    return done.plan, [*done.absent, *done.unreadable, *done.astray, *lying]


def _known(frame: Frame, engine: Engine, plan: str, path: Path) -> str:
    """Return the loop that is meant by a word for no file; if it is no loop either, name a file."""
    near = meant_instead(path, frame.workspace.name_of)
    if path.suffix == ".md" and plan not in engine.forest.loops:
        hint = near or "name a plan file, or the id of a loop"
        raise NotFound(f"there is no file {plan!r}", hint=hint)
    try:
        return find_id(engine.forest.loops, plan)
    except NotFound as error:
        if not near or not error.message.startswith("there is no loop"):
            raise
        raise NotFound(f"there is no loop {plan!r}, and no file", hint=near) from None


def _options(frame: Frame, forest: Forest, file: str | None, seed: int, given: dict[str, Any]) -> Options:
    """Read how long things take and how often they go wrong."""
    return Options(
        types=read_type_durations(given["types"], forest.policy.types.keys()),
        loops=_file_of(frame, file),
        attempt=read_spread(given["attempt"], "--attempt"),
        judging=read_spread(given["judging"], "--judging"),
        landing=read_spread(given["landing"], "--landing"),
        failure_rate=read_rate(given["failures"], "--failures"),
        limit_rate=read_rate(given["limits"], "--limits"),
        infra_rate=read_rate(given["lost"], "--lost"),
        seed=seed,
    )


def _file_of(frame: Frame, file: str | None) -> dict[str, Spread]:
    """Read the durations of single loops from a file."""
    if file is None:
        return {}
    try:
        text = (frame.directory / file).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise NotFound("there is no such file", where=file, hint="lines `id,90s`, in UTF-8") from error
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PlanError(f"cannot be read: {said}", where=file, hint="lines `id,90s`, in UTF-8") from error
    return read_durations(text, file)


def report(played: Played) -> views.Row:
    """Return a simulation as the document of `formats.md` section 6."""
    return {
        "makespan_secs": played.makespan_ms / 1000,
        "utilisation": float(played.utilisation),
        "waiting_secs": {
            name: {"p50": each.p50_ms / 1000, "p99": each.p99_ms / 1000} for name, each in played.waiting.items()
        },
        "critical_path": [{"id": loop_id, "secs": ms / 1000} for loop_id, ms in played.critical_path],
        "runs": [
            {
                "id": run.id,
                "attempt": run.attempt,
                "outcome": run.outcome,
                "start": views.instant(run.start),
                "end": views.instant(run.end),
            }
            for run in played.runs
        ],
        "counts": {status.value: n for status, n in played.counts.items() if n},
        "unfinished": [each._asdict() for each in played.unfinished],
    }


def _tries(number: int) -> str:
    """Count starts of commands."""
    return f"{number} {'try' if number == 1 else 'tries'}"


def _summary(played: Played, width: int) -> list[str]:
    """Say in a few lines what the chart does not show."""
    used = f"{float(played.utilisation):.0%} of {played.slots} slots"
    lines = ["", f"makespan {human(played.makespan_ms)}, {used} used, {_tries(len(played.runs))}"]
    waits = [f"{name} {human(each.p50_ms)} / {human(each.p99_ms)}" for name, each in played.waiting.items()]
    if waits:
        lines.append(f"waiting, median / 99 of 100: {', '.join(waits)}")
    if played.critical_path:
        lines.append("critical path:")
        lines += [f"  {loop_id} {human(ms)}" for loop_id, ms in played.critical_path[:MOST_NAMED]]
        lines += _more(len(played.critical_path))
    if played.unfinished:
        lines.append(f"not finished: {len(played.unfinished)}")
        for each in played.unfinished[:MOST_NAMED]:
            lines += render.wrap(f"  {each.id}: ", render.plain(each.reason), width)
        lines += _more(len(played.unfinished))
    if played.cut_short:
        lines.append("it was cut short: the simulation has a limit on events")
    return [render.fit(line, width) for line in lines]


def _way_lines(ways: Mapping[str, str], width: int) -> list[str]:
    """Name the loops by how each comes to its end."""
    lines = []
    for way in WAYS:
        loops = [loop_id for loop_id, each in ways.items() if each == way]
        more = [f"… {len(loops) - MOST_WAYS} more"] if len(loops) > MOST_WAYS else []
        lines += render.wrap(f"{way}: ", ", ".join([*loops[:MOST_WAYS], *more]), width) if loops else []
    return lines


def _more(n: int) -> list[str]:
    """Say how many lines were left out."""
    return [f"  … {n - MOST_NAMED} more"] if n > MOST_NAMED else []
