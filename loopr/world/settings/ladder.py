"""Which types there are, what they inherit from the built-in ladder, and whether they form one.

The built-in ladder is plan > spec > phase > code. As soon as a layer names a type outside it, or gives a built-in one
another child, the ladder is the user's own: of the built-in types only those stay that this layer or a later one names
(as a key or as a child), and what hangs below them. Knows the shape of ladders. Must never know what a type does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loopr.world.settings.check import nearest
from loopr.world.settings.layers import Story
from loopr.world.settings.reading import Fault, Node
from loopr.world.settings.schema import BUILT_IN_TYPES, SCHEMA

MAX_LEVELS = 8
LEAF_PRIORITY = 100
PRIORITY_STEP = 20
RESERVED = ("need", "file", "children")  # their plurals are keys of an artifact

_PER_TYPE = (("scheduler", "priority"), ("concurrency", "per_type"), ("retry", "max_iterations"))
_DEFAULTS: Mapping[str, Mapping[str, Any]] = SCHEMA.keys["types"].default


def unsaid(roots: Sequence[Node]) -> dict[str, Any]:
    """Return the built-in values of everything that has an entry per type, for the ladder that the layers make."""
    names = _kept(roots)
    kept = [name for name in BUILT_IN_TYPES if name in names]
    values: dict[str, Any] = {"types": {name: _DEFAULTS[name] for name in kept}}
    for top, inner in _PER_TYPE:
        entries: Mapping[str, Any] = SCHEMA.keys[top].keys[inner].default
        values[top] = {inner: {name: entries[name] for name in kept}}
    return values


def of(types: Mapping[str, Any], roots: Sequence[Node]) -> dict[str, Any]:
    """Return the types that are in the ladder, without those that only an earlier layer with another ladder named."""
    names = _kept(roots)
    return {name: each for name, each in types.items() if name in names}


def fill_priorities(values: dict[str, Any]) -> None:
    """Give every type without a priority its own: 100 for a leaf, 20 less for each level above."""
    types: Mapping[str, Any] = values["types"]
    priority: dict[str, Any] = values["scheduler"]["priority"]
    for level, name in enumerate(reversed(in_order(types))):
        priority.setdefault(name, LEAF_PRIORITY - PRIORITY_STEP * level)


def in_order(types: Mapping[str, Any]) -> list[str]:
    """Return the names of a sound ladder from its top down."""
    children = {each["child"] for each in types.values()}
    names = [name for name in types if name not in children]
    while (child := types[names[-1]]["child"]) is not None:
        names.append(child)
    return names


def faults(values: Mapping[str, Any], story: Story) -> list[Fault]:
    """Return everything that keeps the types from being one ladder."""
    types: Mapping[str, Any] = values["types"]
    found = [*_reserved(types, story), *_missing(types, story), *_shared(types, story), *_cycles(types, story)]
    return found or _tops(types, story)


def strangers(values: Mapping[str, Any], story: Story) -> list[Fault]:
    """Return the entries of per-type maps that name no type; the built-in names are always let through."""
    known = [*values["types"], *BUILT_IN_TYPES]
    found: list[Fault] = []
    for top, inner in _PER_TYPE:
        path = f"{top}.{inner}"
        fixed = SCHEMA.keys[top].keys[inner].keys
        for name in values[top][inner]:
            if name not in fixed and name not in known:
                near = nearest(name, [*known, *fixed])
                hint = f"did you mean {path}.{near}?" if near else f"the types are {', '.join(values['types'])}"
                found.append(Fault(f"{path}.{name}", story[f"{path}.{name}"][-1].where, "names no type", hint))
    return found


def _types_of(root: Node) -> Mapping[str, Node]:
    """Return what one layer says of types."""
    types = root.value.get("types") if root.value else None
    return types.value or {} if types else {}


def _child_of(entry: Node) -> Node | None:
    """Return the child that an entry of `types` names, if it says anything of it."""
    return entry.value.get("child") if entry.value else None


def _kept(roots: Sequence[Node]) -> set[str]:
    """Return the types of the ladder, built-in and own."""
    layers = [_types_of(root) for root in roots]
    first = next((index for index, types in enumerate(layers) if _is_own(types)), None)
    if first is None:
        return set(BUILT_IN_TYPES)
    children: dict[str, str | None] = {name: _DEFAULTS[name].get("child") for name in BUILT_IN_TYPES}
    for types in layers:
        children |= {name: said.value for name, each in types.items() if (said := _child_of(each))}
    kept: set[str] = set()
    ahead: list[str | None] = [name for types in layers[first:] for name in types]
    while ahead:
        name = ahead.pop()
        if name is not None and name not in kept:
            kept.add(name)
            ahead.append(children.get(name))
    return kept


def _is_own(types: Mapping[str, Node]) -> bool:
    """Tell whether a layer makes a ladder of its own."""
    for name, entry in types.items():
        child = _child_of(entry)
        if name not in BUILT_IN_TYPES or (child is not None and child.value != _DEFAULTS[name].get("child")):
            return True
    return False


def _reserved(types: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A type whose plural is a key of an artifact could not be told from it."""
    for name in types:
        if name in RESERVED:
            message = "is a name that artifacts use for something else"
            yield Fault(f"types.{name}", _where(story, name), message, "rename it")


