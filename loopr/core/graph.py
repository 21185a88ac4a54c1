"""The loops as graphs: who is part of whom, who needs whom, what would wait for ever, and what takes longest.

Knows networkx, alone in the package; that is slow to import, so whoever asks something here imports this module there
and then. Must never change the tree, nor say what may run now: that is for `gates.py`.

A loop has two points. At *own* its own work is complete, at *done* everything below it is too. own(x) follows own of
its parent and done of what it needs; done(x) follows own(x) and done of its children. A cycle of points never ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import TypeAlias

import networkx as nx

from loopr.core.model import Status
from loopr.core.tree import Tree

Point: TypeAlias = tuple[str, str]
Proposed: TypeAlias = Mapping[str, tuple[str | None, tuple[str, ...]]]
"""Loops by id, each with its parent and the ids from the plan down that it needs."""

OWN, DONE = "own", "done"

_NONE_PROPOSED: Proposed = MappingProxyType({})
_MOST_DRAWN = 12  # a line with more loops than this is drawn without its middle
_DRAWN_AT_THE_END = 3


def hierarchy(tree: Tree) -> nx.DiGraph[str]:
    """Build the graph of all declared loops: edges go from parent to child and from need to needer."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for loop in tree.walk():
        graph.add_node(loop.id, type=loop.type, status=loop.status.value, title=loop.title, project=loop.project)
    for loop in tree.walk():
        graph.add_edges_from(((need, loop.id) for need in loop.needs if need in graph), kind="need")
        if loop.parent is not None:
            graph.add_edge(loop.parent, loop.id, kind="parent")
    return graph


def order_graph(tree: Tree, extra: Proposed = _NONE_PROPOSED) -> nx.DiGraph[Point]:
    """Build the graph of all points, of the tree with some loops added or replaced: edges go from earlier to later."""
    return _ordered(_Waiting(tree, extra), dict.fromkeys([*(loop.id for loop in tree.walk()), *extra]))


class _Waiting:
    """What each point waits for, in the tree with some loops added or replaced."""

    def __init__(self, tree: Tree, proposed: Proposed) -> None:
        """Look at the tree through what is proposed; a need that nobody is called is as good as none."""
        self._tree, self._proposed = tree, proposed
        self._added: dict[str | None, list[str]] = {}
        for loop_id, (parent, _) in proposed.items():
            self._added.setdefault(parent, []).append(loop_id)

    def on(self, point: Point) -> Iterator[Point]:
        """List the points that must come before this one, always in the same order."""
        loop_id, part = point
        if part == DONE:
            yield loop_id, OWN
            children = {*self._tree.children(loop_id), *self._added.get(loop_id, ())}
            yield from ((child, DONE) for child in sorted(children))
            return
        parent, needs = self._terms(loop_id)
        yield from ((need, DONE) for need in sorted(set(needs)) if self._declared(need))
        if parent is not None and self._declared(parent):
            yield parent, OWN

    def _declared(self, loop_id: str) -> bool:
        """Say whether a loop is in the tree, or would be."""
        loop = self._tree.loops.get(loop_id)
        return loop_id in self._proposed or (loop is not None and loop.status is not Status.INVALIDATED)

    def _terms(self, loop_id: str) -> tuple[str | None, tuple[str, ...]]:
        """Return the parent of a loop, and what it needs."""
        if loop_id in self._proposed:
            return self._proposed[loop_id]
        loop = self._tree.loops[loop_id]
        return loop.parent, loop.needs


def _ordered(waiting: _Waiting, loop_ids: Iterable[str]) -> nx.DiGraph[Point]:
    """Build the graph of the points of some loops and of all they wait for, which is mostly far from everything."""
    graph: nx.DiGraph[Point] = nx.DiGraph()
    stack = [(loop_id, part) for loop_id in loop_ids for part in (OWN, DONE)]
    graph.add_nodes_from(stack)
    while stack:
        point = stack.pop()
        for awaited in waiting.on(point):
            if awaited not in graph:
                stack.append(awaited)
            graph.add_edge(awaited, point)
    return graph


