"""What trackers export, as items: beads, GitHub's command line, and JSON lines of anybody.

Knows their fields, each of which may be missing or of another kind. Must never know a file, nor the ladder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from loopr.core.imported import Item
from loopr.core.slugs import pattern_problem
from loopr.core.values import MAX_PRIORITY, shown
from loopr.errors import PlanError, Problem

BEADS, GITHUB, JSONL = "beads", "github", "jsonl"
KINDS = (BEADS, GITHUB, JSONL)
_NO_WORK = frozenset(
    {"message", "merge-request", "molecule", "gate", "agent", "role", "rig", "convoy", "event", "slot"}
)
_NOT_OPEN = frozenset({"closed", "tombstone", "deferred", "done", "completed", "complete", "resolved", "cancelled"})
_WAITS = frozenset({"blocks", "conditional-blocks", "waits-for"})
_IN_WORDS = re.compile(r"\b(?:depends on|blocked by|requires|waits for):?\s+#\d+(?:(?:,| and|, and)\s+#\d+)*", re.I)
_USUAL_PRIORITY = 2  # of beads, where 0 goes first
_STEP = 10
_EXPORTS = {
    BEADS: "export it with `bd export`, or name .beads/issues.jsonl",
    GITHUB: "export it with `gh issue list --state all --limit 1000 --json number,title,body,labels,state`",
    JSONL: 'write one object a line: {"id": "a", "title": "A", "body": "…", "needs": ["b"]}',
}


class Row(NamedTuple):
    """One object of an export, and the line that it begins on."""

    line: int
    said: Mapping[str, Any]


def read_export(kind: str, text: str, source: str) -> list[Item]:
    """Read an export, or raise one `PlanError` with everything that is wrong with it."""
    read = {BEADS: _bead, GITHUB: _github, JSONL: _line}[kind]
    problems: list[Problem] = []
    items: dict[str, Item] = {}
    lines: dict[str, int] = {}
    for row in _rows(kind, text, source):
        item = read(row.said)
        if item is None:
            continue
        where = f"{source}:{row.line}:1"
        if not item.id or not item.title.strip():
            problems.append(Problem("has no id or no title", where, _EXPORTS[kind]))
        elif item.id in items:
            hint = "keep one of them"
            problems.append(Problem(f'the id "{shown(item.id)}" is on line {lines[item.id]} too', where, hint))
        else:
            items[item.id], lines[item.id] = item, row.line
    if problems:
        raise PlanError("", problems=problems)
    return [_with_words(each) if kind == GITHUB else each for each in items.values()]


def _rows(kind: str, text: str, source: str) -> Iterator[Row]:
    """Give the objects of an export: a list, or one a line."""
    body = text.removeprefix("\ufeff")
    if body.lstrip().startswith("["):
        before = body[: len(body) - len(body.lstrip())].count("\n")
        for each in _decoded(kind, body, source, 1):
            if not isinstance(each, dict):
                raise PlanError(
                    "holds something that is no object", where=f"{source}:{before + 1}:1", hint=_EXPORTS[kind]
                )
            yield Row(before + 1, each)
        return
    for number, line in enumerate(body.split("\n"), 1):
        if line.strip():
            said = _decoded(kind, line, source, number)
            if not isinstance(said, dict):
                raise PlanError("is no JSON object", where=f"{source}:{number}:1", hint=_EXPORTS[kind])
            yield Row(number, said)


def _decoded(kind: str, text: str, source: str, line: int) -> Any:
    """Read JSON, or say where it is none."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        at = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        where = f"{source}:{line + at[0] - 1}:{at[1]}"
        said = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deep"
        raise PlanError(f"is no JSON: {said}", where=where, hint=_EXPORTS[kind]) from None


