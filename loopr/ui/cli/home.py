"""What came of bringing a plan home, in words and as data; shared by the verbs that move a person's branch.

Must never know how one is moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from loopr import wiring
from loopr.core.model import Loop
from loopr.errors import Problem
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame
from loopr.ui.halves import Half, words_of
from loopr.ui.names import counted

if TYPE_CHECKING:
    from loopr.world.repo.words import CameHome, HomeCandidate

MOST_SHOWN = 20


class Told(NamedTuple):
    """What became of it: what would come home, that it did, and why it did not."""

    onto: str = ""
    candidate: HomeCandidate | None = None
    home: CameHome | None = None
    problems: tuple[Problem, ...] = ()
    remark: str = ""
    half: Half | None = None


def report(frame: Frame, plan: Loop, told: Told, dry_run: bool) -> None:
    """Say what came of it."""
    if frame.as_json:
        frame.document(views.document(wiring.wall_clock(), _document(plan, told, dry_run)))
        return
    built = told.candidate
    if told.remark:
        frame.note(told.remark)
    elif built is not None and dry_run:
        frame.lines(_shown(built, frame.room))
    for line in words_of(told.half) if told.half is not None and not told.remark else ():
        frame.note(render.plain(line))
    for each in told.problems:
        frame.note(f"refused: {render.plain(each.message)}")
        if each.hint:
            frame.note(f"  hint: {render.plain(each.hint)}")
    if told.problems and not dry_run:
        frame.note("nothing was changed")
    if told.home is not None and built is not None:
        counts = f"{count(built.commits, 'commit')}, {count(built.changed, 'file')}"
        head = f"what has landed of {plan.id} is home" if told.half is not None else f"{plan.id} is home"
        frame.lines([f"{head}: {told.onto} is at {told.home.commit[:12]} ({counts})"])
        if told.home.checkout is not None:
            frame.note(f"  the checkout {render.plain(str(told.home.checkout))} was brought along")


def _shown(built: HomeCandidate, width: int) -> list[str]:
    """Show what would come home."""
    lines = [f"{count(built.commits, 'commit')} would come home to {built.branch}:"]
    for rows, word in ((built.commits, "commit"), (built.changed, "file")):
        lines += [""] if word == "file" else []
        lines += [render.fit(f"  {render.plain(_short(each, word))}", width) for each in rows[:MOST_SHOWN]]
        lines += [f"  … {count(rows[MOST_SHOWN:], f'more {word}')}"] if len(rows) > MOST_SHOWN else []
    return lines


def _short(text: str, word: str) -> str:
    """Shorten the name of a commit."""
    name, _, subject = text.partition(" ")
    return f"{name[:12]} {subject}" if word == "commit" else text


def _document(plan: Loop, told: Told, dry_run: bool) -> views.Row:
    """Return what came of it as data."""
    built, home = told.candidate, told.home
    commits = [each.partition(" ") for each in built.commits] if built is not None else []
    return {
        "plan": plan.id,
        "onto": told.onto or None,
        "dry_run": dry_run,
        "landed": home is not None,
        "partial": told.half is not None,
        **(told.half.row() if told.half is not None else {"cut": [], "missing": [], "older": []}),
        "commit": home.commit if home is not None else None,
        "checkout": str(home.checkout) if home is not None and home.checkout is not None else None,
        "adopted": list(home.adopted) if home is not None else [],
        "commits": [{"commit": name, "subject": subject} for name, _, subject in commits],
        "changed": list(built.changed) if built is not None else [],
        "problems": [
            {"message": each.message, "where": each.where or None, "hint": each.hint or None} for each in told.problems
        ],
    }


def count(things: tuple[str, ...], word: str) -> str:
    """Count things."""
    return counted(len(things), word)
