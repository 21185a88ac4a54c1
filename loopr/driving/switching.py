"""Tells what a person has edited from what another commit has brought into their checkout.

Several artifacts that change together with HEAD were hardly meant for the loops that run: they are reported, and wait
for `start`. Git writes the files first and HEAD last, so whatever changes meanwhile is kept back for a moment. Must
never know what a change means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from loopr.core import observations as o
from loopr.core.forest import Forest
from loopr.world.place import Head, head_of, own_git_dir

WAITS = "came with another commit in your checkout, as others did, and is not read: `loopr start` its plan again"
SEVERAL = 2
TOGETHER_MS = 200  # what changes within that time may have come at once
MOST_MS = 10_000  # a lock that lasts longer was left behind
SETTLED_MS = 1_000  # HEAD is known once it has stood that long

Change = o.FileSeen | o.FileRefused


class Switching:
    """Knows where HEAD of a checkout was when nothing had changed, and what has changed since."""

    def __init__(self, top: Path | None) -> None:
        """Begin with the checkout as it is; without a repository nothing is ever kept back."""
        self._top = top
        self._lock = own_git_dir(top) / "index.lock" if top is not None else None
        self._known = self._last = self._head()
        self._moved_at = self._begun_at = self._later_at = 0
        self._kept: list[Change] = []

    def next_look(self, now: int) -> int | None:
        """Return when to look again at what is kept back, None if nothing is."""
        return now + TOGETHER_MS // 4 if self._kept else None

    @property
    def is_waiting(self) -> bool:
        """True while something is kept back."""
        return bool(self._kept)

    def sift(self, forest: Forest, seen: Iterable[o.Observation], now: int) -> Iterator[o.Observation]:
        """Pass on what was seen: at once, or a moment later where it may have come with another commit."""
        changed = False
        for each in seen:
            if self._top is not None and isinstance(each, Change) and _is_change(forest, each):
                self._begun_at = self._begun_at if self._kept else now
                self._kept.append(each)
                changed = True
            else:
                yield each
        if not self._kept:
            self._note_head(now)
            return
        moved, locked = self._head() != self._known, self._is_locked()
        self._later_at = now if changed or locked else self._later_at
        if not (moved or locked) or now >= min(self._later_at + TOGETHER_MS, self._begun_at + MOST_MS):
            yield from self._released(moved)

    def _released(self, moved: bool) -> Iterator[o.Observation]:
        """Pass on what was kept back: as a problem each, if several came with another commit."""
        kept, self._kept = self._kept, []
        if moved and len({each.loop for each in kept}) >= SEVERAL:
            yield from (o.Noticed(each.place, WAITS) for each in kept)
        else:
            yield from kept

    def _note_head(self, now: int) -> None:
        """Take HEAD for known once it has stood for a while without any change that came with it."""
        if now < self._moved_at + SETTLED_MS:
            return
        head, self._moved_at = self._head(), now
        self._known, self._last = (head, head) if head == self._last else (self._known, head)

    def _head(self) -> Head:
        """Return where HEAD is."""
        return head_of(self._top) if self._top is not None else Head("", "")

    def _is_locked(self) -> bool:
        """Say whether git is at work in the checkout."""
        return self._lock is not None and self._lock.exists()


def _is_change(forest: Forest, seen: Change) -> bool:
    """Say whether a file that was seen is not the one that counts already."""
    loop = forest.loops.get(seen.loop)
    return isinstance(seen, o.FileRefused) or (loop is not None and seen.digest != loop.artifact)
