"""Groups of loops in place of ids: a convoy (`@NAME`), a project (`project:NAME`), all below a loop.

One resolver for every verb that steers: which loops a group has, to which of them a verb applies, and what is to be
said of the others. Must never know what a verb leads to, nor a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from loopr.core.model import Loop, Status
from loopr.core.offering import offered_file
from loopr.core.scene import Scene
from loopr.core.states import people_say
from loopr.errors import NotFound, UserError
from loopr.ui.convoys import find_convoy

CONVOY, PROJECT = "@", "project:"
MOST_SHOWN = 50
SHOWN, NOT_SHOWN = "it has changed since it was shown", "it was not shown"
MOST_LEFT = 5
Applies = Callable[[Scene, Loop, int], bool]
_ENDED = frozenset({Status.PARKED, Status.FAILED, Status.CANCELLED})
_PLURALS = {"is": "are", "has": "have", "was": "were", "waits": "wait"}
_OVER = frozenset({Status.CANCELLED, Status.INVALIDATED})


class Verb(NamedTuple):
    """How a verb takes a group: what it does to a loop, and to which loops it applies.

    `tops`: the members of a group stand for all below them, as where they are named themselves.
    `below`: a loop to which the verb does not apply stands for those below it. `asks` before it takes more than one.
    """

    did: str
    applies: Applies
    tops: bool = False
    below: bool = False
    asks: bool = False


class Group(NamedTuple):
    """What a group has come to: the loops that are taken, and why each of the others is not."""

    text: str
    taken: tuple[str, ...]
    left: tuple[tuple[str, str], ...]

    @property
    def total(self) -> int:
        """How many loops the group has."""
        return len(self.taken) + len(self.left)


def waits_twice(scene: Scene, loop: Loop) -> bool:
    """Say whether a person's word is awaited on a loop's work, and on a file that is offered for it."""
    return loop.status is Status.AWAITING and bool(offered_file(scene, loop))


def _nothing_waits(verb: str, top: str, twice: Sequence[str], *, file: bool) -> UserError:
    """Say that nothing below a loop waits for the word that is given."""
    if twice:
        hint = f"the file first: `loopr {verb} {twice[0]} --file`; then the work: `loopr {verb} {twice[0]}`"
        return UserError(f"of {top} only those wait that wait for two words: {', '.join(twice[:MOST_LEFT])}", hint=hint)
    hint = f"`loopr tree {top}` says what it waits for; `loopr diff --waiting` shows all that waits for you"
    return UserError(f"nothing of {top} waits for {'a word on a file' if file else 'your word'}", hint=hint)


def _waits_for_word(scene: Scene, loop: Loop, now: int) -> bool:
    """Say whether a person's word is awaited on a loop, and on one thing only."""
    return (loop.status is Status.AWAITING) != bool(offered_file(scene, loop))


def _begins_again(scene: Scene, loop: Loop, now: int) -> bool:
    """Say whether a loop can begin again without anything of it being lost."""
    return loop.status in _ENDED or (loop.status is Status.PENDING and loop.not_before > now)


def _may_pause(loop: Loop) -> bool:
    """Say whether a loop is not over, nor paused by itself."""
    return (loop.hold is None or loop.hold.is_clearing) and loop.status not in _OVER


VERBS: Mapping[str, Verb] = {
    "dispatch": Verb("dispatched", lambda scene, loop, now: loop.waits, below=True),
    "clear": Verb("cleared", lambda scene, loop, now: loop.waits, below=True),
    "pause": Verb("paused", lambda scene, loop, now: _may_pause(loop), tops=True),
    "resume": Verb("resumed", lambda scene, loop, now: loop.hold is not None),
    "cancel": Verb("cancelled", lambda scene, loop, now: loop.status not in _OVER, tops=True, asks=True),
    "retry": Verb("retried", _begins_again, asks=True),
    "reset": Verb("reset", lambda scene, loop, now: loop.status is Status.PARKED, asks=True),
    "approve": Verb("approved", _waits_for_word, below=True, asks=True),
    "reject": Verb("rejected", _waits_for_word, below=True, asks=True),
    "iterate": Verb("sent back", lambda scene, loop, now: loop.status is Status.AWAITING, below=True, asks=True),
}
"""How each verb takes a group; what is not here takes loops only."""
DECIDING = frozenset({"approve", "reject", "iterate"})
"""The verbs with which a person decides on what waits for them."""


def group_of(
    scene: Scene, verb: str, text: str, found: str | None, now: int, *, file: bool = False, stop: bool = False
) -> Group | None:
    """Return the group that a text means to a verb; None where it means one thing, which `found` names if a loop.

    `file`: the verb is about files that are offered, and nothing else. `stop`: it ends what lives in the group too.
    """
    rule = VERBS.get(verb)
    if rule is None or (found is not None and not rule.below):
        return None

    def applies(loop: Loop) -> bool:
        if file:
            return bool(offered_file(scene, loop))
        return rule.applies(scene, loop, now) or (stop and loop.status not in _OVER and _lives(scene, loop))

    if found is None:
        loops = _counted(scene, members(scene, text, tops=rule.tops), applies)
    else:
        loops = [each for each in scene.tree.walk(found) if each.id != found]
        if verb in DECIDING and loops and not any(map(applies, (scene.loops[found], *loops))):
            raise _nothing_waits(verb, found, [each.id for each in loops if waits_twice(scene, each)], file=file)
        if applies(scene.loops[found]) or not any(map(applies, loops)):
            return None  # it is meant itself, or the verb says why not
        loops = _counted(scene, loops, applies)
    taken = tuple(each.id for each in loops if applies(each))
    group = Group(text, taken, tuple((each.id, _why_not(scene, each)) for each in loops if not applies(each)))
    if not group.total:
        raise UserError(f"there is no loop in {text}")
    return group


