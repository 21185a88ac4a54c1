"""Commands that name the checkout by its whole path: they work there, not in a loop's worktree.

Must never run a command, nor know which files one reads or writes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from loopr.core.entries import Artifact, Command
from loopr.core.filing import plan_declares
from loopr.core.scene import Scene
from loopr.errors import PlanError, Problem
from loopr.ui.programs import needs_of, told
from loopr.ui.shells import of_project
from loopr.wiring import Workspace
from loopr.world.activated import leads_to
from loopr.world.repo.venvs import environment_of

_JUDGES = ("check", "review")
_ON_THE_WAY_HOME = "land.check"
_REST = r"(?:/[^\s'\"`;&|()<>]*|(?![\w./-]))"
_AS_IT_IS = "--yes takes it as it is"
MOST_TOLD = 5


class _Named(NamedTuple):
    """A path in the checkout that a command names, from its top, and the place of the command."""

    path: str
    key: str
    place: str

    @property
    def judges(self) -> bool:
        """Say whether the command says yes or no to work."""
        return self.key.rpartition(".")[2] in _JUDGES


def check_judges(
    scene: Scene, workspace: Workspace, artifact: Artifact, source: str, confirm: Callable[[str], bool]
) -> None:
    """Refuse a check of the checkout's files, not of those to land, unless a person wants it."""
    top = workspace.repository(artifact.project)[1]
    if top is None:
        return
    for each in _named(scene, workspace, artifact, source, top):
        if each.judges and runs_checkout(top, each.path):
            words = f"{each.key}: {top / each.path} runs the files of your checkout, not those that would land"
            if not confirm(f"{each.place} {words}"):
                hint = f"write {each.path}, which each worktree has by worktrees.setup; {_AS_IT_IS}"
                raise PlanError(words, where=each.place, hint=hint)
            return


def astray(scene: Scene, workspace: Workspace, artifact: Artifact, source: str) -> list[Problem]:
    """List the whole paths in the checkout that commands of a plan name, each with its cure."""
    top = workspace.repository(artifact.project)[1]
    if top is None:
        return []
    found: dict[str, list[tuple[str, str]]] = {}
    for each in _named(scene, workspace, artifact, source, top):
        found.setdefault(each.path, []).append((each.place, each.key))
    problems = []
    for path, places in [*found.items()][:MOST_TOLD]:
        words = f"{top / path} is in your checkout, and not in the worktree of a loop"
        problems.append(told(words, f"write {path}" if path != "." else "leave it out", places))
    return problems


def runs_checkout(top: Path, path: str) -> bool:
    """Say whether a program in a checkout's virtual environment runs the checkout's files."""
    home = environment_of(top, path)
    return bool(home) and _is_python(top / path) and leads_to(top / home, top)


def _is_python(program: Path) -> bool:
    """Say whether a program of an environment is Python, runs it, or puts it on the path."""
    if program.name.startswith(("python", "activate")):
        return True
    try:
        with program.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _named(scene: Scene, workspace: Workspace, artifact: Artifact, source: str, top: Path) -> Iterator[_Named]:
    """Give the whole paths in a checkout that commands name, but for those of agents."""
    tops = "|".join(re.escape(os.fspath(each)) for each in dict.fromkeys((top, top.resolve())))
    pattern = re.compile(rf"(?<![\w./-])(?:{tops})(?P<rest>{_REST})")
    for command, place, key in _commands(scene, workspace, artifact, source):
        for path in dict.fromkeys(_paths(pattern, command)):
            yield _Named(path, key, place)


def _commands(
    scene: Scene, workspace: Workspace, artifact: Artifact, source: str
) -> Iterator[tuple[Command, str, str]]:
    """Give the commands that work or judge in a worktree, each with its place and its key."""
    entries = artifact.entries if plan_declares(scene, artifact) else None
    for own, need in needs_of(workspace, entries, source):
        if own.worktree and need.agent is None:
            yield need.command, need.where, need.key
    for command, (place, key) in of_project(workspace, artifact.project):
        if command is not None and key.endswith(_ON_THE_WAY_HOME):
            yield command, place, key


def _paths(pattern: re.Pattern[str], command: Command) -> Iterator[str]:
    """Give the paths in a command, from the top."""
    for text in (command,) if isinstance(command, str) else command:
        yield from (found["rest"].strip("/") or "." for found in pattern.finditer(text))
