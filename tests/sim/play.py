"""Plays one simulated world from its seed: some steps with every kind of fault, then rest, then a person tidies up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from loopr.core.model import Status
from tests.sim import invariants, rest
from tests.sim.faults import THROWN
from tests.sim.journals import Remembers
from tests.sim.person import PERSON, start, tidy_up, write_what_is_manual
from tests.sim.worker import WORKER
from tests.sim.world import World

STEPS = 50
Table = Mapping[str, tuple[int, Callable[[World], bool]]]


def play(
    seed: int, journal: Remembers | None = None, *, steps: int = STEPS, compare_every: int = 2, tidy: bool = True
) -> Counter[str]:
    """Play one world; a broken promise is told with its seed and how it came about."""
    world: World | None = None
    try:
        world = World(seed, journal, compare_every=compare_every)
        start(world, "p1")
        for _ in range(steps):
            step(world)
        come_to_rest(world, tidy=tidy)
    except Exception as error:
        story = "\n".join(world.story) if world is not None else ""
        raise AssertionError(f"seed {seed}\n{story}\n{type(error).__name__}: {error}\nseed {seed}") from error
    return world.met_with


def step(world: World) -> None:
    """Let one thing happen."""
    roll = world.chance.random()
    if roll < 0.6:
        world.go(world.chance.choice((2_000, 15_000, 60_000)))
    elif roll < 0.88:
        works = bool(world.leases) and world.chance.random() < 0.5
        draw(world, WORKER if works else PERSON, "act")
    else:
        draw(world, THROWN, "fault")
    invariants.after_a_step(world)


def draw(world: World, table: Table, kind: str) -> None:
    """Let one entry of a table happen; one that finds nothing to do gives way to another."""
    names = list(table)
    weights = [table[each][0] for each in names]
    for name in world.chance.choices(names, weights, k=4):
        world.tell(f"- {name}")
        if table[name][1](world):
            world.met(f"{kind}: {name}")
            return


def come_to_rest(world: World, *, tidy: bool) -> None:
    """Let everything end: as things stand, then after a person has mended all that can be mended."""
    world.quiet()
    invariants.after_a_step(world)
    rest.at_rest(world)
    if not tidy:
        return
    for _ in range(6):
        tidy_up(world)
        world.quiet()
        while write_what_is_manual(world):
            world.quiet()
        if all(each.status in (Status.COMPLETE, Status.INVALIDATED) for each in world.loops()):
            break
    invariants.after_a_step(world)
    rest.at_rest(world)
    rest.all_done(world)
