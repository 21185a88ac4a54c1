"""The tools, made from the questions and the vocabulary of the command line, each with the schema of its input.

A family of tools is a mapping from names to tools, and `TOOLS` is all families together: another one joins there. Must
never know the protocol's library, nor what a tool leads to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loopr import wiring
from loopr.errors import UserError
from loopr.ui.enqueueing import admit, rehearse
from loopr.ui.gate import pass_gate
from loopr.ui.groups import PROJECT, VERBS
from loopr.ui.handing import complete, reclaim, release, renew
from loopr.ui.leases import Wanted, take
from loopr.ui.lists import ALL_KINDS, place_list, read_lists
from loopr.ui.options import AT, DRY_RUN, YES, Option, check_options
from loopr.ui.questions import QUESTIONS, Given, Question, written
from loopr.ui.requests import read_plans
from loopr.ui.setting import change
from loopr.ui.steering import fulfil
from loopr.ui.times import read_instant
from loopr.ui.views import Row
from loopr.ui.vocabulary import RULES, Rule, Wish
from loopr.wiring import Workspace

LONGEST_NAME = 40


class Seat(NamedTuple):
    """Where the server was started, with which settings on top, and which program asks."""

    directory: Path
    sets: tuple[str, ...] = ()
    client: str = ""

    def workspace(self) -> wiring.Workspace:
        """Open the workspace as it is at this moment: it may have come only now, or be set otherwise than before."""
        found = wiring.Workspace(self.directory, overrides=self.sets)
        client = "".join(each for each in self.client if each.isprintable())[:LONGEST_NAME].strip()
        found.client = client
        found.act_for(found.user)
        return found


Call = Callable[[Seat, Given], str]


class Tool(NamedTuple):
    """One tool: what it means and takes, and what is done when it is called; `reads` if it changes nothing."""

    name: str
    meaning: str
    options: Mapping[str, Option]
    required: tuple[str, ...]
    do: Call
    reads: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the input."""
        return {
            "type": "object",
            "properties": {name: _schema(option) for name, option in self.options.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }

    def __call__(self, seat: Seat, given: Given) -> str:
        """Do it, and return the document of the answer; what is null was not given."""
        said = {name: value for name, value in given.items() if value is not None}
        check_options(self.name, self.options, said)
        missing = next((each for each in self.required if each not in said), None)
        if missing is not None:
            raise UserError(f"{self.name} without {missing}", hint=self.options[missing].meaning)
        return self.do(seat, said)


_KINDS: Mapping[type, str] = {bool: "boolean", str: "string", int: "integer"}


def _schema(option: Option) -> dict[str, Any]:
    """Return the JSON schema of one option."""
    one: dict[str, Any] = {"type": _KINDS[option.kind]} if option.kind in _KINDS else {}
    one |= {"enum": list(option.choices)} if option.choices else {}
    one |= {"minimum": option.least} if option.kind is int else {}
    return ({"type": "array", "items": one} if option.many else one) | {"description": option.meaning}


# --- families -------------------------------------------------------------------------------------------------------


def _reading(name: str, question: Question) -> Tool:
    """Make the tool of a question."""

    def do(seat: Seat, given: Given) -> str:
        at = read_instant(given["at"], wiring.wall_clock()) if "at" in given else None
        return question.answer(seat.workspace(), at, {each: given[each] for each in given if each != "at"})

    options = {**question.options, **({"at": AT} if question.timed else {})}
    return Tool(name, question.meaning, options, question.required, do, reads=True)


def _steering(name: str, rule: Rule) -> Tool:
    """Make the tool of a wish; nobody can be asked: `yes` says beforehand that work may be lost, or much decided."""

    def do(seat: Seat, given: Given) -> str:
        options = {each: value for each, value in given.items() if each not in ("ids", "yes")}
        wish = Wish(name, tuple(given.get("ids", ())), options)
        return written(fulfil(seat.workspace(), wish, lambda text: bool(given.get("yes"))).document())

    groups = ["@NAME of a convoy", f"{PROJECT}NAME"] if name in VERBS else []
    others = [*groups, *(f"{each}NAME" for each in rule.prefixes if each != PROJECT)]
    what = ", or ".join(["ids of loops, their last segments, or prefixes", *others])
    options = {"ids": Option(what, str, many=True), **rule.options, **({"yes": YES} if rule.asks else {})}
    needed = ["ids"] if not {"all", "new", "stale"} & set(rule.options) else []
    return Tool(name, rule.meaning, options, (*needed, *([rule.required] if rule.required else [])), do)


def _start(seat: Seat, given: Given) -> str:
    """Enqueue plans, and lists that become some; nothing is driven."""
    workspace, dry_run = seat.workspace(), bool(given.get("dry_run"))
    paths = [seat.directory / each for each in given["plans"]]
    lists = read_lists(workspace, paths, given.get("from"), given.get("id"))
    plans = read_plans(workspace, [each for each in paths if each not in lists])
    plans += [each.plan for each in lists.values()]

    def confirm(text: str) -> bool:
        return bool(given.get("yes")) or dry_run

    if not dry_run:
        pass_gate(workspace, "start", given["plans"], lambda scene: [each.id for each in plans])
    if dry_run or lists or len(plans) > 1:  # a refusal leaves nothing behind
        tried = rehearse(workspace, plans, confirm, to_run=False)
        if dry_run:
            return written(tried.document(workspace))
    for each in lists.values():
        place_list(workspace, each, confirm)
    files = [lists[each].plan.path if each in lists else each for each in paths]
    admitted = admit(workspace, read_plans(workspace, files), confirm, to_run=False)
    return written(admitted.document(workspace))


def _set(seat: Seat, given: Given) -> str:
    """Change a setting; a value that is no text is written as YAML has it."""
    value = given["value"] if isinstance(given["value"], str) else json.dumps(given["value"])
    return written(change(seat.workspace(), given["key"], value, dry_run=bool(given.get("dry_run"))).document())


def _pulling(name: str, meaning: str, say: Callable[[Workspace, Given], Row], options: Mapping[str, Option]) -> Tool:
    """Make a tool of pull workers; most need to be told which leases."""
    needed = ("leases",) if "leases" in options and name != "lease_reclaim" else ()

    def do(seat: Seat, given: Given) -> str:
        return written(say(seat.workspace(), given))

    return Tool(name, meaning, options, needed, do)


def _take(workspace: Workspace, given: Given) -> Row:
    """Take leases in the name of whoever asks, unless another one is given."""
    types, projects = tuple(given.get("type", ())), tuple(given.get("project", ()))
    return take(workspace, Wanted(given.get("limit", 1), types, projects, given.get("holder", ""))).document


def _release(workspace: Workspace, given: Given) -> Row:
    """Give leases back."""
    how = {name: bool(given.get(name)) for name in ("failed", "refused")}
    return release(workspace, given["leases"], given.get("reason", ""), **how)


_LEASES: Mapping[str, Option] = {"leases": Option("leases: LOOP#ATTEMPT each", str, many=True)}

QUESTION_TOOLS = {name: _reading(name, question) for name, question in QUESTIONS.items()}
WISH_TOOLS = {name: _steering(name, rule) for name, rule in RULES.items()}
PLAN_TOOLS = {
    "start": Tool(
        "start",
        "Enqueue plan files, or bring the tree in line with changed ones, as `loopr start --no-run` does: nothing is "
        "driven, an engine that runs takes the plans.",
        {
            "plans": Option(
                "plan files, or lists of work, relative to where the server was started",
                str,
                many=True,
            ),
            "from": Option("the files are lists of work, exported from there", str, choices=ALL_KINDS),
            "id": Option("with from: the id of the plan that the list becomes", str),
            "dry_run": DRY_RUN._replace(meaning="show what would be enqueued; write nothing"),
            "yes": YES,
        },
        ("plans",),
        _start,
    ),
    "set": Tool(
        "set",
        "Change a setting in loopr.yml, keeping its comments; what would be wrong is refused.",
        {
            "key": Option("its path, such as concurrency.max_loops", str),
            "value": Option("what it is to be", object),
            "dry_run": DRY_RUN,
        },
        ("key", "value"),
        _set,
    ),
}
LEASE_TOOLS = {
    tool.name: tool
    for tool in (
        _pulling(
            "lease_take",
            "Take leases to do loops oneself, those first whose type has no command, with a worktree made ready for "
            "each. The refusal `deferred` says why nothing could be leased now.",
            _take,
            {
                "type": Option("only loops of this type", str, many=True),
                "project": Option("only loops of this project", str, many=True),
                "limit": Option("at most so many leases; 1 if left out", int, least=1),
                "holder": Option("in whose name; the user's if left out", str),
            },
        ),
        _pulling(
            "lease_renew",
            "Say that the work goes on: the leases live for `lease.ttl_secs` again.",
            lambda workspace, given: renew(workspace, given["leases"]),
            _LEASES,
        ),
        _pulling(
            "lease_complete",
            "Hand the work over: the engine, or the next one, commits what is in the worktree, judges it and lands it.",
            lambda workspace, given: complete(workspace, given["leases"]),
            _LEASES,
        ),
        _pulling(
            "lease_release",
            "Give leases back; it costs the loops nothing, and what is in the worktrees stays for whoever goes on.",
            _release,
            {
                **_LEASES,
                "failed": Option("count it as a failure: it could not be done here; again after a delay"),
                "refused": Option("count it as a refused try, with the reason as its feedback"),
                "reason": Option("why, for whoever goes on", str),
            },
        ),
        _pulling(
            "lease_reclaim",
            "Take expired leases back, all if none is named, as an engine does itself; each is a failure of its loop.",
            lambda workspace, given: reclaim(workspace, given.get("leases", ())),
            _LEASES,
        ),
    )
}
TOOLS: Mapping[str, Tool] = {**QUESTION_TOOLS, **WISH_TOOLS, **PLAN_TOOLS, **LEASE_TOOLS}
"""Every tool by its name."""
