"""The keys of an entry that say who does its work, who judges it, and how it may end: that somebody reads each.

Knows one entry and the type it is of. Must never know who works for it in the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopr.core.ladder import Ladder
from loopr.core.marked import Findings, Pair
from loopr.core.values import read_flag


def read_leaf(findings: Findings, ladder: Ladder, pairs: Mapping[str, Pair], type_name: str) -> bool | None:
    """Read whether a loop may just do its work; of the last type every one does, so there it says nothing."""
    pair = pairs.get("leaf")
    said = read_flag(findings, "leaf", pair.value) if pair else None
    if pair is None or said is None:
        return None
    if ladder.child(type_name) is None:
        if not said:
            findings.refuse(pair.at, f"a {type_name} has no children to hand over", "take out `leaf`")
        return None
    if "run" not in pairs and "agent" not in pairs:
        message = "`leaf` says how the entry's own `run` or `agent` may end, and it has neither"
        hint = "add one of them, or take out `leaf`; `tasks: []` in a file of yours says that there is nothing below"
        findings.refuse(pair.at, message, hint.replace("tasks", ladder.keys(type_name)[0]))
    return said


def check_read(findings: Findings, ladder: Ladder, pairs: Mapping[str, Pair], type_name: str) -> None:
    """Refuse what nobody would ever read in an entry without children."""
    if "run" in pairs and "agent" in pairs:
        message = "`agent` beside `run` would never be used: the command does the work"
        findings.refuse(pairs["agent"].at, message, "take out `run` or `agent`")
    if "check" in pairs and "run" not in pairs and "agent" not in pairs and ladder.settles(type_name):
        child = ladder.child(type_name)
        message = f"`check` would never be used: the {type_name} gets a {child} by itself, which has a judge of its own"
        hint = f"write it in an entry under `{ladder.keys(type_name)[0]}:`, or add a `run`"
        findings.refuse(pairs["check"].at, message, hint)
