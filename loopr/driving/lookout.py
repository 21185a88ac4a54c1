"""When the sentry looks: around whatever runs on behalf of a loop, and before the engine touches what it has left.

Knows who is at work, pull workers too. Must never know what there is to see.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from loopr.core import observations as o
from loopr.core.forest import Forest
from loopr.core.model import Failure, Loop, Status
from loopr.core.observations import Trouble
from loopr.driving.acts import Asked, Do, Tell
from loopr.driving.kit import Kit, Task
from loopr.driving.sentry import NOTHING, Changed, Sentry
from loopr.world.repo.guarding import guard_as_begun

_AT_WORK = frozenset({Status.LEASED, Status.RUNNING, Status.CHECKING})


def begin_watch(kit: Kit, task: Task) -> Generator[Asked, Any, None]:
    """Look before a judge is asked, and before the tree is laid that it is to see."""
    sentry = kit.sentry_of(task)
    if sentry is not None:
        yield Do(lambda: sentry.begin(task.loop.lease_id))


def end_watch(kit: Kit, task: Task) -> Generator[Asked, Any, Trouble | None]:
    """Look before the engine touches what was left, tell what was seen, and say what it is to blame for."""
    sentry = kit.sentry_of(task)
    changed: Changed = (yield Do(lambda: sentry.changed(task.loop.lease_id))) if sentry is not None else NOTHING
    yield from tell_changed(task, changed)
    return blame(changed)


def tell_changed(task: Task, changed: Changed) -> Generator[Asked, Any, None]:
    """Tell what was seen of what all worktrees share."""
    for each in changed.news:
        yield Tell(each)
    if changed.grown:
        yield Tell(o.GrowthSeen(task.loop.id, changed.grown))


def blame(changed: Changed) -> Trouble | None:
    """Say what is to blame on one that was alone."""
    return Trouble(Failure.BLOCKED, changed.words, harm=True) if changed.touched else None


def leave(kit: Kit, task: Task) -> None:
    """Take it that nothing is asked about an attempt any more."""
    sentry = kit.sentry_of(task)
    if sentry is not None:
        sentry.forget(task.loop.lease_id)


# --- who is at work -------------------------------------------------------------------------------------------------


def begin_afresh(kit: Kit, forest: Forest, leased: Iterable[str]) -> None:
    """Note how all is before pull workers begin, where nothing else is at work: an engine to come compares with it.

    Else what was there when that began is a person's, and nothing else runs.
    """
    others = forest.occupancy.loops.keys() - set(leased)
    busy = {kit.repo_of(forest, forest.loops[each]) for each in others}
    for repo, ground in kit.grounds.items():
        if repo in busy:
            guard_as_begun(ground)
    if not others:
        for sentry in kit.sentries.values():
            sentry.begin("")


def resume(kit: Kit, forest: Forest) -> None:
    """Go on watching what an earlier engine has left at work."""
    runs: dict[str, list[str]] = {}
    for loop_id in forest.occupancy.loops:
        loop = forest.loops[loop_id]
        if _sentry(kit, forest, loop) is not None and loop.lease is not None and loop.status in _AT_WORK:
            runs.setdefault(kit.repo_of(forest, loop), []).append(loop.lease_id)
    for repo, sentry in kit.sentries.items():
        sentry.resume(runs.get(repo, []))


def heed(kit: Kit, forest: Forest, loop: Loop) -> None:
    """Watch a pull worker from its lease on, and nobody any longer whose attempt is over."""
    sentry = _sentry(kit, forest, loop)
    if sentry is None:
        return
    if loop.lease is None and loop.ending is None:
        sentry.forget_all(loop.id)
    elif loop.lease is not None:
        if loop.lease.expires_at is not None and loop.status in (Status.LEASED, Status.RUNNING):
            sentry.begin(loop.lease_id)
        sentry.forget_all(loop.id, but=loop.lease_id)


def _sentry(kit: Kit, forest: Forest, loop: Loop) -> Sentry | None:
    """Return who keeps an eye on the repository of a loop, None where it works beside git."""
    kind = kit.settings.types.get(loop.type)
    return kit.sentries.get(kit.repo_of(forest, loop)) if kind is None or kind.worktree else None
