"""Follows the work of an engine that is another process: its journal is read along, and a forest of our own follows.

Knows the journal and the folders of runs, for reading. Must never decide anything, nor change a byte on disk.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from loopr import wiring
from loopr.core.codec import decode
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Loop
from loopr.errors import NotFound
from loopr.ui.picture import Tail
from loopr.ui.telling import concerns
from loopr.world.journal import Journal

LOOK_SECS = 0.1
TICK_SECS = 1.0

Until = Callable[[Forest, int], bool]


class Watching(Protocol):
    """What looks on: told of what has happened, and now and then that time goes by."""

    def show(self, forest: Forest, events: Sequence[Event], now: int, tail: Tail, /) -> object:
        """Take what has happened."""

    def tick(self, forest: Forest, now: int, tail: Tail, /) -> object:
        """Let time go by."""


def follow(
    workspace: wiring.Workspace,
    plans: Sequence[str],
    show: Watching,
    until: Until,
    timeout_ms: int | None,
    *,
    tick_secs: float = TICK_SECS,
    stays: Callable[[], bool] = lambda: False,
) -> tuple[Forest, int, bool]:
    """Show what happens to some plans until something holds, nobody works any more, or time is up (then True).

    While it `stays` there is still something to be seen, though no engine works.
    """
    gc.enable()  # a verb that looked before has switched it off, and this one stays
    forest, seq, now = workspace.ponder()
    try:
        journal = workspace.journal()
    except NotFound:
        return forest, now, False
    tail, ticks_at = tail_of(workspace), time.monotonic()
    ends = None if timeout_ms is None else ticks_at + timeout_ms / 1000
    with journal:
        show.show(forest, (), now, tail)
        while True:
            ticks = time.monotonic() >= ticks_at
            alone = ticks and workspace.engine() is None  # asked first: its last words are in the journal by then
            fresh, seq = _read_on(journal, seq, forest)
            now = max(wiring.wall_clock(), forest.at)
            if fresh:
                show.show(forest, [each for each in fresh if concerns(plans, each)], now, tail)
            if ticks:
                ticks_at = time.monotonic() + tick_secs
                show.tick(forest, now, tail)
            if ((fresh or ticks) and until(forest, now)) or (alone and not fresh and not stays()):
                return forest, now, False
            left = LOOK_SECS if ends is None else min(LOOK_SECS, ends - time.monotonic())
            if left <= 0:
                return forest, now, True
            time.sleep(left)


def _read_on(journal: Journal, seq: int, forest: Forest) -> tuple[list[Event], int]:
    """Let the forest take what was decided since an event; return that, with the last event that is known."""
    fresh: list[Event] = []
    if not journal.changed_since(seq):
        return fresh, seq
    for record in journal.since(seq):
        event = decode(record.event, record.version, record.data)
        forest.apply(event, record.at)
        fresh.append(event)
        seq = record.seq
    forest.take_rows()  # they are the engine's to write; here they would only grow
    return fresh, seq


def tail_of(workspace: wiring.Workspace) -> Tail:
    """Make what finds the last line of a loop's output."""
    from loopr.ui.saying import last_words
    from loopr.world.processes import last_lines
    from loopr.world.runs import Runs

    runs = Runs(workspace.place.state)
    said = last_words(runs, workspace.hide)

    def tail(loop: Loop) -> str:
        last = said(loop) or "".join(last_lines(runs.folder(loop.name, loop.attempt), 1))
        return workspace.hide(last) if last else ""

    return tail
