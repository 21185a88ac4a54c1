"""What people and scripts do to a simulated world, as a table: every verb that changes something.

Each entry returns False where it finds nothing to do. Whether it makes sense in the present state is for loopr to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from loopr.core import observations as o
from loopr.core import redoing, wishes
from loopr.core.entries import Artifact
from loopr.core.filing import plan_declares
from loopr.core.intake import interpret
from loopr.core.model import Loop, Status
from loopr.core.offering import offered_file
from loopr.core.policy import NO_BUDGET
from loopr.core.staleness import stale_below
from loopr.core.taking import Taken, take_base
from tests.sim import invariants, rest
from tests.sim.author import LANES, digest_of
from tests.sim.bases import update
from tests.sim.slips import approve_file, reject_file, take
from tests.sim.worker import lease_take

if TYPE_CHECKING:
    from tests.sim.world import World

S = Status
PLANS = ("p1", "p2")
LISTENERS = ("hook on_complete", "hook on_park", "notify https://example.invalid")


def _some(world: World, *fitting: Status) -> Loop | None:
    """Pick a loop: mostly one in a fitting state, now and then any."""
    found = world.loops(*fitting) if world.chance.random() < 0.9 else world.loops()
    return world.chance.choice(found) if found else None


def _on_loop(name: str, wish: Callable[..., object], *fitting: Status) -> Callable[[World], bool]:
    """Make an act of a wish about one loop."""

    def act(world: World) -> bool:
        loop = _some(world, *fitting)
        if loop is None:
            return False
        return world.request(f"{name} {loop.id}", lambda forest, now: wish(forest, loop.id, now))  # type: ignore[arg-type,return-value]

    return act


# --- plans and files --------------------------------------------------------------------------------------------------


def start(world: World, plan: str | None = None) -> bool:
    """Start a plan, or start it again with what its file says by then."""
    plan = plan or world.chance.choice(PLANS)
    known = world.shadow.loops.get(plan)
    old = world.files.get(plan) if known is not None else None
    if old is not None and world.chance.random() < 0.7:
        artifact = (
            world.author.edited(old, world.author.ladder[0], world.settings, ()) if world.chance.random() < 0.5 else old
        )
    else:
        artifact = world.author.plan(plan, world.settings)
    return _offer(world, plan, artifact)


def _offer(world: World, plan: str, artifact: Artifact) -> bool:
    """Say `start` with a plan file."""
    source = world.chance.choice(("./here.md", "./there.md"))
    offered = o.PlanOffered(plan, artifact, digest_of(artifact), source, "main", "c0")
    world.offered[plan] = artifact
    if plan_declares(world.shadow, artifact):
        world.write(plan, artifact)
    world.contents[digest_of(artifact)] = artifact
    return world.request(f"start {plan}", lambda forest, now: interpret(forest, offered, now))


def edit(world: World) -> bool:
    """Edit a published file."""
    known = [each for each in sorted(world.files) if each in world.shadow.loops and world.files[each] is not None]
    if not known:
        return False
    loop = world.shadow.loops[world.chance.choice(known)]
    others = [each.id for each in world.loops() if each.status is not S.INVALIDATED]
    old = world.files[loop.id]
    if old is None:
        return False
    world.write(loop.id, world.author.edited(old, loop.type, world.settings, others))
    return _hint(world, f"edits {loop.id}", loop.id)


def edit_around_a_landing(world: World) -> bool:
    """Edit the outline that declares a loop which is landing: without it, with other words, or as it was before."""
    landing = [each for each in world.loops(S.LANDING) if each.parent is not None and world.files.get(each.parent)]
    if not landing:
        return False
    loop = world.chance.choice(landing)
    parent, name = str(loop.parent), loop.id.rpartition("/")[2]
    old = world.files[parent]
    earlier = [each for each in world.contents.values() if each.id == parent.rpartition("/")[2] and each.entries]
    if old is None:
        return False
    without = tuple(each for each in old.entries if each.id != name)
    reworded = tuple(replace(each, body="new words") if each.id == name else each for each in old.entries)
    some = [replace(old, entries=each) for each in (without, reworded) if each]
    world.write(parent, world.chance.choice([*some, *earlier]))
    return _hint(world, f"edits {parent}, below which {loop.id} lands", parent)


def undo(world: World) -> bool:
    """Put a file back to what it said some time before."""
    known = [each for each in sorted(world.files) if each in world.shadow.loops]
    if not known:
        return False
    loop_id = world.chance.choice(known)
    name = loop_id.rpartition("/")[2]
    earlier = [each for each in world.contents.values() if each.id == name]
    if not earlier:
        return False
    world.write(loop_id, world.chance.choice(earlier))
    return _hint(world, f"puts back {loop_id}", loop_id)


def drop(world: World) -> bool:
    """Write the artifact of a loop by hand."""
    loop = _some(world, S.PENDING, S.PARKED, S.FAILED, S.RUNNING, S.CHECKING, S.AWAITING, S.LANDING, S.LEASED)
    if loop is None:
        return False
    entries, name = world.author.entries(loop.type, world.settings), loop.id.rpartition("/")[2]
    nothing = world.chance.random() < 0.15
    world.write(loop.id, world.author.nothing(name) if nothing else world.author.artifact(name, loop.type, entries))
    return _hint(world, f"drops {loop.id}{', with nothing below it' if nothing else ''}", loop.id)


def garble(world: World) -> bool:
    """Leave a file that nobody can read."""
    if not world.files:
        return False
    loop_id = world.chance.choice(sorted(world.files))
    world.write(loop_id, None)
    return _hint(world, f"garbles {loop_id}", loop_id)


def delete(world: World) -> bool:
    """Delete a published file."""
    if not world.files:
        return False
    loop_id = world.chance.choice(sorted(world.files))
    del world.files[loop_id]

    def noticed() -> None:
        """Report it, unless another file is there by then."""
        if loop_id not in world.files:
            world.report(o.FileGone(loop_id))

    world.later(world.chance.choice((0, 0, 50, 4_000)), noticed)
    world.tell(f"a person deletes {loop_id}")
    return True


def _hint(world: World, what: str, loop_id: str) -> bool:
    """Let the watcher of files say that one has changed; the rescan will say so too."""
    world.tell(f"a person {what}")
    world.report(world.file_seen(loop_id))
    return True


# --- settings ---------------------------------------------------------------------------------------------------------


def change_settings(world: World) -> bool:
    """Edit the settings: ceilings up or down, lanes, budgets, types."""
    world.settings = world.author.edited_policy(world.settings)
    world.edits += 1
    world.tell("a person edits the settings")
    if world.engine is not None:
        world.inbox.append(world.settings_seen(world.engine.forest, serving=True))
        world.inbox.append(o.PolicySeen(world.settings))
    return True


def change_listeners(world: World) -> bool:
    """Edit the settings: somebody else is to be told of what happens, or nobody."""
    world.listeners = set(world.chance.sample(LISTENERS, world.chance.randint(0, len(LISTENERS))))
    world.tell(f"a person has {sorted(world.listeners)} told")
    return True


# --- verbs about several loops ----------------------------------------------------------------------------------------


def _scope(world: World) -> str | None:
    """Pick what to pause: a loop, a project or everything."""
    loop = _some(world)
    some = [loop.id if loop else None] * 4
    return world.chance.choice([*some, "project:other", "workspace:"])


def pause(world: World) -> bool:
    """Pause something, now and then at once."""
    scope, at_once = _scope(world), world.chance.random() < 0.4
    if scope is None:
        return False
    name = "pause --now" if at_once else "pause"
    return world.request(f"{name} {scope}", lambda forest, now: wishes.pause(forest, scope, "ann", "", at_once=at_once))


def resume(world: World) -> bool:
    """Lift a hold."""
    held = [*world.shadow.shared.holds, *(each.id for each in world.loops() if each.hold is not None)]
    scope = world.chance.choice(held) if held else _scope(world)
    return scope is not None and world.request(
        f"resume {scope}", lambda forest, now: wishes.resume(forest, scope, "ann")
    )


def clear(world: World) -> bool:
    """Clear some loops from the queue."""
    some = tuple(dict.fromkeys(each.id for each in (_some(world, S.PENDING), _some(world, S.PENDING)) if each))
    return bool(some) and world.request(f"clear {some}", lambda forest, now: wishes.clear(forest, some, "ann"))


def dispatch(world: World) -> bool:
    """Put some loops ahead of the queue."""
    some = tuple(dict.fromkeys(each.id for each in (_some(world, S.PENDING), _some(world, S.PENDING)) if each))
    return bool(some) and world.request(f"dispatch {some}", lambda forest, now: wishes.dispatch(forest, some, "ann"))


def convoy(world: World) -> bool:
    """Make a convoy, or add to one."""
    loop, name = _some(world), world.chance.choice(("north", "south"))
    return loop is not None and world.request(
        f"convoy {name}", lambda forest, now: wishes.form_convoy(forest, name, (loop.id,))
    )


def reset_lane(world: World) -> bool:
    """End a lane's rest."""
    lane = world.chance.choice((*world.shadow.shared.lanes, *LANES[:1]))
    return world.request(f"reset lane:{lane}", lambda forest, now: wishes.reset_lane(forest, lane, "ann"))


