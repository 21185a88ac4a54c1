"""What is said of files that wait for a person's word, and the gates that they close.

Knows the loop at whose place such a file lies, and its parent. Must never know what counts (`trust.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core.model import Loop, Status
from loopr.core.scene import Scene

Closed = tuple[str, int | None] | None
MOST_NAMED = 5


def file_of(scene: Scene, loop: Loop) -> str:
    """Return where a loop's artifact belongs, as a person would type it."""
    return scene.policy.place_of(loop.id, loop.type)


def owner_of(scene: Scene, place: str) -> str | None:
    """Name the loop whose artifact belongs at a place, None where it is no loop's."""
    loop = scene.loops.get(place.removeprefix(f"{scene.policy.artifacts_dir}/").rpartition("/")[0])
    return loop.id if loop is not None and file_of(scene, loop) == place else None


def is_on_offer(scene: Scene, loop: Loop, now: int) -> Closed:
    """Its entry has what only a person may say, and no person has."""
    if not loop.on_offer or loop.parent is None:
        return None
    parent = scene.loops[loop.parent]
    return f"its entry came with {file_of(scene, parent)}{_meanwhile(parent)}: {words_for(parent)}", None


def _meanwhile(loop: Loop) -> str:
    """Say who was at work when an offered file came."""
    names = loop.offers.during
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f" while {', '.join(names[:MOST_NAMED])}{more} ran" if names else ""


def words_for(loop: Loop) -> str:
    """Return what a person types to take an offered file, or not to."""
    return f"`loopr approve {loop.id} --file` or `loopr reject {loop.id} --file`"


def may_give_way(loop: Loop) -> frozenset[str]:
    """Return the digests of what loopr may write over at a loop's place: its own, and what a person has rejected.

    The text of the latter is kept in the archive. A file that counts and is not loopr's stays.
    """
    return frozenset({loop.artifact, *loop.offers.rejected}) - {"", loop.offers.counts}


def offered_words(scene: Scene, loop: Loop) -> str:
    """Say which file of a loop waits for a person's word, and what to type; nothing where none does."""
    if not loop.offers.offered:
        return ""
    return f"{file_of(scene, loop)} is offered: it changed{_meanwhile(loop) or ' while loops ran'}: {words_for(loop)}"


def is_foreign(scene: Scene, loop: Loop, now: int) -> Closed:
    """A file that loopr did not write lies where the loop's own would be written."""
    offers, file = loop.offers, file_of(scene, loop)
    if offers.unread:
        text = scene.shared.problems.get(file, "")
        return f"{file} is not loopr's and does not count{f': {text}' if text else ''}", None
    if offers.offered and offers.offered != loop.artifact:
        return offered_words(scene, loop), None
    if offers.counts and offers.counts == loop.artifact and loop.on_disk and loop.status is Status.PENDING:
        return f"{file} is not loopr's, and {loop.id} is to be made anew: {words_for(loop)}", None
    return None


def is_replaced(loop: Loop) -> bool:
    """Say whether a person's file has replaced the artifact of a loop that waits for approval."""
    if loop.status is not Status.AWAITING or loop.lease is None or loop.seen < loop.lease.at:
        return False
    return bool(loop.offers.counts) and loop.offers.counts == loop.artifact


def is_to_be_made_anew(scene: Scene, loop: Loop) -> bool:
    """Say whether a file of others lies where loopr would write the artifact of a loop."""
    return loop.status is Status.PENDING and scene.settles(loop) and is_foreign(scene, loop, 0) is not None


def children_on_offer(scene: Scene, loop_id: str) -> Iterator[str]:
    """List the children of a loop that came with a file which no person has taken yet."""
    return (each for each in scene.tree.children(loop_id) if scene.loops[each].on_offer)


def offered_file(scene: Scene, loop: Loop) -> str:
    """Return the digest of the file on which a person is asked for a word, nothing if none is."""
    if loop.offers.offered:
        return loop.offers.offered
    counts = is_to_be_made_anew(scene, loop) and not loop.offers.unread
    return loop.artifact if counts or any(children_on_offer(scene, loop.id)) else ""