def _counted(scene: Scene, loops: list[Loop], applies: Callable[[Loop], bool]) -> list[Loop]:
    """Leave out complete loops with others below them, as where done loops are counted."""
    return [each for each in loops if applies(each) or not scene.tree.is_head(each.id)] or loops


def _lives(scene: Scene, top: Loop) -> bool:
    """Say whether something of a loop, or below it, may still be ended."""
    from loopr.core.wishes import may_stop  # knows every event, and those who only look need none

    return any(map(may_stop, scene.tree.walk(top.id)))


def kept_as_shown(
    scene: Scene, groups: Sequence[Group], known: Mapping[str, tuple[object, ...]], did: str
) -> list[Group]:
    """Keep of each group what is as it was shown; one of which nothing is so is refused."""
    kept = [keep(scene, each, known) for each in groups]
    for found, left in zip(groups, kept, strict=True):
        if found.taken and not left.taken:
            raise UserError(f"nothing of {left.text} can be {did}: {counted(left)}")
    return kept


def members(scene: Scene, text: str, *, tops: bool = False) -> list[Loop]:
    """List the loops of a convoy or a project in tree order: all of them, or only the `tops` that stand for them."""
    if text.startswith(CONVOY):
        names = [each for each in scene.shared.convoys[find_convoy(scene, text)].members if each in scene.loops]
    else:
        names = plans_of(scene, text)
    highest = [each for each in names if not any(each.startswith(f"{other}/") for other in names)]
    if tops:
        return [scene.loops[each] for each in highest]
    return [loop for name in highest for loop in scene.tree.walk(name)]


def plans_of(scene: Scene, text: str) -> list[str]:
    """Name the plans of a project that is written `project:NAME`."""
    name = text.removeprefix(PROJECT)
    known = {*scene.policy.projects, *(each.project for each in scene.loops.values())}
    if name not in known:
        raise NotFound(f"there is no project {name}", hint=f"known: {', '.join(sorted(known))}")
    return [each for each in scene.tree.children(None) if scene.loops[each].project == name]


def is_group(text: str) -> bool:
    """Say whether a text names a convoy or a project."""
    return text.startswith((CONVOY, PROJECT))


def counted(group: Group) -> str:
    """Say how many of a group are left for which reason, and name those that are not as they were shown."""
    found = Counter(why for _, why in group.left)
    return ", ".join(f"{number} {_plural(why, number)}{_named(group, why)}" for why, number in found.items())


def _named(group: Group, why: str) -> str:
    """Name the loops that are left since they are not as they were shown."""
    names = [name for name, each in group.left if each == why] if why in (SHOWN, NOT_SHOWN) else []
    more = f" and {len(names) - MOST_LEFT} more" if len(names) > MOST_LEFT else ""
    return f" ({', '.join(names[:MOST_LEFT])}{more})" if names else ""


def told(group: Group, did: str) -> str:
    """Say what has become of a group: 3 of 5 loops of @c dispatched; 2 are complete."""
    loops = f"{len(group.taken)} of {group.total} loop{'s' * (group.total != 1)} of {group.text} {did}"
    return f"{loops}; {counted(group)}" if group.left else loops


def shown(verb: str, names: Sequence[str]) -> str:
    """List all that would be taken, for whoever is asked."""
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return f"{verb} takes {len(names)} loops: {', '.join(names[:MOST_SHOWN])}{more}"


def goes_on(verb: str) -> str:
    """Say how to go on after the list, where nobody is there to be asked."""
    return "--yes goes on" + ("; `loopr diff --waiting` shows each" if verb in DECIDING else "")


def mark(loop: Loop) -> tuple[object, ...]:
    """Return what tells a loop, as it was shown, from itself after something has happened to it."""
    return loop.status, loop.since, loop.generation, loop.attempt, loop.artifact, loop.finished, loop.offers


def keep(scene: Scene, group: Group, known: Mapping[str, tuple[object, ...]]) -> Group:
    """Keep of a group only what was shown, as it was shown; all else stays, and is named."""
    same = [each for each in group.taken if known.get(each) == mark(scene.loops[each])]
    other = [(each, SHOWN if each in known else NOT_SHOWN) for each in group.taken if each not in same]
    return Group(group.text, tuple(same), (*group.left, *other))


def rows(groups: Sequence[Group]) -> list[dict[str, object]]:
    """Return groups as data."""
    return [
        {
            "group": each.text,
            "total": each.total,
            "taken": list(each.taken),
            "left": [{"id": name, "why": why} for name, why in each.left],
        }
        for each in groups
    ]


def _why_not(scene: Scene, loop: Loop) -> str:
    """Say why a verb does not apply to a loop: how it stands."""
    if waits_twice(scene, loop):
        return "it waits for two words"
    stands = people_say(loop)
    return f"it is {stands}" if loop.hold is None else f"it is {stands}, and paused"


def _plural(why: str, number: int) -> str:
    """Say of several what is said of one."""
    words = why.removeprefix("it ")
    if number == 1:
        return words
    first, _, rest = words.partition(" ")
    return f"{_PLURALS.get(first, first)} {rest}".replace("since it was", "since they were")


def reached(scene: Scene, names: Iterable[str]) -> list[Loop]:
    """List the loops that holds of some names reach, each once."""
    met: dict[str, Loop] = {}
    for name in names:
        project = name.removeprefix(PROJECT) if name.startswith(PROJECT) else None
        loops = scene.tree.walk(name if name in scene.loops else None)
        met |= {each.id: each for each in loops if project in (None, each.project)}
    return list(met.values())
