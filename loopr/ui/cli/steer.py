"""The verbs that steer work under way: pause, resume, cancel, retry, reset, clear, dispatch, approve, reject, iterate.

Each turns its words into a `Wish` and prints the answer. Must never know how anything is decided.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from loopr.core.shared import WORKSPACE
from loopr.ui import render
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.steering import MOST_NAMED, Answer, fulfil
from loopr.ui.views import Row
from loopr.ui.vocabulary import LANE, PROJECT, Wish

STOPPING = "stopping"
_STOPS = frozenset({"stopped", "cancelled"})


def steer(frame: Frame, wish: Wish, *, yes: bool = False) -> None:
    """Have a wish fulfilled, and print what came of it."""

    def confirm(text: str) -> bool:
        if yes:
            frame.note(render.plain(text))
        return yes or (sys.stdin.isatty() and click.confirm(f"{render.plain(text)}. Go on?", err=True))

    answer = fulfil(frame.workspace, wish, confirm)
    if frame.as_json:
        frame.document(answer.document())
        return
    if wish.asks("dry_run"):
        _report_rehearsal(frame, answer)
        return
    frame.lines(_lines(answer, frame.width))
    for row in answer.unchanged:
        frame.note(render.plain(f"{row['id']}: {row['why']}"))
    _remark(frame, wish, answer)


def _lines(answer: Answer, width: int) -> list[str]:
    """Set what was done in columns, a line for each loop, with where it stands now."""
    did: dict[str, list[str]] = {}
    stands: dict[str, str] = {}
    for row in answer.done:
        did.setdefault(row["id"], []).append(row["did"])
        stands[row["id"]] = _stands(row["loop"])
    return render.table([(name, ", ".join(words), stands[name]) for name, words in did.items()], width)


def _stands(loop: Row | None) -> str:
    """Say where a loop stands: what ends there, else what it waits for."""
    if loop is None:
        return ""
    gates = [gate for gate in loop["gates"] if gate["gate"] == STOPPING] or loop["gates"]
    return render.plain(gates[0]["reason"]) if gates else "ready"


def _remark(frame: Frame, wish: Wish, answer: Answer) -> None:
    """Say what goes on all the same, and what to type next."""
    live = len(answer.more.get("running", ()))
    if live:
        frame.note(f"{live} attempt{' goes' if live == 1 else 's go'} on; --now stops {'it' if live == 1 else 'them'}")
    if not answer.done and not answer.unchanged:
        frame.note("nothing is pending that is not held already")
    if not answer.done:
        return
    engine = frame.workspace.engine()
    serves = engine is not None and engine["kind"] == "engine"
    if not serves and any(row["did"] in _STOPS and _ends(row["loop"]) for row in answer.done):
        frame.note("no engine runs here: the next one ends what was told to stop")
    commands = _next(wish, answer, serves=serves)
    frame.note(f"next: {', '.join(f'`loopr {each}`' for each in commands)}")


def _ends(loop: Row | None) -> bool:
    """Say whether an attempt of a loop has been told to stop, and lives."""
    return loop is not None and any(gate["gate"] == STOPPING for gate in loop["gates"])


def _next(wish: Wish, answer: Answer, *, serves: bool) -> list[str]:
    """Say what a person would type next: the way back, or what the work goes on with."""
    done = {did: [row["id"] for row in answer.done if row["did"] == did] for row in answer.done for did in [row["did"]]}
    ways = [f"retry {_some(_tops(done[each]))}" for each in ("cancelled", "rejected") if each in done]
    ways += [f"resume {_some(done[each])}" for each in ("paused", "cleared", "held") if each in done]
    if ways:
        return [each.replace(f"resume {WORKSPACE}", "resume --all") for each in ways]
    if wish.name == "convoy":
        return [f"convoy show {answer.done[0]['id']}"]
    if wish.name == "dispatch" or not serves:
        return ["next" if wish.name == "dispatch" else "run"]
    loops = [row["id"] for row in answer.done if row["loop"] is not None]
    return [f"wait {_some(_tops(loops))}" if loops else "tree"]


def _tops(ids: Sequence[str]) -> list[str]:
    """Leave out the loops whose parent is among them."""
    return [each for each in ids if each.rpartition("/")[0] not in ids]


def _some(ids: Sequence[str]) -> str:
    """Name a few, as arguments of a command."""
    return " ".join(ids[:MOST_NAMED]) + (" …" if len(ids) > MOST_NAMED else "")


def _report_rehearsal(frame: Frame, answer: Answer) -> None:
    """Show the next round as it would be, and why what was named is not in it."""
    grants = answer.more["next"]["grants"]
    rows = [(str(n), each["id"], each["project"], str(each["score"]["total"])) for n, each in enumerate(grants, 1)]
    frame.lines(render.table(rows, frame.width, ("#", "loop", "project", "score")) if rows else [])
    granted = {each["id"] for each in grants}
    held = {each["id"]: each["reason"] for each in answer.more["next"]["held"]}
    for row in (*answer.done, *answer.unchanged):
        if row["id"] not in granted:
            frame.note(f"{row['id']} would not start now: {render.plain(held.get(row['id'], 'others go first'))}")


# --- the verbs ------------------------------------------------------------------------------------------------------


@click.command("pause")
@click.argument("names", metavar=f"ID|{PROJECT}NAME...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="the whole workspace")
@click.option("--now", "at_once", is_flag=True, help="stop live attempts too; it costs them nothing")
@click.option("--reason", default="", metavar="TEXT", help="why, for whoever asks")
@framed
def pause_verb(frame: Frame, names: tuple[str, ...], everything: bool, at_once: bool, reason: str) -> None:
    """Start nothing more of a loop and all below it, of a project, or of the workspace; what runs ends and lands."""
    steer(frame, Wish("pause", names, {"all": everything, "now": at_once, "reason": reason}))


@click.command("resume")
@click.argument("names", metavar=f"ID|{PROJECT}NAME...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="the whole workspace, not what is paused by itself")
@framed
def resume_verb(frame: Frame, names: tuple[str, ...], everything: bool) -> None:
    """Let go on what was paused or cleared."""
    steer(frame, Wish("resume", names, {"all": everything}))


@click.command("cancel")
@click.argument("loops", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="why, for whoever asks")
@framed
def cancel_verb(frame: Frame, loops: tuple[str, ...], reason: str) -> None:
    """End loops with all that is unfinished below them; what is complete stays so, and what lives is stopped."""
    steer(frame, Wish("cancel", loops, {"reason": reason}))


@click.command("retry")
@click.argument("loops", metavar="ID...", nargs=-1, required=True)
@click.option("--fresh", is_flag=True, help="make them anew, also complete ones, with nothing of what was done")
@click.option("-y", "--yes", is_flag=True, help="go on where a person would be asked")
@framed
def retry_verb(frame: Frame, loops: tuple[str, ...], fresh: bool, yes: bool) -> None:
    """Begin again what is parked, failed, cancelled or backing off: all counters at zero, in the same worktree."""
    steer(frame, Wish("retry", loops, {"fresh": fresh}), yes=yes)


@click.command("reset")
@click.argument("names", metavar=f"ID|{LANE}NAME...", nargs=-1, required=True)
@framed
def reset_verb(frame: Frame, names: tuple[str, ...]) -> None:
    """Let parked loops try again where they stood; end a lane's rest, or take a parked lane back into use."""
    steer(frame, Wish("reset", names))


