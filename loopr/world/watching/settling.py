"""When a file has stopped changing: it was quiet for a while, or it arrived as a whole.

Knows paths, time stamps and sizes as values. Must never know a disk or a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_NS_PER_MS = 1_000_000

Shape = tuple[int, int] | None  # (mtime_ns, size); None is a file that is not there


@dataclass(slots=True)
class _Watched:
    """A file that may still change: how it was seen last, and since when it has been so."""

    shape: Shape
    since_ms: int
    settled: bool = False


class Settling:
    """Tells which files have settled, and when to look again at those that have not.

    All instants are milliseconds of one clock that never goes back, the one that file times are compared with. A time
    stamp is only believed if it makes a file at first sight older: it may be restored, or come from another clock.
    """

    def __init__(self, settle_ms: int) -> None:
        self._settle_ms = settle_ms
        self._files: dict[Path, _Watched] = {}

    def see(self, path: Path, mtime_ns: int, size: int, now_ms: int, *, whole: bool = False) -> bool:
        """Take in how a file looks now, and tell whether it counts; `whole` if it arrived by rename."""
        if whole:
            self.forget(path)
            return True
        mtime_ms = -(-mtime_ns // _NS_PER_MS)
        settled = self._look(path, (mtime_ns, size), now_ms, min(mtime_ms, now_ms))
        if settled and mtime_ms + self._settle_ms <= now_ms:
            self.forget(path)  # from now on its time stamp tells the same
        return settled

    def miss(self, path: Path, now_ms: int) -> bool:
        """Take in that a file is not there, and tell whether that counts: some editors put it away while they save."""
        settled = self._look(path, None, now_ms, now_ms)
        if settled:
            self.forget(path)
        return settled

    def _look(self, path: Path, shape: Shape, now_ms: int, first_ms: int) -> bool:
        """Tell whether a file has looked like this for long enough; a change begins the wait anew."""
        known = self._files.get(path)
        if known is None:
            known = self._files[path] = _Watched(shape, first_ms)
        elif known.shape != shape:
            known = self._files[path] = _Watched(shape, now_ms)
        known.settled = now_ms - known.since_ms >= self._settle_ms
        return known.settled

    def forget(self, path: Path) -> None:
        """Wait for a file no longer."""
        self._files.pop(path, None)

    def due(self, now_ms: int) -> list[Path]:
        """Return the files to look at again by now."""
        return [path for path, each in self._files.items() if not each.settled and self._due_ms(each) <= now_ms]

    def next_look_ms(self) -> int | None:
        """Return when the next file is to be looked at again, None if there is none."""
        return min((self._due_ms(each) for each in self._files.values() if not each.settled), default=None)

    def _due_ms(self, file: _Watched) -> int:
        """Return when a file will have been quiet for long enough."""
        return file.since_ms + self._settle_ms
