"""What siblings need of each other: that they exist, that no two share an id, that nobody waits in a circle.

Knows the entries of one outline. Must never know the forest: what crosses outlines is told to it as a set of known ids,
and cycles across outlines are found in `core/graph.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from loopr.core.entries import Entry
from loopr.core.marked import Findings, Position
from loopr.core.slugs import id_problem, nearest
from loopr.core.values import shown

_MOST_GUESSES = 20  # looking for what a misspelt id meant takes a while among a thousand


class Sibling(NamedTuple):
    """One entry with the places that messages point to: its id's, and one for each need."""

    entry: Entry
    at: Position
    needs_at: tuple[Position, ...]


def check_siblings(findings: Findings, siblings: Sequence[Sibling]) -> None:
    """Note equal ids, needs that name nobody, and cycles among the entries of one outline."""
    first: dict[str, Sibling] = {}
    for each in siblings:
        known = first.setdefault(each.entry.id, each)
        if known is not each:
            message = f'two children have the id "{each.entry.id}", the first is on line {known.at.line}'
            findings.refuse(each.at, message, "give one of them another `id`")
    for each in siblings:
        for need, at in zip(each.entry.needs, each.needs_at, strict=True):
            _check_need(findings, need, at, first)
    _check_cycles(findings, first)


def _check_need(findings: Findings, need: str, at: Position, ids: Collection[str]) -> None:
    """Note a need that is neither a sibling nor could be a path."""
    if need in ids:
        return
    if "/" in need and not any(id_problem(part) for part in need.split("/")):
        return
    close = nearest(need, ids) if len(findings.problems) < _MOST_GUESSES else None
    hint = f'did you mean "{close}"?' if close else "name a sibling by its id, or a loop by its path from the plan"
    findings.refuse(at, f'needs "{shown(need)}", which is not declared here', hint)


def _check_cycles(findings: Findings, siblings: dict[str, Sibling]) -> None:
    """Note each circle of needs once, drawn from the first of its members in the file."""
    waits = {id_: [need for need in each.entry.needs if need in siblings] for id_, each in siblings.items()}
    places = {id_: place for place, id_ in enumerate(siblings)}
    while cycle := _cycle(waits):
        start = min(range(len(cycle)), key=lambda index: places[cycle[index]])
        drawn = [*cycle[start:], *cycle[:start]]
        at = siblings[drawn[0]].needs_at[siblings[drawn[0]].entry.needs.index(drawn[1] if drawn[1:] else drawn[0])]
        message = f"needs form a cycle: {' → '.join([*drawn, drawn[0]])}"
        findings.refuse(at, message, "take one of these needs out")
        waits = {id_: [] if id_ in cycle else needs for id_, needs in waits.items()}


def _cycle(waits: dict[str, list[str]]) -> list[str]:
    """Return one circle, each member followed by one it needs, or nothing."""
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[:0:-1]
    return []


def resolve_needs(
    entry: Entry, *, parent_id: str, siblings: Container[str], known: Container[str], source: str = ""
) -> tuple[str, ...]:
    """Turn the needs of an entry into ids from the plan down; raise for every one that names no loop.

    A single word is a sibling, one with slashes a path that begins with the id of the plan.
    """
    plan_id = parent_id.partition("/")[0]
    findings = Findings(source)
    resolved: dict[str, None] = {}
    for need in entry.needs:
        target = need if "/" in need else f"{parent_id}/{need}"
        if need in siblings or ("/" in need and need in known):
            resolved[target] = None
            continue
        hint = "name a sibling by its id, or a loop by its path from the plan"
        if f"{plan_id}/{need}" in known:
            hint = f'a path begins with the plan: "{plan_id}/{need}"'
        findings.refuse(entry.position, f'{parent_id}/{entry.id} needs "{shown(need)}", which no loop is called', hint)
    findings.raise_if_any()
    return tuple(resolved)
