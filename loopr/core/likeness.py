"""What a text without an outline looks like: front matter without its fences, a list that nobody reads, no plan at all.

Knows lines and the words of the ladder. Must never know a file, nor what becomes of a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from loopr.core.fields import ARTIFACT_KEYS
from loopr.core.headings import Line, heading_of, read_lines
from loopr.core.ladder import CHILDREN, Ladder
from loopr.core.marked import Findings, Position
from loopr.core.sections import read_items

_KEY = re.compile(r"(?P<key>[A-Za-z_-]+):(?:[ \t]+(?P<value>.*))?$")
_FENCE_LIKE = re.compile(r"(-{2,}|\*{3,}|_{3,}|={3,}|\+{3,}|;{3,})\s*$")
_CHECK = re.compile(r"\s*[-*+] \[[ xX]\] +\S")
_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd")
_EXPORTS = (".json", ".jsonl", ".ndjson")
_OTHERS = re.compile(
    r"(readme|changelog|changes|contributing|license|licence|copying|security|code_of_conduct)\b", re.I
)
_WORDS = frozenset({"specs", "phases", "tasks"})
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
    """Find the list that was most likely meant as an outline and is not: under another heading, or a checklist."""
    lines = read_lines(Findings(""), text, 1)
    if read_items(lines, ladder, type_name):
        return None
    wanted = f"## {(*ladder.keys(type_name), CHILDREN)[0].capitalize()}"
    words = _WORDS | ladder.all_keys()
    for line in lines:
        at, heading = Position(line.number, 1), heading_of(line)
        if heading and words & set(re.findall(r"[\w-]+", heading.text.casefold())):
            if heading.level == 2 and ladder.heads(type_name, heading.text):
                return Doubt(
                    at,
                    f"`{line.text.strip()}` on line {line.number} has no list below it",
                    "write `- title` or `### title`",
                )
            return Doubt(at, f"`{line.text.strip()}` on line {line.number} opens no outline here", f"write `{wanted}`")
        if not line.code and _CHECK.match(line.text):
            message = f"the checklist on line {line.number} declares nothing"
            return Doubt(at, message, f"put it under a heading `{wanted}`")
    return None
