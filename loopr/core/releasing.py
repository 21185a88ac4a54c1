"""What the completion of a loop sets free.

Must never know a graph, nor whether what is free may run now: that is for `gates.py`.
"""

from __future__ import annotations

from loopr.core.model import Status
from loopr.core.tree import Tree


def releases(tree: Tree, loop_id: str) -> list[str]:
    """List the pending loops that would miss neither parent nor need if this loop and all below it became done now."""
    below = [loop for loop in tree.walk(loop_id) if not tree.done(loop.id)]
    if not below or tree.loops[loop_id].status is Status.INVALIDATED:
        return []
    newly_done = {loop.id for loop in below}
    missing = sum(loop.status is not Status.COMPLETE for loop in below)
    for above in tree.ancestors(tree.loops[loop_id]):
        counts = tree.below[above.id]
        if above.status is not Status.COMPLETE or counts.total - counts.complete != missing:
            break
        newly_done.add(above.id)
    needers = {needer for name in newly_done for needer in tree.needers.get(name, ())}
    return sorted(each for each in needers - {loop.id for loop in below} if _would_be_free(tree, each, newly_done))


def _would_be_free(tree: Tree, loop_id: str, newly_done: set[str]) -> bool:
    """Say whether a loop is pending and misses neither parent nor need once some loops are done."""
    loop = tree.loops[loop_id]
    if loop.status is not Status.PENDING:
        return False
    if loop.parent is not None and tree.loops[loop.parent].status is not Status.COMPLETE:
        return False
    return all(need in newly_done or tree.done(need) for need in loop.needs)
