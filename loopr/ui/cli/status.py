"""The verb that says what the workspace as a whole is doing.

Looks once and prints. Must never know how anything is counted.
"""

from __future__ import annotations

from itertools import chain, repeat

import click

from loopr.errors import NotFound, UserError
from loopr.ui import documents, needed, render, views
from loopr.ui.cli.frame import Frame, reading
from loopr.ui.cli.see import tell_unread
from loopr.ui.resources import resource_lines, worktrees_words
from loopr.ui.stands import footer, readiness, to_do_again
from loopr.ui.story import moved_words
from loopr.ui.times import localized, say_tokens
from loopr.wiring import Scenery

MOST_SHOWN = 10


@click.command("status")
@click.option("--metrics", is_flag=True, help="print counters and gauges in the format that Prometheus reads")
@reading
def status_verb(frame: Frame, metrics: bool) -> None:
    """Say what the workspace as a whole is doing."""
    seen = frame.workspace.look(frame.at)
    if metrics:
        _print_metrics(frame, seen)
        return
    body = documents.status(frame.workspace, seen)
    if frame.as_json:
        frame.document(body)
        return
    frame.lines(part for line in _status_lines(frame, seen, body) for part in _wrapped(line, frame.room))
    tell_unread(frame, body["unread"])


def _print_metrics(frame: Frame, seen: Scenery) -> None:
    """Print the state and the whole history as numbers."""
    from loopr.ui.metrics import exposition

    if frame.as_json:
        raise UserError("--metrics has a format of its own, which is no JSON", hint="leave one of the two out")
    try:
        with frame.workspace.journal() as journal, journal.snapshot() as seq:
            text = exposition(seen.scene, seen.now, journal.since(0, seq), journal.spent_since(0))
    except NotFound:
        text = exposition(seen.scene, seen.now, (), ())
    frame.lines(text.removesuffix("\n").split("\n"))


def _status_lines(frame: Frame, seen: Scenery, body: views.Row) -> list[str]:
    """Set the status in a few lines a person reads from the top."""
    engine, capacity, queue = body["engine"], body["capacity"], body["queue"]
    who = f"pid {engine['pid']} on {engine['host']}" if engine["pid"] else "but has not said who it is"
    running = f"running, {who}" if engine["running"] else "not running"
    ceiling = f" of {capacity['max_loops']} taken" if capacity["free"] is not None else " taken, no ceiling"
    by_type = ", ".join(f"{n} {name}" for name, n in queue["by_type"].items())
    pairs = [
        ("engine", running + (" (draining)" if engine["draining"] else " (stays)" if engine["stays"] else "")),
        *zip(chain(("loops",), repeat("")), _sums(seen, body, frame.room - 8), strict=False),
        ("slots", f"{capacity['occupied']}{ceiling}"),
        ("worktrees", worktrees_words(body["worktrees"])),
        *zip(chain(("resources",), repeat("")), resource_lines(body["resources"]), strict=False),
        *zip(chain(("full",), repeat("")), capacity["full"], strict=False),
        ("queue", f"{queue['depth']} waiting for a slot" + (f": {by_type}" if by_type else "")),
        ("ready", str(body["ready"]) if body["ready"] else ""),
        ("stands", ", ".join(f"{each['id']} is stuck" for each in body["plans"] if each["stranded"])),
        ("host", seen.scene.shared.host[0]),
        *zip(chain(("setup",), repeat("")), _setups(body["setups"]), strict=False),
    ]
    lines = render.block(pairs, frame.room)
    if len(body["projects"]) > 1:
        lines += ["", *render.table(*_project_table(body["projects"], frame.width))]
    lines += render.lane_lines(body["lanes"], seen.scene, seen.now) + render.hold_lines(seen.scene, seen.now)
    if body["inbox"]:
        lines += ["", "needs you:", *_needs(body["inbox"], frame.room)]
    about = [(row["kind"], name) for row in body["inbox"] for name in row["about"]]
    told = {place for each in about for place in _places(*each)}
    problems = [each for each in body["problems"] if each["place"] not in told]
    if problems:
        lines += ["", "problems:"]
        for each in problems:
            text = render.plain(render.at_place(each["place"], each["text"]), keep_lines=True)
            first, *more = localized(text, seen.now).split("\n")
            lines += [f"  {first}", *(f"    {line}" for line in more)]
    lines += ["", *(render.plain(_moved_words(each)) for each in body["moved"])] if body["moved"] else []
    return lines + [f"warning: {localized(render.plain(each), seen.now)}" for each in body["warnings"]]


def _places(kind: str, name: str) -> tuple[str, str]:
    """Return how a row about a loop or a plan may be called among the problems."""
    return f"{name} ({kind})", f"{kind} of {name}"


def _setups(rows: list[views.Row]) -> list[str]:
    """Say which worktrees are being set up, the oldest first."""
    if not rows:
        return []
    from loopr.ui.preparing import words_of  # seldom needed

    lines = [f"{each['loop']} is {words_of(each)}" for each in rows[:MOST_SHOWN]]
    return lines + ([f"… and {len(rows) - MOST_SHOWN} more"] if len(rows) > MOST_SHOWN else [])


def _needs(rows: list[views.Row], width: int) -> list[str]:
    """List what needs a person, a few of each kind, and what to type."""
    calls = [needed.call_of(each) for each in rows]
    size = max(len(needed.label(each)) for each in calls)
    shown: dict[str, list[str]] = {}
    for each in calls:
        shown.setdefault(needed.label(each), []).append(render.plain(needed.words(each)))
    lines = []
    for word, texts in shown.items():
        more = len(texts) - MOST_SHOWN
        texts[MOST_SHOWN:] = [f"… and {more} more: `loopr ls --status {word}`"] if more > 0 else []
        lines += [line for text in texts for line in render.wrap(f"  {word:{size}}  ", text, width)]
    return lines


def _sums(seen: Scenery, body: views.Row, width: int) -> list[str]:
    """Say how much is done, and how all else stands; of the ready loops, some were done before."""
    again, progress = to_do_again(seen.scene), body["progress"]
    ready = body["ready"] - sum(map(readiness(seen.scene, seen.now), again))
    done_of = progress["done"], progress["of"]
    return footer(body["counts"], done_of, width, ready, again=len(again))


def _wrapped(line: str, width: int) -> list[str]:
    """Break a line that is too long, and keep how far it is set in."""
    if render.columns(line) <= width:
        return [line]
    text = line.lstrip(" ")
    return render.wrap(" " * (len(line) - len(text)), text, width)


def _moved_words(row: views.Row) -> str:
    """Tell that a branch has moved, and what may follow."""
    words = moved_words(row["branch"], row["during"], explained=row["explained"], undo=row["undo"])
    return words if row["explained"] else f"{words}; `loopr land` onto {row['branch']} asks first"


def _project_table(projects: views.Row, width: int) -> tuple[list[list[str]], int, list[str]]:
    """Set the shares of the projects in columns."""
    rows = [
        [
            name,
            f"{row['weight']:g}",
            f"{row['share']:.0%}",
            f"{row['target']:.0%}",
            say_tokens(row["budget"]["tokens"]["used"]),  # `usage` has what shares count, time too
            str(row["occupied"]),
        ]
        for name, row in projects.items()
    ]
    return rows, width, ["project", "weight", "share", "target", "used", "running"]
