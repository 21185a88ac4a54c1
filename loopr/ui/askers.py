"""Finds out who asks: a loop's command, a hook or a pull worker by the marks that loopr gave them, else a person.

The environment of this process tells, and those of the processes above it: whoever takes a mark out of
its own environment still has the parent that bears it. What can be seen is seen; a hostile program can
hide (`wrap` is for that). Knows variables, processes and leases. Must never know what may be wished for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from loopr.core.authority import Asker, Kind, Rights, State
from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.errors import NotFound
from loopr.recall import read_scene
from loopr.wiring import Workspace, wall_clock
from loopr.world.launcher import proc
from loopr.world.place import is_workspace

JUDGE = "land.check"
MOST_ABOVE = 64


class Mark(NamedTuple):
    """What an environment says of who works there; `pid` is 0 for that of this process."""

    workspace: str = ""
    lease: str = ""
    hook: str = ""
    pid: int = 0


class Asked(NamedTuple):
    """Who asks, what the settings in force allow them, and the state that this was read from.

    `above` are the live loops that this one works for: what is allowed must be so to each of them.
    """

    asker: Asker
    rights: Rights = Rights()
    scene: Scene | None = None
    above: tuple[tuple[Asker, Rights], ...] = ()


def who_asks(workspace: Workspace) -> Asked:
    """Find out who asks: the nearest live loop, else a lease that is quoted, else a hook, else a person."""
    found = [each for each in _marks(workspace.environ) if _concerns(workspace, each)]
    if not found:
        return Asked(Asker("person", workspace.user))
    scene = _in_force(workspace)
    askers = [each for mark in found if (each := _asker(scene, mark)) is not None]
    live = [each for each in askers if each.lease and each.state == "live"]
    nearest = next(iter([*live, *askers]), None)
    if nearest is None:
        return Asked(Asker("person", workspace.user))
    above = {each.lease: each for each in live if each.lease != nearest.lease}
    others = tuple((each, _rights(workspace, scene, each)) for each in above.values())
    return Asked(nearest, _rights(workspace, scene, nearest), scene, others)


def _marks(environ: Mapping[str, str]) -> Iterator[Mark]:
    """Give the marks of this process and of those above it, the nearest first."""
    own = _mark(environ)
    if own.lease or own.hook:
        yield own
    pid = os.getppid()
    for _ in range(MOST_ABOVE):
        if pid <= 1:
            return
        found = proc.environment(pid).items()
        mark = _mark({os.fsdecode(name): os.fsdecode(value) for name, value in found})
        if mark.workspace and (mark.lease or mark.hook):
            yield mark._replace(pid=pid)
        above = proc.stat(pid)
        pid = above.parent if above is not None else 0


def _mark(environ: Mapping[str, str]) -> Mark:
    """Read what an environment says."""
    workspace, lease = environ.get("LOOPR_WORKSPACE", ""), environ.get("LOOPR_LEASE", "")
    return Mark(workspace, lease, environ.get("LOOPR_HOOK", ""))


def _concerns(workspace: Workspace, mark: Mark) -> bool:
    """Say whether a mark may be of this workspace: without a workspace, its lease will tell."""
    return not mark.workspace or is_workspace(workspace.place, Path(mark.workspace))


def _in_force(workspace: Workspace) -> Scene:
    """Read the state under the policy that the journal has: whoever asks cannot bring one along."""
    try:
        with workspace.journal() as journal:
            return read_scene(journal, lambda records, loops: None, wall_clock())[0]
    except NotFound:
        return Scene()


def _asker(scene: Scene, mark: Mark) -> Asker | None:
    """Say who bears a mark; None where it says nothing of this workspace."""
    loop_id, sign, attempt = mark.lease.rpartition("#")
    loop = scene.loops.get(loop_id)
    known = loop is not None and attempt in map(str, range(1, loop.attempt + 1))
    if loop is None or not known:
        if mark.hook and not sign:
            judge = mark.hook == JUDGE
            return Asker("judge" if judge else "hook", mark.hook if judge else f"hook {mark.hook}")
        if not mark.lease or not mark.workspace or mark.pid:
            return None
        return Asker("loop", mark.lease, mark.lease, "unknown")
    state = _state(loop, int(attempt))
    ends = loop.ending is not None and loop.ending.attempt == int(attempt)
    if mark.pid and state != "live" and not ends:
        return None
    kind: Kind = "worker" if state == "live" and _is_pulled(loop) else "loop"
    return Asker(kind, mark.lease, mark.lease, state, loop.type, mark.pid)


def _state(loop: Loop, attempt: int) -> State:
    """Say how a lease stands."""
    return "live" if loop.lease is not None and loop.lease.attempt == attempt else "over"


def _is_pulled(loop: Loop) -> bool:
    """Say whether a pull worker works under a loop's lease; what judges its work is a loop's."""
    timed = loop.lease is not None and loop.lease.expires_at is not None
    return loop.status is Status.RUNNING and timed


def _rights(workspace: Workspace, scene: Scene, asker: Asker) -> Rights:
    """Say what the settings in force allow an asker."""
    may = scene.policy.type_of(asker.type).may if asker.type else ()
    started = set(_started(workspace, scene, asker.loop)) if may else set()
    return Rights(may, scene.policy.hooks_may_decide, started, scene.shared.plans.keys())


def _started(workspace: Workspace, scene: Scene, loop: str) -> Iterable[str]:
    """Name the plans that a loop was the first to start."""
    with workspace.journal() as journal:
        for plan in scene.shared.plans:
            first = next(iter(journal.story(plan)), None)
            actor = first.actor.partition(" via ")[0] if first is not None else ""
            if actor.rpartition("#")[0] == loop:
                yield plan
