"""What commands name that lies in a checkout, but not so in the commit that loops begin at: they would not find it.

Must never commit anything, nor know what a command is for.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from loopr.core.entries import Command
from loopr.engine import Engine
from loopr.ui.programs import plain_words
from loopr.wiring import Workspace
from loopr.world.settings import Settings

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground

MOST_NAMED, MOST_LOOPS = 5, 200
_ELSEWHERE = re.compile(r"/|~|\.\./|.*[{$]")
_WRITTEN = re.compile(r">\s*[^\s;&|<>()]+")


def uncommitted(engine: Engine, workspace: Workspace, plan: str) -> tuple[str, ...]:
    """Say which files that commands of a plan name they would not find as they are here, and what to do."""
    from loopr.grounds import ground_of_plan, stands_at
    from loopr.world.judges import paths_in
    from loopr.world.repo.include import ignored_among, included
    from loopr.world.repo.named import only_here

    forest = engine.forest
    bound = forest.shared.plans.get(plan)
    if bound is None or not bound.base_commit or forest.tree.done(plan):
        return ()
    commands = [*_commands(workspace.settings.of_project(forest.loops[plan].project)), *_own_commands(engine, plan)]
    words = dict.fromkeys(path for command in commands for path in paths_in(_read_by(command)))
    ground = ground_of_plan(workspace, forest, plan) if words else None  # slow to open
    if ground is None:
        return ()
    commit = stands_at(ground, forest, plan) or bound.base_commit
    absent = only_here(ground, commit, list(words))
    copied = set(included(ground)) if absent else set()
    ignored = ignored_among(ground.users_door, [each for each in absent if each not in copied])
    rest = [each for each in absent if each not in copied and each not in ignored]
    told = []
    rest = _not_there(ground, commit, rest)
    if rest:
        told.append(f"not committed as here: {_few(rest)}; loops work on what is committed, so commit first")
    if nowhere := _nowhere(ground, commit, commands):
        told.append(f"neither committed nor here: {_few(nowhere)}; what runs it fails, unless a loop makes it before")
    if ignored:
        told.append(f"ignored by git: {_few(ignored)}; loops get a copy if {ground.include} names it")
    return tuple(told)


def _not_there(ground: Ground, commit: str, paths: Sequence[str]) -> list[str]:
    """Leave out the files that are committed here, and that a plan has too: its loops have changed those themselves."""
    from loopr.world.place import head_of
    from loopr.world.repo.named import files_among, only_here

    head = head_of(ground.top).commit if ground.top is not None and paths else ""
    if head in ("", commit):
        return list(paths)
    edited, there = set(only_here(ground, head, paths)), set(files_among(ground, commit, paths))
    return [each for each in paths if each in edited or each not in there]


def _nowhere(ground: Ground, commit: str, commands: Sequence[Command | None]) -> list[str]:
    """List the scripts that commands begin with and that are in no commit, nor in the checkout."""
    from loopr.world.repo.named import files_among

    first = [plain_words(each)[:1] if isinstance(each, str) else list(each or ())[:1] for each in commands]
    scripts = {name for words in first for name in words if "/" in name and not _ELSEWHERE.match(name)}
    names = sorted({posixpath.normpath(each) for each in scripts} - {"."})
    rest = [each for each in names if ground.top is None or not (ground.top / each).exists()]
    known = set(files_among(ground, commit, rest)) if rest else set()
    return [each for each in rest if each not in known]


def _few(names: Sequence[str]) -> str:
    """Name the first of some files."""
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def _read_by(command: Command | None) -> Command | None:
    """Leave out of a command for the shell what it writes to."""
    return _WRITTEN.sub(" ", command) if isinstance(command, str) else command


def _commands(settings: Settings) -> Iterator[Command | None]:
    """Give every command that is run in a worktree."""
    for each in settings.types.values():
        if each.worktree:
            yield from (each.run, each.check, each.review)
    yield settings.worktrees.setup
    yield from (settings.hooks.get(name) for name in ("post_create", "pre_run", "post_run"))


def _own_commands(engine: Engine, plan: str) -> Iterator[Command | None]:
    """Give the commands that loops of a plan have of their own; of very many, the first."""
    own = (loop.id for loop in engine.forest.tree.walk(plan) if loop.command)
    for each in islice(own, MOST_LOOPS):
        entry = engine.mind.find_entry(each)
        if entry is not None:
            yield from (entry.run, entry.check)
