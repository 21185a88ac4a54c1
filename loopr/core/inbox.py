"""What needs a person, as one list: each row says of what, why, the command that resolves it, and whether work waits.

The same rows for every surface. Knows the scene, and what it is told of the world beside it. Must never know a
terminal, nor what a word of a person leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from loopr.core.gates import kept_for_good, own_gates_open
from loopr.core.left_out import LEFT_OUT, read_left, told_of
from loopr.core.model import Loop, Status
from loopr.core.offering import file_of, is_foreign, is_replaced, is_to_be_made_anew, offered_words, words_for
from loopr.core.resources import unoffered
from loopr.core.scene import Scene
from loopr.core.staleness import stale_below
from loopr.core.tips import BRANCH_PLACE, UPDATE_PLACE

APPROVAL, OFFERED, FILE, PARKED, FAILED = "approval", "offered", "file", "parked", "failed"
RESOURCE = "resource"
STALE, BRANCH, UPDATE, HOME, SETTINGS = "stale", "branch", "update", "home", "settings"
ASKED = "the check said yes; a person must too"
MOST_TYPED = 5  # names in one command


class Call(NamedTuple):
    """One row: `about` loops or plans, nothing where it is about the workspace; `stops` where work waits for it."""

    kind: str
    about: tuple[str, ...]
    words: str
    command: str
    stops: bool


class Beside(NamedTuple):
    """The facts beside the scene: plans done and not home, words on held settings, and the time."""

    away: tuple[str, ...] = ()
    held: str = ""
    now: int = 0


NOTHING_BESIDE = Beside()


def inbox(scene: Scene, beside: Beside = NOTHING_BESIDE) -> list[Call]:
    """List what needs a person: first what work waits for."""
    return [call for rows in _ROWS for call in rows(scene, beside)]


def _approvals(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List the loops that wait for a yes."""
    for name in sorted(scene.tree.by_status[Status.AWAITING]):
        loop = scene.loops[name]
        words = f"{file_of(scene, loop)} is a person's file by now" if is_replaced(loop) else ASKED
        yield Call(APPROVAL, (name,), words, f"loopr approve {name}", True)


