"""Who of those that are to be done again waits for whom of them, kept up to date as they come and go.

What is done again goes in the order in which it rests on each other, so that nothing is done twice. Looks at no tree:
it says whom to look at again, so that no event costs more than those that it may concern.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopr.core.model import Loop, Status


class Turns:
    """The loops that wait behind others, and those whose turn has come, but may be in doubt."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._first: dict[str, str] = {}
        self._behind: dict[str, dict[str, None]] = {}
        self._ready: dict[str, None] = {}
        self._fresh: dict[str, None] = {}
        self._left: set[str] = set()
        self._doubts_fresh = self._doubts_ready = self._doubts_all = False

    def first(self, loop_id: str) -> str | None:
        """Return the loop that another one waits behind, as far as is known."""
        return self._first.get(loop_id)

    def wait(self, loop_id: str, first: str | None) -> None:
        """Let a loop wait behind another one, or for something else."""
        self._ready.pop(loop_id, None)
        self._fresh.pop(loop_id, None)
        known = self._first.pop(loop_id, None)
        if known is not None and known != first:
            self._behind[known].pop(loop_id, None)
        if first is not None:
            self._first[loop_id] = first
            self._behind.setdefault(first, {})[loop_id] = None

    def enter(self, loop_id: str) -> None:
        """Let a loop have its turn, until others are asked for that come before it."""
        self.wait(loop_id, None)
        self._ready[loop_id] = self._fresh[loop_id] = None

    def change(self, old: Loop | None, new: Loop, landed: str) -> Iterable[str]:
        """Note that a loop is to be done again, or no longer; return whom that sets free.

        What a landing asks for comes before those alone that this landing has just set free: all others behind it
        have waited for it. Where loops need others than before, or come and go, everybody is in doubt.
        """
        was, now = old is not None and old.redoing, new.redoing
        if (self._ready or self._first) and old is not None and _hangs_otherwise(old, new):
            self._doubts_all = True
        if was and not now:
            self._left.add(new.id)
            self.wait(new.id, None)
            freed = tuple(self._behind.pop(new.id, ()))
            for each in freed:
                del self._first[each]
            return freed
        if now and not was:
            if landed and landed in self._left:
                self._doubts_fresh = True
            else:
                self._doubts_ready = True
        return ()

    def doubted(self) -> Iterable[str]:
        """Return whom to look at again, each once."""
        if not (self._fresh or self._left or self._doubts_ready or self._doubts_all):
            return ()
        names: tuple[str, ...] = ()
        if self._doubts_all:
            names = *self._ready, *self._first
            self._first, self._behind = {}, {}
        elif self._doubts_ready:
            names = tuple(self._ready)
        elif self._doubts_fresh:
            names = tuple(self._fresh)
        self._fresh, self._left = {}, set()
        self._doubts_fresh = self._doubts_ready = self._doubts_all = False
        return names


def _hangs_otherwise(old: Loop, new: Loop) -> bool:
    """Say whether a loop needs others than before, or has come or gone."""
    return old.needs != new.needs or (old.status is Status.INVALIDATED) != (new.status is Status.INVALIDATED)
