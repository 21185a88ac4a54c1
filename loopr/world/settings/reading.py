"""YAML text -> nodes that remember where they were written, and every problem of the text itself.

Knows YAML and positions. Must never know which keys there are, nor where a text came from beyond its label. ruamel is
imported only when there is a text that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from loopr.world.settings.keys import visible
from loopr.world.settings.sources import MAX_BYTES
from loopr.world.yaml_slips import explain

MAX_NESTING = 12

Where = Callable[[int, int], str]


class Node(NamedTuple):
    """One value with its place: a scalar, a list of nodes, or a map of names to nodes."""

    where: str
    value: Any
    source: str = ""
    start: int = 0
    end: int = 0
    flow: bool = False
    column: int = 0


class Fault(NamedTuple):
    """One problem before it is worded for people: the key it is about, and where that was written."""

    key: str
    where: str
    message: str
    hint: str = ""


Read = tuple[Node | None, list[Fault]]

_INT = r"[-+]?[0-9]{1,30}"
_BASED = r"0o[0-7]{1,30}|0x[0-9a-fA-F]{1,30}"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_STRANGE = r"([-+]?)\.(inf|Inf|INF|nan|NaN|NAN)"
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None,
          "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}  # fmt: skip


def resolve(source: str) -> None | bool | int | float | str:
    """Return what a plain scalar means in YAML 1.2."""
    if source in _WORDS:
        return _WORDS[source]
    if re.fullmatch(_INT, source):
        return int(source)
    if re.fullmatch(_BASED, source):
        return int(source, 0)
    if re.fullmatch(_FLOAT, source):
        return float(source)
    return float(source.replace(".", "")) if re.fullmatch(_STRANGE, source) else source


def plain(node: Node) -> Any:
    """Return the value of a node without its places."""
    if isinstance(node.value, dict):
        return {name: plain(each) for name, each in node.value.items()}
    if isinstance(node.value, list):
        return tuple(plain(each) for each in node.value)
    return node.value


def read_file(raw: bytes, label: str) -> Read:
    """Read a settings file; faults name `label:line:column`."""
    if len(raw) > MAX_BYTES:
        return None, [Fault("", label, f"is larger than {MAX_BYTES // 1024} KiB")]
    try:
        source = decode(raw)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        return None, [Fault("", f"{label}:{line}:{column}", "is not UTF-8", "save the file as UTF-8")]
    return read_text(source, lambda line, column: f"{label}:{line + 1}:{column + 1}")


def decode(raw: bytes) -> str:
    """Turn the bytes of a file into text, without the mark that some editors put in front."""
    return raw.decode("utf-8-sig")


def read_value(source: str, where: str) -> Read:
    """Read one value as it is given in a variable or on a command line: a scalar, or YAML in [], {} or quotes."""
    source = source.strip()
    if source[:1] in ("[", "{", '"', "'"):
        return read_text(source, lambda _line, _column: where)
    return Node(where, resolve(source), source), []


def read_text(source: str, where: Where) -> Read:
    """Read one YAML document; nothing in it is a node without a value, and no fault."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    reader = _Reader(source, where)
    try:
        return reader.document(YAML(typ="safe", pure=True).parse(source)), reader.faults
    except _TooDeep as error:
        return None, [Fault("", error.where, f"is nested more than {MAX_NESTING} deep")]
    except MarkedYAMLError as error:
        return None, [reader.broken(error)]
    except (YAMLError, ValueError, OverflowError) as error:
        return None, [reader.unreadable(error)]


class _TooDeep(Exception):
    """The text nests deeper than any settings do."""

    def __init__(self, where: str) -> None:
        """Remember where."""
        self.where = where


