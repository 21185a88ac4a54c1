"""Who of those that are to be done again waits for whom of them, kept up to date as they come and go.

What is done again goes in the order in which it rests on each other, so that nothing is done twice. Looks at no tree:
it says whom to look at again, so that no event costs more than those that it may concern.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopr.core.model import Loop


class Turns:
    """The loops that wait behind others, and those whose turn has come, but may be in doubt."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._behind: dict[str, dict[str, None]] = {}
        self._ready: dict[str, None] = {}
        self._fresh: dict[str, None] = {}
        self._left: set[str] = set()
        self._doubts_fresh = self._doubts_all = False

    def wait(self, loop_id: str, first: str | None) -> None:
        """Let a loop wait behind another one, or for something else."""
        self._ready.pop(loop_id, None)
        self._fresh.pop(loop_id, None)
        if first is not None:
            self._behind.setdefault(first, {})[loop_id] = None

    def enter(self, loop_id: str) -> None:
        """Let a loop have its turn, until others are asked for that come before it."""
        self._ready[loop_id] = self._fresh[loop_id] = None

    def change(self, old: Loop | None, new: Loop, landed: str) -> Iterable[str]:
        """Note that a loop is to be done again, or no longer; return whom that sets free.

        What a landing asks for comes before those alone that this landing has just set free: all others behind it
        have waited for it.
        """
        was, now = old is not None and old.redoing, new.redoing
        if was and not now:
            self._left.add(new.id)
            self._ready.pop(new.id, None)
            self._fresh.pop(new.id, None)
            return tuple(self._behind.pop(new.id, ()))
        if now and not was:
            if landed and landed in self._left:
                self._doubts_fresh = True
            else:
                self._doubts_all = True
        return ()

    def doubted(self) -> Iterable[str]:
        """Return whom to look at again, each once."""
        if not (self._fresh or self._left or self._doubts_all):
            return ()
        found = self._ready if self._doubts_all else self._fresh if self._doubts_fresh else ()
        names = tuple(found)
        self._fresh, self._left = {}, set()
        self._doubts_fresh = self._doubts_all = False
        return names
