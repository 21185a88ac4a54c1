"""What an edit of a plan comes to where another process decides it: its events are waited for, and taken in.

Must never decide anything itself, nor wait for work that is done.
"""

from __future__ import annotations

import time

from loopr.core.events import Event
from loopr.core.model import Loop
from loopr.engine import Engine
from loopr.ui.unattended import serves
from loopr.wiring import Workspace
from loopr.world.bell import ring

PATIENCE_SECS = 10.0  # without a word of the engine that serves the workspace
LOOK_SECS = 0.02


def take_up(engine: Engine, workspace: Workspace, plan: str) -> list[Event]:
    """Let the declared loops of a plan settle, by this engine or by the one that serves the workspace."""
    if engine.settles:
        return engine.settle([plan])
    ring(workspace.place.state)
    events: list[Event] = []
    with workspace.journal() as journal:
        ends = time.monotonic() + PATIENCE_SECS
        while is_awaited(engine, plan) and time.monotonic() < ends:
            alone = not serves(workspace.engine())  # asked first: its last words are in the journal by then
            if journal.changed_since(engine.mind.seq):
                events += engine.mind.catch_up(journal.since(engine.mind.seq))
                ends = time.monotonic() + PATIENCE_SECS
            elif alone:
                break
            else:
                time.sleep(LOOK_SECS)
    return events


def is_awaited(engine: Engine, plan: str) -> bool:
    """Say whether loops of a plan are still to be completed as they are written."""
    forest = engine.forest
    return any(_is_free(engine, forest.loops[each]) for each in forest.settled_now() if each.startswith(f"{plan}/"))


def _is_free(engine: Engine, loop: Loop) -> bool:
    """Say whether nothing is known to be in the way of a loop's artifact."""
    place = engine.forest.policy.place_of(loop.id, loop.type)
    return not loop.offers.offered and not loop.offers.unread and place not in engine.forest.shared.problems
