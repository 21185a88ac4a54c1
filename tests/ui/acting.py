"""Another process that serves a workspace as an engine does: it holds the lock, and decides what a test tells it to.

`python -m tests.ui.acting FOLDER` reads a line of words at a time (`land p/a`), does that, and answers `ok`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from loopr import wiring
from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Failure
from loopr.engine import Journalled, Mind
from loopr.world.journal import Journal
from loopr.world.lock import EngineLock
from tests.ui.calls import ROOT, this_tree
from tests.ui.scenes import Clock, Desk


class Acting(Desk):
    """A desk whose owner holds the lock all the time."""

    def decide(self, decide: Callable[[Forest, int], Iterator[Event]]) -> list[Event]:
        """Let something be decided and journalled, without taking a turn for it."""
        with Journal.open(wiring.Workspace(self.folder).place.journal) as journal:
            return Mind(Journalled(journal), wiring.wall_clock, "engine").decide(decide)

    def refuse(self, loop_id: str) -> None:
        """Let a running loop be set aside."""
        self.end(loop_id, Failure.CONFIG, "no such program")

    def drain(self) -> None:
        """Start nothing more."""
        self.see(o.EngineDrains("ada"))

    def cancel(self, loop_id: str) -> None:
        """Let a person cancel a loop."""
        self.wish(wishes.cancel, loop_id, "ada")

    def stop(self, loop_id: str) -> None:
        """Let an attempt that was told to stop have ended."""
        self.see(o.StopSeen(loop_id, self.loop(loop_id).attempt))


class Actor:
    """The test's end of the other process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, *lines: str) -> Self:
        """Have lines done, one after the other."""
        for line in lines:
            assert self._process.stdin is not None
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
            self.hear("ok")
        return self

    def hear(self, word: str) -> None:
        """Wait for a word."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"{word}\n"

    def leave(self) -> None:
        """End in good order."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def kill(self) -> None:
        """Die on the spot."""
        self._process.kill()
        self._process.wait(60)


@contextmanager
def acting(folder: Path) -> Iterator[Actor]:
    """Let another process serve a workspace."""
    command = [sys.executable, "-m", "tests.ui.acting", str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=this_tree(), cwd=ROOT, text=True) as process:
        actor = Actor(process)
        try:
            actor.hear("ready")
            yield actor
        finally:
            process.kill()


def serve(folder: Path) -> None:
    """Hold the lock and do what is asked for, until nobody asks any more."""
    desk = Acting(folder, Clock())
    with EngineLock.acquire(wiring.Workspace(folder).place.lock, "engine"):
        print("ready", flush=True)
        for line in sys.stdin:
            verb, *words = line.split()
            getattr(desk, verb)(*words)
            print("ok", flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
