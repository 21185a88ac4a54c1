"""The sections that hold an outline, `## Specs` and the like: which of their lines are items.

Knows headings and lists. Must never know front matter, nor the words of an item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from loopr.core.headings import Heading, Item, Line, heading_of
from loopr.core.ladder import Ladder
from loopr.core.marked import Findings, Position
from loopr.core.slugs import one_line
from loopr.core.values import shown

_RULE = re.compile(r"[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])(?:[ \t]+(?P<head>.*))?$")
_NUMBERED_TASK = re.compile(r"(?:\[[ xX]\] +)?(?:\*\*)?T-?\d{1,5}[a-z]?\b")
_ITEM_LEVEL = 3


@dataclass(slots=True)
class Section:
    """The lists that are being read: indent and mark of the first item decide on the next.

    `titles` are the headings below the one that opens the section, each with all that follows it;
    `deep` is the first one of a lower level that belongs to no item, with its level.
    `other` is an item that a list of another kind is text of, with the place where that begins.
    """

    items: list[Item] = field(default_factory=list)
    titles: list[Item] = field(default_factory=list)
    deep: tuple[Item, int] | None = None
    other: tuple[Item, Position] | None = None
    current: Item | None = None
    shape: tuple[int, bool] | None = None
    after_blank: bool = False

    @property
    def declared(self) -> list[Item]:
        """The items: those of the lists, and where there is none the headings."""
        has_list = any(not each.is_key for each in self.items)
        return self.items if has_list or not (self.titles or self.deep) else self.titles

    def take(self, line: Line, heading: Heading | None) -> None:
        """Begin an item, add to the current one, or leave the list."""
        self._take_title(line, heading)
        found = None if line.code or _RULE.match(line.text) else _ITEM.match(line.text)
        col = found.end("indent") + 1 if found else 1
        item = Item(found["head"] or "", Position(line.number, col)) if found else None
        if found and item and self._is_item(line.width, found["mark"][0].isdigit()):
            self.current = item
            self.items.append(item)
        elif self.current is not None:
            if item is None and self._leaves(line, heading is not None):
                self.current, self.shape = None, None
            else:
                self._note_other(line, item)
                self.current.lines.append(line)
        if heading and self.current is None and not (self.titles or self.deep):
            item = Item(heading.text, Position(line.number, line.width + 1), is_heading=True)
            self.deep = (item, heading.level)
        self.after_blank = line.blank

    def _take_title(self, line: Line, heading: Heading | None) -> None:
        """Keep a heading below the one that opens the section, or a line that follows it."""
        if heading and heading.level == _ITEM_LEVEL:
            at = Position(line.number, line.width + 1)
            self.titles.append(Item(heading.text, at, is_heading=True))
        elif self.titles:
            self.titles[-1].lines.append(line)

    def _note_other(self, line: Line, item: Item | None) -> None:
        """Note the first list that is the text of an item only because its marks are others."""
        if item is None or item.is_key or self.other is not None:
            return
        if self.current is not None and self.shape and line.width <= self.shape[0] + 1:
            self.other = (self.current, item.at)

    def _is_item(self, width: int, numbered: bool) -> bool:
        """Tell an item of this list from one nested in it and from one of another kind."""
        if self.shape is None:
            self.shape = (width, numbered)
        return width <= self.shape[0] + 1 and numbered == self.shape[1]

    def _leaves(self, line: Line, is_heading: bool) -> bool:
        """Tell a paragraph after the list from text that goes on with an item."""
        if line.blank or line.code or (self.shape and line.width > self.shape[0]):
            return False
        return is_heading or self.after_blank or bool(_RULE.match(line.text))


def sections_of(lines: Sequence[Line], ladder: Ladder, type_name: str) -> Iterator[Section]:
    """Read the lines under each heading that opens the outline."""
    section: Section | None = None
    for line in lines:
        heading = heading_of(line)
        if heading and heading.level < _ITEM_LEVEL:
            if section is not None:
                yield section
            section = Section() if _opens(heading, ladder, type_name) else None
        elif section is not None:
            section.take(line, heading)
    if section is not None:
        yield section


def read_items(lines: Sequence[Line], ladder: Ladder, type_name: str) -> list[Item]:
    """Return the items that are declared under each heading that opens the outline."""
    return [item for section in sections_of(lines, ladder, type_name) for item in section.declared]


def first_title(lines: Sequence[Line], ladder: Ladder, type_name: str) -> str:
    """Return the first heading with words that is no part of the outline, as a title, or ""."""
    items = {item.at.line for item in read_items(lines, ladder, type_name)}
    for line in lines:
        heading = heading_of(line)
        if heading and line.number not in items and not _opens(heading, ladder, type_name):
            title = one_line(heading.text)
            if title:
                return title
    return ""


def _opens(heading: Heading, ladder: Ladder, type_name: str) -> bool:
    """Tell a heading that opens an outline."""
    return heading.level == _ITEM_LEVEL - 1 and ladder.heads(type_name, heading.text)


def warn_of_lists(findings: Findings, sections: Iterable[Section]) -> None:
    """Say of headings that only group items, and of lists that are text, that they are no items."""
    for section in sections:
        if section.declared is not section.items:
            _warn_of_deep(findings, section)
            continue
        group, level = section.deep or (None, 0)
        if section.titles:
            group, level = section.titles[0], _ITEM_LEVEL
        if group and not any(_NUMBERED_TASK.match(each.head) for each in section.items):
            words = shown(group.head)
            marks = "#" * level
            message = f"`{marks} {words}` only groups the items of the lists, and is none itself"
            hint = f"to make it one write `- {words}`, with what belongs to it indented"
            findings.warn(group.at, f"{message}; {hint}")
        if section.other is not None:
            item, at = section.other
            message = f"this list is the text of `{shown(item.head)}`, for its marks are others"
            findings.warn(at, f"{message}; give all items the same one, or indent what is text")


def _warn_of_deep(findings: Findings, section: Section) -> None:
    """Say of a heading of too low a level, above the first item, that it is none."""
    if section.deep is None or not section.titles:
        return
    heading, level = section.deep
    words = shown(heading.head)
    message = f"`{'#' * level} {words}` is no item, and nothing below it is read"
    findings.warn(heading.at, f"{message}; to make it one write `### {words}`")
