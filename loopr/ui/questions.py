"""What may be asked of a workspace, each question with the document that answers it: the same bytes on every surface.

Looks and changes nothing. Must never know a terminal or a protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from loopr.ui import documents, listening, outputs
from loopr.ui.convoys import convoy_document, convoys_document, find_convoy
from loopr.ui.leases import leases_document
from loopr.ui.options import Option
from loopr.ui.stands import ALL_WORDS
from loopr.ui.usage import used
from loopr.ui.views import Row
from loopr.wiring import Scenery, Workspace
from loopr.world.journal import USAGE_KEYS
from loopr.world.launcher.words import STREAMS

Given = Mapping[str, Any]


def written(document: Row) -> str:
    """Write a document as it leaves loopr, on one line."""
    return json.dumps(document) + "\n"


class Question(NamedTuple):
    """What is asked, what it takes, and what answers it at an instant (None: now), given the options."""

    meaning: str
    answer: Callable[[Workspace, int | None, Given], str]
    options: Mapping[str, Option] = MappingProxyType({})
    required: tuple[str, ...] = ()
    timed: bool = True


def _of_scene(answer: Callable[[Workspace, Scenery, Given], Row]) -> Callable[[Workspace, int | None, Given], str]:
    """Make an answer of one that looks at what the workspace is at an instant."""
    return lambda workspace, at, given: written(answer(workspace, workspace.look(at), given))


def _events(workspace: Workspace, given: Given) -> str:
    """Answer with a line for each event."""
    kinds = tuple(given.get("type", ()))
    wanted = listening.Wanted(given.get("after", 0), kinds, given.get("loop"), given.get("limit"))
    return "".join(map(written, listening.happened(workspace, wanted)))


def _logs(workspace: Workspace, given: Given) -> str:
    """Answer with what an attempt has written."""
    names = STREAMS[1:] if given.get("stderr") else STREAMS
    said = {name: value for name, value in given.items() if name not in ("loop", "stderr")}
    wanted = outputs.Wanted(names=names, **said)
    return written(outputs.outputs_document(workspace, given["loop"], wanted))


def _without(given: Given, name: str) -> Given:
    """Return all that is given but one."""
    return {each: value for each, value in given.items() if each != name}


_LOOP = Option("the loop: an id, its last segments, or a prefix", str)
_BELOW = Option("only this loop and what is below it", str)

QUESTIONS: Mapping[str, Question] = {
    "tree": Question(
        "The hierarchy of loops, flat and in tree order, with what each loop waits for.",
        _of_scene(lambda workspace, seen, given: documents.tree(workspace, seen, given.get("loop"))),
        {"loop": _BELOW},
    ),
    "ls": Question(
        "The loops that are like all that is asked for: id, type, status, and what each waits for.",
        _of_scene(
            lambda workspace, seen, given: documents.listed(
                workspace, seen, documents.chosen_loops(seen, documents.Filter(**given))
            )
        ),
        {
            "loop": _BELOW,
            "status": Option("only these", str, many=True, choices=ALL_WORDS),
            "type": Option("only this type", str, many=True),
            "project": Option("only this project", str, many=True),
            "ready": Option("only those that no gate holds back"),
        },
    ),
    "status": Question(
        "What the workspace as a whole is doing: engine, capacity, queue, lanes, projects, problems.",
        _of_scene(lambda workspace, seen, given: documents.status(workspace, seen)),
    ),
    "show": Question(
        "All about one loop: where it stands, its tries and its children.",
        _of_scene(lambda workspace, seen, given: documents.show(workspace, seen, given["loop"])),
        {"loop": _LOOP},
        required=("loop",),
    ),
    "why": Question(
        "Why a loop does not run: every closed gate, its score with its parts, its story.",
        _of_scene(lambda workspace, seen, given: documents.why(workspace, seen, given["loop"])),
        {"loop": _LOOP},
        required=("loop",),
    ),
    "next": Question(
        "The next round of launches before it is decided, and the first closed gate of each loop that is not in it.",
        lambda workspace, at, given: written(
            documents.coming(workspace, at, documents.pulled(bool(given.get("pull")), _without(given, "pull")))
        ),
        {
            "pull": Option("the leases that pull workers would get, instead of the engine's round"),
            "type": Option("with pull: only loops of this type", str, many=True),
            "project": Option("with pull: only loops of this project", str, many=True),
            "limit": Option("with pull: at most so many leases", int, least=1),
        },
    ),
    "logs": Question(
        "The output of a loop's latest try, or of another one; of a plan or a parent without any the last lines of "
        "all below it. A long one is best asked for by its tail.",
        lambda workspace, at, given: _logs(workspace, given),
        {
            "loop": _LOOP,
            "attempt": Option("that try, not the latest", int, least=1),
            "iteration": Option("the latest try after that many refusals less one", int, least=1),
            "step": Option("the output of its check or review, not of its command", str, choices=("check", "review")),
            "tail": Option("only the last so many lines", int),
            "stderr": Option("standard error alone"),
            "raw": Option("an agent's events as they are, not what they tell"),
        },
        required=("loop",),
        timed=False,
    ),
    "events": Question(
        "The journal, one event a line; whoever comes back with the number of the last event it saw misses none.",
        lambda workspace, at, given: _events(workspace, given),
        {
            "loop": Option("only those about this loop", str),
            "after": Option("only those after this number", int),
            "type": Option("only these kinds", str, many=True),
            "limit": Option("only the last so many", int, least=1),
        },
        timed=False,
    ),
    "usage": Question(
        "What the tries that have ended used: tokens, money and time, measured and estimated apart.",
        lambda workspace, at, given: written(
            used(workspace, at, given.get("by", "project"), given.get("since")).document()
        ),
        {
            "by": Option("what to group by", str, choices=tuple(USAGE_KEYS)),
            "since": Option("only tries that ended since then: 7d, or 2026-01-31T02:00:00Z", str),
        },
    ),
    "convoy_list": Question(
        "All convoys with their counts.",
        _of_scene(lambda workspace, seen, given: convoys_document(seen.scene, seen.now)),
    ),
    "convoy_show": Question(
        "One convoy: what is done of it, and what holds it up.",
        _of_scene(
            lambda workspace, seen, given: convoy_document(seen.scene, find_convoy(seen.scene, given["name"]), seen.now)
        ),
        {"name": Option("the convoy", str)},
        required=("name",),
    ),
    "lease_list": Question(
        "The leases that pull workers have: who, where, since when and until when.",
        _of_scene(lambda workspace, seen, given: leases_document(workspace, seen.scene, seen.now)),
    ),
}
"""Every question by its name; with `timed` it may be asked of another instant."""
