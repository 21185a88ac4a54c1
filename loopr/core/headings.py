"""The outline as headings and lists, so that a plain document is a plan: how an item is read.

Knows lines of Markdown. Must never know front matter, and never reads anything inside fenced code
or a comment. Which lines are items is said in `sections.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from loopr.core.brackets import unread_brackets, without_brackets
from loopr.core.commands import reads_as_command
from loopr.core.entries import Entry
from loopr.core.fields import check_files, tidy
from loopr.core.marked import Findings, Position
from loopr.core.needs import Sibling
from loopr.core.slugs import id_problem, one_line, slug
from loopr.core.values import shown

_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})(?P<rest>.*)$")
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?=[ \t]|$)")
_COMMENT_MARKS = re.compile("`|<!--|-->")
_CHECKBOX = re.compile(r"^\[(?P<mark>[ xX])\][ \t]+")
_BOLD = re.compile(r"(?P<marks>\*\*|__)(?P<title>.+?)(?P=marks)\s*(?:[:–—-]\s*)?(?P<rest>.*)$")
_NAMED = re.compile(r"`?(?P<id>[^\s:`*]+)`?\s*:(?:\s+(?P<title>.*))?$")
_FIELD = re.compile(r"\s*[-*+]\s+(?:\*\*|__)?(?P<key>files|needs)(?:\*\*|__)?:(?:\*\*|__)?\s*(?P<values>.*)$", re.I)
_KEY_OF_FRONT = re.compile(
    r"\s*(?:(?P<dash>[-*+])\s+)?(?:\*\*|__)?(?P<key>run|check|agent|budget|leaf)(?:\*\*|__)?:"
    r"(?:\*\*|__)?\s+(?P<value>\S.*)$",
    re.I,
)
_NEARLY = re.compile(
    r"\s*(?:[-*+]\s+)?(?:\*\*|__)?(?P<key>files|needs|depends(?:[ _-]on)?|dependencies|requires|after|blocked[ _-]by)"
    r"(?:\*\*|__)?:(?:\*\*|__)?\s*(?P<values>\S.*)$",
    re.I,
)
_NO_NEEDS = frozenset({"none", "nothing", "-"})


@dataclass(frozen=True, slots=True)
class Line:
    """One line with its number; comments are blanked out, code is kept and marked."""

    number: int
    text: str
    code: bool = False

    @property
    def blank(self) -> bool:
        """True for an empty line outside code."""
        return not self.code and not self.text.strip()

    @property
    def width(self) -> int:
        """How far the line is indented."""
        return _width(self.text)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, with its level from 1 to 6."""

    level: int
    text: str


@dataclass(slots=True)
class Item:
    """One item of the outline, a heading or one of a list, with the lines that belong to it."""

    head: str
    at: Position
    lines: list[Line] = field(default_factory=list)
    is_heading: bool = False

    @property
    def is_key(self) -> bool:
        """True for an item that looks like a line about another one: `- Needs: ...`."""
        line = f"- {self.head}"
        return any(each.match(line) for each in (_FIELD, _KEY_OF_FRONT, _NEARLY))


def read_lines(findings: Findings, body: str, first_line: int) -> tuple[Line, ...]:
    """Split a text into lines that know whether they are code; warn of a fence or comment that is never closed."""
    lines: list[Line] = []
    fence, commented, opened = "", False, Position(first_line, 1)
    for number, raw in enumerate(body.split("\n"), first_line):
        if fence:
            lines.append(Line(number, raw, code=True))
            closing = _FENCE.match(raw)
            if closing and closing["fence"].startswith(fence) and not closing["rest"].strip():
                fence = ""
            continue
        was_commented = commented
        text, commented = _without_comments(raw, commented)
        opening = _FENCE.match(text)
        if opening and not (opening["fence"][0] == "`" and "`" in opening["rest"]):
            fence = opening["fence"]
        if fence or (commented and not was_commented):
            opened = Position(number, 1)
        lines.append(Line(number, text, code=bool(fence)))
    if fence or commented:
        findings.warn(opened, f"this {'code' if fence else 'comment'} is never closed; nothing after it is an outline")
    return tuple(lines)


def _without_comments(text: str, inside: bool) -> tuple[str, bool]:
    """Blank out the comments of a line, keeping its columns; tell whether one goes on after it."""
    kept: list[str] = []
    at = ticks = 0
    for mark in _COMMENT_MARKS.finditer(text):
        if inside and mark[0] == "-->":
            kept.append(" " * (mark.end() - at))
            at, inside = mark.end(), False
        elif not inside and mark[0] == "`":
            ticks += 1
        elif not inside and mark[0] == "<!--" and ticks % 2 == 0:  # between backticks it is an example
            kept.append(text[at : mark.start()])
            at, inside = mark.start(), True
    kept.append(" " * (len(text) - at) if inside else text[at:])
    return "".join(kept), inside


def heading_of(line: Line) -> Heading | None:
    """Return the heading that a line is, if it is one."""
    found = None if line.code else _HEADING.match(line.text)
    if not found:
        return None
    text = line.text[found.end() :].strip()
    bare = text.rstrip("#")
    closed = bare != text and (not bare or bare[-1] in " \t")
    return Heading(len(found["marks"]), bare.rstrip() if closed else text)


