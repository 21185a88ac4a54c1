"""From the events of a loop to its tries: when each began, how long its parts took, what became of it.

Must never know what an event changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from loopr.ui import render
from loopr.ui.story import ENDS, sentence
from loopr.ui.times import localized, read_instant, say_duration
from loopr.ui.views import Row, instant

_GOES_ON = frozenset({"work_ended", "verdict_given", "passed", "approved"})
"""What becomes of a try after its command has ended, and before the try is over."""


def attempts(records: Iterable[Any]) -> list[Row]:
    """Return the attempts of one loop from its story, oldest first: each has ended once its command has."""
    found: list[Row] = []
    open_one: Row | None = None
    iteration = 1
    for each in records:
        data = json.loads(each.data)
        if each.event == "lease_granted":
            open_one = _attempt(data, iteration, each.at)
            found.append(open_one)
        elif open_one is not None and each.event == "attempt_started":
            open_one["started_at"] = instant(each.at)
        elif open_one is not None and each.event == "usage_seen":
            tokens, micro_usd, ms, *rounded = data["usage"]
            usd = None if micro_usd is None else micro_usd / 1e6
            rough = tokens is None or any(rounded)
            open_one["usage"] = {"tokens": tokens, "usd": usd, "seconds": ms / 1000, "estimated": rough}
        elif open_one is not None and each.event == "step_timed":
            open_one["steps"].append({"step": data["step"], "seconds": data["ms"] / 1000})
        elif open_one is not None and (each.event in ENDS or "failure" in data):
            open_one |= {"class": data.get("failure") or ENDS[each.event], "outcome": sentence(each.event, data)}
            open_one["ended_at"] = open_one["ended_at"] or instant(each.at)
            open_one = None
        elif open_one is not None and each.event in _GOES_ON:
            open_one["outcome"] = sentence(each.event, data) + _THEN.get((each.event, data.get("to")), "")
            open_one["ended_at"] = instant(each.at) if each.event == "work_ended" else open_one["ended_at"]
        iteration = _next_iteration(each.event, data, iteration)
    return found


_THEN = {("passed", "awaiting_approval"): ", and waits for a person", ("passed", "landing"): ", and lands"}


def _attempt(data: Mapping[str, Any], iteration: int, at: int) -> Row:
    """Begin the row of an attempt with its lease: on which lane it is made, and by which agent."""
    row: Row = dict.fromkeys(
        ("attempt", "iteration", "outcome", "class", "started_at", "ended_at", "exit", "usage", "log")
    )
    who = {"lane": data.get("lane"), "agent": data.get("agent") or None}
    row |= {"attempt": data["attempt"], "iteration": iteration, "started_at": instant(at)} | who
    return row | {"steps": []}


def _next_iteration(event: str, data: Mapping[str, Any], iteration: int) -> int:
    """Count the iterations along."""
    if event in ("retried", "renewed", "input_changed", "redo_began"):
        return 1
    goes_on = event in ("refused", "conflicted") and data.get("to") != "failed"
    return iteration + 1 if goes_on or event == "iteration_asked" else iteration


# --- as lines ---------------------------------------------------------------------------------------


def try_lines(attempts: list[Row], now: int, width: int) -> list[str]:
    """Set the tries below each other: when each began, how long it took, and what became of it."""
    begun = [localized(each["started_at"], now) for each in attempts]
    took = [_took(each, now) for each in attempts]
    sizes = [max(map(len, column), default=0) for column in (begun, took)]
    lines = ["", "tries:"] if attempts else []
    for each, at, lasted in zip(attempts, begun, took, strict=True):
        head = f"  {each['attempt']:>3}  {at:{sizes[0]}}  {lasted:>{sizes[1]}}  "
        by = f"{each['agent']}: " if each["agent"] else ""
        beside = "".join(f"; {step} {say_duration(ms)}" for step, ms in _beside(each).items())
        lines += render.wrap(head, render.plain(f"{by}{each['outcome'] or 'has not ended'}{beside}"), width)
    return lines


def _beside(row: Row) -> dict[str, int]:
    """Sum up how long each kind of step beside the command of a try took, of those that took a second."""
    found: dict[str, int] = {}
    for each in row["steps"]:
        found[each["step"]] = found.get(each["step"], 0) + round(each["seconds"] * 1000)
    return found


def _took(row: Row, now: int) -> str:
    """Say how long the command of a try took, or takes until now."""
    if row["ended_at"] and row["usage"] and row["usage"]["seconds"]:
        return say_duration(round(row["usage"]["seconds"] * 1000))
    began, ended = (read_instant(row[key], now) if row[key] else now for key in ("started_at", "ended_at"))
    return say_duration(ended - began)
