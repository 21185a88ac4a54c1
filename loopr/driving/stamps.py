"""Stamps: a loop's status in the front matter of its own artifact, where that is wanted.

A stamp that cannot be set is left out: it is a remark, and never changes the tree. What was decided while no engine
ran, or while stamps were not wanted, is stamped as soon as one runs that sets them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from loopr.core import events as e
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Loop
from loopr.driving.acts import Act, Do
from loopr.driving.jobs import Jobs, Key
from loopr.driving.kit import Kit
from loopr.errors import LooprError
from loopr.world.artifacts import digest
from loopr.world.stamping import Stamp, ensure_stamp

KEY = Key("stamp", "", 0)


class Stamps:
    """Sets the stamps that are due, all at once; what becomes due meanwhile is set after them."""

    def __init__(self, kit: Kit, jobs: Jobs) -> None:
        self._kit, self._jobs = kit, jobs
        self._due: dict[str, Stamp] = {}
        self._were_wanted = False

    def heed(self, forest: Forest, events: Iterable[Event], now: int) -> None:
        """Note which artifacts say something else by now, and begin to stamp them."""
        were_wanted, self._were_wanted = self._were_wanted, self._kit.settings.artifacts.stamp
        if not self._were_wanted:
            return
        told = [each.loop for each in events if isinstance(each, e.LoopEvent)] if were_wanted else list(forest.loops)
        for loop in map(forest.loops.__getitem__, told):
            if loop.on_disk:
                self._due[loop.id] = Stamp(str(loop.status), loop.attempt, loop.iteration, now, loop.reason)
        if self._due and KEY not in self._jobs:
            due, self._due = self._due, {}
            stamps = [(forest.loops[each], stamp) for each, stamp in due.items()]
            self._jobs.begin(KEY, self._set(stamps), lambda error: None)

    def _set(self, due: list[tuple[Loop, Stamp]]) -> Act:
        """Stamp some artifacts."""
        yield Do(lambda: self._set_all(due))
        return None

    def _set_all(self, due: list[tuple[Loop, Stamp]]) -> None:
        """Stamp artifacts; whatever keeps us from it is no reason to stop."""
        for loop, stamp in due:
            path = self._kit.specs / loop.id / f"{loop.type}.md"
            with suppress(LooprError, OSError):
                ensure_stamp(path, stamp, expected=loop.artifact, digest=digest)
