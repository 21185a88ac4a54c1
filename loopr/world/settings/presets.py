"""Agent presets: from the shipped files, those of the workspace and what loopr.yml adds to one frozen value each.

A file `agents/NAME.yml` of the workspace takes the place of the shipped one; `agents.NAME` in the settings changes
single keys of either; `extends` begins with another preset. Knows files and how presets are built from them. Must never
know how a client is started, nor what it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from loopr.errors import SettingsError
from loopr.world.settings.check import AS_COMMAND, check_value, may_be_command, nearest, problems
from loopr.world.settings.keys import Command
from loopr.world.settings.layers import Story, merge
from loopr.world.settings.preset_keys import AGENTS, PRESET
from loopr.world.settings.reading import Fault, Node, Read, read_file
from loopr.world.settings.sources import NOTHING, PRESETS, Texts

SHIPPED = Path(__file__).parents[2] / "agents"
OPTIONS = "{options}"
BESIDE = "{presets}"
"""In a variable that is set: the folder of the presets that come with loopr, where files for their clients lie too."""
REPORT_COST = frozenset({"claude", "opencode", "aider"})
"""The readers of clients that say what they cost in dollars."""


class Preset(NamedTuple):
    """One agent, ready to be asked: `command` has its options in place, and placeholders of the attempt."""

    name: str
    about: str
    command: Command
    model: str
    set: Mapping[str, str]
    unset: tuple[str, ...]
    own_tmpdir: bool
    lanes: tuple[str, ...]
    reader: str
    success: str
    signs: Mapping[str, tuple[str, ...]]
    mend: Mapping[str, str]
    version: Command | None
    install: str
    origin: str
    only: tuple[str, ...] | None = None

    @property
    def reports_cost(self) -> bool:
        """True if its client says what it costs in dollars."""
        return self.reader in REPORT_COST


class Found(NamedTuple):
    """What is known of one preset: its merged values, what it is at bottom, and all that is wrong with it."""

    values: Mapping[str, Any]
    root: str
    origin: str
    faults: tuple[Fault, ...] = ()


class Shelf:
    """Where presets lie: the shipped files, those of a workspace, and what the layers of its settings say."""

    def __init__(self, texts: Texts = NOTHING, roots: Sequence[Node] = ()) -> None:
        """Look at the names only."""
        unreadable = Texts(dict.fromkeys(texts.unreadable, b"")).below(PRESETS)
        files = texts.below(PRESETS) | unreadable
        self._texts = texts
        self._files = {name: f"{PRESETS}/{each}" for each in files if is_name(name := each[:-4])}
        self._said = [layer for root in roots if (layer := _agents_of(root))]

    @property
    def own(self) -> list[str]:
        """The names of the presets that the workspace has, or changes."""
        return sorted({*self._files, *(name for layer in self._said for name in layer)})

    @property
    def names(self) -> list[str]:
        """The names of all presets that there are."""
        return sorted({*shipped_names(), *self.own})

    def find(self, name: str, story: Story | None = None) -> Found:
        """Read one preset, noting in `story` who said what."""
        faults: list[Fault] = []
        nodes, root = self._layers(name, (), faults)
        told: Story = {}
        values = merge(PRESET, nodes, {}, f"agents.{name}", told)
        if story is not None:
            story.update(told)
        faults += _faults(name, values, told) if not faults else []
        return Found(values, root, nodes[-1].where.partition(":")[0] if nodes else "", tuple(faults))

    def _layers(self, name: str, trail: tuple[str, ...], faults: list[Fault]) -> tuple[list[Node], str]:
        """List what is said of a preset, what it extends first; and name what it is at bottom."""
        own = [layer[name] for layer in self._said if name in layer]
        stored = [(_stored(self._texts, self._files[name]), self._files[name])] if name in self._files else []
        file = [_parsed(*each, name, faults) for each in stored]
        said = [each for each in [*file, *own] if each.value is not None]
        wish = [each.value["extends"] for each in said if "extends" in each.value]
        base = wish[-1].value if wish else None
        if base in (None, name):
            below = [_shipped(name)] if name in shipped_names() and (base or not file) else []
            if base and not below:
                faults.append(_unknown(f"agents.{name}.extends", wish[-1].where, base, self.names))
            return [*below, *said], name
        if base in trail or base not in self.names:
            faults.append(_unknown(f"agents.{name}.extends", wish[-1].where, base, self.names))
            return said, name
        below, root = self._layers(base, (*trail, name), faults)
        return [*below, *said], root

    def preset(self, name: str) -> Preset:
        """Return a preset, or raise with all that is wrong with it."""
        if name not in self.names:
            raise SettingsError(f"agent: {name} names no preset", hint=instead_of(name, self.names, works=False))
        found = self.find(name)
        if found.faults:
            raise SettingsError("", problems=problems(found.faults))
        return preset_of(name, found)


def shipped_names() -> frozenset[str]:
    """Name the presets that come with loopr."""
    return _SHIPPED_NAMES


_SHIPPED_NAMES = frozenset({"aider", "claude", "codex", "gemini", "opencode"})


@cache
def _shipped(name: str) -> Node:
    """Read a shipped preset."""
    faults: list[Fault] = []
    label = f"loopr/agents/{name}.yml"
    node = _parsed(read_file((SHIPPED / f"{name}.yml").read_bytes(), label), label, name, faults)
    assert not faults, faults
    return node


def _stored(texts: Texts, name: str) -> Read:
    """Read one file of the workspace."""
    if name in texts.unreadable:
        return None, [Fault("", name, f"cannot be read: {texts.unreadable[name]}")]
    return read_file(texts.files[name], name)


def _parsed(read: Read, label: str, name: str, faults: list[Fault]) -> Node:
    """Take one file as what it says under `agents.NAME`."""
    root, wrong = read
    key = f"agents.{name}"
    faults += [fault._replace(key=f"{key}.{fault.key}" if fault.key else key) for fault in wrong]
    if root is None:
        return Node(label, {})
    kept, unsound = check_value(PRESET, root, key)
    faults += unsound
    return kept or Node(label, {})


def _agents_of(root: Node) -> Mapping[str, Node]:
    """Return what one layer of settings says of presets."""
    agents = root.value.get("agents") if root.value else None
    return agents.value or {} if agents else {}


def is_name(name: str) -> bool:
    """Say whether a file may be called so, and a file be a preset by its name."""
    return re.fullmatch(AGENTS.pattern, name) is not None


def unknown_agents(values: Mapping[str, Any], story: Story, known: Sequence[str]) -> Iterator[Fault]:
    """Give every place of the settings that names a preset which there is not."""
    for path, name in mentions(values):
        if name not in known:
            where = next((story[each][-1].where for each in (path, path.rpartition(".")[0]) if story.get(each)), "")
            yield _unknown(path, where, name, known)


def mentions(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give every key of the settings that names a preset, with the name."""
    for kind, each in values["types"].items():
        if each["agent"] is not None:
            yield f"types.{kind}.agent", each["agent"]
        if each["review"]["agent"] is not None:
            yield f"types.{kind}.review.agent", each["review"]["agent"]
        yield from ((f"types.{kind}.fallback", name) for name in each["fallback"] or ())
        for failure, step in each["escalate"].items():
            if step["agent"] is not None:
                yield f"types.{kind}.escalate.{failure}.agent", step["agent"]


