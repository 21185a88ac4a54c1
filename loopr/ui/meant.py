"""What a wish is about: the loops, groups and whatever else its words stand for, in the state that it meets.

Must never know what is done with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loopr.core.model import Status
from loopr.core.scene import Scene
from loopr.core.shared import WORKSPACE
from loopr.errors import NotFound, Problem, UserError
from loopr.ui.groups import VERBS, Group, group_of, is_group, members, plans_of
from loopr.ui.names import find_id
from loopr.ui.older import to_redo
from loopr.ui.vocabulary import PROJECT, RULES, Wish


class Meant(NamedTuple):
    """What a wish is about: the names of all that is meant, each once, and the groups that some of them come from."""

    names: tuple[str, ...]
    groups: list[Group]


def meant_by(scene: Scene, wish: Wish, now: int) -> Meant:
    """Return what is meant; all that is unknown is told together."""
    if wish.asks("all"):
        return Meant(tuple(_waiting(scene)) if wish.name == "clear" else (WORKSPACE,), [])
    if wish.asks("stale"):
        return Meant(tuple(to_redo(scene, _tops(scene, wish.ids))), [])
    names: dict[str, None] = {}
    groups: list[Group] = []
    problems: list[Problem] = []
    for text in wish.ids:
        try:
            found, group = _named(scene, text, wish), None
            if found is None or found in scene.loops:
                how = {"file": wish.asks("file"), "stop": wish.asks("now")}
                group = group_of(scene, wish.name, text, found, now, **how)
        except NotFound as error:
            problems += error.problems
            continue
        groups += [group] if group is not None else []
        names |= dict.fromkeys(group.taken if group is not None else [found or text])
    if problems:
        raise NotFound("", problems=problems)
    return Meant(tuple(names), groups)


def _tops(scene: Scene, ids: Sequence[str]) -> list[str]:
    """Name the loops that some texts stand for, with all below them; without any, all plans."""
    tops = [
        each
        for text in ids
        for each in (
            [loop.id for loop in members(scene, text, tops=True)] if is_group(text) else [find_id(scene.loops, text)]
        )
    ]
    return tops if ids else scene.tree.children(None)


def _waiting(scene: Scene) -> Iterator[str]:
    """List what stands in the queue and is not held."""
    return (each.id for each in scene.tree.walk() if each.status is Status.PENDING and each.hold is None)


def _named(scene: Scene, text: str, wish: Wish) -> str | None:
    """Return the name of what a text means: a loop, or a lane or a project where those may be meant; None: a group."""
    prefix = next((each for each in RULES[wish.name].prefixes if text.startswith(each)), None)
    if prefix is None and wish.name in VERBS and is_group(text):
        if wish.asks("fresh"):
            raise UserError(f"--fresh makes loops anew, and {text} is a group", hint="name the loops themselves")
        return None
    if prefix is None:
        return find_id(scene.loops, text)
    if prefix == PROJECT and text not in scene.shared.holds:
        plans_of(scene, text)  # one that nobody knows is refused
    return text