def redo(world: World) -> bool:
    """Ask for complete work to be done again, as whoever knows of other data would."""
    needed = [each for each in world.loops(S.COMPLETE) if world.shadow.tree.needers.get(each.id)]
    loop = world.chance.choice(needed) if needed else _some(world, S.COMPLETE)
    if loop is None:
        return False
    base = Taken(others=(f"{loop.id} other data",))
    return world.request(f"redo {loop.id}", lambda forest, now: take_base(forest, loop.plan, base))


def redo_stale(world: World) -> bool:
    """Ask for all that is stale of a plan to be done again."""
    world.request(
        "retry --stale",
        lambda forest, now: redoing.redo_stale(forest, [each.id for each in stale_below(forest.tree)], "ann"),
    )
    return True


def stop_engine(world: World) -> bool:
    """Ask the engine to stop, in good order."""
    if world.engine is None:
        return False
    world.tell("a person asks the engine to stop")
    world.inbox.append(o.EngineDrains("ann"))
    world.run_engine()
    if world.engine is not None and world.chance.random() < 0.5:
        world.inbox.append(o.EngineLeft())
        world.run_engine()
        world.kill_engine()
    return True


def start_engine(world: World) -> bool:
    """Start the engine again."""
    if world.engine is not None and not world.shadow.shared.engine.draining:
        return False
    world.kill_engine()
    world.start_engine()
    return True