def _bead(said: Mapping[str, Any]) -> Item | None:
    """Read an issue of beads; None for what is no piece of work there."""
    if _text(said, "_type") not in ("", "issue") or _text(said, "issue_type").casefold() in _NO_WORK:
        return None
    if any(said.get(key) is True for key in ("ephemeral", "is_template", "pinned")):
        return None
    own = _text(said, "id")
    edges = [each for each in _list(said.get("dependencies")) if isinstance(each, Mapping)]
    kinds = [(_text(each, "type", "dep_type", "dependency_type"), _text(each, "depends_on_id", "id")) for each in edges]
    above = [target for kind, target in kinds if kind == "parent-child"]
    level = said.get("priority")
    return Item(
        own,
        _text(said, "title"),
        _parts(said, {"description": "", "design": "Design", "acceptance_criteria": "Acceptance criteria"}),
        needs=tuple(dict.fromkeys(target for kind, target in kinds if kind in _WAITS and target)),
        parent=above[0] if above else _dotted(own),
        priority=_bounded((_USUAL_PRIORITY - level) * _STEP if isinstance(level, int) else None) or None,
        closed=_text(said, "status").casefold() in _NOT_OPEN,
    )


def _dotted(own: str) -> str:
    """Return the id of the issue that one with a dot in its id is a part of."""
    found = re.fullmatch(r"(.+)\.\d+", own)
    return found[1] if found else ""


def _github(said: Mapping[str, Any]) -> Item | None:
    """Read an issue as `gh issue list --json` has it; None for a pull request."""
    if "pull_request" in said:
        return None
    above = said.get("parent")
    waits = said.get("blockedBy")
    waits = waits.get("nodes") if isinstance(waits, Mapping) else waits
    return Item(
        _number(said),
        _text(said, "title"),
        _text(said, "body"),
        needs=tuple(dict.fromkeys(filter(None, map(_number, _list(waits))))),
        parent=_number(above),
        closed=_text(said, "state").casefold() == "closed" or said.get("closed") is True,
    )


def _with_words(item: Item) -> Item:
    """Add the needs that an issue states in words, such as `blocked by #4, #5`."""
    told = [number for found in _IN_WORDS.finditer(item.body) for number in re.findall(r"#(\d+)", found[0])]
    more = [each for each in told if each != item.id]
    return replace(item, needs=tuple(dict.fromkeys((*item.needs, *more)))) if more else item


def _line(said: Mapping[str, Any]) -> Item | None:
    """Read an object with our own words, and those that mean the same wherever lists are exported."""
    needs = said.get("needs", said.get("depends_on"))
    files = [each for each in _list(said.get("files")) if isinstance(each, str) and pattern_problem(each) is None]
    level = said.get("priority")
    closed = said.get("done") is True or said.get("closed") is True
    return Item(
        _text(said, "id", "key", "number"),
        _text(said, "title", "name", "summary"),
        _text(said, "body", "description"),
        needs=tuple(dict.fromkeys(str(each) for each in _list(needs) if isinstance(each, str | int))),
        parent=_text(said, "parent"),
        files=tuple(dict.fromkeys(files)),
        priority=_bounded(level),
        closed=closed or _text(said, "status", "state").casefold() in _NOT_OPEN,
    )


def _parts(said: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Put several texts of an object together, each under its title."""
    parts = [(title, _text(said, key).strip()) for key, title in titles.items()]
    return "\n\n".join(f"{title}:\n\n{text}" if title else text for title, text in parts if text)


def _text(said: Mapping[str, Any], *keys: str) -> str:
    """Return the first of some values that is a text or a number, as text."""
    for key in keys:
        value = said.get(key)
        if isinstance(value, str) or _is_whole(value):
            return str(value)
    return ""


def _number(said: Any) -> str:
    """Return the number of an issue, which may stand alone or in an object."""
    value = said.get("number") if isinstance(said, Mapping) else said
    return str(value) if _is_whole(value) or (isinstance(value, str) and value.isdigit()) else ""


def _list(value: Any) -> list[Any]:
    """Return a list, one value as a list of one, and nothing for nothing."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _is_whole(value: Any) -> bool:
    """Tell a whole number from a truth."""
    return isinstance(value, int) and not isinstance(value, bool)


def _bounded(number: Any) -> int | None:
    """Return a priority within its bounds; None for what is no whole number."""
    return max(-MAX_PRIORITY, min(MAX_PRIORITY, int(number))) if _is_whole(number) else None