class _Reader:
    """Builds nodes from the parser's events and collects what is not allowed."""

    def __init__(self, source: str, where: Where) -> None:
        """Start without faults."""
        self.source = source
        self.place = where
        self.faults: list[Fault] = []

    def document(self, events: Iterator[Any]) -> Node:
        """Build the one document of a text."""
        root = Node(self.place(0, 0), None)
        seen = 0
        for event in events:
            if event.__class__.__name__ != "DocumentStartEvent":
                continue
            seen += 1
            built = self.node(next(events), events, "", 0)
            if seen == 1:
                root = built
            else:
                self.fault("", event, "a second document is not read", 'remove the "---" line')
        return root

    def node(self, event: Any, events: Iterator[Any], key: str, depth: int) -> Node:
        """Build the node that begins with this event."""
        kind = event.__class__.__name__
        if depth > MAX_NESTING:
            raise _TooDeep(self.at(event))
        if kind == "AliasEvent":
            self.fault(key, event, f"the alias *{visible(event.anchor)} is not read here", "write the value out")
            return self.scalar(event, None, "")
        if event.anchor:
            self.fault(key, event, f"the anchor &{visible(event.anchor)} is not read here", "write the value out")
        if event.ctag is not None:
            self.fault(key, event, f"the tag {visible(str(event.ctag))} is not read here", "leave it out")
        if kind == "MappingStartEvent":
            return self.mapping(event, events, key, depth)
        if kind == "SequenceStartEvent":
            return self.sequence(event, events, key, depth)
        value = resolve(event.value) if event.implicit[0] else event.value
        return self.scalar(event, value, event.value)

    def scalar(self, event: Any, value: Any, source: str) -> Node:
        """Build a node without children."""
        return Node(self.at(event), value, source, event.start_mark.index, event.end_mark.index)

    def mapping(self, start: Any, events: Iterator[Any], key: str, depth: int) -> Node:
        """Build a map; an entry's place is that of its name."""
        entries: dict[str, Node] = {}
        end, column = start.start_mark.index, start.start_mark.column
        for event in events:
            if event.__class__.__name__ == "MappingEndEvent":
                end = event.end_mark.index if start.flow_style else end
                break
            name = self.name(event, events, key, depth)
            path = f"{key}.{name}" if key else name
            node = self.node(next(events), events, path, depth + 1)
            if node.start == node.end:  # the parser places a value that is only implied at whatever comes next
                after_colon = self.source.find(":", event.end_mark.index) + 1 or node.start
                node = node._replace(start=after_colon, end=after_colon)
            end = node.end
            if name in entries:
                self.fault(path, event, f"is written twice, first at {entries[name].where}", "keep one of them")
            else:
                entries[name] = node._replace(where=self.at(event))
        return Node(self.at(start), entries, "", start.start_mark.index, end, bool(start.flow_style), column)

    def name(self, event: Any, events: Iterator[Any], key: str, depth: int) -> str:
        """Return the name of the entry that begins with this event."""
        node = self.node(event, events, key, depth + 1)
        if isinstance(node.value, (dict, list)):
            self.fault(key, event, "the name of a key must be text")
        return node.source

    def sequence(self, start: Any, events: Iterator[Any], key: str, depth: int) -> Node:
        """Build a list."""
        items: list[Node] = []
        end = start.start_mark.index
        for event in events:
            if event.__class__.__name__ == "SequenceEndEvent":
                end = event.end_mark.index if start.flow_style else end
                break
            items.append(self.node(event, events, key, depth + 1))
            end = items[-1].end
        return Node(self.at(start), items, "", start.start_mark.index, end, bool(start.flow_style))

    def fault(self, key: str, event: Any, message: str, hint: str = "") -> None:
        """Note a problem at an event."""
        self.faults.append(Fault(visible(key), self.at(event), message, hint))

    def at(self, event: Any) -> str:
        """Say where an event begins."""
        return self.place(event.start_mark.line, event.start_mark.column)

    def broken(self, error: Any) -> Fault:
        """Word what the parser could not read."""
        mark = error.problem_mark or error.context_mark
        where = self.place(mark.line, mark.column) if mark else self.place(0, 0)
        if mark and self.source[mark.index : mark.index + 1] == "\t":
            return Fault("", where, "a tab cannot indent YAML", "use spaces")
        said, before = visible(str(error.problem or error.context), 200), error.context_mark
        begun = (before.line, before.column) if before else None
        at = (mark.line, mark.column) if mark else (0, 0)
        slip = explain(self.source, said, at, begun, 1)
        words = f"is not YAML: {slip.message.removeprefix('not valid YAML: ')}"
        where = self.place(slip.line, slip.col)
        return Fault("", where, visible(words, 200), visible(slip.hint, 200))

    def unreadable(self, error: Exception) -> Fault:
        """Word a character that cannot be in a text."""
        position = getattr(error, "position", None)
        if not isinstance(position, int):
            return Fault("", self.place(0, 0), f"is not YAML: {visible(str(error), 200)}")
        line = self.source.count("\n", 0, position)
        where = self.place(line, position - self.source.rfind("\n", 0, position) - 1)
        return Fault("", where, f"the character {visible(self.source[position])} cannot be in a text", "remove it")
