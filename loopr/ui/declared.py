"""Loops that are declared below an entry which waits: there are none yet, and people ask for them.

Reads the entries that are remembered. Must never know which verb asks.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from loopr.core.model import Loop, Status
from loopr.errors import LooprError, NotFound, Problem
from loopr.ui.names import find_id
from loopr.wiring import Workspace

if TYPE_CHECKING:
    from loopr.core.entries import Entry
    from loopr.core.scene import Scene

_SOUGHT = re.compile(r"there is no loop (['\"].*['\"])")
_MOST = 5
_OVER = frozenset({Status.COMPLETE, Status.INVALIDATED})


@contextmanager
def naming_declared(opened: Callable[[], Workspace | None]) -> Iterator[None]:
    """Say of a loop that is not found where it is declared, and which loop comes first."""
    try:
        yield
    except NotFound as error:
        workspace, told = opened(), error.problems
        if workspace is not None and any(_SOUGHT.fullmatch(each.message) for each in told):
            with suppress(LooprError):
                told = _told(workspace, told)
        if told == error.problems:
            raise
        raise NotFound("", problems=told) from error


def _told(workspace: Workspace, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Word anew the problems of loops that are declared, and no loops yet."""
    from loopr.engine import ENTRIES  # slow to import, and most names are found

    seen = workspace.look()
    with workspace.journal() as journal:
        rows = journal.rows(ENTRIES)
    above = dict(_later(seen.scene, rows))
    return tuple(_instead(seen.scene, seen.now, above, each) for each in problems)


def _later(scene: Scene, rows: list[tuple[str, str]]) -> Iterator[tuple[str, Loop]]:
    """Give the ids that are declared below entries, each with the loop whose entry it is."""
    from loopr.core.entries import decode_entry

    for name, body in rows:
        loop = scene.loops.get(name)
        if loop is None or loop.status in _OVER or '"children"' not in body:
            continue
        for path in _paths(decode_entry(json.loads(body))):
            yield f"{name}/{path}", loop


def _paths(entry: Entry) -> Iterator[str]:
    """List the paths of all that is nested below an entry."""
    for child in entry.children:
        yield child.id
        yield from (f"{child.id}/{each}" for each in _paths(child))


def _instead(scene: Scene, now: int, above: dict[str, Loop], problem: Problem) -> Problem:
    """Say of one that is not found where it is declared, if it is declared once."""
    from loopr.core.gates import first_closed
    from loopr.core.states import people_say

    found = _SOUGHT.fullmatch(problem.message)
    try:
        name = find_id(above, literal_eval(found[1])) if found else ""
    except NotFound:
        return problem
    if not name:
        return problem
    loop = above[name]
    gate = first_closed(scene, loop, now)
    waits = f"waits: {gate.reason}" if gate and loop.waits else f"is {people_say(loop)}"
    words = f"{name} is declared in {_file(scene, loop)}, below {loop.id}, which {waits}"
    hint = f"it is a loop once {loop.id} is complete; `loopr why {loop.id}`"
    return replace(problem, message=words, hint=hint)


def _file(scene: Scene, loop: Loop) -> str:
    """Name the file that has the entry of a loop."""
    parent = scene.loops[loop.parent or loop.id]
    bound = scene.shared.plans.get(parent.id)
    return bound.source if bound is not None else scene.policy.place_of(parent.id, parent.type)


def later_words(scene: Scene, top: str, entries: tuple[Entry, ...]) -> Iterator[str]:
    """Say how many loops of a plan come later: those below entries that wait still."""
    found: dict[str, int] = {}
    for entry in entries:
        _count_later(scene, f"{top}/{entry.id}", entry, found)
    named = [f"{number} more below {name}" for name, number in found.items()]
    if named:
        more = f" and {len(named) - _MOST} more such" if len(named) > _MOST else ""
        once = "that is" if len(named) == 1 else "these are"
        yield f"{', '.join(named[:_MOST])}{more}, once {once} complete"


def _count_later(scene: Scene, name: str, entry: Entry, found: dict[str, int]) -> None:
    """Count the loops below an entry that is not complete, or below those within it."""
    loop = scene.loops.get(name)
    if loop is None or loop.status is Status.INVALIDATED:
        return
    if loop.status is not Status.COMPLETE:
        found |= {name: count} if (count := len(list(_paths(entry)))) else {}
        return
    for child in entry.children:
        _count_later(scene, f"{name}/{child.id}", child, found)
