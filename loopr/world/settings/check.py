"""One layer against the schema: every problem at once, and what is left when they are taken out.

Knows kinds, ranges and names. Must never know other layers, or what several keys must agree on: that is `agree.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping

from loopr.core.wording import slips_in
from loopr.errors import Problem
from loopr.world.settings.elsewhere import elsewhere, is_elsewhere, not_yet
from loopr.world.settings.keys import CEILING, Key, allowed, shown, visible
from loopr.world.settings.reading import Fault, Node
from loopr.world.settings.schema import SCHEMA
from loopr.world.settings.trailers import HINT as TRAILER_HINT
from loopr.world.settings.trailers import OWN as OWN_TRAILERS
from loopr.world.settings.trailers import TRAILER, trailer_lines
from loopr.world.settings.usual import usual

AS_COMMAND = "a command of your own is `run: {}`, its prompt comes on stdin"
"""How a command is named, said to whoever has named it as an agent."""


def check(root: Node) -> tuple[Node, list[Fault]]:
    """Return what is right in a layer, and a fault for everything that is not."""
    faults: list[Fault] = []
    kept = _value(SCHEMA, root, "", faults)
    return kept or Node(root.where, {}), faults


def check_value(key: Key, node: Node, path: str) -> tuple[Node | None, list[Fault]]:
    """Check one value that stands under a path; None if there is nothing right in it."""
    faults: list[Fault] = []
    return _value(key, node, path, faults), faults


def problems(faults: Iterable[Fault]) -> tuple[Problem, ...]:
    """Word faults for people, each once, those of a file in the order of its lines."""
    once = list(dict.fromkeys(faults))
    sources = list(dict.fromkeys(_place(fault)[0] for fault in once))
    once.sort(key=lambda fault: (sources.index(_place(fault)[0]), *_place(fault)[1:]))
    return tuple(Problem(_sentence(fault), fault.where, fault.hint) for fault in once)


def _sentence(fault: Fault) -> str:
    """Put the key in front of what is wrong with it."""
    return f"{fault.key}: {fault.message}" if fault.key else fault.message


def _place(fault: Fault) -> tuple[str, int, int]:
    """Split `file:line:column`; other places have neither line nor column."""
    source, _, rest = fault.where.partition(":")
    line, _, column = rest.partition(":")
    return (source, int(line), int(column)) if line.isdigit() and column.isdigit() else (fault.where, 0, 0)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like this one, or has the same letters, or nothing."""
    import difflib

    word, names = name.lower(), list(known)
    swapped = (each for each in names if sorted(each) == sorted(word))
    return next(iter(difflib.get_close_matches(word, names, 1, 0.7)), "") or next(swapped, "")


def misspelt(path: str) -> str:
    """Return the known key that is most like a dotted path: beside it, or anywhere by its last part."""
    parent, _, name = path.rpartition(".")
    beside, other = _map_at(parent), elsewhere(path)
    near = nearest(name, beside.keys) if beside and not is_elsewhere(path) else ""
    if near:
        return f"{parent}.{near}" if parent else near
    paths = list(_paths(SCHEMA, ""))
    same = next((each for each in paths if each.rpartition(".")[2] == name), "")
    if other is not None and (is_elsewhere(path) or not same):
        return other.ours_at(path)
    return same or nearest(path, paths)


def unknown(path: str, where: str) -> Fault:
    """Word a key that there is not, or not yet."""
    why = not_yet(path)
    if why:
        return Fault(visible(path, 120), where, "is not in this version", f"{why}: leave it out")
    if hint := usual(path):
        return Fault(visible(path, 120), where, "is not a known key", hint)
    near, other = misspelt(path), elsewhere(path)
    if other is not None and not near:
        return Fault(visible(path, 120), where, "is not a known key", f"nothing is to be set: {other.why}")
    return Fault(visible(path, 120), where, "is not a known key", f"did you mean {near}?" if near else "")


def _map_at(path: str) -> Key | None:
    """Return the map that a dotted path names, open ones included."""
    key: Key | None = SCHEMA
    for part in path.split(".") if path else ():
        key = key.child(part) if key else None
    return key


def _paths(key: Key, path: str) -> Iterable[str]:
    """Name every fixed key, all the way down."""
    for name, child in key.keys.items():
        inner = f"{path}.{name}" if path else name
        yield inner
        yield from _paths(child, inner)


