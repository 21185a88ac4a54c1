"""What must hold when a simulated world has come to rest: nothing is forgotten, and nobody waits for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loopr.core.declaring import wanted_children
from loopr.core.gates import line_holder
from loopr.core.model import Loop, Status
from loopr.core.owed import WriteDeclared, owed
from loopr.errors import PlanError
from tests.sim.invariants import Broken, gates_of, occupies, require

if TYPE_CHECKING:
    from tests.sim.world import World

PASSING = {"apart", "merge", "worktrees", "stopping", "backoff", "host", "drain"}
"""What closes a gate for a while only: at rest, none of it can be all that a loop waits for."""


def at_rest(world: World) -> None:
    """Nothing lives, nothing is owed, every loop is done or says why not, and nobody waits for nobody."""
    forest = world.shadow
    now = max(world.wall, forest.at)
    require(not list(world.hands.alive()), f"alive at rest: {list(world.hands.alive())}")
    due = [each for each in owed(forest) if not (isinstance(each, WriteDeclared) and refused(world, each.loop))]
    require(not due, f"owed at rest: {due}")
    busy = [each.id for each in forest.loops.values() if occupies(each)]
    require(not busy, f"occupied at rest: {busy}")
    for loop in forest.loops.values():
        gates = {each.gate for each in gates_of(forest, loop, now)}
        require(bool(gates), f"{loop.id} is neither done nor says why not")
        if "resource" in gates:
            offers, wants = forest.policy.resources, forest.resources_of(loop)
            is_lost = any(amount > offers.get(name, 0) for name, amount in wants)
            require(is_lost, f"{loop.id} waits at rest for what nobody holds: {wants} of {offers}")
        require(bool(gates - PASSING), f"{loop.id} waits at rest for {gates} alone")
        if gates <= PASSING | {"serial"}:
            line = [loop.id]
            while gates <= PASSING | {"serial"}:
                first = forest.loops[str(line_holder(forest, forest.loops[line[-1]]))]
                require(first.id not in line, f"{loop.id} and {first.id} wait for each other")
                line.append(first.id)
                gates = {each.gate for each in gates_of(forest, first, now)}
    for loop in forest.loops.values():
        for problem in _undeclared_differently(world, loop):
            raise Broken(problem)


def refused(world: World, loop_id: str) -> bool:
    """Say whether a file stands among the problems: then a person must help first."""
    return world.place(loop_id) in world.shadow.shared.problems


def _undeclared_differently(world: World, loop: Loop) -> Iterator[str]:
    """The children of a complete loop are those that its artifact declares, as it declares them."""
    artifact = world.contents.get(loop.artifact)
    if loop.status is not Status.COMPLETE or artifact is None or refused(world, loop.id):
        return
    try:
        wanted = {each.id: each.terms for each in wanted_children(world.shadow, loop, artifact)}
    except PlanError:
        return
    found = {each: world.shadow.loops[each].terms for each in world.shadow.tree.children(loop.id)}
    if wanted.keys() != found.keys():
        yield f"{loop.id} declares {sorted(wanted)}, and has {sorted(found)}"
        return
    for child, terms in wanted.items():
        ours = found[child]._replace(on_offer=False)
        if ours != terms:
            yield f"{child} should be {terms}\n     but is {ours}"


def all_done(world: World) -> None:
    """After everything was mended all is done, but for what has used up its own budget, and what waits for others."""
    forest = world.shadow
    now = max(world.wall, forest.at)
    for loop in forest.loops.values():
        spent = loop.status is Status.PARKED and not loop.budget.unlimited
        if loop.status in (Status.COMPLETE, Status.INVALIDATED) or spent:
            continue
        gates = gates_of(forest, loop, now)
        waits = any(each.gate in ("parent", "needs") for each in gates)
        require(waits, f"{loop.id} is not done although all was mended: {gates} {loop}")
