"""The menu of faults, as a table: part of the specification of what loopr survives.

A fault that comes from the world's own luck (`world.report`, `hands.py`) is counted there under its words; the ones
below are thrown in between two steps. `MENU` names all of them, and `test_menu.py` holds the simulation to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tests.sim.slips import slip, slip_ahead

if TYPE_CHECKING:
    from tests.sim.world import World


def crash(world: World) -> bool:
    """Let the engine die after some step of its next turns."""
    world.doom = world.chance.choice((0, 1, 2, 3, 4, 6))
    return world.engine is not None


def restart(world: World) -> bool:
    """Start an engine where none is."""
    world.start_engine()
    return True


def second_engine(world: World) -> bool:
    """Let a second process decide while the engine thinks: one of them loses."""
    world.rival = True
    return world.engine is not None


def clock_forth(world: World) -> bool:
    """Set the clock on."""
    world.skew += world.chance.choice((5_000, 400_000, 90_000_000))
    return True


def clock_back(world: World) -> bool:
    """Set the clock back."""
    world.skew -= world.chance.choice((5_000, 400_000, 90_000_000))
    return True


def disk_full(world: World) -> bool:
    """Let no append succeed for a while."""
    if world.journal.full:
        return False
    world.journal.full = True

    def free() -> None:
        world.journal.full = False

    world.later(world.chance.choice((1_000, 30_000)), free)
    return True


def host_refuses(world: World) -> bool:
    """Let the machine be too full or too busy for a while."""
    world.host = world.chance.choice(("the disk is nearly full", "the load is high"))

    def recover() -> None:
        world.host = ""

    world.later(world.chance.choice((10_000, 100_000)), recover)
    return True


def killed(world: World) -> bool:
    """Let an attempt die by a signal."""
    alive = sorted(world.hands.alive())
    if not alive:
        return False
    world.hands.kill(world.chance.choice(alive))
    return True


def machine_lost(world: World) -> bool:
    """Let the machine lose power: the engine and all attempts are gone at once, and nobody wrote an outcome."""
    world.kill_engine()
    for key in list(world.hands.alive()):
        world.hands.processes[key].alive = False
        del world.hands.processes[key]
    return True


THROWN: Mapping[str, tuple[int, Callable[[World], bool]]] = {
    "a crash to come": (6, crash),
    "an engine started": (8, restart),
    "a second engine": (3, second_engine),
    "the clock set forth": (1, clock_forth),
    "the clock set back": (1, clock_back),
    "a full disk": (1, disk_full),
    "a host that refuses": (1, host_refuses),
    "a killed attempt": (3, killed),
    "a lost machine": (1, machine_lost),
    "a file that a command writes": (6, slip),
    "a file for a loop to come": (2, slip_ahead),
}
"""How often each fault is thrown, and the fault."""

BY_LUCK = (
    "a crash after it sensed",
    "a crash after it thought",
    "a crash after it remembered",
    "a crash after it acted",
    "a stale lease was quoted",
    "a verb lost a race and decided again",
    "a worker fell silent",
    "an append found the disk full",
    "an attempt did not start",
    "an attempt never ended",
    "an engine lost a race and decided again",
    "an observation came late",
    "an observation came twice",
    "an observation was lost",
    "the clock was behind at a start",
)
"""Those that happen by the world's own luck."""

MENU = (*THROWN, *BY_LUCK)