def _value(key: Key, node: Node, path: str, faults: list[Fault]) -> Node | None:
    """Check one value; a wrong one is left out."""
    if key.short and not isinstance(node.value, dict):
        node = _in_full(key, node)
    if node.value is None and (key.null or key.kind == "map"):
        return node
    if key.kind == "map" and isinstance(node.value, dict):
        return node._replace(value=_entries(key, node.value, path, faults))
    fault = _KINDS[key.kind](key, node, path)
    if fault is None:
        return _normal(key, node)
    faults.append(fault)
    return None


def _in_full(key: Key, node: Node) -> Node:
    """Write a short form as the map that it stands for: it takes the place of whatever else may be left out there."""
    said = {name: Node(node.where, None) for name, child in key.keys.items() if child.null}
    return node._replace(value=said | {key.short: node})


def _entries(key: Key, entries: Mapping[str, Node], path: str, faults: list[Fault]) -> dict[str, Node]:
    """Check the entries of a map."""
    kept: dict[str, Node] = {}
    for name, node in entries.items():
        inner = f"{path}.{name}" if path else name
        child = None if is_elsewhere(inner) and name not in key.keys else key.child(name)
        if child is None:
            faults.append(unknown(inner, node.where))
        elif name not in key.keys and not _named(key, name):
            faults.append(_bad_name(key, name, inner, node))
        else:
            value = _value(child, node, inner, faults)
            if value is not None:
                kept[name] = value
    return kept


def _named(key: Key, name: str) -> bool:
    """Tell whether an entry of an open map may have this name."""
    return key.names is not None and re.fullmatch(key.names.pattern, name) is not None


def _bad_name(key: Key, name: str, path: str, node: Node) -> Fault:
    """Word an entry whose name cannot be; it may be a misspelt fixed key."""
    near = nearest(name, key.keys)
    what = key.names.what if key.names else "key"
    hint = f"did you mean {near}?" if near else f"a name looks like {key.names.pattern}" if key.names else ""
    return Fault(visible(path, 120), node.where, f"is no name for a {what}", hint)


def _normal(key: Key, node: Node) -> Node:
    """Turn what may be written in two ways into one."""
    if key.kind == "loose":
        return node._replace(value=node.source)
    if key.kind == "trailers":
        return node._replace(value=[Node(where, line, line or "") for where, line in trailer_lines(node)])
    if key.kind == "names" and not isinstance(node.value, list):
        return node._replace(value=[node])
    if key.kind in ("command", "wrap") and isinstance(node.value, list):
        return node._replace(value=[each._replace(value=each.source) for each in node.value])
    return node


def _wrong(key: Key, node: Node, path: str, hint: str = "") -> Fault:
    """Say what a key must be and is not."""
    given = node.source if isinstance(node.value, (int, float)) and not isinstance(node.value, bool) else None
    hidden = key.secret and isinstance(node.value, str)
    words = visible(given) if given else "that text" if hidden else shown(node.value)
    return Fault(path, node.where, f"must be {allowed(key)}, not {words}", hint)


def _map(key: Key, node: Node, path: str) -> Fault | None:
    """A map is wanted and something else was written."""
    per_type = key.names is not None and key.names.what == "type" and "." in path
    return _wrong(key, node, path, f"did you mean {path}.TYPE?" if per_type else "")


def _number(key: Key, node: Node, path: str) -> Fault | None:
    """A number must be of its kind and within its range."""
    value = node.value
    kinds = (int,) if key.kind == "whole" else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        return _wrong(key, node, path)
    low = (key.least is not None and value < key.least) or (key.above is not None and value <= key.above)
    if low or (key.most is not None and value > key.most):
        return _wrong(key, node, path)
    return (
        Fault(path, node.where, f"must be at most {CEILING}, not {visible(node.source)}") if value > CEILING else None
    )


def _flag(key: Key, node: Node, path: str) -> Fault | None:
    """A flag is true or false, and nothing that looks like it."""
    return None if isinstance(node.value, bool) else _wrong(key, node, path)


