"""One key of a YAML text is given a new value, and every other character stays where it is.

Knows text and positions. Must never know files or what a key means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from loopr.world.settings.reading import Node, plain, read_text, read_value
from loopr.world.settings.writing import flow, quoted


def spliced(source: str, root: Node, key: str, value: str) -> str | None:
    """Return the text with `key` set to what `value` means, or None where that cannot be done in place."""
    parts = key.split(".")
    given, faults = read_value(value, "")
    if given is None or faults:
        return None
    wanted = flow(_with(plain(root), parts, plain(given)))
    for written in _spellings(source, _reach(root, parts)[0], value.strip(), given):
        text = _splice(source, root, parts, written)
        node, faults = read_text(text, lambda _line, _column: "")
        if node is not None and not faults and flow(plain(node)) == wanted:
            return text
    return None


def _with(values: Any, parts: Sequence[str], value: Any) -> Any:
    """Return nested values with one of them replaced or added."""
    if not parts:
        return value
    inside = values if isinstance(values, dict) else {}
    return inside | {parts[0]: _with(inside.get(parts[0]), parts[1:], value)}


def _reach(node: Node, parts: Sequence[str]) -> tuple[Node, Sequence[str]]:
    """Go down as far as the text goes, and say what is left of the way."""
    while parts and isinstance(node.value, dict) and parts[0] in node.value:
        node, parts = node.value[parts[0]], parts[1:]
    return node, parts


def _spellings(source: str, old: Node, value: str, given: Node) -> Iterator[str]:
    """Offer ways to write the value: in the quotes of the old one, as it was given, and as it always can be written."""
    quote = source[old.start : old.start + 1]
    if isinstance(given.value, str) and quote in ("'", '"') and value[:1] not in ("'", '"'):
        yield quoted(given.value, quote)
    if not isinstance(given.value, str) or value[:1] in ("'", '"'):
        yield value or "null"
    yield flow(plain(given))


def _splice(source: str, root: Node, parts: Sequence[str], written: str) -> str:
    """Put the written value in its place, which may have to be made."""
    node, left = _reach(root, parts)
    if isinstance(node.value, dict) and left:
        return _into_flow(source, node, left, written) if node.flow else _into_block(source, node, left, written)
    if node is root and node.value is None:
        return _lines_at(source, len(source), left, 0, written)
    return _over(source, node, _nested(left, written))


def _over(source: str, node: Node, written: str) -> str:
    """Replace a value; one that is only implied gets a place after the colon."""
    old = source[node.start : node.end]
    tail = old[len(old.rstrip()) :]
    rest = source[node.end :]
    if not old:
        written = f" {written}"
    comment = re.match(r"( +)#", rest)
    if comment and "\n" not in old:  # a comment on the same line stays in its column if there is room
        blanks = len(comment[1]) + len(old) - len(written)
        rest = " " * max(blanks, 1) + rest[len(comment[1]) :]
    return source[: node.start] + written + tail + rest


def _into_flow(source: str, node: Node, parts: Sequence[str], written: str) -> str:
    """Add an entry to a map in braces."""
    entry = f"{flow(parts[0])}: {_nested(parts[1:], written)}"
    if not node.value:
        return source[: node.start + 1] + entry + source[node.start + 1 :]
    end = max(each.end for each in node.value.values())
    return f"{source[:end]}, {entry}{source[end:]}"


def _into_block(source: str, node: Node, parts: Sequence[str], written: str) -> str:
    """Add an entry below the last one of a block, whose comment at the end of the line stays with it."""
    at = node.end
    if source[at - 1 : at] != "\n":
        newline = source.find("\n", at)
        at = len(source) if newline < 0 else newline + 1
    inner_comments = re.compile(rf"(?: {{{node.column + 1},}}#[^\n]*(?:\n|$))*")
    if match := inner_comments.match(source, at):  # they belong to the entry above
        at = match.end()
    return _lines_at(source, at, parts, node.column, written)


def _lines_at(source: str, at: int, parts: Sequence[str], column: int, written: str) -> str:
    """Insert whole lines, one for each map that is missing."""
    newline = "\r\n" if "\r\n" in source else "\n"
    lines = [" " * (column + 2 * depth) + flow(part) + ":" for depth, part in enumerate(parts)]
    lines[-1] += f" {written}"
    lead = newline if at and source[at - 1] != "\n" else ""
    return source[:at] + lead + newline.join(lines) + newline + source[at:]


def _nested(parts: Sequence[str], written: str) -> str:
    """Write a value within the maps that are missing, in braces."""
    for part in reversed(parts):
        written = f"{{{flow(part)}: {written}}}"
    return written
