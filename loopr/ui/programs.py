"""Says which programs a plan needs that this machine does not have, before anything of it is enqueued.

Knows which commands a plan can lead to. What is named with a folder of the work may come with it, and what a shell is
given is for the shell to say, so neither is looked for. Must never know how a command is run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from loopr.core.entries import Command, Entry
from loopr.errors import Problem
from loopr.wiring import Workspace
from loopr.world.environment import Changes, changed
from loopr.world.settings.parts import TypeSettings
from loopr.world.settings.presets import Preset

Types = Mapping[str, TypeSettings]
MOST_PLACES = 5
HINT = "install it, put its folder on the PATH, or name another one"


class _Need(NamedTuple):
    """Something that is begun for a loop: where it is written, what it is, and the agent that it is of."""

    key: str
    where: str
    command: Command
    agent: Preset | None = None


def missing_programs(workspace: Workspace, entries: Iterable[Entry] | None, source: str) -> list[Problem]:
    """List what a plan, and the types it can lead to, would begin whose program is not there.

    `entries` are what the plan file declares; None: its loop has to find that out.
    """
    types, root = workspace.settings.types, workspace.policy.root_type
    work = _down(types, root) if entries is None else _declared(types, types[root].child, entries)
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for own, entry in work:
        for need in (*_workers(workspace, own, entry, source), *_judges(workspace, own)):
            program = _program(own, need.command)
            if program and all(_is_missing(program, path) for path in _paths(workspace, own, need.agent)):
                key, where = need.key, need.where
                if own.wrap is not None and program == own.wrap[0]:
                    key = f"types.{own.name}.wrap"
                    where = workspace.settings.origin(key)
                found.setdefault((program, _hint(need, program)), []).append((where, key))
    return [_told(program, hint, dict.fromkeys(places)) for (program, hint), places in found.items()]


def _told(program: str, hint: str, places: Iterable[tuple[str, str]]) -> Problem:
    """Say once that a program is not there, with all that name it; the first place is where to begin."""
    (where, key), *more = places
    others = ", ".join(f"{name} ({at})" if at else name for at, name in more[:MOST_PLACES])
    rest = f" and {len(more) - MOST_PLACES} more" if len(more) > MOST_PLACES else ""
    return Problem(
        f"{key}: there is no program {program}" + (f"; named too by {others}{rest}" if more else ""), where, hint
    )


def _hint(need: _Need, program: str) -> str:
    """Say what to do about a program that is not there."""
    if need.agent is None or not need.agent.install or need.agent.command[0] != program:
        return HINT
    return f"install it with `{need.agent.install}`, put its folder on the PATH, or name another agent"


def _workers(workspace: Workspace, own: TypeSettings, entry: Entry | None, source: str) -> Iterator[_Need]:
    """Give what may do the work of a loop: its own command or agent, then those that stand in or take over."""
    place = f"{source}:{entry.position.line}:{entry.position.col}" if entry is not None else ""
    if entry is not None and entry.run is not None:
        yield _Need("run", place, entry.run)
        return
    if entry is not None and entry.agent is not None:
        preset = workspace.settings.preset(entry.agent)
        yield _Need("agent", place, preset.command, preset)
    elif own.agent is not None:
        yield _agents_need(workspace, own, "agent", own.agent)
    elif own.run is not None:
        key = f"types.{own.name}.run"
        yield _Need(key, workspace.settings.origin(key), own.run)
    policy = workspace.policy.types[own.name]
    for failure, step in policy.escalate.items():
        yield _agents_need(workspace, own, f"escalate.{failure}", step.agent)
    for name in policy.fallback:
        yield _agents_need(workspace, own, "fallback", name)


def _judges(workspace: Workspace, own: TypeSettings) -> Iterator[_Need]:
    """Give what judges the work of a loop."""
    for name, command in (("check", own.check), ("review", own.review)):
        if command is not None:
            key = f"types.{own.name}.{name}"
            yield _Need(key, workspace.settings.origin(key), command)
    if own.review_agent is not None:
        yield _agents_need(workspace, own, "review", own.review_agent)


def _agents_need(workspace: Workspace, own: TypeSettings, name: str, agent: str) -> _Need:
    """Say what is begun where an agent is named under a key of a type."""
    key, preset = f"types.{own.name}.{name}", workspace.settings.preset(agent)
    return _Need(key, workspace.settings.origin(key), preset.command, preset)


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
            yield from _down(types, types[name].child)


def _program(own: TypeSettings, command: Command) -> str:
    """Return the program that is begun for a command; nothing where a shell or nobody looks for one."""
    words = (*(own.wrap or ()), *(command if isinstance(command, tuple) else ()))
    word = next((each for each in words if each != "{command}"), "")
    known = bool(word) and "{" not in word and (word.startswith("/") or "/" not in word)
    return word if known else ""


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