def _offered(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List the files that came while loops were at work, and wait for a word; of a complete loop none waits for it."""
    for name in sorted(scene.tree.offered):
        loop = scene.loops[name]
        words = offered_words(scene, loop).removesuffix(f": {words_for(loop)}")
        yield Call(OFFERED, (name,), words, f"loopr approve {name} --file", not scene.tree.done(name))


def _foreign(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List the files of others that keep a loop from completing by declaration."""
    for loop in scene.tree.walk():
        lies, name = loop.offers.unread or loop.offers.counts, loop.id
        if not lies or loop.offers.offered or not is_to_be_made_anew(scene, loop):
            continue
        words = (is_foreign(scene, loop, 0) or ("", None))[0]
        if loop.offers.unread:
            yield Call(FILE, (name,), words, f"${{EDITOR:-vi}} {file_of(scene, loop)}", True)
        else:
            yield Call(
                OFFERED, (name,), words.removesuffix(f": {words_for(loop)}"), f"loopr approve {name} --file", True
            )


def _files(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List the files that a person must write, since nothing is set that would."""
    for loop in scene.tree.walk():
        if loop.command or loop.status is not Status.PENDING or scene.policy.type_of(loop.type).has_command:
            continue
        if own_gates_open(scene, loop):
            place = file_of(scene, loop)
            words = f"a person must write its {loop.type}.md: {place}"
            yield Call(FILE, (loop.id,), words, f"mkdir -p {place.rpartition('/')[0]} && ${{EDITOR:-vi}} {place}", True)


def _stuck(status: Status, verb: str) -> Callable[[Scene, Beside], Iterator[Call]]:
    """Make what lists loops that go on by a person's word only: those of a plan with the same reason as one row."""

    def rows(scene: Scene, beside: Beside) -> Iterator[Call]:
        alike: dict[tuple[str, str], list[Loop]] = {}
        for name in sorted(scene.tree.by_status[status]):
            loop = scene.loops[name]
            alike.setdefault((loop.plan, loop.reason or "no reason was given"), []).append(loop)
        for (_, reason), loops in alike.items():
            names = tuple(each.id for each in loops)
            meant = " ".join(names) if len(names) <= MOST_TYPED else _above(names)
            yield Call(status.value, names, reason, f"loopr {verb} {meant}", True)

    return rows


def _above(names: tuple[str, ...]) -> str:
    """Name the loop that all of some are below: with it, they are meant."""
    parts = zip(*(each.split("/") for each in names), strict=False)
    return "/".join(each[0] for each in takewhile(lambda found: len(set(found)) == 1, parts))


def _lost(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List by resource the loops that want what the settings do not offer, or more, and would be next."""
    if not scene.tree.resourced:  # what types want is offered, or the settings do not load
        return
    alike: dict[tuple[str, str], list[str]] = {}
    for loop in scene.tree.walk():
        lost = next(unoffered(scene.policy, scene.resources_of(loop)), None) if loop.waits else None
        if lost is not None and own_gates_open(scene, loop):
            alike.setdefault(lost, []).append(loop.id)
    for (name, words), names in alike.items():
        amount = max(dict(scene.resources_of(scene.loops[each]))[name] for each in names)
        said = f"resource {name}: {words.partition('; ')[0]}"
        yield Call(RESOURCE, tuple(names), said, f"loopr set resources.{name} {amount}", True)


def _stale(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List for each plan its loops that are older than what they rest on, where anything has landed anew."""
    tree, found = scene.tree, dict[str, list[str]]()
    for top in tree.children(None):
        if tree.needers and tree.changed(top):
            for loop in (each for each in stale_below(tree, top) if each.past.ask is None):
                found.setdefault(loop.plan, []).append(loop.id)
    for plan, names in found.items():
        yield Call(STALE, tuple(names), "older than what it rests on", f"loopr retry --stale {plan}", False)


def _kept(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List by plan the loops to be done again that a pause or a budget keeps from that for good."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name in sorted(scene.tree.redoing):
        loop = scene.loops[name]
        if loop.waits and (why := kept_for_good(scene, loop, beside.now)):
            alike.setdefault((loop.plan, why), []).append(name)
    for (_, reason), names in alike.items():
        yield Call(STALE, tuple(names), f"to be done again; {reason}", f"loopr why {names[0]}", False)


def _left_out(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List the loops that have changed files which never land."""
    for name, text in told_of(scene).items():
        words, command = read_left(text)
        yield Call(LEFT_OUT, (name,), words, command, False)


def _branches(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List the branches of plans that stand where loopr has not put them."""
    for place, text in sorted(scene.shared.problems.items()):
        plan = place.removeprefix(BRANCH_PLACE)
        if place.startswith(BRANCH_PLACE) and f"loopr adopt {plan}" in text:  # a branch that lags needs nobody
            yield Call(BRANCH, (plan,), text, f"loopr adopt {plan}", False)


def _updates(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List the plans that have not taken their base: it does not fit, or a judge said no."""
    for plan in scene.tree.children(None):
        text = scene.shared.problems.get(f"{UPDATE_PLACE}{plan}")
        if text and not scene.tree.called_off(plan):
            yield Call(UPDATE, (plan,), text, f"loopr update {plan}", False)


def land_line(scene: Scene, plan: str) -> str:
    """Return the command that brings a plan home; one that began at no branch is told where to."""
    bound = scene.shared.plans.get(plan)
    return f"loopr land {plan}{' --onto BRANCH' if bound and not bound.base_branch else ''}"


def _home(scene: Scene, beside: Beside) -> Iterator[Call]:
    """List the plans that are done and not brought home."""
    for plan in beside.away:
        yield Call(HOME, (plan,), "it is done, and not brought home", land_line(scene, plan), False)


def _settings(scene: Scene, beside: Beside) -> Iterator[Call]:
    """Tell what is held back of the settings."""
    if beside.held:
        yield Call(SETTINGS, (), beside.held, "loopr config accept", False)


_ROWS: tuple[Callable[[Scene, Beside], Iterable[Call]], ...] = (
    _approvals,
    _offered,
    _foreign,
    _files,
    _lost,
    _stuck(Status.PARKED, "reset"),
    _stuck(Status.FAILED, "retry"),
    _stale,
    _kept,
    _left_out,
    _branches,
    _updates,
    _home,
    _settings,
)
"""What gives rows, in the order in which they are told: whatever else needs a person is one more of these."""
