"""Whether a folder's files are written to: whoever follows the journal sleeps until there may be more to read.

Knows watchdog and a pipe. Must never know what is written: any write is a hint to look, and one may stay unheard.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent


class Growth:
    """A descriptor that is readable after a write in a folder; `hears` is False where nothing can be heard of it."""

    def __init__(self, folder: Path) -> None:
        """Listen from now on."""
        from watchdog.events import FileModifiedEvent, FileSystemEventHandler
        from watchdog.observers import Observer

        self._readable, self._writable = os.pipe()
        for each in (self._readable, self._writable):
            os.set_blocking(each, False)
        listener = FileSystemEventHandler()
        setattr(listener, "dispatch", self._note)  # noqa: B010  # called in watchdog's thread
        self._observer = Observer()
        self.hears = True
        try:
            self._observer.schedule(listener, str(folder), event_filter=[FileModifiedEvent])
            self._observer.start()
        except OSError:  # there is no such folder, or the kernel's limit of watches is reached
            self.hears = False

    def _note(self, event: FileSystemEvent) -> None:
        """Make the descriptor readable; one that is full is readable already."""
        with suppress(BlockingIOError):
            os.write(self._writable, b"!")

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._readable

    def hear(self) -> None:
        """Forget what was heard until now."""
        with suppress(BlockingIOError):
            while os.read(self._readable, 4096):
                pass

    def close(self) -> None:
        """Listen no more."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()
        os.close(self._readable)
        os.close(self._writable)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Listen no more."""
        self.close()
