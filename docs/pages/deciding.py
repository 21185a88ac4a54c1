"""The pages on how loopr decides: the lifecycle, the events, the gates.

Knows where the table, the events and the gates stand in the code. Must never state a rule itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from enum import Enum
from typing import Any

from loopr.core import gates, workspace_events
from loopr.core.codec import EVENTS, NAMES, VERSIONS
from loopr.core.events import LoopEvent
from loopr.core.lifecycle import LIFECYCLE, Rule
from loopr.core.model import Failure, Status, Terms, Usage
from loopr.ui import story
from pages.markdown import beside, code, one_line, page, table

# --- the lifecycle ------------------------------------------------------------------------------------------------

_MOST_ARROWS = 4


def lifecycle_page() -> str:
    """Tell the statuses, draw the table of the law, and give it whole."""
    far = [event_link(NAMES[cls]) for cls, rule in LIFECYCLE.items() if _moves(rule) and not _drawn(rule)]
    rules = ((event_link(NAMES[cls]), _froms(rule), _tos(rule), _remark(rule)) for cls, rule in LIFECYCLE.items())
    return page(
        "Lifecycle",
        "`loopr/core/lifecycle.py` and `loopr/core/model.py`",
        "What a loop can be, and which event leads where. What is not in the table is refused and changes nothing. "
        "Ready, blocked, backing off and paused are never stored: they are what the [gates](reference/gates.md) say "
        "at an instant.",
        "## Statuses",
        _sayings("status", Status),
        "## The way of a loop",
        f"Drawn from the table. Left out are the events that come from more than {_MOST_ARROWS} statuses: "
        f"{', '.join(far)}.",
        ["```mermaid", "stateDiagram-v2", *_arrows(), "```"],
        "## The table",
        table(("event", "from", "to", "remark"), rules),
        "## What can go wrong",
        "The class of a failure says what it costs.",
        _sayings("class", Failure),
    )


def _sayings(name: str, kind: type[Enum]) -> str:
    """Tell the values of an enum, each with the sentence beside it."""
    return table((name, "from the loop's own point of view"), ((code(k), v) for k, v in beside(kind).items()))


def _moves(rule: Rule) -> bool:
    """Say whether an event changes the status of a loop."""
    return rule.tos is not None


def _drawn(rule: Rule) -> bool:
    """Say whether an event comes from so few statuses that its arrows can be followed."""
    return len(rule.froms) <= _MOST_ARROWS


def _arrows() -> Iterator[str]:
    """Draw one arrow for each pair of statuses, with the events that lead from the one to the other."""
    found: dict[tuple[str, str], list[str]] = {}
    for cls, rule in LIFECYCLE.items():
        for before in _ordered(rule.froms) or ["[*]"]:
            for after in _ordered(rule.tos or ()) if _drawn(rule) else ():
                if before != after:
                    found.setdefault((before, after), []).append(NAMES[cls])
    for (before, after), names in found.items():
        yield f"    {before} --> {after}: {', '.join(names)}"


def _ordered(statuses: Iterable[Status]) -> list[str]:
    """Name statuses in the order in which they are defined."""
    return [each.value for each in Status if each in set(statuses)]


def _froms(rule: Rule) -> str:
    """Say from which statuses an event is allowed."""
    absent = [each for each in Status if each not in rule.froms]
    if not rule.froms:
        return "none: the loop is new"
    if not absent:
        return "all"
    if len(absent) <= len(rule.froms) // 2:
        return "all but " + ", ".join(map(code, absent))
    return ", ".join(map(code, _ordered(rule.froms)))


def _tos(rule: Rule) -> str:
    """Say where an event leads."""
    return " or ".join(map(code, _ordered(rule.tos))) if rule.tos is not None else "the same"


# --- events -------------------------------------------------------------------------------------------------------

_KINDS = {
    "str": "text",
    "int": "whole number",
    "bool": "true or false",
    "bool | None": "true, false or null",
    "int | None": "whole number or null",
    "str | None": "text or null",
    "tuple[str, ...]": "list of texts",
    "Mapping[str, Any]": "map",
    "Amounts": "list of `[name, whole number]`",
    "Amounts | None": "list of `[name, whole number]`, or null",
    "Budget": "`[tokens, micro-dollars, seconds]`, each a whole number or null",
    "Status": "a [status](../lifecycle.md#statuses)",
    "Failure": "a [class](../lifecycle.md#what-can-go-wrong)",
    "Terms": "[terms](#terms)",
    "Usage": "[usage](#usage)",
}


def _kind(annotation: Any) -> str:
    """Say what a field holds; a kind that has no words yet is an error here."""
    return _KINDS[annotation if isinstance(annotation, str) else annotation.__forward_arg__]


def _remark(rule: Rule) -> str:
    """Say what else is to be known of a row of the table."""
    return rule.remark + ("; of a landing only until that has begun" if rule.gives_way else "")


def event_link(name: str) -> str:
    """Link an event from a page of docs/."""
    return f"[`{name}`](reference/events.md#{name})"


def events_page() -> str:
    """Tell every event with its fields, and how it reads in a story."""
    about_loops = [name for name, cls in EVENTS.items() if issubclass(cls, LoopEvent)]
    return page(
        "Events",
        "`loopr/core/events.py`, with `judge_events.py`, `plan_events.py` and `workspace_events.py`, and "
        "`loopr/ui/story.py`",
        "Everything that was ever decided, as `loopr events` prints it. With `--json` each line is an object with "
        "`seq`, `at`, `event`, `loop`, `actor` and `data`; below are the fields of `data`. Events are history and are "
        "kept: one whose fields change gets a new version, and older ones are lifted to it when they are read. "
        "‹Angle marks› stand for the value of a field.",
        "## About one loop",
        "Each has the field `loop`, an id. The [lifecycle](../lifecycle.md) says from which statuses it is allowed.",
        *(_event(name) for name in about_loops),
        f"## About the workspace\n\n{one_line(workspace_events.__doc__)}",
        *(_event(name) for name in EVENTS if name not in about_loops),
        "## What stands in a field",
        f"### terms\n\n{one_line(Terms.__doc__)}",
        table(("field", "is"), ((code(k), _kind(v)) for k, v in Terms.__annotations__.items())),
        f"### usage\n\n{one_line(Usage.__doc__)}\n\nWritten as a list: `[{', '.join(Usage._fields)}]`.",
    )


def _event(name: str) -> str:
    """Tell one event."""
    cls = EVENTS[name]
    told = {"loop"} if issubclass(cls, LoopEvent) else set()
    own = [(code(each.name), _kind(each.type)) for each in fields(cls) if each.name not in told]
    reads = story.sentence(name, {each.name: f"‹{each.name}›" for each in fields(cls)})
    parts = [f"### {name}", one_line(cls.__doc__), f"Version {VERSIONS.get(name, 1)}. Reads: “{reads}”."]
    return "\n\n".join([*parts, *([table(("field", "is"), own)] if own else [])])


# --- gates --------------------------------------------------------------------------------------------------------


def gates_page() -> str:
    """Tell every gate in the order in which it is asked."""
    shared = {name for name, _ in gates.SHARED_GATES}
    declared = {name for name, _ in gates.DECLARED_GATES}
    rows = [
        (str(place), code(name), one_line(check.__doc__), _yes(name in declared), _yes(name in shared))
        for place, (name, check) in enumerate(gates.GATES, 1)
    ]
    return page(
        "Gates",
        "`loopr/core/gates.py`",
        "A gate is a named reason not to run. They are asked in this order; `loopr why ID` lists every closed one, "
        "and a loop is chosen only when none is. [Why does it wait?](../guide/why-does-it-wait.md) shows them at work.",
        table(("", "gate", "holds a loop back because", "binds declared loops", "shared"), rows),
        "A loop that **completes by declaration** runs nothing, so only the gates that are marked bind it. A "
        "**shared** gate opens and closes for many loops at once.",
    )


def _yes(value: bool) -> str:
    """Mark what is so."""
    return "yes" if value else ""
