"""Every reason a loop may not run, once: `choose` needs none of them closed, `why` prints all that are.

A gate is a function of the scene, the loop and the instant. Knows no order among loops and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loopr.core import limits
from loopr.core.ceilings import capacity_closed, pace_closed, project_closed, type_closed, worktrees_closed
from loopr.core.hot import turn_closed
from loopr.core.housing import PACKING
from loopr.core.model import STUCK, Gate, Loop, Status
from loopr.core.offering import Closed, file_of, is_foreign, is_on_offer
from loopr.core.resources import resource_closed
from loopr.core.scene import Scene, line_of
from loopr.core.shared import WORKSPACE, project_scope
from loopr.core.staleness import comes_first
from loopr.core.states import awaits, people_say

Check = Callable[[Scene, Loop, int], Closed]


def _status(scene: Scene, loop: Loop, now: int) -> Closed:
    """It is not pending: it was chosen already, or it is over."""
    if loop.waits:
        return None
    return awaits(scene, loop), None


def _stopping(scene: Scene, loop: Loop, now: int) -> Closed:
    """An earlier attempt still lives."""
    return (f"try {loop.ending.attempt} was told to stop and still lives", None) if loop.ending else None


def _held(scene: Scene, loop: Loop) -> Closed:
    """A hold is on the loop or above it."""
    if not scene.tree.held:
        return None
    for each in (loop, *scene.tree.ancestors(loop)):
        if each.hold is not None:
            where = "it" if each is loop else each.id
            why = f": {each.hold.reason}" if each.hold.reason else ""
            return f"{where} is paused by {each.hold.by}{why}; `loopr resume {each.id}`", None
    return None


def _held_scope(scene: Scene, loop: Loop) -> Closed:
    """A hold is on its project or on the workspace."""
    if not scene.shared.holds:
        return None
    for scope in (project_scope(loop.project), WORKSPACE):
        hold = scene.shared.holds.get(scope)
        if hold is not None:
            name = "the workspace" if scope == WORKSPACE else f"project {loop.project}"
            verb = "loopr resume --all" if scope == WORKSPACE else f"loopr resume {scope}"
            return f"{name} is paused by {hold.by}{f': {hold.reason}' if hold.reason else ''}; `{verb}`", None
    return None


def _paused(scene: Scene, loop: Loop, now: int) -> Closed:
    """A person wants it to wait."""
    return _held(scene, loop) or _held_scope(scene, loop)


def _parent(scene: Scene, loop: Loop, now: int) -> Closed:
    """The parent's own work is not complete."""
    if _parent_is_complete(scene, loop):
        return None
    parent = scene.loops[loop.parent or ""]
    return f"its parent {parent.id} is {people_say(parent)}", None


def _parent_is_complete(scene: Scene, loop: Loop) -> bool:
    """Say whether nothing of its parent's own work is left to wait for."""
    return loop.parent is None or scene.loops[loop.parent].status is Status.COMPLETE


def _needs(scene: Scene, loop: Loop, now: int) -> Closed:
    """Something it needs is not done."""
    for name in loop.needs:
        if scene.tree.done(name):
            continue
        needed, called = scene.loops.get(name), _called(loop, name)
        if needed is None or needed.status is Status.INVALIDATED:
            return f"needs {called}, which is not declared", None
        if needed.status in STUCK:
            return f"needs {called}, which is {needed.status}", None
        below = scene.tree.below[name]
        done, of = below.done
        more = len([each for each in loop.needs if not scene.tree.done(each)]) - 1
        words = f"needs {called}{f' ({done} of {of} done)' if below.total else ''}"
        return f"{words} and {more} more" if more else words, None
    first = comes_first(scene.tree, loop) if loop.past.ask is not None else None
    return (f"{first} is done again first", None) if first is not None else None


def _called(loop: Loop, name: str) -> str:
    """Call a loop as its siblings do."""
    return name.removeprefix(f"{loop.parent}/") if loop.parent is not None else name


def _artifact(scene: Scene, loop: Loop, now: int) -> Closed:
    """The parent's artifact is not on disk."""
    if loop.parent is None:
        return None
    parent = scene.loops[loop.parent]
    if parent.on_disk:
        return None
    return f"its input {file_of(scene, parent)} is not on disk; `loopr doctor --fix` puts it back", None


def _manual(scene: Scene, loop: Loop, now: int) -> Closed:
    """There is nothing to run, so a person must drop the artifact."""
    if loop.command or scene.policy.type_of(loop.type).has_command:
        return None
    return f"a person must write its {loop.type}.md: {file_of(scene, loop)}", None


def _merge(scene: Scene, loop: Loop, now: int) -> Closed:
    """Another loop has its turn to mend a conflict in files that it would change."""
    return turn_closed(scene, loop) if scene.tree.clashing else None


