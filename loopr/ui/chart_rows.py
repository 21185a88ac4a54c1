"""Which rows a chart of a simulation has: one a loop while they fit, else loops together, as evenly as can be.

Knows loops by id and their runs. Must never know how a row is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from loopr.core.played import Played, Run

_FEWEST_PARTS = 2
SIGN_TIMES = "×"


class Kind(Enum):
    """What the bar of a row stands for."""

    ONE = "one"  # the attempts of one loop
    MANY = "many"  # how many attempts of several loops run at once
    ABOVE = "above"  # from the first to the last of what the rows below it show


@dataclass(frozen=True, slots=True)
class Row:
    """One row: `name` and `count` say which loops, `indent` how deep below other rows."""

    name: str
    indent: int
    kind: Kind
    count: int
    type: str
    runs: tuple[Run, ...]


@dataclass(slots=True)
class _Node:
    """A loop that ran or below which one did; `parts` are the rows it is opened into."""

    id: str
    name: str
    own: list[Run] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)
    parts: list[list[_Node]] = field(default_factory=list)

    def loops(self) -> Iterator[_Node]:
        """Go through the node and all below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def rows_of(played: Played, most: int) -> list[Row]:
    """Return at most so many rows, in tree order, that show every run."""
    top = _Node("", "")
    _plant(top, played)
    top.children = [_shortened(each) for each in top.children]
    _open(top, most)
    return [row for part in top.parts for row in _rows(part, 0)]


def _plant(top: _Node, played: Played) -> None:
    """Build the tree of the loops that ran and of all above them, below one node."""
    runs: dict[str, list[Run]] = {}
    for run in played.runs:
        runs.setdefault(run.id, []).append(run)
    wanted = set(runs)
    for loop_id in runs:
        above = loop_id.rpartition("/")[0]
        while above and above not in wanted:
            wanted.add(above)
            above = above.rpartition("/")[0]
    nodes: dict[str, _Node] = {}
    for part in played.parts:
        if part.id in wanted:
            above, _, name = part.id.rpartition("/")
            nodes[part.id] = _Node(part.id, name if above in nodes else part.id, runs.get(part.id, []))
            nodes.get(above, top).children.append(nodes[part.id])


def _shortened(node: _Node) -> _Node:
    """Draw a loop that did not run itself together with the only one below it."""
    while not node.own and len(node.children) == 1:
        child = node.children[0]
        node = _Node(child.id, f"{node.name}/{child.name}", child.own, child.children)
    node.children = [_shortened(each) for each in node.children]
    return node


def _open(top: _Node, most: int) -> None:
    """Open nodes level by level into the loops below them, or into parts of these, as long as there are rows left."""
    top.parts = _parts(top.children, min(len(top.children), most))
    level, left = [part[0] for part in top.parts if len(part) == 1], most - len(top.parts)
    while level:
        below: list[_Node] = []
        for node, share in _shares([each for each in level if each.children], left):
            node.parts = _parts(node.children, share)
            left -= len(node.parts)
            below += [part[0] for part in node.parts if len(part) == 1]
        level = below


def _shares(nodes: list[_Node], left: int) -> Iterator[tuple[_Node, int]]:
    """Share rows among nodes: those with few children get all they need, what they leave goes to the others."""
    waiting = sorted(nodes, key=lambda node: len(node.children))
    for index, node in enumerate(waiting):
        share = min(len(node.children), left // (len(waiting) - index))
        if share >= min(_FEWEST_PARTS, len(node.children)):
            left -= share
            yield node, share


def _parts(nodes: Sequence[_Node], share: int) -> list[list[_Node]]:
    """Cut neighbours into so many parts of nearly the same size."""
    cuts = [len(nodes) * index // share for index in range(share + 1)] if share else [0, 0]
    return [list(nodes[a:b]) for a, b in zip(cuts, cuts[1:], strict=False) if a < b]


def _rows(part: list[_Node], indent: int) -> Iterator[Row]:
    """Write the rows of a part: of one loop with the rows below it, or of several loops together."""
    first = part[0]
    runs = [run for node in part for each in node.loops() for run in each.own]
    count = len({run.id for run in runs})
    if len(part) == 1 and first.parts:
        kind = Kind.ONE if first.own else Kind.ABOVE
        yield _row(first.name, indent, kind, 1, first.own or runs)
        for inner in first.parts:
            yield from _rows(inner, indent + 1)
    elif len(part) == 1:
        yield _row(first.name, indent, Kind.ONE if not first.children else Kind.MANY, count, runs)
    else:
        yield _row(f"{first.name} … {part[-1].name}", indent, Kind.MANY, count, runs)


def _row(name: str, indent: int, kind: Kind, count: int, runs: Iterable[Run]) -> Row:
    """Write one row; its type is the one that most of its runs have."""
    runs = tuple(runs)
    types: dict[str, int] = {}
    for run in runs:
        types[run.type] = types.get(run.type, 0) + 1
    return Row(name, indent, kind, count, max(types, key=lambda each: types[each], default=""), runs)
