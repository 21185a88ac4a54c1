"""Work that is listed elsewhere becomes a plan: items with needs and parents, laid upon the levels of the ladder.

Knows items, ids and levels. Must never know a tracker's format, a file, or what has become of a loop: whoever calls
says which items are to stay although they are closed there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from loopr.core.ladder import Ladder
from loopr.core.slugs import MAX_ID_LENGTH, id_problem, one_line, slug

_MARK = 6


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of work as a list elsewhere has it, under the id that it has there; `group` holds others."""

    id: str
    title: str
    body: str = ""
    needs: tuple[str, ...] = ()
    parent: str = ""
    files: tuple[str, ...] = ()
    priority: int | None = None
    closed: bool = False
    group: bool = False


class Imported(NamedTuple):
    """The text of a plan, the id here of each item, and what was left out or read otherwise than it stands there."""

    text: str
    ids: Mapping[str, str]
    remarks: tuple[str, ...]


@dataclass(slots=True)
class _Node:
    """One entry of the plan that is being made, with those below it."""

    id: str
    title: str
    item: Item | None = None
    needs: dict[str, None] = field(default_factory=dict)
    children: dict[str, _Node] = field(default_factory=dict)


def own_ids(items: Sequence[Item]) -> dict[str, str]:
    """Map the ids of a list elsewhere to ids here: the same wherever our rules allow it, and no two alike."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for each in sorted(items, key=lambda item: id_problem(item.id) is not None):  # whoever keeps its id goes first
        name = each.id if id_problem(each.id) is None else slug(each.id)
        if name in taken:
            mark = hashlib.sha256(each.id.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
            name = f"{name[: MAX_ID_LENGTH - _MARK - 1]}-{mark}"
        found[each.id] = name
        taken.add(name)
    return found


def open_items(items: Sequence[Item], kept: Collection[str]) -> list[Item]:
    """Leave out what is closed there, but for the ids that are kept, and groups of which nothing is left."""
    sound = _without_circles(items)
    parents = {each.parent for each in sound if each.parent}
    marked = [replace(each, group=each.group or each.id in parents) for each in sound]
    left = [each for each in marked if each.group or not each.closed or each.id in kept]
    while True:
        used = {each.parent for each in left}
        fewer = [each for each in left if not each.group or each.id in used]
        if len(fewer) == len(left):
            return left
        left = fewer


def _without_circles(items: Sequence[Item]) -> list[Item]:
    """Take the parent from whoever would be above itself."""
    above = {each.id: each.parent for each in items}
    for name in [each.id for each in items]:
        seen, at = {name}, above[name]
        while at in above and at not in seen:
            seen.add(at)
            at = above[at]
        if at == name:
            above[name] = ""
    return [replace(each, parent=above[each.id]) for each in items]


def plan_of(
    items: Sequence[Item], ladder: Ladder, *, plan_id: str, title: str, about: str, gone: Collection[str] = ()
) -> Imported:
    """Lay items upon the levels below the plan, each that holds no other at the last one, and write that down.

    `gone` are the ids of what is closed there and left out: whoever needs one of them needs it no more.
    """
    lay = _Lay(items, ladder, plan_id, frozenset(gone))
    root = lay.root()
    keys = {above: ladder.keys(above)[0] for above in lay.levels[:-1]}
    lines = ["---", f"id: {plan_id}", f"title: {_quoted(title)}", *_lines(root, lay.levels, keys, 0), "---"]
    lines += [f"# {title}", "", about.strip(), ""]
    renamed = [(each.id, lay.ids[each.id]) for each in items if each.id != lay.ids[each.id]]
    if renamed:
        lines += ["| here | there |", "|--|--|", *(f"| {own} | {one_line(theirs)} |" for theirs, own in renamed), ""]
    return Imported("\n".join(lines), lay.ids, tuple(lay.remarks))


class _Lay:
    """Where each item comes to lie, and what it waits for."""

    def __init__(self, items: Sequence[Item], ladder: Ladder, plan_id: str, gone: frozenset[str]) -> None:
        """Find out how deep the items go."""
        self.items = {each.id: each for each in items}
        self.ids, self.levels, self.plan_id, self.gone = own_ids(items), ladder.levels(), plan_id, gone
        self.taken = frozenset(self.ids.values())
        self.remarks: list[str] = []
        self.room = len(self.levels) - 2  # levels between the plan and the last one
        self.above = {each.id: self._above(each) for each in items}
        deepest = max((len(chain) for chain in self.above.values()), default=0)
        self.first = max(0, self.room - deepest)
        if deepest > self.room:
            self.remarks.append(
                f"the list is {deepest - self.room} levels deeper than the ladder: its lowest groups are laid flat"
            )

    def _above(self, item: Item) -> tuple[str, ...]:
        """List the items above one, from the top down."""
        chain: list[str] = []
        parent = item.parent
        while parent in self.items and parent not in chain and parent != item.id:
            chain.append(parent)
            parent = self.items[parent].parent
        return tuple(reversed(chain))

    def place(self, item: Item) -> tuple[str, ...]:
        """Return the way from the plan to an item; a group that has no level of its own lies where its items do."""
        chain = [self.ids[each] for each in self.above[item.id]][: self.room]
        top = [self.filler(name) for name in self.levels[1 : 1 + self.first]]
        if item.group:
            return (*top, *chain, *([self.ids[item.id]] if self.has_level(item) else []))
        below = [self.filler(name) for name in self.levels[1 + len(top) + len(chain) : -1]]
        return (*top, *chain, *below, self.ids[item.id])

    def filler(self, level: str) -> str:
        """Name what fills a level that the list does not have: after its type, and like no item."""
        name = slug(level)
        while name in self.taken:
            name = slug(f"{name}-all")
        return name

    def has_level(self, group: Item) -> bool:
        """Tell whether a group is a loop of its own."""
        return len(self.above[group.id]) < self.room

    def root(self) -> _Node:
        """Build the tree of entries."""
        root = _Node(self.plan_id, "")
        for item in self.items.values():
            if item.group and not self.has_level(item):
                continue
            at = root
            for number, name in enumerate(self.place(item), 1):
                at = at.children.setdefault(name, _Node(name, self.levels[number]))
            at.title, at.item = item.title, item
            at.needs |= dict.fromkeys(self.needs(item))
        return root

    def needs(self, item: Item) -> Iterator[str]:
        """Give what an item waits for, as the id of a sibling or the way from the plan."""
        own = self.place(item)
        flat = [self.items[each] for each in self.above[item.id] if not self.has_level(self.items[each])]
        for need in dict.fromkeys(need for each in (item, *flat) for need in each.needs):
            if need in self.gone:
                continue
            if need not in self.items:
                self.remarks.append(f"{item.id} needs {need}, which is not in the list: left out")
                continue
            for target in self._targets(self.items[need]):
                way = self.place(target)
                inside = way == own[: len(way)] or own == way[: len(own)]
                if not inside:
                    yield way[-1] if way[:-1] == own[:-1] else "/".join((self.plan_id, *way))

    def _targets(self, item: Item) -> list[Item]:
        """Return the loops that an item stands for: a group without a level is all that it holds."""
        if not item.group or self.has_level(item):
            return [item]
        return [each for each in self.items.values() if not each.group and item.id in self.above[each.id]]


def _lines(node: _Node, levels: Sequence[str], keys: Mapping[str, str], depth: int) -> Iterator[str]:
    """Write the entries below a node."""
    if not node.children:
        return
    indent = "    " * depth
    yield f"{indent}{keys[levels[depth]]}:"
    for each in node.children.values():
        yield f"{indent}  - id: {each.id}"
        yield f"{indent}    title: {_quoted(one_line(each.title) or each.id)}"
        item = each.item
        if item is not None and item.body.strip():
            yield f"{indent}    body: {_quoted(item.body.strip())}"
        if each.needs:
            yield f"{indent}    needs: [{', '.join(each.needs)}]"
        if item is not None and item.files:
            yield f"{indent}    files: [{', '.join(map(_quoted, item.files))}]"
        if item is not None and item.priority is not None:
            yield f"{indent}    priority: {item.priority}"
        yield from _lines(each, levels, keys, depth + 1)


def _quoted(text: str) -> str:
    """Write a text as YAML reads it back, whatever is in it."""
    bare = "".join(each if each.isprintable() or each in "\n\t" else " " for each in text.replace("\r\n", "\n"))
    return json.dumps(bare, ensure_ascii=False)
