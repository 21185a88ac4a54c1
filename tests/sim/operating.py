"""An operator of a simulated world who says any wish about anything, in the very words that every surface has.

`play` lets one talk most of the time, while loops run and faults happen; each answer is held to what was asked for.
Knows the vocabulary and what each word promises. What must hold whatever is said stands in `invariants.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from loopr.core import observations as o
from loopr.core.events import Event
from loopr.core.forest import Forest
from loopr.core.model import Status
from loopr.core.redoing import may_redo
from loopr.core.turn import perform
from loopr.errors import Moved, UserError, WorldError
from loopr.ui.steering import Answer, Course
from loopr.ui.vocabulary import RULES, Wish, check
from tests.sim import invariants
from tests.sim.faults import THROWN
from tests.sim.invariants import require
from tests.sim.journals import Remembers
from tests.sim.person import PERSON, start
from tests.sim.play import come_to_rest, draw
from tests.sim.worker import WORKER, lease_take
from tests.sim.world import World

S = Status
STEPS = 200
OVER = {S.CANCELLED, S.COMPLETE, S.LANDING, S.INVALIDATED}
ON_PAPER = {"dry_run"}
"""What is no matter of the core."""
FITS: Mapping[str, tuple[Status, ...]] = {
    "retry": (S.PARKED, S.FAILED, S.CANCELLED),
    "reset": (S.PARKED,),
    "clear": (S.PENDING,),
    "dispatch": (S.PENDING,),
    "approve": (S.AWAITING,),
    "reject": (S.AWAITING,),
    "iterate": (S.AWAITING,),
}
"""The statuses that a wish is meant for."""


def wish_of(world: World) -> Wish:
    """Draw a wish, mostly one that could make sense."""
    draw_ = world.chance
    fit = [each for each in FITS if world.loops(*FITS[each])]  # what loops wait for is said more often
    name = draw_.choice([*RULES, "resume"] if draw_.random() < 0.4 else [*fit, "resume", "resume", "pause"])
    rule = RULES[name]
    options: dict[str, str | bool] = {}
    for option, kind in rule.options.items():
        if option not in ON_PAPER and (draw_.random() < 0.3 or option == rule.required):
            options[option] = draw_.choice(("north", "@south", "")) if kind.kind is str else True
    ids = tuple(_name(world, name, rule.prefixes) for _ in range(draw_.choice((0, 1, 1, 1, 2, 3))))
    return Wish(name, () if options.get("all") and draw_.random() < 0.9 else ids, options)


def _name(world: World, wish: str, prefixes: tuple[str, ...]) -> str:
    """Name something: outright, by its last segment, by a few letters; or something that is not there."""
    roll = world.chance.random()
    loops = (world.loops(*FITS.get(wish, ())) if world.chance.random() < 0.7 else []) or world.loops()
    if prefixes and roll < 0.2:
        return world.chance.choice(prefixes) + world.chance.choice(("default", "other", "north", "nowhere"))
    if not loops or roll < 0.24:
        return world.chance.choice(("nowhere", "p", "", "a/b"))
    found = world.chance.choice(loops).id
    return found.rpartition("/")[2] if roll < 0.3 else found[:3] if roll < 0.33 else found


def speak(world: World) -> bool:
    """Say a wish, and once more: the answer keeps its word, and whatever is so already is not done twice."""
    wish = wish_of(world)
    world.tell(f"an operator: {wish.name} {' '.join(wish.ids)} {dict(wish.options)}")
    answer = ask(world, wish)
    if answer is None:
        world.met(f"refused: {wish.name}")
        return True
    world.met(f"done: {wish.name}")
    keeps_its_word(world, wish, answer)
    if wish.name in SETTLED:
        again = ask(world, wish)
        require(again is not None and not again.done, f"{wish} does something twice: {again}")
    return True


def ask(world: World, wish: Wish) -> Answer | None:
    """Have a wish decided in a process of its own; a refusal says why, and leaves nothing behind."""
    desk, before = world.desk, world.journal.last_seq()
    try:
        check(wish)
    except UserError as refusal:
        return _refused(world, refusal, before)
    course = Course(wish, "ann")
    for _ in range(3):
        desk.catch_up()
        now, before = desk.now(), world.journal.last_seq()
        try:
            events = perform(desk.forest, course(desk.forest, now), now)
        except UserError as refusal:
            desk.reload()
            return _refused(world, refusal, before)
        try:
            _remember(world, events, now)
        except Moved:
            world.met("fault: a verb lost a race and decided again")
            continue
        except WorldError:
            return None
        answer = course.answer(desk.forest, now)
        json.dumps(answer.document())
        return answer
    return None


def _remember(world: World, events: list[Event], now: int) -> None:
    """Append what was decided; now and then the engine is faster."""
    if world.faulty and world.engine is not None and world.chance.random() < 0.1:
        world.run_engine()
    if events:
        world.desk.remember(events, now)


def _refused(world: World, refusal: UserError, before: int) -> None:
    """Look at a refusal: it has words, and nothing was remembered."""
    require(all(each.message for each in refusal.problems), f"a refusal without words: {refusal.problems}")
    require(world.journal.last_seq() == before, f"refused, and remembered all the same: {refusal}")
    world.tell(f"  refused: {refusal}"[:200])


# --- what a word promises -------------------------------------------------------------------------------------------


def _held(forest: Forest, name: str) -> bool:
    """Say whether something has a hold of its own."""
    return (forest.loops[name].hold if name in forest.loops else forest.shared.holds.get(name)) is not None


def _is(*statuses: Status) -> Callable[[Forest, str], bool]:
    """Make a promise that a loop ends up in one of some statuses; a lane always is as it was wished."""
    return lambda forest, name: name not in forest.loops or forest.loops[name].status in statuses


def _goes_on(*stuck: Status) -> Callable[[Forest, str], bool]:
    """Make a promise that a loop is pending, or complete with nothing below it that is stuck; a lane is as wished."""

    def promise(forest: Forest, name: str) -> bool:
        if name not in forest.loops or forest.loops[name].status is S.PENDING:
            return True
        complete = forest.loops[name].status is S.COMPLETE
        return complete and not any(each.status in stuck for each in forest.tree.walk(name))

    return promise


def _is_redone(forest: Forest, name: str) -> bool:
    """Say whether a loop, if it is stale, is to be done again."""
    return not may_redo(forest, forest.loops[name], stale=True)


PROMISES: Mapping[str, Callable[[Forest, str], bool]] = {
    "pause": lambda forest, name: _held(forest, name) or forest.tree.at_rest(name),
    "resume": lambda forest, name: not _held(forest, name),
    "cancel": _is(*OVER),
    "retry": _goes_on(S.PARKED, S.FAILED, S.CANCELLED),
    "reset": _goes_on(S.PARKED),
    "clear": _held,
    "dispatch": lambda forest, name: name in forest.shared.dispatch,
    "approve": _is(S.LANDING),
    "reject": _is(S.FAILED),
    "iterate": _is(S.PENDING),
    "convoy": lambda forest, name: name.removeprefix("@") in forest.shared.convoys,
}
"""By wish, what is true of all that it names once it is done."""
SETTLED = {"pause", "resume", "cancel", "clear", "convoy"}
"""What is so already when it is said a second time."""


def keeps_its_word(world: World, wish: Wish, answer: Answer) -> None:
    """Each thing that was named is in the answer, and is what was wished; a stopped attempt lives no longer for it."""
    forest = world.desk.forest
    for row in (*answer.done, *answer.unchanged):
        if row.get("did") == "stopped":
            loop = forest.loops[row["id"]]
            require(loop.lease is None and loop.status is S.PENDING, f"{wish} stopped {loop}")
        elif str(row.get("did")).startswith("file "):  # a word on a file that was offered, not on the work
            left = forest.loops[row["id"]].offers.offered
            require(not left, f"{wish} leaves {left} on offer for {row['id']}")
        else:
            promise = _is_redone if wish.asks("stale") else PROMISES[wish.name]
            require(promise(forest, row["id"]), f"{wish} is not so for {row['id']}: {row}")
    empty = wish.name == "clear" or (wish.asks("stale") and not forest.loops)
    require(bool(answer.done or answer.unchanged or empty), f"{wish} is answered with nothing")


# --- a life ---------------------------------------------------------------------------------------------------------


def play(seed: int, journal: Remembers | None = None, *, steps: int = STEPS) -> Counter[str]:
    """Play one world in which an operator hardly ever stops talking; a broken promise is told with its seed."""
    world: World | None = None
    try:
        world = World(seed, journal, compare_every=8)
        ask_for_approval(world)
        start(world, "p1")
        for _ in range(steps):
            _step(world)
        come_to_rest(world, tidy=True)
    except Exception as error:
        story = "\n".join(world.story) if world is not None else ""
        raise AssertionError(f"seed {seed}\n{story}\n{type(error).__name__}: {error}\nseed {seed}") from error
    return world.met_with


def ask_for_approval(world: World) -> None:
    """Let a person be asked more often than elsewhere, so that there is something to decide on."""
    types = world.settings.types
    asked = {name: replace(types[name], approve=True) for name in types if world.chance.random() < 0.5}
    world.settings = replace(world.settings, types={**types, **asked})
    world.inbox.append(o.PolicySeen(world.settings))


def _step(world: World) -> None:
    """Let one thing happen: a word more often than not."""
    roll = world.chance.random()
    if roll < 0.3:
        speak(world)
    elif roll < 0.36:
        draw(world, WORKER if world.leases else {"lease take": (1, lease_take)}, "act")
    elif roll < 0.42:
        draw(world, PERSON, "act")
    elif roll < 0.45:
        draw(world, THROWN, "fault")
    else:
        world.go(world.chance.choice((2_000, 15_000, 60_000)))
    invariants.after_a_step(world)
