"""What of the settings may change while loops are at work, and what of two sets of texts differs beside that.

Looks at what the files say, not at what comes of it: a variable or an option must not hide that a file has changed.
Knows the names of a few keys. Must never know where texts come from, nor which of them are in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from loopr.world.settings.layers import file_layers
from loopr.world.settings.reading import Fault, Node, Read, plain
from loopr.world.settings.sources import LAYERS, Texts

LIVE = frozenset({"concurrency", "dispatch", "scheduler", "queue", "retry", "logs", "resources"})
"""What paces the work, and judges nothing: it comes into force at once."""
_LANES, _LIVE_IN_LANE = "lanes", "max_concurrent"
_CALLED = {name: name for name in LAYERS}


class Unsaid(NamedTuple):
    """Stands where a file says nothing of a key."""


UNSAID = Unsaid()


class Difference(NamedTuple):
    """One thing that texts say otherwise: a key of a layer with both values, or a file with the lines that differ."""

    name: str
    file: str
    old: Any = UNSAID
    new: Any = UNSAID
    lines: tuple[str, ...] = ()


def is_live(key: str) -> bool:
    """Say whether a dotted key may change while loops are at work."""
    top, *rest = key.split(".")
    return top in LIVE or (top == _LANES and len(rest) == 2 and rest[1] == _LIVE_IN_LANE)


def blend(layers: Sequence[Read], later: Sequence[Read]) -> list[Read]:
    """Return what layers say, but of what may change at any time what later ones say."""
    return [
        (_joined(_part(ours[0], live=False), _part(theirs[0], live=True)), [*ours[1], *theirs[1]])
        for ours, theirs in zip(layers, later, strict=True)
    ]


def _part(root: Node | None, *, live: bool) -> Node | None:
    """Return what a layer says of what may change at any time, or of all else."""
    if root is None or not isinstance(root.value, dict):
        return None if live else root
    kept: dict[str, Node] = {}
    for name, node in root.value.items():
        if name == _LANES and isinstance(node.value, dict):
            lanes = {lane: part for lane, each in node.value.items() if (part := _of_lane(each, live=live)) is not None}
            if lanes or not live:
                kept[name] = node._replace(value=lanes)
        elif (name in LIVE) == live:
            kept[name] = node
    return root._replace(value=kept)


def _of_lane(node: Node, *, live: bool) -> Node | None:
    """Return the one key of a lane that may change at any time, or all others."""
    if not isinstance(node.value, dict):
        return None if live else node
    kept = {key: each for key, each in node.value.items() if (key == _LIVE_IN_LANE) == live}
    return node._replace(value=kept) if kept or not live else None


def _joined(node: Node | None, other: Node | None) -> Node | None:
    """Put two layers that say different things into one."""
    if node is None or other is None:
        return node or other
    if not isinstance(node.value, dict) or not isinstance(other.value, dict):
        return other if node.value is None else node
    names = dict.fromkeys([*node.value, *other.value])
    return node._replace(value={each: _both(node.value.get(each), other.value.get(each)) for each in names})


def _both(node: Node | None, other: Node | None) -> Node:
    """Return what at least one of two says."""
    found = _joined(node, other)
    assert found is not None
    return found


def differences(old: Texts, new: Texts) -> list[Difference]:
    """Say what texts say otherwise, in the order of the layers, then presets and prompts."""
    from difflib import unified_diff  # slow to import, and most settings hold still

    found = [each for name in LAYERS for each in _in_layer(name, old, new)]
    names = sorted({*old.files, *new.files, *old.unreadable, *new.unreadable} - {*LAYERS})
    texts = ([_text(each, name) for each in (old, new)] for name in names)
    for name, (before, after) in zip(names, texts, strict=True):
        if before != after:
            lines = unified_diff(before.splitlines(), after.splitlines(), "accepted", "now", lineterm="", n=1)
            found.append(Difference(name, name, lines=tuple(lines)))
    return found


def held_keys(found: Sequence[Difference]) -> tuple[str, ...]:
    """Name what is held back of what differs, each once."""
    return tuple(dict.fromkeys(each.name for each in found if not is_live(each.name)))


def _text(texts: Texts, name: str) -> str:
    """Return a file as text."""
    said = f"cannot be read: {texts.unreadable[name]}" if name in texts.unreadable else ""
    return texts.files.get(name, b"").decode("utf-8", "replace") or said


def _in_layer(name: str, old: Texts, new: Texts) -> Iterator[Difference]:
    """Give the keys of which two texts of a layer say something else."""
    before, after = (_said(texts, name) for texts in (old, new))
    for key in dict.fromkeys([*before, *after]):
        values = before.get(key, UNSAID), after.get(key, UNSAID)
        if repr(values[0]) != repr(values[1]):  # true is not 1, nor 1 the same as 1.0
            yield Difference(key, name, *values)


def _said(texts: Texts, name: str) -> Mapping[str, Any]:
    """Return what a layer says, by dotted key; one that is no settings is a value under no key."""
    root, faults = file_layers(texts, _CALLED)[LAYERS.index(name)]
    if root is None or faults:
        raw = texts.files.get(name, b"")
        return {name: (raw, _words(faults))} if raw or faults else {}
    return dict(_leaves(root, ""))


def _words(faults: Sequence[Fault]) -> tuple[str, ...]:
    """Return the words of what is wrong."""
    return tuple(each.message for each in faults)


def _leaves(node: Node, key: str) -> Iterator[tuple[str, Any]]:
    """Give every value with its dotted key; a map in which nothing is is a value."""
    if isinstance(node.value, dict) and (node.value or not key):
        for name, each in node.value.items():
            yield from _leaves(each, f"{key}.{name}" if key else name)
    elif key:
        yield key, plain(node)