def _backoff(scene: Scene, loop: Loop, now: int) -> Closed:
    """Its own retry delay has not passed."""
    if now >= loop.not_before:
        return None
    return f"retries after failure {loop.failures}: {loop.reason or 'no reason was given'}", loop.not_before


def _lane(scene: Scene, loop: Loop, now: int) -> Closed:
    """All lanes it may use rest, are parked, or are full."""
    if limits.pick_lane(scene, loop, now) is not None:
        return None
    first = limits.lane_closed(scene, limits.crew_of(scene, loop, now).lanes[0], now)
    closed = [limits.lane_closed(scene, name, now) for name in scene.lanes_of(loop)]
    untils = [each[1] for each in closed if each is not None and each[1] is not None]
    return (first[0], min(untils, default=None)) if first is not None else None


def _budget(scene: Scene, loop: Loop, now: int) -> Closed:
    """Its plan, its project or the workspace has nothing left to spend."""
    return limits.budget_closed(scene, loop, now)


def _serial(scene: Scene, loop: Loop, now: int) -> Closed:
    """A serial sibling has the lock."""
    holder = line_holder(scene, loop) if scene.is_serial(loop) else None
    return (f"runs one after another with its siblings: {holder} is first", None) if holder else None


def line_holder(scene: Scene, loop: Loop) -> str | None:
    """Return the serial sibling that a serial loop must wait for.

    Several may hold the line if they became serial while they ran: of those that wait, the first in the outline goes
    on. One that waits for what it needs lets the others pass: it may need one of them by now.
    """
    others = (scene.loops[each] for each in scene.occupancy.lines.get(line_of(loop), ()) if each != loop.id)
    holders = [each for each in others if scene.is_serial(each)]
    holders = [each for each in holders if each.lease or each.ending or _needs(scene, each, 0) is None]
    if loop.holds_line:
        mine = (loop.place, loop.id)
        holders = [each for each in holders if each.lease is not None or each.ending or (each.place, each.id) < mine]
    return min(((each.place, each.id) for each in holders), default=(0, None))[1]


def _apart(scene: Scene, loop: Loop, now: int) -> Closed:
    """It was at work with others when something was harmed, and one of those is at work."""
    for suspects in scene.shared.suspects:
        if loop.id in suspects.loops:
            other = next((each for each in suspects.loops if each != loop.id and each in scene.occupancy.loops), None)
            if other is not None:
                names = ", ".join(suspects.names)
                return f"not beside {other} until one ends without harm: both ran when {names} was changed", None
    return None


def _host(scene: Scene, loop: Loop, now: int) -> Closed:
    """The machine can take no further work."""
    host = scene.shared.host
    return (host.reason, host.until or None) if host.reason else None


def _drain(scene: Scene, loop: Loop, now: int) -> Closed:
    """The engine starts nothing more."""
    return ("the engine is stopping: `loopr run` goes on", None) if scene.shared.engine.draining else None


GATES: tuple[tuple[str, Check], ...] = (
    ("status", _status),
    ("stopping", _stopping),
    ("paused", _paused),
    ("parent", _parent),
    ("needs", _needs),
    ("artifact", _artifact),
    ("offered", is_on_offer),
    ("manual", _manual),
    ("merge", _merge),
    ("backoff", _backoff),
    ("lane", _lane),
    ("budget", _budget),
    ("serial", _serial),
    ("apart", _apart),
    ("project", project_closed),
    ("type", type_closed),
    ("resource", resource_closed),
    ("worktrees", worktrees_closed),
    ("capacity", capacity_closed),
    ("pace", pace_closed),
    ("host", _host),
    ("drain", _drain),
)
"""In the order in which they are told."""

_STATE_GATES = GATES[:3]
_OWN_GATES, _GROUP_GATES = GATES[:10], GATES[10:]
_BY_NAME = dict(GATES)
SHARED_GATES: tuple[tuple[str, Check], ...] = (
    ("paused", lambda scene, loop, now: _held_scope(scene, loop)),
    *((name, _BY_NAME[name]) for name in ("lane", "budget", "serial", "apart", "project", "type")),
    *((name, _BY_NAME[name]) for name in ("resource", "worktrees", "capacity", "pace", "host", "drain")),
)
"""Those that open and close for a whole group of loops at once (`ranking.py`)."""

NOT_OF_WORKERS = frozenset({"manual", "pace", "worktrees"})
"""Those that bind the engine and no pull worker."""

ENGINE_GATES = (*SHARED_GATES, ("manual", _manual))
_WORKER_GATES = tuple(each for each in SHARED_GATES if each[0] not in NOT_OF_WORKERS)

