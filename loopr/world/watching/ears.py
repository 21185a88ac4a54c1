"""What hears of changes: the kernel's own queue as watchdog reads it, or watchdog's observer where there is none.

Knows events and watches. Must never know which folders matter, nor what is in them.
"""

from __future__ import annotations

import errno
import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from watchdog.observers.api import ObservedWatch
    from watchdog.observers.inotify_c import InotifyEvent

MAX_WAITING = 65_536  # events that nobody has asked for yet
_UNTOLD = "this system, or this version of watchdog, does not say when file events are lost"

# As the kernel has it. Not asked for: opening, reading, and each write to a file that is still open.
_ATTRIB, _CLOSED, _MOVED_FROM, _MOVED_TO = 0x4, 0x8, 0x40, 0x80
_CREATED, _DELETED, _SELF_DELETED, _SELF_MOVED = 0x100, 0x200, 0x400, 0x800
_UNMOUNTED, _IGNORED, _ONLY_FOLDERS, _FOLDER = 0x2000, 0x8000, 0x0100_0000, 0x4000_0000
_WANTED = _ATTRIB | _CLOSED | _MOVED_FROM | _MOVED_TO | _CREATED | _DELETED | _SELF_DELETED | _SELF_MOVED
_SELF_GONE = _SELF_DELETED | _SELF_MOVED | _UNMOUNTED | _IGNORED
_APPEARED = _CREATED | _MOVED_TO


class Hint(NamedTuple):
    """A place to look at; `whole` if a file was put there by rename, so that nobody is still writing it."""

    path: Path
    folder: bool
    whole: bool = False