def find_cycle(tree: Tree, proposed: Proposed) -> list[str]:
    """Return the loops of one cycle that these loops would close, each waiting for the next; none if there is none.

    The first waits by a need. It is the shortest cycle through the first proposed loop, by id, that is on one; a loop
    that needs itself, its parent or its child goes before the others.
    """
    graph = _ordered(_Waiting(tree, proposed), proposed)
    knots = (knot for knot in nx.strongly_connected_components(graph) if len(knot) > 1)
    caught = {point for knot in knots for point in knot if point[0] in proposed}
    if not caught:
        return []
    first, _ = min(caught, key=lambda point: (not _needs_its_own(point[0], proposed[point[0]][1]), point))
    start = (first, OWN) if (first, OWN) in caught else (first, DONE)
    return _collapsed(_tightened(_shortest_cycle(graph, start)))


def _needs_its_own(loop_id: str, needs: Iterable[str]) -> bool:
    """Say whether a loop needs itself, its parent or a child."""
    return any(need == loop_id or _parent_id(need) == loop_id or _parent_id(loop_id) == need for need in needs)


def _parent_id(loop_id: str) -> str:
    """Return the id of the loop's parent, "" for a plan."""
    return loop_id.rpartition("/")[0]


def _shortest_cycle(graph: nx.DiGraph[Point], start: Point) -> list[Point]:
    """Return the shortest cycle through a point that is known to be on one, each point waiting for the next."""
    waits: dict[Point, Point] = {}
    for point, awaited in nx.bfs_edges(graph, start, reverse=True):
        waits[awaited] = point
        if graph.has_edge(start, awaited):
            break
    path = [awaited]
    while path[-1] != start:
        path.append(waits[path[-1]])
    return path[::-1]


def _tightened(cycle: list[Point]) -> list[Point]:
    """Cut a cycle that comes by a loop twice: from its own point round to its done point is a cycle already."""
    owns: dict[str, int] = {}
    for index, (loop_id, part) in enumerate(cycle):
        if part == OWN:
            owns[loop_id] = index
        elif loop_id in owns:
            return cycle[owns[loop_id] : index + 1]
    return cycle


def _collapsed(cycle: list[Point]) -> list[str]:
    """Name the loops of a cycle once each, beginning with one that waits by a need: every cycle has such a loop."""
    pairs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    start = next(index for index, (point, awaited) in enumerate(pairs) if (point[1], awaited[1]) == (OWN, DONE))
    loop_ids = [loop_id for loop_id, _ in groupby(point[0] for point in [*cycle[start:], *cycle[:start]])]
    return loop_ids[:-1] if loop_ids[1:] and loop_ids[-1] == loop_ids[0] else loop_ids


def draw_cycle(ids: list[str]) -> str:
    """Draw what `find_cycle` found in one line that says why each loop waits for the next."""
    steps = [
        f"—{_why(loop_id, awaited) if index else 'needs'}→ {awaited}"
        for index, (loop_id, awaited) in enumerate(zip(ids, [*ids[1:], *ids[:1]], strict=True))
    ]
    if len(steps) > _MOST_DRAWN:
        head, tail = steps[: _MOST_DRAWN - _DRAWN_AT_THE_END], steps[-_DRAWN_AT_THE_END:]
        steps = [*head, f"… {len(steps) - len(head) - len(tail)} more …", *tail]
    return " ".join([*ids[:1], *steps])


def _why(loop_id: str, awaited: str) -> str:
    """Say why a loop of a cycle waits for the next."""
    if _parent_id(loop_id) == awaited:
        return "is part of"
    return "contains" if _parent_id(awaited) == loop_id else "needs"


def descendants(tree: Tree, loop_id: str) -> list[str]:
    """List every loop that cannot begin before this one has ended, by the hierarchy or by needs, directly or not."""
    return [] if _gone(tree, loop_id) else _loops_of(nx.descendants(order_graph(tree), (loop_id, OWN)))


