"""What a pull worker does to a simulated world, as a table: it takes leases and quotes them, stale ones too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from loopr.core import wishes
from loopr.core.choose import take
from loopr.core.events import Event, LeaseGranted
from loopr.core.forest import Forest
from loopr.core.model import Failure
from loopr.errors import StaleLease
from tests.sim import invariants

if TYPE_CHECKING:
    from tests.sim.world import World


def lease_take(world: World) -> bool:
    """Take one or two leases."""
    before = world.journal.last_seq()
    types = () if world.chance.random() < 0.7 else (world.chance.choice(world.author.ladder),)
    limit = world.chance.choice((1, 1, 2))
    done = world.request("lease take", lambda forest, now: take(forest, now, holder="bob", limit=limit, types=types))
    for told in world.journal.since(before):
        if isinstance(told.event, LeaseGranted) and told.event.holder == "bob":
            world.leases.append(f"{told.event.loop}#{told.event.attempt}")
    return done


def _lease(world: World) -> str | None:
    """Pick a lease: mostly one that the worker believes to hold, now and then one of old, or nonsense."""
    if world.old_leases and world.chance.random() < 0.25:
        return world.chance.choice(world.old_leases)
    return world.chance.choice(world.leases) if world.leases else None


def _quote(world: World, name: str, wish: Callable[[Forest, str, int], Iterator[Event]], *, ends: bool) -> bool:
    """Quote a lease; a stale one must be refused, and nothing else."""
    lease = _lease(world)
    if lease is None:
        return False
    held = invariants.holds(world.shadow, lease)
    refusals: list[StaleLease] = []

    def guarded(forest: Forest, now: int) -> Iterator[Event]:
        try:
            yield from wish(forest, lease, now)
        except StaleLease as refusal:
            refusals.append(refusal)
            raise

    if ends and lease in world.leases:
        world.leases.remove(lease)
        world.old_leases.append(lease)
    done = world.request(f"{name} {lease}", guarded)
    invariants.require(held or not done, f"{name} with the stale {lease} was taken")
    if refusals:
        world.met("fault: a stale lease was quoted")
    return done


def lease_renew(world: World) -> bool:
    """Give a sign of life."""
    return _quote(world, "lease renew", wishes.renew_lease, ends=False)


def lease_complete(world: World) -> bool:
    """Say that the work is done."""
    return _quote(world, "lease complete", wishes.complete_lease, ends=True)


def lease_release(world: World) -> bool:
    """Give a lease back."""
    return _quote(
        world,
        "lease release",
        lambda forest, lease, now: wishes.release_lease(forest, lease, now, None, "bob left"),
        ends=True,
    )


def lease_fail(world: World) -> bool:
    """Give a lease back because something went wrong."""
    trouble = world.hands.trouble(
        world.chance.choice((Failure.INFRA, Failure.REFUSED, Failure.LIMITED, Failure.BLOCKED))
    )
    return _quote(
        world, "lease fail", lambda forest, lease, now: wishes.release_lease(forest, lease, now, trouble, ""), ends=True
    )


def lease_reclaim(world: World) -> bool:
    """Reclaim a lease by hand, now and then after it has expired and before the engine looks."""
    if world.chance.random() < 0.7:
        world.pass_time(world.mono + world.settings.lease_ttl_ms)
    return _quote(
        world, "lease reclaim", lambda forest, lease, now: wishes.reclaim_lease(forest, lease, now, "ann"), ends=True
    )


def fall_silent(world: World) -> bool:
    """A worker goes away without a word."""
    if not world.leases:
        return False
    world.met("fault: a worker fell silent")
    world.old_leases.append(world.leases.pop())
    return True


def steer(world: World) -> bool:
    """Wish for what is not for a loop, now and then again and again; whatever is told of it moves nothing."""
    lease = _lease(world)
    if lease is None:
        return False
    wish, tries = world.chance.choice(("approve", "stop")), world.chance.choice((1, 1, 2, 8))
    return world.request(f"{wish} by {lease}", lambda forest, now: wishes.deny(forest, lease, wish, "", tries))


WORKER: Mapping[str, tuple[int, Callable[[World], bool]]] = {
    "lease take": (2, lease_take),
    "lease renew": (6, lease_renew),
    "lease complete": (9, lease_complete),
    "lease release": (2, lease_release),
    "lease fail": (5, lease_fail),
    "lease reclaim": (3, lease_reclaim),
    "fall silent": (2, fall_silent),
    "steer": (1, steer),
}
"""How often each act of a worker that holds leases comes, and the act."""
