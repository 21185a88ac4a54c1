"""Says which programs a plan needs that this machine does not have, before anything of it is enqueued.

Knows which commands a plan can lead to. What is named with a folder of the work may come with it, and what a shell is
given is for the shell to say, so neither is looked for. Must never know how a command is run.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from loopr.core.entries import Artifact, Command, Entry
from loopr.core.filing import plan_declares
from loopr.core.scene import Scene
from loopr.errors import Problem
from loopr.ui.begun import programs_in
from loopr.wiring import Workspace
from loopr.world.environment import Changes, changed
from loopr.world.settings.parts import TypeSettings, check_of
from loopr.world.settings.presets import Preset

Types = Mapping[str, TypeSettings]
MOST_PLACES = 5
_PLAIN = re.compile(r"[\w./+:,@%-]+")
_BUILT_IN = re.compile(
    r"[.:\[]|alias|bg|break|case|cd|command|continue|echo|eval|exec|exit|export|false|fg|getopts|hash|if|jobs|kill|let|local"
    r"|printf|pwd|read|readonly|return|set|shift|source|test|time|times|trap|true|type|ulimit|umask|unalias|unset|until|wait"
    r"|while|for|do|done|then|else|elif|fi|esac|in|mapfile|readarray|declare|typeset|pushd|popd|shopt|select"
)
HINT = "install it, put its folder on the PATH, or name another one"


class Need(NamedTuple):
    """Something that is begun for a loop: where it is written, what it is, and the agent that it is of."""

    key: str
    where: str
    command: Command
    agent: Preset | None = None


def absent_programs(scene: Scene, workspace: Workspace, artifact: Artifact, source: str) -> tuple[list[Problem], ...]:
    """List what of a plan could not be run in any state for want of a program, then what a shell would say that of."""
    entries = artifact.entries if plan_declares(scene, artifact) else None
    return tuple(missing_programs(workspace, entries, source, texts=texts) for texts in (False, True))


def missing_programs(
    workspace: Workspace, entries: Iterable[Entry] | None, source: str, *, texts: bool = False
) -> list[Problem]:
    """List what a plan, and the types it can lead to, would begin whose program is not there.

    `entries` are what the plan file declares; None: its loop has to find that out. With `texts` it lists those which a
    shell would look for in vain, as far as a text for the shell is one plain command; else those of all other commands.
    """
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for own, need in needs_of(workspace, entries, source):
        paths = list(_paths(workspace, own, need.agent))
        begun = dict.fromkeys(_programs_of(own, need, texts=texts))
        for program in (each for each in begun if all(_is_missing(each, path) for path in paths)):
            key, where = need.key, need.where
            if own.wrap is not None and program == own.wrap[0]:
                key = f"types.{own.name}.wrap"
                where = workspace.settings.origin(key)
            found.setdefault((program, _hint(need, program)), []).append((where, key))
    named = ((f"there is no program {each}", hint, at) for (each, hint), at in found.items())
    return [told(*each) for each in named]


def needs_of(
    workspace: Workspace,
    entries: Iterable[Entry] | None,
    source: str,
) -> Iterator[tuple[TypeSettings, Need]]:
    """Give all that a plan, and the types it can lead to, would begin, each with its type."""
    types, root = workspace.settings.types, workspace.policy.root_type
    work = _down(types, root) if entries is None else _declared(types, types[root].child, entries)
    for own, entry in work:
        yield from ((own, need) for need in _workers(workspace, own, entry, source))
        yield from ((own, need) for need in _judges(workspace, own, entry, source))


def told(
    words: str,
    hint: str,
    places: Iterable[tuple[str, str]],
    *,
    link: str = "named too by",
    most: int = MOST_PLACES,
) -> Problem:
    """Make one problem of several places and keys; the first place is where to begin."""
    (where, key), *more = dict.fromkeys(places)
    others = ", ".join(f"{name} ({at})" if at else name for at, name in more[:most])
    rest = f" and {len(more) - most} more" if len(more) > most else ""
    return Problem(f"{key}: {words}" + (f"; {link} {others}{rest}" if more else ""), where, hint)


def _programs_of(own: TypeSettings, need: Need, *, texts: bool) -> Iterator[str]:
    """Give the programs that something begins; an entry's check, as a text, refuses nothing."""
    if texts:
        yield from _in_shell(own, need.command)
    if texts is (need.key == "check") and (program := _program(own, need.command)):
        yield program


def _hint(need: Need, program: str) -> str:
    """Say what to do about a program that is not there."""
    if need.agent is None or not need.agent.install or need.agent.command[0] != program:
        return HINT
    return f"install it with `{need.agent.install}`, put its folder on the PATH, or name another agent"


