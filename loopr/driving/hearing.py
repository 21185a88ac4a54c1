"""Listens to running agents: what each said or did last, and what it has used so far, as its stream tells.

Reads along the logs of attempts, once a second, and only those of agents. Must never decide what follows from it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loopr.core import observations as o
from loopr.core.forest import Forest
from loopr.core.model import Loop, Status
from loopr.driving.agents import level_of, usage_of
from loopr.world.agents import Reader, Share, Used, reader_for
from loopr.world.agents.words import NOTHING_USED
from loopr.world.launcher.log import segments
from loopr.world.launcher.words import STREAMS
from loopr.world.runs import Runs

EVERY_MS = 1_000
TELL_MS = 10_000  # what is used is journalled: not with every word
MOST_BYTES = 4 << 20  # of one agent at a time


class Hearing:
    """Listens to every agent that runs."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._ears: dict[str, _Ear] = {}
        self._next = 0

    def look(self, forest: Forest, now: int) -> Iterator[o.Observation]:
        """Read on, once a second, and give what was used by whoever has used more."""
        if now < self._next:
            return
        self._next = now + EVERY_MS
        ears: dict[str, _Ear] = {}
        for loop_id in forest.occupancy.loops:
            loop = forest.loops[loop_id]
            if loop.status is Status.RUNNING and loop.lease is not None and loop.lease.agent:
                ear = self._ears.get(loop.lease_id) or self._ear_for(loop)
                if ear is not None:
                    ears[loop.lease_id] = ear
                    ear.listen()
                    if (used := ear.news(now)) is not None:
                        yield o.AttemptUsed(loop.id, loop.attempt, usage_of(used))
                    if (share := ear.fresh_share()) is not None and loop.lane is not None:
                        yield level_of(loop.lane, share)
        self._ears = ears

    def last(self, loop: Loop) -> str:
        """Return what a loop's agent said or did last, nothing where none is heard."""
        ear = self._ears.get(loop.lease_id)
        return ear.reader.last if ear is not None else ""

    def _ear_for(self, loop: Loop) -> _Ear | None:
        """Begin to listen to an attempt, by the reader that it was started with."""
        reader = self._runs.circumstances(loop.name, loop.attempt).get("reader", "")
        return _Ear(self._runs.folder(loop.name, loop.attempt), reader_for(reader)) if reader else None


class _Ear:
    """Listens to one attempt."""

    def __init__(self, folder: Path, reader: Reader) -> None:
        self.reader = reader
        self._path = str(folder / STREAMS[0])
        self._segment: int | None = None  # the head, as long as the log is not longer
        self._offset = 0
        self._told: Used = NOTHING_USED
        self._told_at = 0
        self._share: Share | None = None

    def listen(self) -> None:
        """Read what was written since; a log that was cut goes on with its newest piece."""
        with suppress(OSError):
            if not self._read_on() and (newer := segments(self._path)) and newer[-1] != self._segment:
                self._segment, self._offset = newer[-1], 0
                self._read_on()

    def _read_on(self) -> bool:
        """Read on in the piece of the moment, and say whether there was anything."""
        path = self._path if self._segment is None else f"{self._path}.{self._segment}"
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 # once a second for every agent
            size = os.fstat(file.fileno()).st_size
            self._offset = max(self._offset, size - MOST_BYTES)
            file.seek(self._offset)
            piece = file.read(MOST_BYTES)
        self._offset += len(piece)
        if piece:
            self.reader.feed(piece)
        return bool(piece)

    def news(self, now: int) -> Used | None:
        """Return what was used so far, if that is more than was told, and it is time to tell."""
        used = self.reader.used
        if used == self._told or now < self._told_at + TELL_MS:
            return None
        self._told, self._told_at = used, now
        return used

    def fresh_share(self) -> Share | None:
        """Return how much of the provider's window is used, if that is not what was told last."""
        before, self._share = self._share, self.reader.share
        return None if self._share == before else self._share
