"""Plants a workspace with a forest of a given size, for measuring: real files, a real journal, no command ever run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from loopr.core import events as e
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Terms
from loopr.wiring import Workspace

BATCH = 2_000


def shape(loops: int) -> Iterator[tuple[str, str, int]]:
    """Name (id, type, place) for a plan of ten phases a spec and ten code loops a phase, about so many in all."""
    yield "big", "plan", 0
    made, spec = 1, 0
    while made < loops:
        yield f"big/s{spec}", "spec", spec
        for phase in range(10):
            yield f"big/s{spec}/p{phase}", "phase", phase
            yield from ((f"big/s{spec}/p{phase}/c{code}", "code", code) for code in range(10))
        made, spec = made + 111, spec + 1


def growing(loops: int) -> Iterator[Event]:
    """Yield the events of a plan in full work: its specs complete, half of their phases complete, some code landed."""
    for loop_id, kind, place in shape(loops):
        parent = loop_id.rpartition("/")[0] or None
        command = kind in ("phase", "code")
        yield e.Declared(loop_id, kind, parent, Terms(loop_id, place, identity=loop_id, command=command))
        if kind in ("plan", "spec") or (kind == "phase" and place < 5):
            yield e.ArtifactAccepted(loop_id, "0" * 32)


def plant(folder: Path, loops: int) -> Path:
    """Make a repository with such a forest in its journal."""
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    (folder / "specs").mkdir()
    with Workspace(folder).turn() as engine:
        events = list(growing(loops))
        for start in range(0, len(events), BATCH):
            batch = events[start : start + BATCH]

            def decide(forest: Forest, now: int, batch: list[Event] = batch) -> Iterator[Event]:
                yield from batch

            engine.mind.decide(decide)
    return folder
