"""What pull workers ask for, fulfilled for every surface alike: to take leases, to keep them, to be done with them.

A lease is decided in the journal first, by the gates that bind the engine too; only then is its folder made ready, in
the process that asks. Must never know a gate, nor a terminal or a protocol.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from loopr.core import events as e
from loopr.core.authority import reach
from loopr.core.choose import ENGINE
from loopr.core.choose import take as choose_for
from loopr.core.entries import Entry
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.gates import NOT_OF_WORKERS, closed_gates
from loopr.core.model import Ending, Lease, Loop, Status
from loopr.core.scene import Scene
from loopr.errors import Deferred, LooprError, NotFound, Problem, StaleLease, UserError, WorldError
from loopr.payers import check_payers
from loopr.ui.gate import pass_gate
from loopr.ui.handing import Place, release, renew
from loopr.ui.names import counted
from loopr.ui.steering import deciding
from loopr.ui.views import Row, document, instant
from loopr.wiring import Workspace, wall_clock

if TYPE_CHECKING:
    from loopr.driving.pulling import Ready
    from loopr.engine import Decide, Engine

MOST_TOLD = 3
MOST_AT_ONCE = 1_000
LONGEST_HOLDER = 100


class Wanted(NamedTuple):
    """What a pull worker asks for: how many leases, of which types and projects, and in whose name.

    `below` has the beginnings of the ids that a loop may have; whoever is none may have any.
    """

    limit: int = 1
    types: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    holder: str = ""
    below: tuple[str, ...] = ()


def check(wanted: Wanted) -> None:
    """Refuse what nobody can understand, whatever there is in the workspace."""
    if not 1 <= wanted.limit <= MOST_AT_ONCE:
        raise UserError(f"--limit {wanted.limit} is out of range", hint=f"from 1 to {MOST_AT_ONCE:,}")
    name = wanted.holder
    if name == ENGINE:
        raise UserError(f"a pull worker cannot be called {ENGINE!r}", hint="that is who holds the engine's own leases")
    if not name.strip() or len(name) > LONGEST_HOLDER or not name.isprintable():
        raise UserError(f"{name!r} is no name for a holder", hint=f"one line of at most {LONGEST_HOLDER} characters")


class Granted(NamedTuple):
    """What was granted: each lease with its loop and the entry of that, and the forest as it was then.

    `above` are the entries of the loops whose artifacts are read.
    """

    forest: Forest
    leased: dict[str, tuple[Loop, Entry | None]]
    above: dict[str, Entry | None]


def grant(workspace: Workspace, wanted: Wanted) -> Granted:
    """Decide who gets which leases, or raise `Deferred` and say why there are none."""
    check(wanted)
    if not workspace.remembers():
        raise Deferred("nothing could be leased: nothing was ever started here", hint="`loopr start PLAN`")

    def course(forest: Forest, now: int) -> Iterator[Event]:
        _check_names(forest, wanted)
        yield from choose_for(
            forest,
            now,
            holder=wanted.holder,
            limit=wanted.limit,
            types=wanted.types,
            projects=wanted.projects,
            below=wanted.below,
        )

    with deciding(workspace) as engine:
        _check_payers(workspace, engine.forest)
        events = _decided(workspace, engine, course)
        loops = [engine.forest.loops[each.loop] for each in events if isinstance(each, e.LeaseGranted)]
        if not loops:
            raise _nothing(engine.forest, wanted, engine.mind.now())
        find = engine.mind.find_entry
        above = {each: find(each) for each in {loop.parent for loop in loops if loop.parent}}
        return Granted(engine.forest, {each.lease_id: (each, find(each.id)) for each in loops}, above)


def _check_payers(workspace: Workspace, forest: Forest) -> None:
    """Refuse to begin where a plan's project is not known; an engine at work goes by the settings from before."""
    holder = workspace.engine()
    if holder is None or holder["kind"] != "engine":
        check_payers(workspace, forest)


def _decided(workspace: Workspace, engine: Engine, course: Decide) -> list[Event]:
    """Decide on leases; where no engine looks at the artifacts, on those as they are now."""
    if not engine.settles:
        return engine.mind.decide(course)
    from loopr.driving.first_look import decide_looking  # slow to import

    return decide_looking(engine, workspace.settings.artifacts.settle_ms, course)


def _check_names(scene: Scene, wanted: Wanted) -> None:
    """Refuse types and projects that nobody knows."""
    projects = {*scene.policy.projects, *(each.project for each in scene.loops.values())}
    for what, names, known in (("type", wanted.types, scene.policy.types), ("project", wanted.projects, projects)):
        for name in names:
            if name not in known:
                raise NotFound(f"there is no {what} {name}", hint=f"known: {', '.join(sorted(known))}")


def _nothing(scene: Scene, wanted: Wanted, now: int) -> Deferred:
    """Say what keeps every loop that was asked for from being leased; what binds the engine alone is left out."""
    held: dict[str, list[str]] = {}
    for loop in scene.tree.walk():
        asked = (
            (not wanted.types or loop.type in wanted.types)
            and (not wanted.projects or loop.project in wanted.projects)
            and (not wanted.below or loop.id.startswith(wanted.below))
        )
        if asked and loop.status is Status.PENDING:
            gate = next((each for each in closed_gates(scene, loop, now) if each.gate not in NOT_OF_WORKERS), None)
            if gate is not None:
                held.setdefault(gate.reason, []).append(loop.id)
    found = sorted(held.items(), key=lambda each: -len(each[1]))
    told = "; ".join(f"{ids[0] if len(ids) == 1 else f'{len(ids)} loops'}: {why}" for why, ids in found[:MOST_TOLD])
    more = f"; and {counted(len(found) - MOST_TOLD, 'more reason')}" if len(found) > MOST_TOLD else ""
    hint = "`loopr next --pull` tells it of each" if found else "`loopr ls` lists the loops"
    return Deferred(f"nothing could be leased: {told or 'no loop that was asked for is pending'}{more}", hint=hint)


