"""The effect of an edit below loops that take it up later: they must first be complete again.

Compares entries with the loops that stand below. Must never know when they will be, nor a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from loopr.core.entries import Entry, identity
from loopr.core.meaning import Meaning, meaning
from loopr.core.model import Loop, Status
from loopr.core.tree import Tree

FindEntry = Callable[[str], Entry | None]

_SETTLED = frozenset({Status.COMPLETE, Status.CANCELLED, Status.INVALIDATED})


def whole_meaning(tree: Tree, before: Mapping[str, Loop], after: Mapping[str, Loop], find_entry: FindEntry) -> Meaning:
    """Compare the loops of a plan before and after an edit, and foresee those that wait."""
    found = meaning(before, after)
    waiting = tuple(_waiting(before, after))
    ahead: list[tuple[str, str]] = []
    for name in waiting:
        entry = find_entry(name)
        ahead += _compared(tree, name, entry.children if entry is not None else ())
    return found._replace(
        new=_with(found.new, ahead, "new"),
        again=_with(found.again, ahead, "again"),
        gone=_with(found.gone, ahead, "gone"),
        reworded=_with(found.reworded, ahead, "reworded"),
        later=waiting if ahead else (),
    )


def _with(now: tuple[str, ...], ahead: list[tuple[str, str]], kind: str) -> tuple[str, ...]:
    """Add to the loops that an edit touches at once those it touches later, each loop once."""
    return tuple(dict.fromkeys((*now, *(loop for each, loop in ahead if each == kind))))


def _waiting(before: Mapping[str, Loop], after: Mapping[str, Loop]) -> Iterator[str]:
    """Name the loops whose entry declares other children, and that are not complete by it yet."""
    for name, loop in after.items():
        old = before.get(name)
        if old is not None and old.outline != loop.outline and loop.status not in _SETTLED:
            yield name


def _compared(tree: Tree, parent: str, entries: tuple[Entry, ...]) -> Iterator[tuple[str, str]]:
    """Give the loops below a parent that an outline adds, changes or leaves out, each by kind."""
    if not entries:
        return  # its own work declares the loops below it
    wanted = {f"{parent}/{each.id}": each for each in entries}
    standing = dict.fromkeys(tree.children(parent))
    for child in standing:
        if child not in wanted:
            yield from (("gone", each.id) for each in tree.walk(child))
    for name, entry in wanted.items():
        if name not in standing:
            yield from (("new", each) for each in _named(name, entry))
            continue
        loop = tree.loops[name]
        if loop.identity != identity(entry):
            begun = loop.leased or loop.status is Status.COMPLETE
            yield "again" if begun else "reworded", name
        yield from _compared(tree, name, entry.children)


def _named(name: str, entry: Entry) -> Iterator[str]:
    """Name a loop that an entry declares, and all that are nested in it."""
    yield name
    for child in entry.children:
        yield from _named(f"{name}/{child.id}", child)
