"""Which complete work rests on work that was landed after it was made, and what is to be done again before what.

A question to the tree, answered from numbers that loops keep (`redo.py`). Knows no policy and decides nothing
(`redoing.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core.model import Loop, Status
from loopr.core.tree import Tree


def has_made(loop: Loop) -> bool:
    """Say whether the work that counts of a loop is that of an attempt, and not a person's file."""
    return loop.past.made > 0 or (bool(loop.landed) and not loop.offers.counts)


def rests_on(tree: Tree, loop: Loop) -> Iterator[str]:
    """Name what a loop needs itself, and what loops above it need: each with all below it."""
    yield from loop.needs
    for above in tree.ancestors(loop):
        yield from above.needs


def newest(tree: Tree, loop: Loop) -> int:
    """Return the count of grants when something that a loop rests on last landed a commit, 0 if never."""
    return max((tree.changed(name) for name in rests_on(tree, loop)), default=0)


def is_stale(tree: Tree, loop: Loop) -> bool:
    """Say whether something that a complete loop rests on has landed a commit after its own work was begun."""
    made = loop.past.made
    return made > 0 and loop.status is Status.COMPLETE and newest(tree, loop) >= made


def stale_because(tree: Tree, loop: Loop) -> list[str]:
    """Name the loops that have landed a commit since the work of a loop was begun, in tree order.

    Of what is no longer declared it names the loop that is needed.
    """
    made, found = loop.past.made, dict[str, Loop]()
    for name in rests_on(tree, loop):
        if tree.changed(name) >= made:
            below = {each.id: each for each in tree.walk(name) if each.past.changed >= made}
            found |= below or {name: tree.loops[name]}
    return [each.id for each in sorted(found.values(), key=tree.order)]


def stale_below(tree: Tree, top: str | None = None) -> list[Loop]:
    """List the stale loops of a tree, or of one part of it, in tree order; each loop is looked at once."""
    if top is not None and top not in tree.loops:
        return []
    known: dict[str | None, int] = {None: 0}

    def rests(loop: Loop) -> int:
        """Return when what a loop rests on last changed; what its parent rests on is known by then."""
        if loop.parent not in known:
            known[loop.parent] = newest(tree, tree.loops[loop.parent or ""])
        above = known[loop.parent]
        return max((tree.changed(name) for name in loop.needs), default=above) if loop.needs else above

    found = []
    for loop in tree.walk(top):
        at = max(rests(loop), known[loop.parent])
        if tree.has_children(loop.id):
            known[loop.id] = at
        if 0 < loop.past.made <= at and loop.status is Status.COMPLETE:
            found.append(loop)
    return found


def resting_on(tree: Tree, loop: Loop) -> Iterator[Loop]:
    """Go through the complete loops that rest on a loop: those that need it, or one above it, with all below them."""
    met: set[str] = set()
    for each in (loop, *tree.ancestors(loop)):
        for name in list(tree.needers.get(each.id, ())):
            needer = tree.loops[name]
            if name in met or needer.status is Status.INVALIDATED:
                continue
            met.add(name)
            if needer.status is Status.COMPLETE or tree.below[name].complete:
                for below in list(tree.walk(name)):
                    if below.status is Status.COMPLETE and (below.id == name or below.id not in met):
                        met.add(below.id)
                        yield below


def made_with(tree: Tree, loop: Loop) -> list[Loop]:
    """List the complete loops that rest on a loop, even a gone one, and began after its landing."""
    then = loop.past.changed
    return [each for each in resting_on(tree, loop) if 0 < then < each.past.made]


def comes_first(tree: Tree, loop: Loop) -> str | None:
    """Name a loop that is to be done again before another one is: one above it, or one that it rests on at length."""
    redoing = tree.redoing
    if not redoing or (len(redoing) == 1 and loop.id in redoing):
        return None
    above = next((each.id for each in tree.ancestors(loop) if each.id in redoing), None)
    if above is not None:
        return above
    met, waiting = set[str](), [loop]
    while waiting:
        for name in rests_on(tree, waiting.pop()):
            if name in met or name not in tree.loops:
                continue
            met.add(name)
            if name in redoing or tree.below[name].redoing:
                return next(each.id for each in tree.walk(name) if each.id in redoing)
            waiting += tree.walk(name)
    return None