def _missing(types: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A child must be a type."""
    for name, each in types.items():
        child = each["child"]
        if child is not None and child not in types:
            near = nearest(child, types)
            hint = f"did you mean {near}?" if near else f"add types.{child}, or write child: null"
            yield Fault(f"types.{name}.child", _where(story, name, ".child"), f"there is no type {child}", hint)


def _shared(types: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """A type has one type above it."""
    above: dict[str, str] = {}
    for name, each in types.items():
        child = each["child"]
        if child is not None and above.setdefault(child, name) != name:
            message = f"{child} is already the child of {above[child]}"
            yield Fault(f"types.{name}.child", _where(story, name, ".child"), message, "each type has one parent")


def _cycles(types: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """Going down from any type ends at a leaf."""
    seen: set[str] = set()
    for start in types:
        walk = [start]
        while (child := types[walk[-1]]["child"]) in types and child not in walk and child not in seen:
            walk.append(child)
        if child in walk:
            cycle = [*walk[walk.index(child) :], child]
            where = _where(story, walk[-1], ".child")
            message = f"closes a cycle: {' > '.join(cycle)}"
            yield Fault(f"types.{walk[-1]}.child", where, message, "the last type has child: null")
        seen.update(walk)


def _tops(types: Mapping[str, Any], story: Story) -> list[Fault]:
    """Exactly one type is nobody's child, and it is no misspelt built-in one."""
    children = {each["child"] for each in types.values()}
    tops = [name for name in types if name not in children]
    alone = [name for name in tops if types[name]["child"] is None and name not in BUILT_IN_TYPES]
    typos = {name: near for name in alone if (near := nearest(name, BUILT_IN_TYPES))}
    if typos:
        message = "is in no ladder and looks like a built-in type"
        return [Fault(f"types.{each}", _where(story, each), message, f"did you mean {typos[each]}?") for each in typos]
    if len(tops) > 1:
        message = f"must have one type at the top, not {len(tops)}: {', '.join(tops)}"
        return [Fault("types", _where(story, tops[-1]), message, "connect them with child")]
    if len(types) > MAX_LEVELS:
        message = f"must have at most {MAX_LEVELS} levels, not {len(types)}"
        return [Fault("types", _where(story, list(types)[-1]), message)]
    return []


def _where(story: Story, name: str, suffix: str = "") -> str:
    """Say where a type, or one of its keys, was written; a key that nobody wrote is looked for at its type."""
    for path in (f"types.{name}{suffix}", f"types.{name}", "types"):
        if story.get(path):
            return story[path][-1].where
    return ""
