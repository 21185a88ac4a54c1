"""Which project gets the next slot.

First a project that has completed nothing in the rolling window and has nothing occupied, then the one whose share of
the use lies furthest below its share of the weights, as exact fractions. Knows no loop's score.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from loopr.core.ledger import PROJECT, Sums, use_of
from loopr.core.model import Loop
from loopr.core.scene import Scene

UNKNOWN_COST = 1000
"""What an attempt is taken to cost where nothing at all was ever measured: one token, in thousandths."""


def next_project(scene: Scene, competing: Sequence[str], now: int) -> str:
    """Return the project among those with a runnable loop that gets the next slot."""
    if len(competing) == 1:
        return competing[0]
    ratios = ratios_of(scene, competing, now)
    unserved = [name for name in competing if _unserved(scene, name, now)]
    places = {name: place for place, name in enumerate(scene.policy.projects)}
    return min(unserved or competing, key=lambda name: (ratios[name], places.get(name, len(places)), name))


def ratios_of(scene: Scene, competing: Sequence[str], now: int) -> dict[str, Fraction]:
    """Return how far each competing project's share of the use is above its share of the weights."""
    usage = {name: usage_of(scene, name, competing, now) for name in competing}
    weight = {name: scene.policy.project(name).weight for name in competing}
    all_usage, all_weight = sum(usage.values()), sum(weight.values(), Fraction(0))
    return {
        name: (Fraction(usage[name], all_usage) if all_usage else Fraction(0)) - weight[name] / all_weight
        for name in competing
    }


def usage_of(scene: Scene, project: str, competing: Sequence[str], now: int) -> int:
    """Sum what a project's attempts cost in the window, and what its occupied loops cost at least, in thousandths."""
    mean, used = _mean(scene, project, competing, now), scene.ledger.used((PROJECT, project), now)
    occupied = (scene.loops[each] for each in scene.occupancy.loops)
    live = sum(max(mean, _so_far(scene, loop, used, now)) for loop in occupied if loop.project == project)
    return used.use + live


def _so_far(scene: Scene, loop: Loop, used: Sums, now: int) -> int:
    """Price the use of an occupied loop so far; until it tells tokens, its time has the price of its project's."""
    live = scene.live_usage(loop, now)
    if live.tokens is None and used.ms:
        return live.ms * used.use // used.ms
    return use_of(scene.policy, live)


def _mean(scene: Scene, project: str, competing: Sequence[str], now: int) -> int:
    """Return what an attempt of a project costs: its own mean, else that of the competing projects, else one."""
    own = scene.mean_use((PROJECT, project), now)
    if own is not None:
        return own
    sums = [scene.ledger.used((PROJECT, name), now) for name in competing]
    attempts = sum(each.attempts for each in sums)
    return sum(each.use for each in sums) // attempts if attempts else UNKNOWN_COST


def _unserved(scene: Scene, project: str, now: int) -> bool:
    """Say whether a project has completed nothing in the window and has nothing occupied."""
    last = scene.shared.completed.get(project)
    recent = last is not None and last > now - scene.policy.window_ms
    return not recent and not scene.occupancy.by_project.get(project)
