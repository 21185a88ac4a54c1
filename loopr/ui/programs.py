"""Says which programs a plan needs that this machine does not have, before anything of it is enqueued.

Knows which commands a plan can lead to. What is named with a folder of the work may come with it, and what a shell is
given is for the shell to say, so neither is looked for. Must never know how a command is run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from loopr.core.entries import Entry
from loopr.errors import Problem
from loopr.wiring import Workspace
from loopr.world.environment import Changes, changed
from loopr.world.settings.parts import TypeSettings

Types = Mapping[str, TypeSettings]
HINT = "install it, put its folder on the PATH, or name another one"


def missing_programs(workspace: Workspace, entries: Iterable[Entry] | None, source: str) -> list[Problem]:
    """List the commands of a plan, and of the types it can lead to, whose program is not there.

    `entries` are what the plan file declares; None: its loop has to find that out.
    """
    types, root = workspace.settings.types, workspace.policy.root_type
    work = _down(types, root) if entries is None else _declared(types, types[root].child, entries)
    found: dict[tuple[str, str], Problem] = {}
    for own, entry in work:
        has_its_own = entry is not None and (entry.run is not None or entry.agent is not None)
        program = _program(own, entry.run if has_its_own and entry is not None else own.run)
        if program and all(_is_missing(program, path) for path in _paths(workspace, own)):
            if has_its_own and entry is not None:
                key, where = "run", f"{source}:{entry.position.line}:{entry.position.col}"
            else:
                key = f"types.{own.name}.{'wrap' if own.wrap and own.wrap[0] == program else 'run'}"
                where = workspace.settings.origin(key)
            found[where, program] = Problem(f"{key}: there is no program {program}", where, HINT)
    return list(found.values())


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


def _program(own: TypeSettings, command: tuple[str, ...] | str | None) -> str:
    """Return the program that is begun for a command; nothing where a shell or nobody looks for one."""
    words = () if command is None else (*(own.wrap or ()), *(command if isinstance(command, tuple) else ()))
    word = next((each for each in words if each != "{command}"), "")
    known = bool(word) and "{" not in word and (word.startswith("/") or "/" not in word)
    return word if known else ""


def _paths(workspace: Workspace, own: TypeSettings) -> Iterator[str]:
    """Give the folders in which programs are looked for, on each lane that the type may use."""
    for name in own.lanes:
        lane = workspace.settings.lanes.get(name)
        changes = [Changes(*each.env) for each in (lane, own) if each is not None]
        yield changed(workspace.environ, changes).get("PATH", os.defpath)


def _is_missing(program: str, path: str) -> bool:
    """Say whether a program is in none of the folders; one that is named by the work's own place cannot be known."""
    if not all(Path(each).is_absolute() for each in path.split(os.pathsep)):
        return False
    return shutil.which(program, path=path) is None
