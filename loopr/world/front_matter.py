"""Front matter: where it stands in a text, its YAML as values with positions, and the stamp that loopr itself wrote.

Knows YAML syntax. Must never know which keys mean something: that is `core/outline.py`. Aliases, anchors and tags are
refused as they are met, nesting is bounded, so no small file can grow large or take long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from loopr.core.outline import Findings, Marked, MarkedList, MarkedMap, MarkedScalar, Pair, Position, Scalar, shown
from loopr.errors import PlanError
from loopr.world.yaml_slips import explain

if TYPE_CHECKING:
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import Event, ScalarEvent

MAX_NESTING = 40
_FENCE = "---"
_FIRST_LINE = 2  # the YAML begins below the first fence
_BOUNDS = re.compile(r"---[ \t]*\n(?P<front>(?:.*\n)*?)---[ \t]*(?:\n|\Z)")
_BOUNDS_BYTES = re.compile(rb"(?P<bom>\xef\xbb\xbf)?---[ \t]*\r?\n(?P<front>(?:.*\n)*?)---[ \t]*(?:\r?\n|\Z)")
_STAMP = re.compile(rb"^loopr:.*\n(?:[ \t]+\S.*\n)*", re.MULTILINE)
_OPEN = re.compile(r"---[ \t]*(?:\n|\Z)")
_NULL = re.compile(r"|~|null|Null|NULL")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]{1,30}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LONGEST_NUMBER = 60


class Split(NamedTuple):
    """A text in its two parts; `front` is None where there is no front matter, `body_line` where the body begins."""

    front: str | None
    body: str
    body_line: int


def split_front_matter(text: str, source: str) -> Split:
    """Split a text whose lines end in plain line feeds; front matter that is never closed is an error."""
    if not _OPEN.match(text):
        return Split(None, text, 1)
    found = _BOUNDS.match(text)
    if not found:
        raise PlanError(
            "front matter that begins here is never closed",
            where=f"{source}:1:1",
            hint=f"put a line `{_FENCE}` after it, or begin the file with another line",
        )
    return Split(found["front"], text[found.end() :], found[0].count("\n") + 1)


def without_stamp(raw: bytes) -> bytes:
    """Return a file's bytes as they are without the `loopr:` block of its front matter.

    The block is the line that begins with `loopr:` and the indented lines below it. Where nothing else is in the front
    matter, both fences go too, so that stamping a file, with or without front matter, never changes what is left.
    """
    bounds = _BOUNDS_BYTES.match(raw)
    if not bounds:
        return raw
    front, cuts = _STAMP.subn(b"", bounds["front"])
    if not cuts:
        return raw
    if not front.strip():
        return (bounds["bom"] or b"") + raw[bounds.end() :]
    return raw[: bounds.start("front")] + front + raw[bounds.end("front") :]


def parse_front_matter(front: str, findings: Findings) -> Marked | None:
    """Read the YAML of front matter into values with their places in the file.

    A key that comes again is noted; a text that leaves nothing to read raises a `PlanError`.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        root = _Tree(findings, YAML(typ="safe", pure=True).parse(front)).root()
    except YAMLError as error:
        raise _refusal(error, front, findings) from None
    return root


