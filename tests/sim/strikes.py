"""Everything that can go wrong in a small world before one report, each mended at once as far as a person must."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.intake import interpret
from loopr.core.model import Failure, Loop, Status
from loopr.core.observations import Trouble
from loopr.core.turn import perform, think
from tests.sim import invariants
from tests.sim.author import digest_of
from tests.sim.small import POLICY, Small

Strike = Callable[[Small, Loop], None]


def _trouble(failure: Failure, mend: Callable[[Small, Loop], None] | None = None) -> Strike:
    """Let what is reported next be trouble, and mend what only a person can."""

    def strike(world: Small, loop: Loop) -> None:
        world.tell(world.report(loop, Trouble(failure, failure.value)))
        if mend is not None and world.forest.loops[loop.id].status is Status.PARKED:
            mend(world, loop)

    return strike


def _crash(world: Small, loop: Loop) -> None:
    world.crash()
    world.tell(o.EngineBegan(1, "here"))


def _crash_before_append(world: Small, loop: Loop) -> None:
    think(world.forest, [world.report(loop)], world.now)
    world.crash()
    if loop.status is Status.LEASED:
        world.tell(o.AttemptLost(loop.id, loop.attempt))


def _twice(world: Small, loop: Loop) -> None:
    report = world.report(loop)
    world.tell(report)
    world.tell(report)
    world.tell(report, report)


def _stale(world: Small, loop: Loop) -> None:
    for other in list(world.forest.loops.values()):
        stale = other._replace(status=loop.status, attempt=other.attempt - 1)
        got = perform(world.forest, interpret(world.forest, world.report(stale), world.now), world.now)
        invariants.require(not got, f"a stale report of {other.id} led to {got}")


def _lost(world: Small, loop: Loop) -> None:
    world.tell(o.AttemptLost(loop.id, loop.attempt))


def _without_input(world: Small, loop: Loop) -> None:
    if loop.parent is not None:
        world.tell(o.InputGone(loop.id, loop.attempt))
        known = world.forest.loops[loop.parent].artifact
        world.tell(o.FileSeen(loop.parent, known, world.artifact(loop.parent), "file"))


def _pause(world: Small, loop: Loop) -> None:
    world.wish(wishes.pause(world.forest, loop.id, "ann", "", at_once=True))
    world.end_stopped()
    world.wish(wishes.resume(world.forest, loop.id, "ann"))


def _pause_all(world: Small, loop: Loop) -> None:
    world.wish(wishes.pause(world.forest, "workspace:", "ann", ""))
    world.wish(wishes.resume(world.forest, "workspace:", "ann"))


def _cancel(world: Small, loop: Loop) -> None:
    world.wish(wishes.cancel(world.forest, loop.id, "ann"))
    if world.forest.loops[loop.id].status is Status.CANCELLED:
        world.wish(wishes.retry(world.forest, loop.id, "ann", world.now))
    world.end_stopped()


def _cancel_all(world: Small, loop: Loop) -> None:
    world.wish(wishes.cancel(world.forest, "p", "ann"))
    world.end_stopped()
    for each in list(world.forest.loops.values()):
        if world.forest.loops[each.id].status is Status.CANCELLED:
            world.wish(wishes.retry(world.forest, each.id, "ann", world.now))


def _renew_parent(world: Small, loop: Loop) -> None:
    if loop.parent is not None:
        world.wish(wishes.renew(world.forest, loop.parent, "ann"))


def _outline(world: Small, loop: Loop, without: str) -> None:
    """Let a person write the outline that declares a loop, or does not."""
    parent = str(loop.parent)
    artifact = world.artifact(parent, without)
    world.tell(o.FileSeen(parent, digest_of(artifact), artifact, "file"))


def _undeclare(world: Small, loop: Loop) -> None:
    if loop.parent is not None and len(world.outlines[loop.parent]) > 1:
        _outline(world, loop, loop.id)
        _outline(world, loop, "")
        world.end_stopped()


def _reword(world: Small, loop: Loop) -> None:
    if loop.parent is not None:
        world.words[loop.id] = "other words"
        _outline(world, loop, "")
        world.end_stopped()


def _drop(world: Small, loop: Loop) -> None:
    artifact = world.artifact(loop.id)
    world.tell(o.FileSeen(loop.id, digest_of(artifact), artifact, "file"))
    world.end_stopped()


def _gone(world: Small, loop: Loop) -> None:
    if loop.parent is not None:
        world.tell(o.FileGone(loop.parent))
        known = world.forest.loops[loop.parent].artifact
        world.tell(o.FileSeen(loop.parent, known, world.artifact(loop.parent), "file"))


def _drain(world: Small, loop: Loop) -> None:
    world.tell(o.EngineDrains("ann"))
    world.tell(o.EngineLeft())
    world.tell(o.EngineBegan(1, "here"))


def _narrow(world: Small, loop: Loop) -> None:
    world.tell(o.PolicySeen(replace(POLICY, max_loops=1)))


def _clock_back(world: Small, loop: Loop) -> None:
    world.crash()
    world.now -= 100_000
    world.tell(o.ClockBehind(world.forest.at - world.now), o.EngineBegan(1, "here"))


def _reset(world: Small, loop: Loop) -> None:
    world.wish(wishes.unpark(world.forest, loop.id, "ann"))


def _reset_lane(world: Small, loop: Loop) -> None:
    world.tell(world.report(loop, Trouble(Failure.LANE, "no such account")))
    for lane in list(world.forest.shared.lanes):
        world.wish(wishes.reset_lane(world.forest, lane, "ann"))


STRIKES: Mapping[str, Strike] = {
    "a crash": _crash,
    "a crash before the append": _crash_before_append,
    "a report that comes again": _twice,
    "stale reports of everybody": _stale,
    "an attempt that never started": _lost,
    "an input that went before its attempt": _without_input,
    "refused": _trouble(Failure.REFUSED),
    "infra": _trouble(Failure.INFRA),
    "limited": _trouble(Failure.LIMITED),
    "lane": _reset_lane,
    "host": _trouble(Failure.HOST),
    "config": _trouble(Failure.CONFIG, _reset),
    "pause --now": _pause,
    "pause of everything": _pause_all,
    "cancel": _cancel,
    "cancel of everything": _cancel_all,
    "retry --fresh of the parent": _renew_parent,
    "no longer declared, and again": _undeclare,
    "another input": _reword,
    "a person's file": _drop,
    "a file that is gone, and back": _gone,
    "a stop and a start": _drain,
    "a ceiling of one": _narrow,
    "a clock set back": _clock_back,
}