@click.command("clear")
@click.argument("loops", metavar="ID...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="all that is pending")
@framed
def clear_verb(frame: Frame, loops: tuple[str, ...], everything: bool) -> None:
    """Take pending loops out of the queue until they are resumed."""
    steer(frame, Wish("clear", loops, {"all": everything}))


@click.command("dispatch")
@click.argument("loops", metavar="ID...", nargs=-1, required=True)
@click.option("-n", "--dry-run", is_flag=True, help="show what `next` would then be; write nothing")
@framed
def dispatch_verb(frame: Frame, loops: tuple[str, ...], dry_run: bool) -> None:
    """Put pending loops ahead of the queue, in this order, and past no gate."""
    steer(frame, Wish("dispatch", loops, {"dry_run": dry_run}))


@click.command("approve")
@click.argument("loops", metavar="ID...", nargs=-1, required=True)
@framed
def approve_verb(frame: Frame, loops: tuple[str, ...]) -> None:
    """Let loops land that wait for a person's yes."""
    steer(frame, Wish("approve", loops))


@click.command("reject")
@click.argument("loops", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="why, for whoever asks")
@framed
def reject_verb(frame: Frame, loops: tuple[str, ...], reason: str) -> None:
    """End loops that wait for a person, with a no."""
    steer(frame, Wish("reject", loops, {"reason": reason}))


@click.command("iterate")
@click.argument("loops", metavar="ID...", nargs=-1, required=True)
@click.option("--feedback", required=True, metavar="TEXT", help="what the next iteration is told")
@framed
def iterate_verb(frame: Frame, loops: tuple[str, ...], feedback: str) -> None:
    """Send loops that wait for a person round once more, outside their count of iterations."""
    steer(frame, Wish("iterate", loops, {"feedback": feedback}))