class Mailbox:
    """What watchdog's threads leave for the engine: bounded, with a descriptor that is readable while there is any."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._signalled = False
        self._losses = self._known_losses = 0  # each is written by one side only
        self.readable, self._writable = os.pipe()
        os.set_blocking(self.readable, False)
        os.set_blocking(self._writable, False)

    def put(self, item: Any) -> None:
        """Keep an item, and wake whoever waits."""
        if len(self._items) >= MAX_WAITING:
            self._items.clear()
            self._losses += 1
        self._items.append(item)
        self.signal()

    def lose(self) -> None:
        """Note that something was lost on the way here."""
        self._losses += 1
        self.signal()

    def signal(self) -> None:
        """Make the descriptor readable; a pipe that is full is readable already."""
        if not self._signalled:
            self._signalled = True
            with suppress(BlockingIOError):
                os.write(self._writable, b"\0")

    def take(self) -> tuple[list[Any], bool]:
        """Return what is there, and whether anything was lost; what comes meanwhile signals anew."""
        with suppress(BlockingIOError):
            while os.read(self.readable, 4096):
                pass
        self._signalled = False
        losses, before = self._losses, self._known_losses
        self._known_losses = losses
        items: list[Any] = []
        with suppress(IndexError):  # the other side makes room when it is full
            for _ in range(len(self._items)):
                items.append(self._items.popleft())
        return items, losses != before

    def close(self) -> None:
        """Close both ends."""
        os.close(self.readable)
        os.close(self._writable)


class Ears(Protocol):
    """What hears of changes below folders; `doubt` says why something may stay unheard and untold, if it may."""

    doubt: str

    def listen(self, folder: Path, levels: int) -> None:
        """Hear of changes in a folder and so many levels below it, from now on; raise an OSError if that cannot be."""

    def ignore(self, folder: Path) -> None:
        """Hear no more of a folder and of what is below it."""

    def understand(self, item: Any) -> Iterator[Hint]:
        """Say where to look because of what was heard."""

    def alive(self) -> bool:
        """Tell whether anything can still be heard."""

    def stop(self) -> None:
        """Hear nothing any more."""


class _Folder(NamedTuple):
    """A folder that the kernel watches for us; `levels` are still watched below it."""

    path: Path
    levels: int
    callback: int


class KernelEars:
    """Linux: one queue and one thread of watchdog's for all folders.

    watchdog's observer would hold back what comes after a move out of the tree for 500 ms, swallow the news that the
    queue ran over or that a limit was reached, and need a thread for each folder.
    """

    def __init__(self, mailbox: Mailbox) -> None:
        from watchdog.observers.inotify_c import InotifyFD, WatchCallback

        self.doubt = "" if hasattr(WatchCallback, "on_queue_overflow") else _UNTOLD  # it came with version 7.1
        self._mailbox = mailbox
        self._folders: dict[int, _Folder] = {}
        self._numbers: dict[Path, int] = {}
        self._below: dict[Path, set[Path]] = {}
        self._callbacks = 0
        self._fd = InotifyFD()
        with suppress(AttributeError, OSError):  # else every command that is started would keep the queue alive
            os.set_inheritable(self._fd._inotify_fd, False)
        self._fd.start()

    def on_event(self, event: InotifyEvent) -> None:
        """Put down what happened (called in watchdog's thread)."""
        self._mailbox.put((int(event.wd), int(event.mask), event.name))

    def on_watch_deleted(self, wd: int) -> None:
        """Put down that the kernel watches a folder no more (called in watchdog's thread)."""
        self._mailbox.put((int(wd), _IGNORED, b""))

    def on_queue_overflow(self) -> None:
        """Put down that the kernel had no room for more (called in watchdog's thread)."""
        self._mailbox.lose()

    def listen(self, folder: Path, levels: int) -> None:
        """Watch a folder before listing it, and so on down: nothing can appear in between unheard."""
        self.ignore(folder)
        waiting = [(folder, levels)]
        while waiting:
            path, left = waiting.pop()
            if self._watch(path, left, needed=path == folder) and left:
                waiting.extend((each, left - 1) for each in _folders_in(path))

    def _watch(self, path: Path, levels: int, *, needed: bool) -> bool:
        """Have the kernel watch one folder; one that is gone again is passed over unless it is needed."""
        self._callbacks += 1
        mask: Any = _WANTED | _ONLY_FOLDERS
        number: Any
        ours: Any = self._callbacks
        try:
            number = self._fd.add_callback(os.fsencode(path), mask, self, ours)
        except (FileNotFoundError, NotADirectoryError):
            if needed:
                raise
            return False
        if number < 0:  # not ours to read: watchdog passes over that in silence
            self._fd.remove_callbacks([(number, ours)])
            if needed:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return False
        self._folders[number] = _Folder(path, levels, self._callbacks)
        self._numbers[path] = number
        self._below.setdefault(path.parent, set()).add(path)
        return True

    def ignore(self, folder: Path) -> None:
        """Forget a folder and what is below it; below one that is not watched, nothing is."""
        gone = [folder] if folder in self._numbers else []
        while gone:
            path = gone.pop()
            gone.extend(self._below.pop(path, ()))
            self._below.get(path.parent, set()).discard(path)
            number: Any = self._numbers.pop(path, None)
            known = self._folders.get(number)
            if known is not None and known.path == path:  # else it goes by another name by now
                ours: Any = known.callback
                del self._folders[number]
                self._fd.remove_callbacks([(number, ours)])

    def understand(self, item: Any) -> Iterator[Hint]:
        """Say where to look, and follow folders that came, went or changed their names."""
        number, mask, name = item
        folder = self._folders.get(number)
        if folder is None:
            return
        if not name:
            if mask & _SELF_GONE:
                self.ignore(folder.path)
                yield Hint(folder.path, folder=True)
        elif not name.startswith(b"."):
            path = folder.path / os.fsdecode(name)
            if mask & _FOLDER:
                self._follow(path, mask, folder.levels)
                yield Hint(path, folder=True)
            else:
                yield Hint(path, folder=False, whole=bool(mask & _MOVED_TO))

    def _follow(self, path: Path, mask: int, levels: int) -> None:
        """Watch a folder that came, and forget one that went."""
        if mask & ~_FOLDER != _ATTRIB:
            self.ignore(path)
        if levels and mask & (_APPEARED | _ATTRIB) and path not in self._numbers:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # looking finds nothing there either
                self.listen(path, levels - 1)

    def alive(self) -> bool:
        """Tell whether watchdog's thread still reads the queue."""
        return self._fd.is_alive()

    def stop(self) -> None:
        """End watchdog's thread and give the queue back."""
        self._fd.stop()
        self._fd.join()


class WatchdogEars:
    """Any other system, or another watchdog: its observer, asked for no more events than are needed."""

    doubt = _UNTOLD

    def __init__(self, mailbox: Mailbox) -> None:
        from watchdog import events
        from watchdog.observers import Observer

        self._filter = [
            *(events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent, events.FileCreatedEvent),
            *(events.FileMovedEvent, events.FileDeletedEvent, events.FileClosedEvent),
            *(() if sys.platform.startswith("linux") else (events.FileModifiedEvent,)),
        ]
        self._handler = events.FileSystemEventHandler()
        setattr(self._handler, "dispatch", mailbox.put)  # noqa: B010  # nothing else happens in watchdog's thread
        self._watched: dict[Path, ObservedWatch] = {}
        self._observer = Observer()
        self._observer.start()

    def listen(self, folder: Path, levels: int) -> None:
        """Watch a folder, with everything below it or with nothing."""
        self.ignore(folder)
        self._watched[folder] = self._observer.schedule(
            self._handler, str(folder), recursive=levels > 0, event_filter=self._filter
        )

    def ignore(self, folder: Path) -> None:
        """Watch a folder no more."""
        watched = self._watched.pop(folder, None)
        if watched is not None:
            with suppress(KeyError):
                self._observer.unschedule(watched)

    def understand(self, item: Any) -> Iterator[Hint]:
        """Say where to look: both ends of a move."""
        for text in filter(None, (os.fsdecode(item.src_path), os.fsdecode(item.dest_path))):
            if not os.path.basename(text).startswith("."):  # noqa: PTH119  # a hot path
                whole = not item.is_directory and text == os.fsdecode(item.dest_path)
                yield Hint(Path(text), item.is_directory, whole)

    def alive(self) -> bool:
        """Tell whether watchdog's thread still runs."""
        return self._observer.is_alive()

    def stop(self) -> None:
        """End watchdog's threads."""
        self._observer.stop()
        self._observer.join()


def _folders_in(folder: Path) -> Iterator[Path]:
    """Yield the folders in a folder, without hidden ones and links; one that cannot be listed has none."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                    yield folder / entry.name
    except OSError:
        return