# --- to take ----------------------------------------------------------------------------------------------------------


class Taken(NamedTuple):
    """What a pull worker was given, as a document, and what it was not given after all."""

    document: Row
    failed: tuple[Problem, ...]


def take(workspace: Workspace, wanted: Wanted) -> Taken:
    """Lease loops to a pull worker, and make each ready: all that its work begins with."""
    from loopr.driving.lookout import begin_afresh
    from loopr.driving.pulling import make_ready, task_of

    asked = pass_gate(workspace, "lease take")
    below = reach(asked.asker, asked.rights)
    wanted = wanted._replace(holder=wanted.holder or workspace.actor, below=below)
    check(wanted)
    kit = workspace.kit()
    granted = grant(workspace, wanted)
    kit.entries = granted.above.get
    keeper = _Keeper(workspace, granted)
    failed: list[Problem] = []
    try:
        begin_afresh(kit, granted.forest, (loop.id for loop, _ in granted.leased.values()))
        for lease, (loop, entry) in granted.leased.items():
            try:
                task = task_of(kit, granted.forest, loop, entry)
                keeper.ready[lease] = make_ready(kit, task, keeper.renew, keeper.every_secs)
            except (LooprError, OSError) as error:
                failed.append(Problem(f"{lease} was given back: it could not be made ready: {error}"))
                keeper.give_back(lease, f"it could not be made ready: {error}")
        keeper.renew_if_due()
    except BaseException:
        for lease in granted.leased:
            keeper.give_back(lease, "its taking was interrupted")
        raise
    failed += [Problem(f"{lease} was taken away while it was made ready") for lease in keeper.lost]
    if not keeper.ready:
        raise WorldError("; ".join(map(str, failed)), hint="`loopr lease take` may be tried again once that is mended")
    rows = [keeper.row(lease) for lease in granted.leased if lease in keeper.ready]
    return Taken(document(wall_clock(), {"leases": rows}), tuple(failed))


class _Keeper:
    """Keeps leases alive until the worker has them."""

    def __init__(self, workspace: Workspace, granted: Granted) -> None:
        """Begin with leases that are fresh."""
        self._workspace = workspace
        held = {name: loop.lease for name, (loop, _) in granted.leased.items()}
        self._expires = {name: instant(lease.expires_at) for name, lease in held.items() if lease is not None}
        self.every_secs = granted.forest.policy.lease_ttl_ms / 3000
        self._renewed = time.monotonic()
        self.ready: dict[str, Ready] = {}
        self.lost: list[str] = []

    def renew(self) -> None:
        """Renew all that is held; what was taken away meanwhile is lost."""
        self._renewed = time.monotonic()
        for lease in list(self._expires):
            try:
                self._expires[lease] = renew(self._workspace, [lease])["leases"][0]["expires_at"]
            except StaleLease:
                del self._expires[lease]
                self.lost += [lease] if self.ready.pop(lease, None) is not None else []

    def renew_if_due(self) -> None:
        """Renew all that is held, if making it ready has taken a while."""
        if time.monotonic() - self._renewed > self.every_secs:
            self.renew()

    def give_back(self, lease: str, why: str) -> None:
        """Give a lease back, free, unless it is over already."""
        self._expires.pop(lease, None)
        with suppress(StaleLease):
            release(self._workspace, [lease], why, failed=False)

    def row(self, lease: str) -> Row:
        """Return what a worker needs for a lease."""
        ready = self.ready[lease]
        return {
            "lease": lease,
            "loop": lease.rpartition("#")[0],
            "expires_at": self._expires[lease],
            "worktree": str(ready.folder),
            "environment": ready.environment,
            "prompt_file": str(ready.prompt),
            "output": str(ready.output),
        }


# --- to look at -------------------------------------------------------------------------------------------------------


def leases_document(workspace: Workspace, scene: Scene, now: int) -> Row:
    """Return the leases that pull workers have, and those whose holders were told to stop and may live on."""
    rows = []
    for loop_id in scene.tree.timed:
        loop = scene.loops[loop_id]
        owner = loop.lease or loop.ending
        if owner is not None:
            rows.append(_row(Place(workspace, scene, f"{loop_id}#{owner.attempt}"), loop, owner, now))
    return document(now, {"leases": sorted(rows, key=lambda row: str(row["lease"]))})


def _row(place: Place, loop: Loop, owner: Lease | Ending, now: int) -> Row:
    """Return one lease."""
    expired = owner.expires_at is not None and now >= owner.expires_at
    return {
        "lease": f"{loop.id}#{owner.attempt}",
        "loop": loop.id,
        "type": loop.type,
        "holder": place.holder or None,
        "state": "expired" if expired else "held" if loop.lease is not None else "stopping",
        "taken_at": instant(owner.started_at),
        "age_secs": max(0, now - owner.started_at) // 1000 if owner.started_at else None,
        "expires_at": instant(owner.expires_at),
        "worktree": str(place.folder) if place.folder is not None else None,
    }
