"""What may stand where a verb takes an id: the loops, plans, lanes and groups that the verb has something to do with.

Looks at the scene only, and at nothing that is slow to import. Must never know a shell, nor a verb's options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from loopr.core.model import FINISHED, Loop, Status
from loopr.core.offering import offered_file
from loopr.core.scene import Scene
from loopr.core.shared import WORKSPACE
from loopr.ui.names import counted

MOST = 200  # a shell asks before it lists so many
_ENDED = frozenset({Status.PARKED, Status.FAILED, Status.CANCELLED})


class Item(NamedTuple):
    """One word that may be typed, and what it stands for."""

    value: str
    help: str = ""


Source = Callable[[Scene, int], Iterable[Item]]


def _loops(fits: Callable[[Scene, Loop, int], bool]) -> Source:
    """Make the source of all loops of which something holds, in tree order."""
    return lambda scene, now: (Item(each.id, _about(each)) for each in scene.tree.walk() if fits(scene, each, now))


def _about(loop: Loop) -> str:
    """Say in a few words which loop it is, or why it stands still."""
    words = (loop.reason if loop.status in _ENDED else "") or loop.title or loop.type
    return " ".join(words.split())


def _heard(scene: Scene, now: int) -> Iterator[Item]:
    """Give the loops that were tried, and those with such loops below them."""
    told = set[str]()
    for loop in scene.tree.walk():
        if loop.attempt > 0:
            told.update((loop.id, *(each.id for each in scene.tree.ancestors(loop))))
    yield from (Item(each.id, _about(each)) for each in scene.tree.walk() if each.id in told)


def _plans(scene: Scene, now: int) -> Iterator[Item]:
    """Give the plans, those that are done first."""
    plans = [scene.loops[each] for each in scene.tree.children(None)]
    plans.sort(key=lambda plan: not scene.tree.at_rest(plan.id))
    yield from (Item(each.id, _about(each)) for each in plans)


def _convoys(scene: Scene, now: int) -> Iterator[Item]:
    """Give the convoys."""
    for name, convoy in sorted(scene.shared.convoys.items()):
        yield Item(f"@{name}", counted(len(convoy.members), "loop"))


def _projects(scene: Scene, now: int) -> Iterator[Item]:
    """Give the projects of plans that there are, where there is more than one."""
    found = sorted({scene.loops[each].project for each in scene.tree.children(None)})
    yield from (Item(f"project:{each}", "all plans of a project") for each in found if len(found) > 1)


def _held_scopes(scene: Scene, now: int) -> Iterator[Item]:
    """Give the projects that are held."""
    yield from (Item(each, "paused") for each in sorted(scene.shared.holds) if each != WORKSPACE)


def _lanes(scene: Scene, now: int) -> Iterator[Item]:
    """Give the lanes that rest, or are out of use."""
    for name, lane in sorted(scene.shared.lanes.items()):
        if lane.parked or lane.rest_until > now:
            yield Item(f"lane:{name}", lane.reason or ("parked" if lane.parked else "it rests"))


def _leases(scene: Scene, now: int) -> Iterator[Item]:
    """Give the leases that pull workers have."""
    for loop in scene.tree.walk():
        if loop.lease is not None and loop.lease.expires_at is not None:
            yield Item(loop.lease_id, f"{_about(loop)}, {loop.lease.holder}")


def _is_open(scene: Scene, loop: Loop, now: int) -> bool:
    """Say whether something of a loop, or below it, is still to be done."""
    return loop.status not in FINISHED or not scene.tree.at_rest(loop.id)


_every = _loops(lambda scene, loop, now: True)
_open = _loops(_is_open)
_pending = _loops(lambda scene, loop, now: loop.status is Status.PENDING and loop.hold is None)
_for_word = _loops(lambda scene, loop, now: loop.status is Status.AWAITING or bool(offered_file(scene, loop)))
_for_approval = _loops(lambda scene, loop, now: loop.status is Status.AWAITING)
_ended = _loops(lambda scene, loop, now: loop.status in _ENDED or loop.not_before > now)
_parked = _loops(lambda scene, loop, now: loop.status is Status.PARKED)
_paused = _loops(lambda scene, loop, now: loop.hold is not None)
_not_paused = _loops(lambda scene, loop, now: loop.hold is None and _is_open(scene, loop, now))
_tried = _loops(lambda scene, loop, now: loop.attempt > 0)
_with_work = _loops(lambda scene, loop, now: loop.attempt > 0 or loop.parent is None)


def _all(*sources: Source) -> Source:
    """Join sources."""
    return lambda scene, now: chain.from_iterable(each(scene, now) for each in sources)


_SUBTREE = _all(_every, _projects)
PLACES: Mapping[str, tuple[Source, ...]] = {
    "tree": (_SUBTREE,),
    "ls": (_SUBTREE,),
    "show": (_every,),
    "why": (_every,),
    "prompt": (_every,),
    "events": (_every,),
    "logs": (_heard,),
    "diff": (_with_work,),
    "shell": (_tried,),
    "wait": (_all(_open, _convoys, _projects),),
    "dispatch": (_all(_pending, _convoys),),
    "clear": (_all(_pending, _convoys),),
    "pause": (_all(_not_paused, _projects, _convoys),),
    "resume": (_all(_paused, _held_scopes, _convoys),),
    "cancel": (_all(_open, _convoys),),
    "retry": (_all(_ended, _convoys),),
    "reset": (_all(_parked, _lanes, _convoys),),
    "approve": (_all(_for_word, _convoys),),
    "reject": (_all(_for_word, _convoys),),
    "iterate": (_for_approval,),
    "land": (_plans,),
    "adopt": (_plans,),
    "update": (_plans,),
    "simulate": (_plans,),
    "gc --forget": (_every,),
    "lease renew": (_leases,),
    "lease complete": (_leases,),
    "lease release": (_leases,),
    "convoy create": ((lambda scene, now: ()), _every),
    "convoy add": (_convoys, _every),
    "convoy show": (_convoys,),
}
"""What each place of a verb may hold, by the verb and what of it is typed before; the last one goes on."""


def offers(scene: Scene, verb: str, given: Sequence[str], typed: str, now: int) -> list[Item]:
    """List what may follow what is `typed` of a word, after those that are `given`: none of them once more."""
    sources = PLACES.get(verb)
    if sources is None:
        return []
    source = sources[min(len(given), len(sources) - 1)]
    found = [each for each in source(scene, now) if each.value not in given]
    begun = [each for each in found if each.value.startswith(typed)]
    return (begun or list(_by_last(found, typed)))[:MOST]


def _by_last(found: Iterable[Item], typed: str) -> Iterator[Item]:
    """Give loops by the ends of their ids, which name them as well, each name once."""
    met = set[str]()
    for each in found:
        ends = each.value.split("/")
        names = ("/".join(ends[place:]) for place in range(len(ends) - 1, 0, -1))
        name = next((name for name in names if typed and name.startswith(typed)), "")
        if name and name not in met:
            met.add(name)
            yield each._replace(value=name)
