"""Where settings come from, and how what the layers say becomes one set of values.

Later wins: built in, the user's own file, loopr.yml, loopr.local.yml, LOOPR_ variables, --set. Maps merge, lists
replace. Knows files and variables. Must never know what a value means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loopr.world.settings.keys import Key, visible
from loopr.world.settings.reading import Fault, Node, Read, plain, read_file, read_value
from loopr.world.settings.schema import SCHEMA
from loopr.world.settings.sources import LAYERS, PREFIX, Texts, variables

Story = dict[str, list[Node]]


def file_layers(texts: Texts, called: Mapping[str, str]) -> list[Read]:
    """Read the layers that are files, earliest first; a missing one says nothing."""
    return [_layer(texts, name, called[name]) for name in LAYERS]


def with_given(layers: Sequence[Read], environ: Mapping[str, str], overrides: Sequence[str]) -> list[Read]:
    """Put what variables and options say upon the layers that are files."""
    layers = list(layers)
    for name in variables(environ):
        parts = _spelt(name[len(PREFIX) :].split("__"), [node for node, _ in layers if node is not None])
        layers.append(at_path(".".join(parts), environ[name], name))
    for given in overrides:
        key, equals, value = given.partition("=")
        mistake = Fault("", "--set", f'needs KEY=VALUE, not "{visible(given)}"')
        layers.append(at_path(key.strip(), value, "--set") if equals else (None, [mistake]))
    return layers


def at_path(key: str, value: str, where: str) -> Read:
    """Read one value and nest it under its dotted key, as a layer of its own."""
    node, faults = read_value(value, where)
    faults = [fault._replace(key=f"{key}.{fault.key}" if fault.key else key) for fault in faults]
    for part in reversed(key.split(".")):
        node = Node(where, {part: node or Node(where, None)})
    return (None if faults else node), faults


def merge(key: Key, said: Sequence[Node], default: Any, path: str, story: Story) -> Any:
    """Return the value of a key from what the layers say, noting in `story` who said what."""
    story[path] = list(said)
    if key.kind != "map":
        return plain(said[-1]) if said else default
    taken_back = [node for node in said if node.value is None] if key.null else []
    said = said[said.index(taken_back[-1]) + 1 :] if taken_back else said
    maps = [node.value for node in said if node.value is not None]
    base: Mapping[str, Any] = default or {}
    merged: dict[str, Any] = {}
    for name in _order(key, base, maps):
        child = key.child(name)
        if child is not None:
            inner = [*taken_back[-1:], *(each[name] for each in maps if name in each)]
            merged[name] = merge(child, inner, base.get(name, child.default), f"{path}.{name}" if path else name, story)
    return merged


def _order(key: Key, base: Mapping[str, Any], maps: Iterable[Mapping[str, Node]]) -> list[str]:
    """Order a map: the fixed keys, then entries as the user wrote them, then built-in ones that nobody named."""
    named = [name for each in maps for name in each]
    return list(dict.fromkeys([*key.keys, *named, *base]))


def _layer(texts: Texts, name: str, label: str) -> Read:
    """Read one file."""
    if name in texts.unreadable:
        return None, [Fault("", label, f"cannot be read: {texts.unreadable[name]}")]
    return read_file(texts.files[name], label) if name in texts.files else (None, [])


def _spelt(parts: Sequence[str], roots: Sequence[Node]) -> list[str]:
    """Turn the parts of a variable's name into keys, as they are spelt in the schema or in earlier layers."""
    key: Key | None = SCHEMA
    maps = [root.value for root in roots]
    spelt: list[str] = []
    for part in parts:
        names = list(dict.fromkeys(name for each in maps if isinstance(each, dict) for name in each))
        spelt.append(_spell(part, key, names))
        maps = [each[spelt[-1]].value for each in maps if isinstance(each, dict) and spelt[-1] in each]
        key = key.child(spelt[-1]) if key else None
    return spelt


def _spell(part: str, key: Key | None, names: Sequence[str]) -> str:
    """Spell one part of a variable's name."""
    if key is None or part.lower() in key.keys or key.names is None:
        return part.lower()
    known = [*names, *(key.default or {})]
    same = [name for name in known if name == part or name.lower().replace("-", "_") == part.lower()]
    return part if part in same else (same or [key.names.spell(part)])[0]
