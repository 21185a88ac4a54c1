"""What befalls the base of a plan in a simulated world: it goes on, and files of it are others.

Knows loops by name only; in this world a base is a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopr.core.taking import Taken, take_base

if TYPE_CHECKING:
    from tests.sim.world import World


def update(world: World) -> bool:
    """Let a plan take over its base, on which some of its loops have other inputs, whatever they are at."""
    plan = world.chance.choice(sorted(world.shadow.shared.plans) or [""])
    found = [each.id for each in world.loops() if each.plan == plan]
    if not found:
        return False
    some = world.chance.sample(found, min(len(found), world.chance.randint(1, 3)))
    into = Taken(f"c{world.chance.randint(0, 9)}", tuple(f"{each} data is another since c0" for each in some))
    return world.request(f"update {plan}: {', '.join(some)}", lambda forest, now: take_base(forest, plan, into))