def ancestors(tree: Tree, loop_id: str) -> list[str]:
    """List every loop that must end before this one can begin, by the hierarchy or by needs, directly or not."""
    if _gone(tree, loop_id):
        return []
    graph = _ordered(_Waiting(tree, _NONE_PROPOSED), [loop_id])
    return _loops_of(nx.ancestors(graph, (loop_id, OWN)))


def _gone(tree: Tree, loop_id: str) -> bool:
    """Say whether a loop is no longer declared: then it waits for nobody, and nobody for it."""
    return tree.loops[loop_id].status is Status.INVALIDATED


def _loops_of(points: Iterable[Point]) -> list[str]:
    """Name the loops whose own points are among these."""
    return sorted(loop_id for loop_id, part in points if part == OWN)


def critical_path(tree: Tree, ms: Mapping[str, int]) -> tuple[int, list[str]]:
    """Return the longest chain of loops that wait for each other, with the time it takes; who has no time takes none.

    Of equally late loops the one with the smaller id is taken, from the end of the chain backwards.
    """
    ends, came_from = _ends(tree, ms)
    if not ends:
        return 0, []
    chain = [min(ends, key=lambda loop_id: (-ends[loop_id], loop_id))]
    while (before := came_from[chain[-1]]) is not None:
        chain.append(before)
    return ends[chain[0]], chain[::-1]


def levels(tree: Tree) -> list[list[str]]:
    """List the loops in generations: each begins when the last it waits for, in an earlier generation, has ended."""
    ends, _ = _ends(tree, dict.fromkeys(tree.loops, 1))
    found: list[list[str]] = [[] for _ in range(max(ends.values(), default=0))]
    for loop_id in sorted(ends):
        found[ends[loop_id] - 1].append(loop_id)
    return found


def _ends(tree: Tree, ms: Mapping[str, int]) -> tuple[dict[str, int], dict[str, str | None]]:
    """Say when each loop ends if all begin as early as they can, and for which loop each waited last."""
    graph = order_graph(tree)
    ends: dict[str, int] = {}
    came_from: dict[str, str | None] = {}
    latest: dict[Point, str] = {}  # the loop that ends last of all that a point follows, itself included

    def later(loop_id: str) -> tuple[int, str]:
        return -ends[loop_id], loop_id

    for point in nx.topological_sort(graph):
        loop_id, part = point
        before = {latest[each] for each in graph.predecessors(point)}
        if part == DONE:
            latest[point] = min(before, key=later)
            continue
        last = min(before, key=later, default=None)
        ends[loop_id] = ms.get(loop_id, 0) + (0 if last is None else ends[last])
        came_from[loop_id], latest[point] = last, loop_id
    return ends, came_from


def to_dot(tree: Tree, top: str | None = None) -> str:
    """Write the hierarchy, or what is at and below a loop, in the DOT language: solid lines for parts, else needs."""
    graph = hierarchy(tree).subgraph(loop.id for loop in tree.walk(top))
    lines = ["digraph loops {", "  rankdir=LR;", "  node [shape=box];"]
    for loop_id in sorted(graph):
        said = graph.nodes[loop_id]
        label = rf"{_escaped(loop_id)}\n{_escaped(said['title'])}\n{_escaped(said['type'])}, {said['status']}"
        lines.append(f'  "{_escaped(loop_id)}" [label="{label}"];')
    for before, after in sorted(graph.edges):
        style = " [style=dashed]" if graph.edges[before, after]["kind"] == "need" else ""
        lines.append(f'  "{_escaped(before)}" -> "{_escaped(after)}"{style};')
    return "\n".join([*lines, "}", ""])


def _escaped(text: str) -> str:
    """Make any text safe between the quotes of a label, on one line."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return line.replace("\\", "\\\\").replace('"', '\\"')