def _workers(workspace: Workspace, own: TypeSettings, entry: Entry | None, source: str) -> Iterator[Need]:
    """Give what may do the work of a loop: its own command or agent, then those that stand in or take over."""
    place = f"{source}:{entry.position.line}:{entry.position.col}" if entry is not None else ""
    if entry is not None and entry.run is not None:
        yield Need("run", place, entry.run)
        return
    if entry is not None and entry.agent is not None:
        preset = workspace.settings.preset(entry.agent)
        yield Need("agent", place, preset.command, preset)
    elif own.agent is not None:
        yield _agents_need(workspace, own, "agent", own.agent)
    elif own.run is not None:
        key = f"types.{own.name}.run"
        yield Need(key, workspace.settings.origin(key), own.run)
    policy = workspace.policy.types[own.name]
    for failure, step in policy.escalate.items():
        yield _agents_need(workspace, own, f"escalate.{failure}", step.agent)
    for name in policy.fallback:
        yield _agents_need(workspace, own, "fallback", name)


def _judges(workspace: Workspace, own: TypeSettings, entry: Entry | None, source: str) -> Iterator[Need]:
    """Give what judges the work of a loop; one that just does the work has judges of the last type as well."""
    own = (workspace.settings.leaf_of(own.name) if entry is not None and entry.just_works else None) or own
    said, check = entry.check if entry is not None else None, own.check
    if entry is not None and said is not None:
        check = None
        if (command := check_of(said)) is not None:
            yield Need("check", f"{source}:{entry.position.line}:{entry.position.col}", command)
    for name, command in (("check", check), ("review", own.review)):
        if command is not None:
            key = f"types.{own.name}.{name}"
            yield Need(key, workspace.settings.origin(key), command)
    if own.review_agent is not None:
        yield _agents_need(workspace, own, "review", own.review_agent)


def _agents_need(workspace: Workspace, own: TypeSettings, name: str, agent: str) -> Need:
    """Say what is begun where an agent is named under a key of a type."""
    key, preset = f"types.{own.name}.{name}", workspace.settings.preset(agent)
    return Need(key, workspace.settings.origin(key), preset.command, preset)


def _down(types: Types, name: str | None) -> Iterator[tuple[TypeSettings, Entry | None]]:
    """Give a type and all below it: what a loop of it declares is not known yet."""
    while name is not None and name in types:
        yield types[name], None
        name = types[name].child


def _declared(types: Types, name: str | None, entries: Iterable[Entry]) -> Iterator[tuple[TypeSettings, Entry | None]]:
    """Give the type of each entry that has work of its own, and of what that may declare; others need no command."""
    if name is None or name not in types:
        return
    for entry in entries:
        if entry.children:
            yield from _declared(types, types[name].child, entry.children)
        else:
            yield types[name], entry
            yield from _down(types, types[name].child) if not entry.just_works else ()


def _program(own: TypeSettings, command: Command) -> str:
    """Return the program that is begun for a command; nothing where a shell or nobody looks for one."""
    words = (*(own.wrap or ()), *(command if isinstance(command, tuple) else ()))
    word = next((each for each in words if each != "{command}"), "")
    known = bool(word) and "{" not in word and (word.startswith("/") or "/" not in word)
    return word if known else ""


def _in_shell(own: TypeSettings, command: Command) -> Iterator[str]:
    """Give the programs that a text for the shell begins by name, if it stands in no wrapper."""
    if isinstance(command, str) and own.wrap is None:
        words = _plain_words(command)[:1] or programs_in(command)
        yield from (each for each in words if "/" not in each and not _BUILT_IN.fullmatch(each))


def _plain_words(command: str) -> list[str]:
    """Return the words of a text for the shell that is one plain command, none of any other."""
    words = command.split()
    return words if words and "\n" not in command.strip() and all(map(_PLAIN.fullmatch, words)) else []


def _paths(workspace: Workspace, own: TypeSettings, agent: Preset | None) -> Iterator[str]:
    """Give the folders in which programs are looked for, on each lane that may be used."""
    first = [Changes(agent.set, agent.unset, agent.only)] if agent is not None else []
    for name in own.lanes if agent is None or agent.name == own.agent else agent.lanes:
        lane = workspace.settings.lanes.get(name)
        changes = [Changes(*each.env) for each in (lane, own) if each is not None]
        yield changed(workspace.environ, [*first, *changes]).get("PATH", os.defpath)


def _is_missing(program: str, path: str) -> bool:
    """Say whether a program is in none of the folders; one that is named by the work's own place cannot be known."""
    if not all(Path(each).is_absolute() for each in path.split(os.pathsep)):
        return False
    return shutil.which(program, path=path) is None
