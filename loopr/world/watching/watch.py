"""Which places in the tree of artifacts to look at again, as far as changes are heard.

Knows folders and the limits of hearing. Must never know what a file means.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loopr.core.outline import MAX_DEPTH
from loopr.world.watching.ears import Ears, Hint, KernelEars, Mailbox, WatchdogEars

ARTIFACT_SUFFIX = ".md"
MAX_HINTS = 4_096  # so many places are quicker looked at all together
_RETRY_SECS = 10
_LIMITS = {
    errno.ENOSPC: "the limit of watched folders is reached: raise fs.inotify.max_user_watches",
    errno.EMFILE: "the limit of watchers is reached: raise fs.inotify.max_user_instances, or `ulimit -n`",
    errno.ENFILE: "the system has no file handle left",
    errno.ENOMEM: "the system has no memory left for watching",
}


class Watch:
    """Hears of changes below the tree of artifacts.

    `hints()` says where to look: at each path it names, and at all that is below it. While `blind` says something, not
    everything is heard: then everything must be looked at, again and again. Looking is what finds; hearing is what
    makes it quick. One thread owns a watch and calls it.
    """

    def __init__(self, specs_dir: Path, *, levels: int = MAX_DEPTH + 1) -> None:
        self.blind = "not started"
        self.whole: frozenset[Path] = frozenset()
        self._root = Path(os.path.abspath(specs_dir))  # noqa: PTH100  # a link stays what it is called
        self._levels = levels
        self._owes_all = False
        self._identity: tuple[int, int] | None = None
        self._retry_at = 0.0
        self._mailbox = Mailbox()
        self._ears: Ears | None = None

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to hear, as far as the system lets us; the first hint is the whole tree."""
        logging.getLogger("watchdog").addHandler(logging.NullHandler())  # what it complains of is said here, once
        self._owes_all = True
        self._keep_listening()

    def stop(self) -> None:
        """Hear nothing any more, and close the descriptor."""
        if self._ears is not None:
            self._ears.stop()
            self._ears = None
        self._mailbox.close()

    def fileno(self) -> int:
        """Return the descriptor that is readable while there are hints; it may go into any selector."""
        return self._mailbox.readable

    def hints(self) -> set[Path]:
        """Return the places to look at since the last call; `whole` then names the files that arrived by rename."""
        items, lost = self._mailbox.take()
        found = {hint.path: hint.whole for item in items for hint in self._understood(item) if self._matters(hint)}
        if lost:
            found[self._root] = False
        if self._root in found:
            self._identity = None  # even if a new folder has the number of the old one
        self._keep_listening()
        if self._owes_all:
            found[self._root], self._owes_all = False, False
        if len(found) > MAX_HINTS:
            found = {self._root: False}
        self.whole = frozenset(path for path, whole in found.items() if whole)
        return set(found)

    def _understood(self, item: object) -> Iterator[Hint]:
        """Say where to look because of what was heard; if a new folder cannot be watched, everywhere."""
        try:
            if self._ears is not None:
                yield from self._ears.understand(item)
        except OSError as error:
            self._fall_short(error)

    def _matters(self, hint: Hint) -> bool:
        """Leave out files that cannot be artifacts, such as what an editor puts beside one."""
        return hint.folder or hint.path.name.endswith(ARTIFACT_SUFFIX)

    def _keep_listening(self) -> None:
        """Hear whatever is the root now; where that failed, try again now and then."""
        if self._ears is not None and not self._ears.alive():
            self._ears.stop()
            self._ears, self._retry_at = None, 0.0
        identity = _identity(self._root)
        if (self._ears is None or identity == self._identity) and time.monotonic() < self._retry_at:
            return
        self._identity, self.blind, self._retry_at = identity, "", float("inf")
        self._owes_all = True
        try:
            self._ears = self._ears or best_ears(self._mailbox)
            self.blind = self._ears.doubt
            self._ears.ignore(self._root)
            with suppress(FileNotFoundError, NotADirectoryError):
                self._ears.listen(self._root, self._levels)
        except OSError as error:
            self._fall_short(error)

    def _fall_short(self, error: OSError) -> None:
        """Say that not everything is heard, and have everything looked at."""
        said = _LIMITS.get(error.errno or 0, error.strerror or str(error))
        self.blind = f"file events are incomplete, the tree is looked at again and again instead: {said}"
        self._retry_at = time.monotonic() + _RETRY_SECS
        self._owes_all = True


def best_ears(mailbox: Mailbox) -> Ears:
    """Return the best that this system has."""
    if sys.platform.startswith("linux"):
        with suppress(ImportError):  # a watchdog from before its version 7, or after a change of its insides
            return KernelEars(mailbox)
    return WatchdogEars(mailbox)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from another of the same name, None if it is not there."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
