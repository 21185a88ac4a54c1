"""What agents say, as people read it: the last word of one that runs, and a stream of events retold as text.

Knows which reader an attempt was started with, from its run folder. Must never know a terminal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from loopr.core.model import Loop, Status
from loopr.ui import logs
from loopr.world.launcher.log import segments
from loopr.world.launcher.words import STREAMS
from loopr.world.runs import Runs

PEEK_BYTES = 64 << 10  # an event may be long

Said = Callable[[Loop], str]


def last_words(runs: Runs, hide: Callable[[str], str]) -> Said:
    """Make what finds the last thing that the agent of a running loop said or did; nothing for a plain command.

    `hide` takes keys out of it.
    """

    def last(loop: Loop) -> str:
        reader = runs.reader(loop.name, loop.attempt)
        if not reader:
            return ""
        from loopr.world.agents import reader_for

        found = reader_for(reader)
        with suppress(OSError):
            found.feed(_end_of(_newest(runs.folder(loop.name, loop.attempt))))
        return hide(found.last) if found.last else ""

    return last


def of_agents(last: Said) -> Said:
    """Ask only for loops for which an agent works at this moment."""

    def said(loop: Loop) -> str:
        works = loop.status is Status.RUNNING and loop.lease is not None and loop.lease.agent
        return last(loop) if works else ""

    return said


def stream_of(folder: Path, name: str, *, raw: bool) -> logs.Stream:
    """Open an output of a run; the events of an agent are retold, unless they are wanted as they are."""
    if raw or name != STREAMS[0]:
        return logs.Stream(folder, name)
    attempt, step = (folder, "") if folder.name.isdigit() else (folder.parent, folder.name)
    reader = Runs(attempt.parents[2]).reader(attempt.parent.name, int(attempt.name), step)
    return logs.Stream(folder, name) if reader in ("", "plain", "aider") else _Retold(folder, name, reader)


class _Retold(logs.Stream):
    """What an agent says and does, in the place of the events that tell of it."""

    def __init__(self, folder: Path, name: str, reader: str) -> None:
        """Stand at the beginning."""
        from loopr.world.agents import reader_for

        super().__init__(folder, name)
        self._reader = reader_for(reader)

    def read(self) -> Iterator[bytes]:
        """Give what was said and done beyond what was given before."""
        for piece in super().read():
            for word in self._reader.feed(piece):
                yield f"{word}\n".encode()


def _newest(folder: Path) -> Path:
    """Return the piece of the log that is written to."""
    log = folder / STREAMS[0]
    newer = segments(str(log))
    return log.with_name(f"{log.name}.{newer[-1]}") if newer else log


def _end_of(path: Path) -> bytes:
    """Return the end of a file."""
    with path.open("rb", buffering=0) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - PEEK_BYTES))
        return file.read()
