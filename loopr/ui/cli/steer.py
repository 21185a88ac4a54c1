"""The verbs that steer work under way: pause, resume, cancel, retry, reset, clear, dispatch, approve, reject, iterate.

Each is made from the vocabulary, turns its words into a `Wish` and prints the answer. Must never know how anything is
decided.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from loopr.core.shared import WORKSPACE
from loopr.ui import render
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.edits import details, headline, is_unchanged
from loopr.ui.groups import PROJECT, VERBS, told
from loopr.ui.options import YES, Option
from loopr.ui.steering import MOST_NAMED, Answer, fulfil
from loopr.ui.unattended import serves
from loopr.ui.views import Row
from loopr.ui.vocabulary import RULES, Wish

STOPPING, CANCELLED = "stopping", "cancelled"
MORE = " …"
_AGAIN = frozenset({"retried", "reset"})
_STOPS = frozenset({"stopped", "cancelled"})

_RETRIES = re.compile(r"it was cancelled; `loopr (retry [^`]+)`")
_RESUMES = re.compile(r"`loopr (resume [^`]+)`")


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
    for said in answer.more.get("bases", ()):
        frame.note(render.plain(said))
    frame.lines(_lines(wish, answer, frame.room))
    for each in answer.edits:
        if not is_unchanged(each):
            below = (f"  {line}" for line in details(each))
            frame.lines(map(render.plain, [f"{each.plan}: {headline(each)}", *below]))
    for row in answer.unchanged:
        frame.note(render.plain(f"{_called(row['id'])}: {row['why']}"))
    for group in answer.groups:
        frame.note(render.plain(told(group, VERBS[wish.name].did)))
    _remark(frame, wish, answer)


def _lines(wish: Wish, answer: Answer, width: int) -> list[str]:
    """Set what was done in columns, a line for each loop, with where it stands now."""
    did: dict[str, list[str]] = {}
    stands: dict[str, str] = {}
    for row in answer.done:
        over = wish.name == "cancel" and _is_over(row["loop"])
        did.setdefault(row["id"], []).append(CANCELLED if over else row["did"])
        stands[row["id"]] = _stands(row["loop"])
    return render.table(
        [(_called(name), ", ".join(words), stands[name]) for name, words in did.items()], width, whole=True
    )


def _is_over(loop: Row | None) -> bool:
    """Say whether a loop is cancelled, itself or as all that is below it."""
    return loop is not None and loop["state"] == CANCELLED


def _called(name: str) -> str:
    """Call the workspace as a person does; every other name is one already."""
    return "workspace" if name == WORKSPACE else name


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
        frame.note(f"{live} {'try goes' if live == 1 else 'tries go'} on; --now stops {'it' if live == 1 else 'them'}")
    if not (answer.done or answer.unchanged or answer.groups):
        frame.note("nothing is stale" if wish.asks("stale") else "nothing waits that is not paused already")
    if not answer.done:
        return
    if kept := _kept(frame, answer):
        frame.note(kept)
    serving = serves(frame.workspace.engine())
    if not serving and any(row["did"] in _STOPS and _ends(row["loop"]) for row in answer.done):
        frame.note("no engine runs here: the next one ends what was told to stop")
    commands, ways = _next(wish, answer, serves=serving), _ways(wish, answer)
    if commands == ["run"] and answer.more["unattended"]:
        frame.note(answer.more["unattended"])
        return
    if wish.name == "reject" and ways:
        them = "it" if len(answer.done) == 1 else "them"
        frame.note(f"{', '.join(map(_typed, ways))} lets {them} try again")
        return
    word = "undo" if wish.name == "cancel" and ways else "next"
    frame.note(f"{word}: {', '.join(map(_typed, commands))}")
    over = [row["id"] for row in answer.done if _is_over(row["loop"]) and row["loop"]["parent"] is None]
    if wish.name == "cancel" and over and not any(_ends(row["loop"]) for row in answer.done):
        frame.note(f"next: `loopr gc --forget {over[0]}` takes it out of the tree")


def _kept(frame: Frame, answer: Answer) -> str:
    """Say that loops which try again go on in the worktrees that earlier tries have left."""
    top, again = frame.workspace.place.root, (row for row in answer.done if row["did"] in _AGAIN)
    ids = [row["id"] for row in again if row["loop"] and _has_folder(top, row["loop"]["worktree"])]
    if len(ids) > 1:
        return "their worktrees stay as the last tries left them"
    return "its worktree stays as the last try left it" if ids else ""


def _has_folder(top: Path, worktree: str | None) -> bool:
    """Say whether the worktree of a loop is there."""
    return worktree is not None and (top / worktree).is_dir()


def _typed(command: str) -> str:
    """Write a command so that it can be pasted: what is left out of it is said beside it."""
    return f"`loopr {command.removesuffix(MORE)}`{' and so on' if command.endswith(MORE) else ''}"


def _ends(loop: Row | None) -> bool:
    """Say whether an attempt of a loop has been told to stop, and lives."""
    return loop is not None and any(gate["gate"] == STOPPING for gate in loop["gates"])


def _next(wish: Wish, answer: Answer, *, serves: bool) -> list[str]:
    """Say what a person would type next: the way back, or what the work goes on with."""
    if ways := _ways(wish, answer):
        return ways
    if wish.name == "convoy":
        return [f"convoy show {answer.done[0]['id']}"]
    if wish.name == "dispatch":
        return ["next"]
    if paused := _named(answer, "paused", _RESUMES):
        return paused
    if wish.name == "resume" and (over := _named(answer, "status", _RETRIES)):
        return over
    if not serves:
        return ["run"]
    loops = [row["id"] for row in answer.done if row["loop"] is not None]
    return [f"wait {_some(_tops(loops))}" if loops else "tree"]


def _ways(wish: Wish, answer: Answer) -> list[str]:
    """Say how what was cancelled, rejected or held comes back."""
    did = [(row["id"], row["did"]) for row in answer.done]
    done = {word: [name for name, each in did if each == word] for _, word in did}
    whole = _whole(answer)
    others = (each for each in done.get(CANCELLED, []) if not _is_below(each, whole))
    done[CANCELLED] = [*whole, *others]
    done["held"] = [each for each in done.get("held", []) if each not in whole]
    ended = [done[each] for each in (CANCELLED, "rejected") if done.get(each)]
    ways = [f"retry {_some(_tops(each))}" for each in ended]
    held = [done[each] for each in ("paused", "cleared", "held") if done.get(each)]
    return ways + ["resume --all" if wish.asks("all") else f"resume {_some(each)}" for each in held]


def _whole(answer: Answer) -> list[str]:
    """Name the complete loops below which all that is cancelled was cancelled here, with them."""
    ended = [row["id"] for row in answer.done if row["did"] == CANCELLED]
    found = []
    for row in answer.done:
        if row["did"] == "held":
            name, below = row["id"], row["loop"]["below"]
            here = sum(_is_below(each, [name]) for each in ended)
            over = below["total"] - below["complete"] - below["running"]
            found += [name] if 0 < here == over else []
    return found


def _is_below(name: str, tops: Sequence[str]) -> bool:
    """Say whether a loop is below one of some others."""
    return any(name.startswith(f"{each}/") for each in tops)


def _named(answer: Answer, gate_name: str, pattern: re.Pattern[str]) -> list[str]:
    """List the commands that the first gates name, where those are of one name: what lets go on what was done here."""
    loops = (row["loop"] for row in answer.done if row["loop"] is not None)
    reasons = (gate["reason"] for loop in loops for gate in loop["gates"][:1] if gate["gate"] == gate_name)
    found = (pattern.search(each) for each in reasons)
    return list(dict.fromkeys(each[1] for each in found if each is not None))[:MOST_NAMED]


def _tops(ids: Sequence[str]) -> list[str]:
    """Leave out the loops whose parent is among them."""
    return [each for each in ids if each.rpartition("/")[0] not in ids]


def _some(ids: Sequence[str]) -> str:
    """Name a few, as arguments of a command."""
    return " ".join(ids[:MOST_NAMED]) + (MORE if len(ids) > MOST_NAMED else "")


def _report_rehearsal(frame: Frame, answer: Answer) -> None:
    """Show the next round as it would be, and why what was named is not in it."""
    grants = answer.more["next"]["grants"]
    rows = [(str(n), each["id"], each["project"], str(each["score"]["total"])) for n, each in enumerate(grants, 1)]
    frame.lines(render.table(rows, frame.room, ("#", "loop", "project", "score")) if rows else [])
    granted = {each["id"] for each in grants}
    held = {each["id"]: each["reason"] for each in answer.more["next"]["held"]}
    for row in (*answer.done, *answer.unchanged):
        if row["id"] not in granted:
            frame.note(f"{row['id']} would not start now: {render.plain(held.get(row['id'], 'others go first'))}")
    for group in answer.groups:
        frame.note(render.plain(told(group, f"would be {VERBS['dispatch'].did}")))


# --- the verbs ------------------------------------------------------------------------------------------------------


def _verb(name: str) -> click.Command:
    """Make the verb of a wish: what it takes, and the words for that, are those of the vocabulary."""
    rule = RULES[name]

    def verb(frame: Frame, *, ids: tuple[str, ...], yes: bool = False, **options: Any) -> None:
        given = {each: value for each, value in options.items() if value is not None}
        steer(frame, Wish(name, ids, given), yes=yes)

    groups = ["@CONVOY", f"{PROJECT}NAME"] if name in VERBS else []
    what = "|".join(["ID", *groups, *(f"{each}NAME" for each in rule.prefixes if each != PROJECT)])
    takes = [click.argument("ids", metavar=f"{what}...", nargs=-1, required=not {"all", "stale"} & set(rule.options))]
    takes += [_option(each, option, required=each == rule.required) for each, option in rule.options.items()]
    takes += [click.option("-y", "--yes", is_flag=True, help=YES.meaning)] if rule.asks else []
    function: Any = verb
    for take in reversed(takes):
        function = take(function)
    return click.command(name, help=rule.meaning)(framed(function))


def _option(name: str, option: Option, *, required: bool) -> Callable[[Any], Any]:
    """Spell an option as a command line does."""
    names = [*(["-n"] if name == "dry_run" else []), f"--{name.replace('_', '-')}", name]
    if option.kind is bool:
        return click.option(*names, is_flag=True, help=option.meaning)
    if option.kind is int:
        return click.option(*names, type=click.IntRange(option.least), metavar="SEQ", help=option.meaning)
    return click.option(*names, required=required, metavar="TEXT", help=option.meaning)


pause_verb = _verb("pause")
resume_verb = _verb("resume")
cancel_verb = _verb("cancel")
retry_verb = _verb("retry")
reset_verb = _verb("reset")
clear_verb = _verb("clear")
dispatch_verb = _verb("dispatch")
approve_verb = _verb("approve")
reject_verb = _verb("reject")
iterate_verb = _verb("iterate")
