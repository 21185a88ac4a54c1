"""The checks of what stands still: stopped processes, an engine without an answer, endless waits.

Must never know git, nor why something waits beyond what was written down of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loopr.core.scene import Scene
from loopr.errors import LooprError
from loopr.ui.checkup.rows import Finding
from loopr.ui.views import instant
from loopr.wiring import Workspace
from loopr.world.bell import is_answered
from loopr.world.lock import holder
from loopr.world.processes.stopped import is_stopped, stopped
from loopr.world.runs import Runs
from loopr.world.settings import Settings

ANSWER_SECS = 3.0  # an engine looks around every second
LONG_REST_MS = 24 * 3_600_000
BROKEN_ROW = (ValueError, LookupError, TypeError, AttributeError)


def _processes(workspace: Workspace, _: Settings) -> Iterator[Finding]:
    """Name the processes that somebody has stopped, and an engine that hears nobody."""
    found = list(_still(workspace))
    fine = "none is stopped, and an engine that runs answers"
    yield from found or [Finding("processes", True, fine)]


def _still(workspace: Workspace) -> Iterator[Finding]:
    """Look at the engine, then at what its attempts consist of."""
    serves = holder(workspace.place.lock)
    pid = serves["pid"] if serves is not None and serves["kind"] == "engine" else 0
    if pid and is_stopped(pid):
        yield _wakes("the engine", pid)
    elif pid and not is_answered(workspace.place.state, ANSWER_SECS):
        text = f"the engine (pid {pid}) has not answered for {ANSWER_SECS:g} s"
        hint = "if it goes on so, `loopr stop --now` ends it, and the next run goes on where it was"
        yield Finding("processes", False, text, hint)
    for each in stopped(str(workspace.place.root), _live_runs(workspace)):
        yield _wakes(each.what, each.pid)


def _wakes(what: str, pid: int) -> Finding:
    """Say that a process is stopped, and what wakes it."""
    hint = f"`kill -CONT {pid}` lets it go on; `loopr stop --now` ends all that runs"
    return Finding("processes", False, f"{what} (pid {pid}) is stopped: it waits for SIGCONT", hint)


def _live_runs(workspace: Workspace) -> Iterator[Path]:
    """Give the folders of what loops have under way, as far as the journal can tell."""
    scene = _scene(workspace)
    runs = Runs(workspace.place.state)
    for loop_id in sorted(scene.occupancy.loops) if scene is not None else ():
        loop = scene.loops[loop_id] if scene is not None else None
        owner = (loop.lease or loop.ending) if loop is not None else None
        if loop is not None and owner is not None:
            yield from runs.steps(loop.name, owner.attempt).values()


def _waits(workspace: Workspace, _: Settings) -> Iterator[Finding]:
    """Name what waits for a person, and what waits for longer than anybody will."""
    scene = _scene(workspace)
    if scene is None:
        return
    found = [*_problems(scene), *_lanes(scene, workspace.look().now)]
    yield from found or [Finding("waits", True, "nothing waits for what does not come by itself")]


def _problems(scene: Scene) -> Iterator[Finding]:
    """Name what effects wait for; files and those who are told have checks of their own."""
    from loopr.driving.beside import PLACES

    files = f"{scene.policy.artifacts_dir}/"
    live = {f"{files}{loop_id}/" for loop_id in scene.occupancy.loops}
    for place, text in sorted(scene.shared.problems.items()):
        elsewhere = place.startswith(files) and not place.startswith(tuple(live))
        if not elsewhere and not place.startswith(PLACES):
            yield Finding("waits", False, text if place in text else f"{place}: {text}")


def _lanes(scene: Scene, now: int) -> Iterator[Finding]:
    """Name lanes that are parked, or rest for longer than a night."""
    for name, lane in sorted(scene.shared.lanes.items()):
        hint = f"`loopr reset lane:{name}` lets it go on"
        if lane.parked:
            yield Finding("waits", False, f"the lane {name} is parked: {lane.parked}", hint)
        elif lane.rest_until - now > LONG_REST_MS:
            why = lane.reason or "no reason was given"
            text = f"the lane {name} rests until {instant(lane.rest_until)}: {why}"
            yield Finding("waits", False, text, hint)


def _scene(workspace: Workspace) -> Scene | None:
    """Read what is remembered; None where that cannot be read, which other checks find."""
    try:
        return workspace.look().scene
    except (LooprError, *BROKEN_ROW):
        return None


CHECKS = (("processes", _processes), ("waits", _waits))