class _Tree:
    """Builds the tree from the parser's events, one at a time: nothing is read on beyond what is refused."""

    def __init__(self, findings: Findings, events: Iterator[Event]) -> None:
        """Begin at the first event."""
        self.findings = findings
        self.events = events

    def root(self) -> Marked | None:
        """Return the one document of the stream, or None if there is none."""
        from ruamel.yaml.events import DocumentEndEvent, DocumentStartEvent, NodeEvent, StreamEndEvent

        tree: Marked | None = None
        for event in self.events:
            if isinstance(event, NodeEvent):
                tree = self._node(event, 0)
            elif isinstance(event, DocumentStartEvent) and tree is not None:
                self._stop(event, "front matter is one document, a second begins here", "take out the line `...`")
            elif isinstance(event, DocumentEndEvent | StreamEndEvent):
                continue
        return tree

    def _node(self, event: Event, depth: int) -> Marked:
        """Read one value with everything below it."""
        from ruamel.yaml.events import AliasEvent, MappingStartEvent, NodeEvent, ScalarEvent, SequenceStartEvent

        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor):
            message = f'YAML anchors and aliases are not read: "{shown(str(event.anchor))}"'
            self._stop(event, message, "write the value out again, or put a text that begins with * or & in quotes")
        if tag := getattr(event, "tag", None):
            self._stop(event, f"YAML tags are not read: {shown(str(tag))}", "take the tag out")
        if depth > MAX_NESTING:
            self._stop(event, f"is nested more than {MAX_NESTING} levels deep", "use fewer levels")
        if isinstance(event, ScalarEvent):
            return MarkedScalar(_at(event), _value(event), event.value)
        if isinstance(event, SequenceStartEvent):
            return MarkedList(_at(event), tuple(self._items(depth + 1)))
        assert isinstance(event, MappingStartEvent)
        return MarkedMap(_at(event), tuple(self._pairs(depth + 1)))

    def _items(self, depth: int) -> Iterator[Marked]:
        """Read the items of a sequence up to its end."""
        from ruamel.yaml.events import SequenceEndEvent

        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                return
            yield self._node(event, depth)

    def _pairs(self, depth: int) -> Iterator[Pair]:
        """Read the pairs of a mapping up to its end; a key that comes again is noted and left out."""
        from ruamel.yaml.events import MappingEndEvent

        first: dict[str, Position] = {}
        for event in self.events:
            if isinstance(event, MappingEndEvent):
                return
            key = self._node(event, depth)
            if not isinstance(key, MarkedScalar):
                self._stop(event, "a key must be a word", "put a text that holds brackets or braces in quotes")
            value = self._node(next(self.events), depth)
            if key.text in first:
                message = f'the key "{shown(key.text)}" is here twice, first on line {first[key.text].line}'
                self.findings.refuse(key.at, message, "keep one of them")
                continue
            first[key.text] = key.at
            yield Pair(key.text, key.at, value)

    def _stop(self, event: Event, message: str, hint: str) -> NoReturn:
        """Give up at once: what follows cannot be trusted to be small."""
        self.findings.refuse(_at(event), message, hint)
        raise self.findings.error()


def _at(event: Event) -> Position:
    """Return where an event stands in the file."""
    mark = event.start_mark
    return Position(mark.line + _FIRST_LINE, mark.column + 1)


def _value(event: ScalarEvent) -> Scalar:
    """Return what a scalar means by the core schema of YAML 1.2; whatever was quoted is a text."""
    text: str = event.value
    if event.style or len(text) > _LONGEST_NUMBER:
        return text
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text) or _FALSE.fullmatch(text):
        return bool(_TRUE.fullmatch(text))
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _refusal(error: YAMLError, front: str, findings: Findings) -> PlanError:
    """Turn a complaint of the parser into one line with a place and a remedy."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:  # a character that no YAML may hold; the parser knows its offset only
        offset = int(getattr(error, "position", 0))
        at = Position(front.count("\n", 0, offset) + _FIRST_LINE, offset - front.rfind("\n", 0, offset))
        return PlanError(
            f"front matter holds a control character, U+{ord(front[offset : offset + 1] or chr(0)):04X}",
            where=findings.where(at),
            hint="take it out",
        )
    said = getattr(error, "problem", None) or getattr(error, "context", None) or "cannot be read"
    before = getattr(error, "context_mark", None)
    begun = (before.line, before.column) if before is not None else None
    slip = explain(front, shown(str(said), 120), (mark.line, mark.column), begun, _FIRST_LINE)
    at = Position(slip.line + _FIRST_LINE, slip.col + 1)
    return PlanError(shown(slip.message, 200), where=findings.where(at), hint=shown(slip.hint, 200))