DECLARED_GATES = (
    *(each for each in GATES if each[0] in {"stopping", "paused", "parent", "needs"}),
    ("artifact", is_foreign),
    ("offered", is_on_offer),
)
"""The only ones that bind a loop which completes by declaration."""


def closed_gates(scene: Scene, loop: Loop, now: int) -> Iterator[Gate]:
    """List every closed gate of a loop, in order."""
    closed = False
    for gate in _closed(_gates_of(scene, loop), scene, loop, now):
        closed = True
        yield gate
    if not closed and scene.settles(loop):
        yield _TO_BE_WRITTEN


def first_closed(scene: Scene, loop: Loop, now: int) -> Gate | None:
    """Return the first closed gate of a loop."""
    return next(closed_gates(scene, loop, now), None)


def own_closed(scene: Scene, loop: Loop, now: int) -> Iterator[Gate]:
    """List the closed gates of a pending loop that it need not share with its group, in order: they come first."""
    return _closed(_OWN_GATES, scene, loop, now)


def group_closed(scene: Scene, member: Loop, now: int) -> Iterator[Gate]:
    """List the closed gates that come after its own, in order: any other loop of its group has the same."""
    return _closed(_GROUP_GATES, scene, member, now)


def _closed(gates: tuple[tuple[str, Check], ...], scene: Scene, loop: Loop, now: int) -> Iterator[Gate]:
    """List those of some gates that are closed."""
    for name, check in gates:
        found = check(scene, loop, now)
        if found is not None:
            yield Gate(name, *found)


def _gates_of(scene: Scene, loop: Loop) -> tuple[tuple[str, Check], ...]:
    """Return the gates that concern a loop: few bind one that is not pending, or that completes by declaration."""
    if not loop.waits:
        return _STATE_GATES
    return DECLARED_GATES if scene.settles(loop) else GATES


_TO_BE_WRITTEN = Gate("status", "its children are declared: loopr writes its artifact at its next turn")
"""What a loop waits for that completes by declaration: it is never chosen, whatever is open."""


def closed_for_group(scene: Scene, member: Loop, now: int, *, pull: bool = False) -> Gate | None:
    """Return the first closed gate that a group of loops shares, asked of any member, by the engine or to `pull`."""
    return next(_closed(_WORKER_GATES if pull else ENGINE_GATES, scene, member, now), None)


def may_settle(scene: Scene, loop: Loop) -> bool:
    """Say whether nothing but a hold on its project or the workspace keeps a loop from completing by declaration."""
    return (
        loop.status is Status.PENDING
        and loop.ending is None
        and scene.settles(loop)
        and _parent_is_complete(scene, loop)
        and is_foreign(scene, loop, 0) is None
        and not loop.on_offer
        and _needs(scene, loop, 0) is None
        and _held(scene, loop) is None
    )


def kept_for_good(scene: Scene, loop: Loop, now: int) -> str:
    """Say which pause or spent budget keeps a loop until a person acts; nothing where none does."""
    closed = _paused(scene, loop, now) or limits.budget_spent(scene, loop, now)
    return closed[0] if closed is not None and closed[1] is None else ""


def scope_is_held(scene: Scene, loop: Loop) -> bool:
    """Say whether a loop's project or the whole workspace is paused."""
    return _held_scope(scene, loop) is not None


def own_gates_open(scene: Scene, loop: Loop) -> bool:
    """Say whether nothing but time, a person's hand on the whole, or a shared limit keeps a loop from running."""
    return (
        (loop.status is Status.PENDING or loop.waits)
        and _parent_is_complete(scene, loop)  # of a large tree, most do not get further than this
        and loop.ending is None
        and loop.packed != PACKING
        and not scene.settles(loop)
        and not loop.on_offer
        and _artifact(scene, loop, 0) is None
        and _needs(scene, loop, 0) is None
        and _merge(scene, loop, 0) is None
        and _held(scene, loop) is None
    )


def ready_since(scene: Scene, loop: Loop) -> int:
    """Say since when a loop's own gates are open, as far as its own story goes."""
    instants = [loop.since, loop.not_before, loop.lifted]
    if loop.past.ask is not None:
        instants.append(loop.past.ask.at)
    instants += [above.lifted for above in scene.tree.ancestors(loop)]
    instants += [scene.tree.done_at(name) for name in loop.needs]
    if loop.parent is not None:
        parent = scene.loops[loop.parent]
        instants += [parent.since, parent.seen]
    return max(instants)


def group_ready_since(scene: Scene, loop: Loop) -> int:
    """Say since when all that a loop shares with its group has let it run."""
    lifted = scene.shared.lifted
    lanes = [scene.shared.lane(name).rest_until for name in scene.lanes_of(loop)]
    scopes = [lifted.get(project_scope(loop.project), 0), lifted.get(WORKSPACE, 0)]
    return max(scene.shared.engine.started_at, min(lanes), *scopes)