def _unknown(path: str, where: str, name: str, known: Sequence[str]) -> Fault:
    """Word a name that no preset has."""
    return Fault(path, where, f"{name} names no preset", instead_of(name, known, works=may_be_command(path)))


def instead_of(name: str, known: Sequence[str], *, works: bool = True) -> str:
    """Say which presets there are, and how one of your own is named; where one `works`, a command may too."""
    near = nearest(name, known)
    there = f"{f'did you mean {near}? ' if near else ''}there are {', '.join(known)}"
    run = f"; {AS_COMMAND.format(name)}" if works else ""
    return f"{there}{run}; a preset of your own is agents/{name if is_name(name) else 'NAME'}.yml"


def _faults(name: str, values: Mapping[str, Any], story: Story) -> Iterable[Fault]:
    """Give what is wrong with a preset as a whole."""
    path = f"agents.{name}"

    def fault(key: str, message: str, hint: str) -> Fault:
        said = story.get(f"{path}.{key}") or story.get(path) or []
        return Fault(f"{path}.{key}", said[-1].where if said else "", message, hint)

    if values["run"] is None:
        yield fault("run", "is missing", "say how it is started, or begin with another preset: `extends: NAME`")
        return
    if not isinstance(values["run"], str) and OPTIONS in values["run"]:
        named = [key for key in ("model", "provider") if values[key] is not None and not values["options"][key]]
        yield from (fault(key, "has no arguments to go with", f"give options.{key}") for key in named)
    else:
        given = [key for key in ("model", "provider", "args") if values[key]]
        yield from (fault(key, "has no place in `run`", f'make `run` a list with "{OPTIONS}" in it') for key in given)
    for key, pattern in [("success", values["success"])] + [
        (f"signs.{kind}", each) for kind, patterns in values["signs"].items() for each in patterns
    ]:
        try:
            re.compile(pattern or "")
        except re.error as error:
            yield fault(key, f"is no regular expression: {error}", f"mend {pattern!r}")


def preset_of(name: str, found: Found) -> Preset:
    """Build a preset from sound values."""
    values = found.values
    return Preset(
        name=name,
        about=values["about"] or "",
        command=_command(values),
        model=values["model"] or "",
        set=MappingProxyType(
            {key: each.replace(BESIDE, str(SHIPPED)) for key, each in values["env"]["set"].items() if each is not None}
        ),
        unset=values["env"]["unset"],
        own_tmpdir=values["own_tmpdir"],
        lanes=tuple(values["lane"] or (found.root,)),
        reader=values["reader"],
        success=values["success"] or "",
        signs=MappingProxyType({kind: each for kind, each in values["signs"].items() if each}),
        mend=MappingProxyType({kind: each for kind, each in values["mend"].items() if each}),
        version=values["version"],
        install=values["install"] or "",
        origin=found.origin,
        only=values["env"]["only"],
    )


def _command(values: Mapping[str, Any]) -> Command:
    """Put the options into a command."""
    run: Command = values["run"]
    if isinstance(run, str):
        return run
    added: list[str] = []
    for key in ("model", "provider"):
        if values[key] is not None:
            added += [word.replace(f"{{{key}}}", values[key]) for word in values["options"][key]]
    at = [*added, *values["args"]]
    return tuple(part for word in run for part in (at if word == OPTIONS else [word]))
