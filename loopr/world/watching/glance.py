"""Hears that something has changed right in some folders, and not what: it ends a rest.

Knows folders. Must never know a file, nor what it means.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from loopr.world.watching.ears import Ears, Mailbox
from loopr.world.watching.watch import best_ears


class Glance:
    """Hears of changes in folders, not below them; one thread owns it and calls it."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Name the folders; those that are not there are left out."""
        self._folders = folders
        self._mailbox: Mailbox | None = None
        self._ears: Ears | None = None

    def begin(self) -> bool:
        """Begin to hear, once; False where the system does not let us."""
        if self._ears is not None:
            return self._ears.alive()
        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        self._mailbox = self._mailbox or Mailbox()
        with suppress(OSError):
            self._ears = best_ears(self._mailbox)
            for each in self._folders:
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    self._ears.listen(each, 0)
            return True
        if self._ears is not None:
            self._ears.stop()
            self._ears = None
        return False

    def fileno(self) -> int:
        """Return the descriptor that is readable when something has changed."""
        return self._mailbox.readable if self._mailbox is not None else -1

    def clear(self) -> None:
        """Forget what was heard."""
        if self._mailbox is not None:
            self._mailbox.take()

    def stop(self) -> None:
        """Hear nothing any more; once is enough."""
        if self._ears is not None:
            self._ears.stop()
        if self._mailbox is not None:
            self._mailbox.close()
        self._ears = self._mailbox = None
