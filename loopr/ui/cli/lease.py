"""The verbs of pull workers: they take leases, keep them, and say what came of their work.

Each turns its words into a request and prints the answer. Must never know who gets a lease.
"""

from __future__ import annotations

from pathlib import Path

import click

from loopr.ui import render
from loopr.ui.cli.frame import Frame, framed, reading, several
from loopr.ui.handing import complete, reclaim, release, renew
from loopr.ui.leases import Wanted, leases_document, take
from loopr.ui.times import read_instant, say_clock, say_duration
from loopr.ui.views import Row
from loopr.wiring import wall_clock

_LEASES = click.argument("leases", metavar="LEASE...", nargs=-1, envvar="LOOPR_LEASE")


@click.group("lease")
def lease_verb() -> None:
    """Let a person, a script or another scheduler do loops: it takes leases, and the engine judges and lands."""


@lease_verb.command("take")
@several("--type", "types", metavar="TYPE", help="only loops of this type; may be repeated")
@several("--project", "projects", metavar="NAME", help="only loops of this project")
@click.option("--limit", metavar="N", type=int, default=1, help="at most so many leases; 1 if left out")
@click.option("--holder", metavar="NAME", default="", help="in whose name; the user's if left out")
@framed
def take_verb(frame: Frame, types: tuple[str, ...], projects: tuple[str, ...], limit: int, holder: str) -> None:
    """Take leases, those first whose type has no command, and make a worktree ready for each.

    Exit code 75 says that nothing could be leased now, and why.
    """
    taken = take(frame.workspace, Wanted(limit, types, projects, holder))
    for problem in taken.failed:
        frame.note(render.plain(str(problem)))
    if frame.as_json:
        frame.document(taken.document)
        return
    now = wall_clock()
    for row in taken.document["leases"]:
        frame.lines(_told(frame, row, now))
    first = taken.document["leases"][0]["lease"]
    frame.note(f"next: work there, `loopr lease renew {first}` now and then, `loopr lease complete {first}`")


def _told(frame: Frame, row: Row, now: int) -> list[str]:
    """Tell what a worker needs for a lease."""
    folder = Path(row["worktree"])
    files = {
        "worktree": folder,
        "prompt": Path(row["prompt_file"]),
        "hand over": Path(row["output"]),
        "environment": folder / ".loopr" / "environment",
    }
    lines = [f"{what:13}{render.plain(frame.workspace.name_of(path))}" for what, path in files.items()]
    return [f"{row['lease']}  expires {_clock(row['expires_at'], now)}", *(f"  {line}" for line in lines)]


def _clock(text: str, now: int) -> str:
    """Say an instant of a document as a person reads it."""
    return say_clock(read_instant(text, now), now)


@lease_verb.command("renew")
@_LEASES
@framed
def renew_verb(frame: Frame, leases: tuple[str, ...]) -> None:
    """Say that the work goes on: the leases live for `lease.ttl_secs` again."""
    _report(frame, renew(frame.workspace, leases))


@lease_verb.command("complete")
@_LEASES
@framed
def complete_verb(frame: Frame, leases: tuple[str, ...]) -> None:
    """Hand the work over: the engine, or the next one, commits what is in the worktree, judges it and lands it."""
    _report(frame, complete(frame.workspace, leases))
    engine = frame.workspace.engine()
    if engine is None or engine["kind"] != "engine":
        frame.note("no engine runs here: `loopr run` judges it and lands it")


@lease_verb.command("release")
@_LEASES
@click.option("--failed", is_flag=True, help="count it as a failure: it could not be done here; again after a delay")
@click.option("--refused", is_flag=True, help="count it as a refused try, with the reason as its feedback")
@click.option("--reason", "--feedback", "reason", default="", metavar="TEXT", help="why, for whoever goes on")
@framed
def release_verb(frame: Frame, leases: tuple[str, ...], failed: bool, refused: bool, reason: str) -> None:
    """Give leases back; it costs the loops nothing, and what is in the worktrees stays for whoever goes on."""
    _report(frame, release(frame.workspace, leases, reason, failed=failed, refused=refused))


@lease_verb.command("reclaim")
@click.argument("leases", metavar="[LEASE...]", nargs=-1)
@framed
def reclaim_verb(frame: Frame, leases: tuple[str, ...]) -> None:
    """Take expired leases back, all if none is named, as an engine does itself; each is a failure of its loop."""
    body = reclaim(frame.workspace, leases)
    _report(frame, body)
    if not body["leases"]:
        frame.note("no lease has expired: `loopr lease list`")


@lease_verb.command("list")
@reading
def list_verb(frame: Frame) -> None:
    """List the leases that pull workers have, with who, where, since when and until when."""
    seen = frame.workspace.look(frame.at)
    body = leases_document(frame.workspace, seen.scene, seen.now)
    if frame.as_json:
        frame.document(body)
        return
    rows = [_listed(frame, row, seen.now) for row in body["leases"]]
    frame.lines(render.table(rows, frame.room, ("lease", "holder", "expires", "worktree", "age")) if rows else [])
    if not rows:
        frame.note("no pull worker has a lease: `loopr lease take`")


def _listed(frame: Frame, row: Row, now: int) -> tuple[str, ...]:
    """Set one lease in columns."""
    words = "expired" if row["state"] == "expired" else _clock(row["expires_at"], now)
    words += ", not wanted any more" if row["state"] == "stopping" else ""
    age = say_duration(row["age_secs"] * 1000) if row["age_secs"] is not None else ""
    folder = frame.workspace.name_of(Path(row["worktree"])) if row["worktree"] else ""
    return row["lease"], render.plain(row["holder"] or ""), words, render.plain(folder), age


def _report(frame: Frame, body: Row) -> None:
    """Print what was done to each lease, and where that leaves its loop."""
    if frame.as_json:
        frame.document(body)
        return
    now = wall_clock()
    rows = []
    for each in body["leases"]:
        gates = each["loop"]["gates"]
        stands = f"until {_clock(each['expires_at'], now)}" if each["expires_at"] else ""
        rows.append((each["lease"], each["did"], stands or (render.plain(gates[0]["reason"]) if gates else "ready")))
    frame.lines(render.table(rows, frame.room, whole=True))
