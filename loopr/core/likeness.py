"""What a text without an outline looks like: front matter without its fences, a list that nobody reads, no plan at all.

Knows lines and the words of the ladder. Must never know a file, nor what becomes of a doubt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loopr.core.bridges import OURS
from loopr.core.fields import ARTIFACT_KEYS
from loopr.core.headings import Heading, Line, heading_of, read_lines
from loopr.core.ladder import CHILDREN, Ladder
from loopr.core.marked import Findings, Position
from loopr.core.sections import Section, read_items
from loopr.core.values import shown

_KEY = re.compile(r"(?P<key>[A-Za-z_-]+):(?:[ \t]+(?P<value>.*))?$")
_FENCE_LIKE = re.compile(r"(-{2,}|\*{3,}|_{3,}|={3,}|\+{3,}|;{3,})\s*$")
_CHECK = re.compile(r"\s*[-*+] \[[ xX]\] +\S")
_TABLE = re.compile(r"[ |]*:?-+:?[ ]*(\|[ :-]*)+$")  # the line below the head of a table
_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd")
_EXPORTS = (".json", ".jsonl", ".ndjson")
_OTHERS = re.compile(
    r"(readme|changelog|changes|contributing|license|licence|copying|security|code_of_conduct)\b", re.I
)
_WORDS = frozenset({"specs", "phases", "tasks"})
_ELSEWHERE = frozenset(OURS[CHILDREN])
_BESIDE = frozenset({"the", "next", "my", "our"})
_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(?:.*\n)*?---[ \t]*(?:\r?\n|\Z)")
FENCES = "put a line `---` before it, as the first of the file, and another one after it"


class Doubt(NamedTuple):
    """What a text looks like, where that is seen, and what to do if it is so."""

    at: Position
    message: str
    hint: str


def lost_fences(lines: Sequence[Line], ladder: Ladder, type_name: str) -> Doubt | None:
    """Find an outline as keys and values at the top of a text that has no front matter: nothing would read it."""
    head = _head(lines)
    children = ladder.keys(type_name)
    if (block := _in_code(lines)) is not None:
        message = "this is front matter inside a block of code, which is never read"
        return Doubt(block, message, "take out the lines of the block, so that the first line of the file is `---`")
    for line, key, value in head:
        if key in children and (not value or value[0] in "[{"):
            at = Position(head[0][0].number, 1)
            message = (
                f"`{key}:` on line {line.number} is not read: this is front matter, without the lines `---` around it"
            )
            return Doubt(at, message, FENCES)
    return None


def _in_code(lines: Sequence[Line]) -> Position | None:
    """Find front matter with its fences inside a block of code at the top, as an answer in a chat has it."""
    said = [line for line in lines if not line.blank][:3]
    if len(said) == 3 and said[0].code and said[1].text.strip() == "---" and _KEY.match(said[2].text):
        return Position(said[0].number, 1)
    return None


def _head(lines: Sequence[Line]) -> list[tuple[Line, str, str]]:
    """List the keys at the top of a text, each with its line and value: what YAML would read if it stood in fences."""
    found: list[tuple[Line, str, str]] = []
    for line in lines:
        heading = heading_of(line)
        if line.blank or (not found and (_FENCE_LIKE.match(line.text) or (heading and heading.level == 1))):
            continue
        if line.code or heading:
            break
        if pair := _KEY.match(line.text):
            found.append((line, pair["key"], (pair["value"] or "").strip()))
        elif not found or not line.text.startswith((" ", "\t", "-", "#", "}", "]")):
            break
    return found


def doubt_of(text: str, name: str, ladder: Ladder, type_name: str, *, has_command: bool) -> Doubt | None:
    """Say why a text without an outline may be no plan; one whose type has a command may be plain words for it."""
    if text.startswith("---"):
        return None
    lines = read_lines(Findings(name), text, 1)
    head = [key for _, key, _ in _head(lines) if key in (*ARTIFACT_KEYS, *ladder.all_keys())]
    if head:
        message = f"`{head[0]}:` at the top is not read: it looks like front matter, without the lines `---` around it"
        return Doubt(Position(1, 1), message, FENCES)
    base = name.rpartition("/")[2].casefold()
    if base.endswith(_EXPORTS):
        message = "this is an export by its name, and no plan"
        return Doubt(Position(1, 1), message, "say what it is an export of: --from beads, github or jsonl")
    if not base.endswith(_MARKDOWN):
        return _no_plan(ladder, type_name, "this is no Markdown by its name, and has no outline")
    if has_command:
        return None
    if _OTHERS.match(base):
        return _no_plan(ladder, type_name, "this is no plan by its name, and has no outline")
    if not any(heading_of(line) for line in lines):
        return _no_plan(ladder, type_name, "this has no heading, and no outline")
    return None


def _no_plan(ladder: Ladder, type_name: str, why: str) -> Doubt:
    """Say that a text may be no plan, and what would make it one."""
    implied = ladder.implies(type_name)
    key = (*ladder.keys(type_name), CHILDREN)[0]
    becomes = "all of it would be one task" if implied else "nothing would be declared"
    return Doubt(
        Position(1, 1),
        f"{why}: {becomes}",
        f"list its {key} under `## {key.capitalize()}`, or as `{key}:` in front matter",
    )


def may_be_list(text: str, name: str) -> bool:
    """Say whether a text may be a list of tasks: no front matter, no keys at its top, nor the name of another page."""
    other = _OTHERS.match(name.rpartition("/")[2].casefold())
    return not (text.startswith("---") or other or _head(read_lines(Findings(name), text, 1)))


def unread_list(text: str, ladder: Ladder, type_name: str) -> Doubt | None:
    """Find the part most likely meant as an outline that is none: a list, a checklist, headings."""
    front = _FRONT.match(text)
    first_line = front[0].count("\n") + 1 if front else 1
    lines = read_lines(Findings(""), text[front.end() :] if front else text, first_line)
    if read_items(lines, ladder, type_name):
        return None
    wanted = f"## {(*ladder.keys(type_name), CHILDREN)[0].capitalize()}"
    found = _misnamed_list(lines, ladder, type_name, wanted)
    if found is None and ladder.implies(type_name):
        return _listed_steps(lines, wanted) or _lost_tasks(lines, wanted)
    return found


def _misnamed_list(
    lines: Sequence[Line],
    ladder: Ladder,
    type_name: str,
    wanted: str,
) -> Doubt | None:
    """Find a heading with a word for children that opens no outline, or a checklist."""
    words = _WORDS | ladder.all_keys()
    for index, line in enumerate(lines):
        at, heading = Position(line.number, 1), heading_of(line)
        if heading and words & _words(heading):
            if heading.level == 2 and ladder.heads(type_name, heading.text):
                hint = f"write {_as_items(lines[index + 1 :])}"
                return Doubt(at, f"{_quoted(line)} has no list below it", hint)
            return _opens_nothing(line, wanted)
        if not line.code and _CHECK.match(line.text):
            message = f"the checklist on line {line.number} declares nothing"
            return Doubt(at, message, f"put it under a heading `{wanted}`")
    return None


def _as_items(lines: Sequence[Line]) -> str:
    """Say how items are written: with a heading, where the next one is of too low a level."""
    below = next((heading for line in lines if (heading := heading_of(line))), None)
    if below is None or below.level < 3 or not below.text:
        return "`- title` or `### title`"
    title = shown(below.text)
    return f"`### {title}` in place of `{'#' * below.level} {title}`"


def _listed_steps(lines: Sequence[Line], wanted: str) -> Doubt | None:
    """Find a list, be it of one item, under a heading that calls it steps, jobs and the like."""
    for title, section in _parts(lines):
        heading = heading_of(title) if title else None
        words = _words(heading) - _BESIDE if heading else set()
        if title and section.items and words and words <= _ELSEWHERE:
            return _opens_nothing(title, wanted)
    return None


def _lost_tasks(lines: Sequence[Line], wanted: str) -> Doubt | None:
    """Find headings that stand side by side, a list of two items or more, or a table."""
    titles = [(line, heading.level) for line in lines if (heading := heading_of(line))]
    times = Counter(level for _, level in titles)
    side_by_side = min((level for level, count in times.items() if count > 1), default=0)
    title = next((line for line, level in titles if level == side_by_side), None)
    first = next((part.items[0].at for _, part in _parts(lines) if len(part.items) > 1), None)
    if title is not None and (first is None or title.number < first.line):
        message = f"{_quoted(title)} is no task, for all of this file is one"
        hint = f"to have several, list them as `- title` under `{wanted}`"
        return Doubt(Position(title.number, 1), message, hint)
    why = "declares nothing, for all of this file is one task"
    if first is not None:
        return Doubt(first, f"the list on line {first.line} {why}", f"put it under a heading `{wanted}`")
    table = next((line.number for line in lines if not line.code and _TABLE.match(line.text)), None)
    if table is not None:
        hint = f"write its rows as `- title` under `{wanted}`"
        return Doubt(Position(table - 1, 1), f"the table on line {table - 1} {why}", hint)
    return None


def _parts(lines: Sequence[Line]) -> Iterator[tuple[Line | None, Section]]:
    """Give each heading, and first none, with the lists below it and before the next one."""
    title, section = None, Section()
    for line in lines:
        if heading_of(line):
            yield title, section
            title, section = line, Section()
        else:
            section.take(line, None)
    yield title, section


def _words(heading: Heading) -> set[str]:
    """Return the words of a heading as they are looked up."""
    return set(re.findall(r"[\w-]+", heading.text.casefold()))


def _quoted(line: Line) -> str:
    """Name a heading with its line."""
    return f"`{shown(line.text)}` on line {line.number}"


def _opens_nothing(line: Line, wanted: str) -> Doubt:
    """Say of a heading that it opens no outline."""
    message = f"{_quoted(line)} opens no outline here"
    return Doubt(Position(line.number, 1), message, f"write `{wanted}`")
