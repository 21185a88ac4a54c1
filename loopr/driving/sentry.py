"""Keeps an eye on what all worktrees of a repository share and no loop may change.

A cheap look at time stamps says whether to look closely. Must never undo a change: it names it, and whoever ended with
it is set aside until a person has looked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from loopr.world.repo.ground import Ground
from loopr.world.repo.watch import Sight, changes, look
from loopr.world.repo.words import Change

_FILES = ("config", "config.worktree", "packed-refs", "refs/stash")
_FOLDERS = ("hooks", "info", "refs/heads", "refs/tags", "refs/notes", "refs/replace")
_Mark = tuple[str, int, int, int]


class Sentry:
    """Knows how the shared parts of a repository were when it looked last."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._alone = Lock()
        self._marks: tuple[_Mark, ...] = ()
        self._sight: Sight | None = None
        self._live: set[str] = set()

    def begin(self, run: str) -> None:
        """Look before an attempt; what changed while none was at work is no attempt's doing."""
        with self._alone:
            if not self._live:
                self._marks, self._sight = tuple(self._marked()), look(self._ground)
            self._live.add(run)

    def changed(self, run: str) -> list[Change]:
        """Say at an attempt's end what is not as it was, but for what the user's own checkout explains."""
        with self._alone:
            self._live.discard(run)
            marks = tuple(self._marked())
            if self._sight is None or marks == self._marks:
                return []
            before, self._marks, self._sight = self._sight, marks, look(self._ground)
            return [each for each in changes(self._ground, before, self._sight) if not each.by_person]

    def _marked(self) -> Iterator[_Mark]:
        """Give the time stamps of everything that is shared."""
        common = self._ground.common
        for name in _FILES:
            yield from _mark(common / name)
        ours = common / "refs" / "heads" / self._ground.prefix.rstrip("/")
        for name in _FOLDERS:
            for folder, below, files in os.walk(common / name):
                below[:] = sorted(each for each in below if Path(folder, each) != ours)
                for file in sorted(files):
                    yield from _mark(Path(folder, file))


def _mark(path: Path) -> Iterator[_Mark]:
    """Give the time stamp of a file, if it is there."""
    try:
        status = path.lstat()
    except OSError:
        return
    yield str(path), status.st_mtime_ns, status.st_size, status.st_ino
