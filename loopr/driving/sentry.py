"""Keeps an eye on what all worktrees of a repository share and no loop may change.

A cheap look at time stamps says whether to look closely. What keeps a person's checkout from working is put back.
Whatever harms somebody is named, and whoever ended with it is set aside until a person has looked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from loopr.world.repo.ground import Ground
from loopr.world.repo.restoring import put_back
from loopr.world.repo.watch import Sight, changes, look, top_refs
from loopr.world.repo.words import Change

_FILES = ("config", "config.worktree", "packed-refs")
_FOLDERS = ("hooks", "info", "refs/heads", "refs/tags", "refs/notes", "refs/replace")
_Mark = tuple[str, int, int, int]
MOST_NAMED = 5


class Changed(NamedTuple):
    """What is not as it was: what somebody has to look at, and what came and may stay; the first names of each."""

    touched: tuple[str, ...]
    grown: tuple[str, ...]

    @property
    def words(self) -> str:
        """Tell a person what to look at; another attempt that ran at the same time may have done it."""
        names = ", ".join(self.touched)
        return f"while it ran, what all worktrees share was changed: {names}; look at it, mend it if need be"


NOTHING = Changed((), ())


class Sentry:
    """Knows how the shared parts of a repository were when it looked last."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._alone = Lock()
        self._marks: tuple[_Mark, ...] = ()
        self._sight: Sight | None = None
        self._live: dict[str, list[str]] = {}  # who is at work, each with what was changed meanwhile
        self._grown: list[str] = []  # what came and may stay; who ends next tells of it

    def begin(self, run: str) -> None:
        """Look before an attempt: what was changed until now is not its doing, nor anybody's where none was at work."""
        with self._alone:
            if self._live:
                self._notice()
            else:
                self._marks, self._sight = tuple(self._marked()), look(self._ground)
            self._live[run] = []

    def forget(self, run: str) -> None:
        """Take it that an attempt will not be asked about."""
        with self._alone:
            self._live.pop(run, None)

    def changed(self, run: str) -> Changed:
        """Say at an attempt's end what was changed while it was at work, but for what the user's checkout explains."""
        with self._alone:
            self._live.setdefault(run, [])  # an earlier engine may have begun it
            self._notice()
            touched, grown = self._live.pop(run), self._grown
            self._grown = []
            return Changed(_few(touched), _few(grown))

    def _notice(self) -> None:
        """Put down whatever is not as it was to all that are at work: it may be the doing of each."""
        marks = tuple(self._marked())
        if self._sight is None or marks == self._marks:
            return
        before, self._marks, self._sight = self._sight, marks, look(self._ground)
        found = changes(self._ground, before, self._sight)
        touched = [each for each in found if not (each.by_person or each.harmless)]
        back = put_back(self._ground, touched)
        if back:  # somebody may have changed something else meanwhile
            seen, self._marks, self._sight = self._sight, tuple(self._marked()), look(self._ground)
            found += [each for each in changes(self._ground, seen, self._sight) if each.name not in back]
            touched = [each for each in found if not (each.by_person or each.harmless)]
        for known in self._live.values():
            known += [_named(each, back.get(each.name, "")) for each in touched]
        self._grown += [each.name for each in found if each.harmless and not each.by_person]

    def _marked(self) -> Iterator[_Mark]:
        """Give the time stamps of everything that is shared."""
        common = self._ground.common
        for name in (*_FILES, *sorted(top_refs(common))):
            yield from _mark(common / name)
        ours = common / "refs" / "heads" / self._ground.prefix.rstrip("/")
        for name in _FOLDERS:
            for folder, below, files in os.walk(common / name):
                below[:] = sorted(each for each in below if Path(folder, each) != ours)
                for file in sorted(files):
                    yield from _mark(Path(folder, file))


def _named(change: Change, back: str) -> str:
    """Name a change, with where a ref was, for what a setting was may be a secret; and what came of putting it back."""
    was = f"was {change.before[:12]}" if change.before and change.name.startswith("refs/") else ""
    said = ", ".join(filter(None, [was, back]))
    return f"{change.name} ({said})" if said else change.name


def _few(names: list[str]) -> tuple[str, ...]:
    """Return the first of some names, each once, and that there are more."""
    each = list(dict.fromkeys(names))
    return (*each[:MOST_NAMED], *(["…"] if len(each) > MOST_NAMED else []))


def _mark(path: Path) -> Iterator[_Mark]:
    """Give the time stamp of a file, if it is there."""
    try:
        status = path.lstat()
    except OSError:
        return
    yield str(path), status.st_ctime_ns, status.st_size, status.st_ino  # which nobody can set