def _text(key: Key, node: Node, path: str) -> Fault | None:
    """A text must fit its pattern or be one of its choices; numbers are not guessed to be text."""
    if not isinstance(node.value, str):
        quotes = f'if you mean the text, write "{visible(node.source)}" with quotes'
        return _wrong(key, node, path, quotes if isinstance(node.value, (bool, int, float)) else "")
    if key.choices:
        if why := not_yet(path, node.value):
            return Fault(path, node.where, f"{visible(node.value)} is not in this version", f"{why}: leave it out")
        near = "" if node.value in key.choices else nearest(node.value, key.choices)
        hint = f"did you mean {near}?" if near else ""
        return None if node.value in key.choices else _wrong(key, node, path, hint)
    fits = not key.pattern or re.fullmatch(key.pattern, node.value)
    if fits and "\0" not in node.value:
        return None
    return _wrong(key, node, path, AS_COMMAND.format(visible(node.value)) if may_be_command(path) else "")


def may_be_command(path: str) -> bool:
    """Tell whether the agent that a key names may be a command instead, by `run` beside it."""
    return path.startswith("types.") and path.endswith(".agent") and ".escalate." not in path


def _template(key: Key, node: Node, path: str) -> Fault | None:
    """A text whose placeholders are known."""
    fault = _text(key, node, path)
    slips = slips_in(node.value) if fault is None else ()
    return next((Fault(path, node.where, visible(each[0], 120), each[1]) for each in slips), fault)


def _trailers(key: Key, node: Node, path: str) -> Fault | None:
    """Lines of a name and a text, none of which is of loopr's own."""
    for where, line in trailer_lines(node):
        if line is None:
            return Fault(path, where, f"must be {allowed(key)}", TRAILER_HINT)
        if not TRAILER.fullmatch(line):
            return Fault(path, where, f"{shown(line)} is no trailer", TRAILER_HINT)
        if line.lower().startswith(OWN_TRAILERS):
            return Fault(path, where, f"{shown(line)} is a trailer of loopr's own", "give it another name")
    return None


def _loose(key: Key, node: Node, path: str) -> Fault | None:
    """Any scalar is taken as it is written."""
    return _wrong(key, node, path) if isinstance(node.value, (dict, list)) or "\0" in node.source else None


def _texts(key: Key, node: Node, path: str) -> Fault | None:
    """A list of texts, each of which fits the pattern."""
    if not isinstance(node.value, list):
        shape = "put it in [brackets]" if key.secret else f"write [{visible(node.source)}]"
        return _wrong(key, node, path, shape if isinstance(node.value, str) else "")
    return next(filter(None, (_text(key, item, path) for item in node.value)), None)


def _names(key: Key, node: Node, path: str) -> Fault | None:
    """One name, or a list of some."""
    if not isinstance(node.value, list):
        return _text(key, node, path)
    return _texts(key, node, path) if node.value else _wrong(key, node, path, "the list is empty")


def _command(key: Key, node: Node, path: str) -> Fault | None:
    """A shell text, or an argument vector with a program in it."""
    if not isinstance(node.value, list):
        return _text(Key("text", "", pattern=r"[\s\S]*\S[\s\S]*", says=key.says), node, path)
    if not node.value or not node.value[0].source:
        return _wrong(key, node, path, "the list has no program in it")
    for item in node.value:
        if isinstance(item.value, dict) and len(item.value) == 1:
            name = next(iter(item.value))
            quotes = f'write "{{{visible(name)}}}" with quotes'
            return Fault(path, item.where, "must be a list of texts, not of maps", quotes)
        if isinstance(item.value, (dict, list)) or "\0" in item.source:
            return _wrong(key, item, path)
    return None


def _wrap(key: Key, node: Node, path: str) -> Fault | None:
    """An argument vector with a place for the command."""
    if not isinstance(node.value, list):
        return _wrong(key, node, path)
    fault = _command(key, node, path)
    if fault is None and [item.source for item in node.value].count("{command}") != 1:
        return _wrong(key, node, path, 'one of its arguments must be "{command}" and nothing else')
    return fault


_KINDS: Mapping[str, Callable[[Key, Node, str], Fault | None]] = {
    "map": _map,
    "whole": _number,
    "number": _number,
    "flag": _flag,
    "text": _text,
    "template": _template,
    "trailers": _trailers,
    "loose": _loose,
    "texts": _texts,
    "names": _names,
    "command": _command,
    "wrap": _wrap,
}