PERSON: Mapping[str, tuple[int, Callable[[World], bool]]] = {
    "start": (3, start),
    "update": (3, update),
    "edit": (8, edit),
    "undo": (4, undo),
    "edit around a landing": (8, edit_around_a_landing),
    "drop": (6, drop),
    "garble": (1, garble),
    "delete": (1, delete),
    "change settings": (4, change_settings),
    "change listeners": (1, change_listeners),
    "pause": (3, pause),
    "resume": (8, resume),
    "clear": (1, clear),
    "dispatch": (2, dispatch),
    "convoy": (1, convoy),
    "reset lane": (2, reset_lane),
    "stop engine": (1, stop_engine),
    "start engine": (3, start_engine),
    "cancel": (
        2,
        _on_loop("cancel", lambda f, i, n: wishes.cancel(f, i, "ann"), *(set(S) - {S.CANCELLED, S.INVALIDATED})),
    ),
    "retry": (4, _on_loop("retry", lambda f, i, n: wishes.retry(f, i, "ann", n), S.PARKED, S.FAILED, S.CANCELLED)),
    "retry --fresh": (3, _on_loop("renew", lambda f, i, n: wishes.renew(f, i, "ann"), S.COMPLETE, S.PARKED, S.FAILED)),
    "redo": (4, redo),
    "retry --stale": (9, redo_stale),
    "reset": (4, _on_loop("reset", lambda f, i, n: wishes.unpark(f, i, "ann"), S.PARKED)),
    "approve": (9, _on_loop("approve", lambda f, i, n: wishes.approve(f, i), S.AWAITING)),
    "reject": (3, _on_loop("reject", lambda f, i, n: wishes.reject(f, i, "no"), S.AWAITING)),
    "approve --file": (5, approve_file),
    "reject --file": (3, reject_file),
    "iterate": (4, _on_loop("iterate", lambda f, i, n: wishes.iterate(f, i, "again"), S.AWAITING)),
    "forget": (2, _on_loop("forget", lambda f, i, n: wishes.forget(f, i), S.INVALIDATED)),
    "lease take": (8, lease_take),
}
"""How often each act comes, and the act."""


def tidy_up(world: World) -> None:
    """Do all that a person would who wants everything done: lift, mend, decide, write what nobody else writes."""
    world.tell("--- a person tidies up")
    world.settings = world.author.generous(world.settings)
    if world.engine is not None:
        world.inbox.append(o.PolicySeen(world.settings))
    for scope in [*world.shadow.shared.holds, *(each.id for each in world.loops() if each.hold)]:
        world.request(f"resume {scope}", lambda forest, now, scope=scope: wishes.resume(forest, scope, "ann"))  # type: ignore[misc]
    for loop in world.loops():
        _mend(world, loop.id)


def _mend(world: World, loop_id: str) -> None:
    """Bring one loop back, or decide on it."""
    loop = world.shadow.loops[loop_id]
    if loop.parent is None and not loop.budget.unlimited:
        _offer(world, loop_id, replace(world.files.get(loop_id) or world.offered[loop_id], budget=NO_BUDGET))
    if loop.status in (S.PARKED, S.FAILED, S.CANCELLED):
        world.request(f"retry {loop_id}", lambda forest, now: wishes.retry(forest, loop_id, "ann", now))
    elif loop.status is S.AWAITING:
        world.request(f"approve {loop_id}", lambda forest, now: wishes.approve(forest, loop_id))
    counts_for_nothing = rest.refused(world, loop_id) or loop.offers.unread
    if not counts_for_nothing and offered_file(world.shadow, loop) and not take(world, loop_id):
        counts_for_nothing = loop.offers.offered != loop.artifact
    if counts_for_nothing:
        world.files.pop(loop_id, None)
    if loop.status is S.COMPLETE and loop_id not in world.files and loop.artifact in world.contents:
        world.write(loop_id, world.contents[loop.artifact])


def write_what_is_manual(world: World) -> bool:
    """Write the artifacts that only a person can."""
    found = False
    for loop in world.loops(S.PENDING):
        gates = {each.gate for each in invariants.gates_of(world.shadow, loop, max(world.wall, world.shadow.at))}
        if gates == {"manual"}:
            entries = world.author.entries(loop.type, world.settings, most=1, nested=0)
            world.write(loop.id, world.author.artifact(loop.id.rpartition("/")[2], loop.type, entries))
            world.tell(f"a person drops {loop.id}")
            found = True
    return found