def item_siblings(findings: Findings, items: Sequence[Item], child_type: str) -> Iterator[Sibling]:
    """Turn the items of a list into entries."""
    for item in items:
        entry_id, title, rest = read_head(item.head, child_type)
        if not entry_id:
            mark = "###" if item.is_heading else "-"
            hint = f"write `{mark} {child_type}-id: Its title`, or take it out"
            findings.refuse(item.at, "this item has no title", hint)
            continue
        if problem := id_problem(entry_id):
            findings.refuse(item.at, problem, f"write `{slug(entry_id)}: {title}`")
            entry_id = slug(entry_id)
        fields, body = _read_body(item, rest)
        _warn_of_keys(findings, item)
        for mark, hint in unread_brackets(item.head, child_type):
            findings.warn(item.at, f"`{mark}` is not read; {hint}")
        needs = {
            _need(text, child_type): at for text, at in fields.get("needs", ()) if text.casefold() not in _NO_NEEDS
        }
        files = check_files(findings, tuple(fields.get("files", ())))
        done = _is_ticked(item.head)
        entry = Entry(entry_id, title, body, needs=tuple(needs), files=files, position=item.at, ticked=done)
        yield Sibling(entry, item.at, tuple(needs.values()))


def _is_ticked(head: str) -> bool:
    """Tell whether an item of a checklist is ticked off."""
    box = _CHECKBOX.match(head.strip())
    return box is not None and box["mark"] in "xX"


def read_head(head: str, child_type: str) -> tuple[str, str, str]:
    """Split the first line of an item into id, title and the text after the title; no id if there is no title."""
    text = _CHECKBOX.sub("", head.strip(), count=1)
    if bold := _BOLD.match(text):
        title = one_line(bold["title"]).rstrip(":").rstrip()
        if " " not in title:
            title = _without_prefix(title, child_type)
        return (slug(without_brackets(title)) if title else ""), title, bold["rest"]
    if named := _NAMED.match(text):
        entry_id = _without_prefix(named["id"], child_type)
        return entry_id.lower().replace("_", "-"), one_line(named["title"] or "") or one_line(entry_id), ""
    title = one_line(text)
    return (slug(without_brackets(title)) if title else ""), title, ""


def _without_prefix(text: str, child_type: str) -> str:
    """Take the name of the type off the front of an id: spec-tokens is tokens."""
    prefix = f"{child_type}-".casefold()
    return text[len(prefix) :] if text.casefold().startswith(prefix) and len(text) > len(prefix) else text


def _need(text: str, child_type: str) -> str:
    """Take the name of the type off a need that is an id; titles and paths stay as they are."""
    bare = _without_prefix(text, child_type)
    return bare if id_problem(bare) is None else text


def _read_body(item: Item, rest: str) -> tuple[dict[str, list[tuple[str, Position]]], str]:
    """Take the `Files:` and `Needs:` lines out of an item, and return what is left of it without its indent."""
    fields: dict[str, list[tuple[str, Position]]] = {}
    kept: list[Line] = []
    for line in item.lines:
        found = None if line.code else _FIELD.match(line.text)
        if not found:
            kept.append(line)
            continue
        at = Position(line.number, found.start("values") + 1)
        words = (word.strip().strip("`") for word in found["values"].split(","))
        fields.setdefault(found["key"].lower(), []).extend((word, at) for word in words if word)
    widths = (line.width for line in kept if not line.blank and line.width)
    indent = 0 if item.is_heading else min(widths, default=0)
    lines = [_undent(line.text, indent) if line.code else _undent(line.text, indent).rstrip() for line in kept]
    return fields, tidy("\n".join([rest.rstrip(), *lines]))


def _warn_of_keys(findings: Findings, item: Item) -> None:
    """Say of the lines of an item that look like keys of an entry that they are read as text."""
    if not item.is_heading and (own := _FIELD.match(f"- {item.head}")):
        words = f"`{own['key']}:` is an item of its own here"
        findings.warn(item.at, f"{words}; indent it below the item that it is about")
    below = ""
    for line in item.lines:
        if heading := heading_of(line):
            below = shown(heading.text)
        if line.code or _FIELD.match(line.text):
            continue
        if found := _key_of_front(line):
            said = _of_no_item(found["key"], below, item) if below else _of_item(found["key"])
        elif found := _NEARLY.match(line.text):
            key = "Files" if found["key"].casefold() == "files" else "Needs"
            how = f"what counts is `- {key}: {shown(found['values'])}`"
            said = f"`{found['key']}:` of an item is read as its text; {how}"
        else:
            continue
        findings.warn(Position(line.number, found.start("key") + 1), said)


def _key_of_front(line: Line) -> re.Match[str] | None:
    """Find a key that only front matter has; without a dash words for a person may begin so."""
    found = _KEY_OF_FRONT.match(line.text)
    if not found or found["dash"] or found["key"].islower():
        return found
    return found if reads_as_command(found["value"]) else None


def key_in(line: Line) -> str:
    """Return the key of an entry that a line looks like, read or not; nothing if it is none."""
    found = None if line.code else _key_of_front(line) or _NEARLY.match(line.text)
    return found["key"] if found else ""


def _of_item(key: str) -> str:
    """Say where a key counts that stands in the text of an item."""
    how = f"in front matter it counts: `{key.lower()}: ...` beside its id"
    return f"`{key}:` of an item is read as its text; {how}"


def _of_no_item(key: str, below: str, item: Item) -> str:
    """Say where a key counts that stands below a heading which is text of an item."""
    title = shown(read_head(item.head, "")[1])
    entry = f"`- title: {below}` with its `{key.lower()}: ...`, in `children:` of `{title}`"
    words = f"`{key}:` is read as text of `{title}`, for the heading `{below}` is no item"
    return f"{words}; in front matter it counts: {entry}"


def _width(text: str) -> int:
    """Return how many columns of blanks a text begins with."""
    return len(text.expandtabs(4)) - len(text.expandtabs(4).lstrip(" "))


def _undent(text: str, width: int) -> str:
    """Take up to that many columns of blanks off the front of a line."""
    own = min(width, _width(text))
    if not own:
        return text
    bare = text.lstrip(" \t")
    return " " * (_width(text) - own) + bare
