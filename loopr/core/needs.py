"""What siblings need of each other: that they exist, that no two share an id, that nobody waits in a circle.

Knows the entries of one outline. Must never know the forest: what crosses outlines is told to it as a set of known ids,
and cycles across outlines are found in `core/graph.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from loopr.core.entries import Entry
from loopr.core.marked import Findings, Position
from loopr.core.slugs import id_problem, nearest, one_line, slug
from loopr.core.values import shown

_HOW = "name a sibling by its id or title, or a loop by its path from the plan"
_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u201a\u00ab\u00bb "
_NUMBER = re.compile(r"#?(\d+)[.)]?")
_MOST_GUESSES = 20  # looking for what a misspelt id meant takes a while among a thousand


class Sibling(NamedTuple):
    """One entry with the places that messages point to: its id's, and one for each need."""

    entry: Entry
    at: Position
    needs_at: tuple[Position, ...]


def check_siblings(findings: Findings, siblings: Sequence[Sibling]) -> list[Sibling]:
    """Return siblings that need each other by id; note equal ids, needs that name nobody, and cycles among them."""
    first: dict[str, Sibling] = {}
    for each in siblings:
        known = first.setdefault(each.entry.id, each)
        if known is not each:
            message = f'two children have the id "{each.entry.id}", the first is on line {known.at.line}'
            findings.refuse(each.at, message, "give one of them another `id`")
    names = _names(siblings, first)
    named = [_by_id(findings, each, names) for each in siblings]
    last: dict[str, Sibling] = {}
    for each in named:
        last.setdefault(each.entry.id, each)
    _check_cycles(findings, last)
    return named


class _Names(NamedTuple):
    """By what siblings may be called: their ids, and the ids by title, as it is written and in any case."""

    ids: Collection[str]
    exact: dict[str, list[str]]
    folded: dict[str, list[str]]

    def titled(self, title: str) -> list[str]:
        """List the siblings that have a title; those that have it exactly go before all others."""
        return self.exact.get(title) or self.folded.get(title.casefold()) or []

    def numbered(self, need: str) -> list[str]:
        """List the siblings that begin with a number, as `2` means the heading `2. CSV export`."""
        number = _NUMBER.fullmatch(need)
        return [each for each in self.ids if number and each.startswith(f"{number[1]}-")]

    def like(self, need: str) -> str | None:
        """Guess the id or the title that is meant by a misspelt one."""
        titles = {each.casefold(): each for each in self.exact}
        near = nearest(need.casefold(), {**titles, **dict.fromkeys(self.ids)})
        return titles.get(near, near) if near else None


def _names(siblings: Sequence[Sibling], ids: Collection[str]) -> _Names:
    """Gather by what siblings may be called."""
    names = _Names(ids, {}, {})
    for each in siblings:
        names.exact.setdefault(each.entry.title, []).append(each.entry.id)
        names.folded.setdefault(each.entry.title.casefold(), []).append(each.entry.id)
    return names


def _by_id(findings: Findings, sibling: Sibling, names: _Names) -> Sibling:
    """Write the needs of one entry as ids, each once; those that name nobody stay as they are."""
    found: dict[str, Position] = {}
    for need, at in zip(sibling.entry.needs, sibling.needs_at, strict=True):
        found.setdefault(_find(findings, need, at, names), at)
    if tuple(found) == sibling.entry.needs:
        return sibling
    return sibling._replace(entry=replace(sibling.entry, needs=tuple(found)), needs_at=tuple(found.values()))


def _find(findings: Findings, need: str, at: Position, names: _Names) -> str:
    """Return the id of the sibling that a need names by its id or its title; note one that is no path either."""
    if need in names.ids:
        return need
    title = one_line(need).strip(_QUOTES)
    named = names.titled(title) or names.numbered(title)
    if len(named) == 1 or (not named and slug(title) in names.ids):
        return named[0] if named else slug(title)
    if named:
        is_title = "is the title" if names.titled(title) else "begins the titles"
        which = f"which {is_title} of {len(named)} siblings: {', '.join(named)}"
        message = f'needs "{shown(need)}", {which}'
        findings.refuse(at, message, "name the one that is meant by its id")
    elif "/" not in need or any(id_problem(part) for part in need.split("/")):
        close = names.like(title) if len(findings.problems) < _MOST_GUESSES else None
        hint = f'did you mean "{close}"?' if close else _HOW
        findings.refuse(at, f'needs "{shown(need)}", which is not declared here', hint)
    return need


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
