"""A checklist as people keep it, as items: `- [ ] words`, below headings that group them.

Knows lines. Must never know a file, nor what has become of a loop.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from textwrap import dedent
from typing import NamedTuple

from loopr.core.fields import tidy
from loopr.core.headings import Line, heading_of, key_in, read_head, read_lines
from loopr.core.imported import Item
from loopr.core.marked import Findings
from loopr.core.slugs import MAX_ID_LENGTH, id_problem, one_line, slug

_BOX = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<done>[ xX])\][ \t]+(?P<words>\S.*)$")


_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?P<words>(?!\[[ xX]?\][ \t]*$)\S.*)$")


class Checklist(NamedTuple):
    """A checklist: what it is about, and its groups and boxes as items."""

    title: str
    items: tuple[Item, ...]


@dataclass(slots=True)
class _Box:
    """One box with what is indented below it."""

    words: str
    done: bool
    width: int
    group: str
    lines: list[str] = field(default_factory=list)


def is_checklist(text: str) -> bool:
    """Tell a text that has boxes to tick, outside of code and comments."""
    return any(not line.code and _BOX.match(line.text) for line in read_lines(Findings(""), text, 1))


def read_checklist(text: str, child_type: str, *, grouped: bool) -> Checklist:
    """Read a checklist: each box is an item that waits for nothing, and what is ticked off is closed.

    Headings below the first level are groups, if they are to be; a box in a box is text of the outer one.
    """
    title, boxes = _read(text, grouped=grouped)
    names: set[str] = set()
    groups: dict[str, str] = {}
    items: list[Item] = []
    for box in boxes:
        if box.group and box.group not in groups:
            groups[box.group] = _name(slug(box.group), names)
            items.append(Item(groups[box.group], box.group, group=True))
        own_id, words, rest = read_head(box.words, child_type)
        body = tidy("\n".join([rest.strip(), dedent("\n".join(box.lines))]))
        name = _name(own_id if id_problem(own_id) is None else slug(own_id), names)
        items.append(Item(name, words, body, parent=groups.get(box.group, ""), closed=box.done))
    return Checklist(title, tuple(items))


def left_out(text: str, takes: re.Pattern[str] = _BOX) -> list[tuple[int, str]]:
    """List the items of a text that stand among taken ones and are not taken: each with its line.

    Another list, below a heading of its own, holds notes; and so does a list in an item.
    """
    found: list[tuple[int, str]] = []
    section: list[tuple[int, str]] = []
    has_taken, width = False, -1
    for line in (*read_lines(Findings(""), text.replace("\r\n", "\n"), 1), None):
        if line is None or heading_of(line):
            found += section if has_taken else []
            section, has_taken, width = [], False, -1
        elif not line.blank and (width < 0 or line.width <= width + 1):
            item = None if line.code else _ITEM.match(line.text)
            is_taken = item is not None and takes.match(line.text) is not None
            has_taken = has_taken or is_taken
            section += [(line.number, one_line(item["words"]))] if item and not is_taken else []
            width = line.width if item else -1
    return found


def keys_below(text: str) -> list[tuple[int, str]]:
    """List the lines below boxes that look like keys of an entry: each with the key."""
    found: list[tuple[int, str]] = []
    width = -1
    for line in read_lines(Findings(""), text.replace("\r\n", "\n"), 1):
        if not line.code and _BOX.match(line.text):
            width = line.width
        elif not line.blank and line.width <= width:
            width = -1
        elif width >= 0 and (key := key_in(line)):
            found.append((line.number, key))
    return found


def _read(text: str, *, grouped: bool) -> tuple[str, list[_Box]]:
    """Split a text into its title and its boxes."""
    title = group = ""
    boxes: list[_Box] = []
    current: _Box | None = None
    for line in read_lines(Findings(""), text.replace("\r\n", "\n"), 1):
        if heading := heading_of(line):
            title = title or one_line(heading.text)
            group = one_line(heading.text) if grouped and heading.level > 1 else ""
            current = None
            continue
        found = None if line.code else _BOX.match(line.text)
        if found and (current is None or line.width <= current.width + 1):
            current = _Box(found["words"], found["done"] != " ", line.width, group)
            boxes.append(current)
        elif current is not None:
            current = _go_on(current, line)
    return title, boxes


def _go_on(box: _Box, line: Line) -> _Box | None:
    """Add a line to the box that it is below of; one that is not indented ends the box."""
    if not (line.blank or line.width > box.width):
        return None
    box.lines.append(line.text)
    return box


def _name(wanted: str, names: set[str]) -> str:
    """Return an id that no other item has; boxes with the same words are numbered."""
    name, number = wanted, 1
    while name in names:
        number += 1
        name = f"{wanted[: MAX_ID_LENGTH - 5]}-{number}"
    names.add(name)
    return name
