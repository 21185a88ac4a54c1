"""Files under `specs/` that differ from what was read, where no engine runs that would take them up.

Looks at the files of loops that are shown, and at no more than a view has time for. Must never write anything, nor
decide what a file means.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice

from loopr.core.model import FINISHED, Loop, Status
from loopr.core.scene import Scene
from loopr.ui.unattended import serves
from loopr.ui.views import Row
from loopr.wiring import Workspace, differs

MOST_LOOKED = 1_000  # files that one view looks at
TAKES_UP = "`loopr run` takes it up"
GONE = "is gone since it was read"
PUTS_BACK = "`loopr doctor --fix` puts it back"
_NOT_READ = frozenset({Status.INVALIDATED, Status.LANDING, Status.CANCELLED})
_NS_PER_MS = 1_000_000


def is_served(workspace: Workspace) -> bool:
    """Say whether an engine runs, which looks at files and at the machine by itself."""
    return serves(workspace.engine())


def unread(workspace: Workspace, scene: Scene, loops: Iterable[Loop], most: int | None = MOST_LOOKED) -> list[Row]:
    """List the files of some loops that differ from what was read; none while an engine looks at them.

    Of very many loops only the first ones are looked at, unless `most` says otherwise.
    """
    if is_served(workspace):
        return []
    found = ((each, _differs(workspace, scene, each)) for each in islice(loops, most))
    return [{"id": loop.id, "file": _file(scene, loop), "text": text} for loop, text in found if text]


def words(row: Row) -> str:
    """Say that a file differs, with the remedy."""
    return f"{row['text']}; {remedy(row)}"


def remedy(row: Row) -> str:
    """Name the remedy for a file that differs."""
    return PUTS_BACK if row["text"].endswith(GONE) else TAKES_UP


def missing(workspace: Workspace, scene: Scene, loops: Iterable[Loop]) -> str:
    """Say which artifacts are known to be gone, and still are; nothing where none is."""
    root = workspace.place.root
    done = (each for each in loops if each.status is Status.COMPLETE and each.artifact)
    found = [_file(scene, each) for each in done if not each.on_disk]
    found = [each for each in found if not os.path.lexists(root / each)]
    if not found:
        return ""
    if len(found) == 1:
        return f"{found[0]} is gone; {PUTS_BACK}"
    return f"{len(found)} artifacts are gone; `loopr doctor --fix` puts back what may come back"


def behind(scene: Scene, loops: Iterable[Loop]) -> Iterator[Loop]:
    """Give the loops on whose files some others rest: themselves, those above them, and those that they need."""
    met = set[str]()
    for loop in loops:
        needed = (scene.loops[each] for each in loop.needs if each in scene.loops)
        for each in (loop, *scene.tree.ancestors(loop), *needed):
            if each.id not in met:
                met.add(each.id)
                yield each


def unread_anywhere(workspace: Workspace, scene: Scene, top: str | None = None) -> list[Row]:
    """List all files, or those of a plan, that differ from the text read, if that has an effect."""
    return unread(workspace, scene, _telling(workspace, scene, top))


def _telling(workspace: Workspace, scene: Scene, top: str | None) -> Iterator[Loop]:
    """Give the loops of which a file would change something: first those of which something waits.

    Where all is done an edit has some of it done again; that a file is gone changes nothing there.
    """
    over = []
    for loop in scene.tree.walk(top):
        below = scene.tree.below[loop.id]
        if loop.status not in FINISHED or below.complete < below.total:
            yield loop
        elif below.total or scene.policy.type_of(loop.type).child is not None:
            over.append(loop)
    root = workspace.place.root
    yield from (each for each in over if os.path.lexists(root / _file(scene, each)))


def _file(scene: Scene, loop: Loop) -> str:
    """Return how messages call a loop's artifact."""
    return scene.policy.place_of(loop.id, loop.type)


def _differs(workspace: Workspace, scene: Scene, loop: Loop) -> str:
    """Say how a loop's file differs from what was read; nothing where it does not, or where it is told already."""
    name, offers = _file(scene, loop), loop.offers
    if loop.status in _NOT_READ or name in scene.shared.problems:
        return ""
    path = workspace.place.root / name
    try:
        changed = os.lstat(path).st_ctime_ns // _NS_PER_MS
    except OSError:
        return f"{name} {GONE}" if loop.on_disk else ""
    if not loop.on_disk:
        known = {offers.offered, *offers.rejected} - {""}
        is_known = any(not differs(path, each) for each in known)
        return "" if is_known else f"no engine runs, and a file is there for {loop.id}: {name}"
    if not path.is_file():
        return f"{name} is not a regular file any more"
    if changed < loop.seen or not differs(path, loop.artifact):
        return ""
    told = any(not differs(path, each) for each in (offers.offered, *offers.rejected) if each)
    return "" if told else f"{name} differs from what was read"
