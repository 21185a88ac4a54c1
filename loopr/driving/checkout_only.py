"""Reasons for which a command found no file that it names: it was not committed, or cannot be run.

Such a reason is read long after: it tells what was then.

Knows commands and commits. Must never commit anything, nor know what the failure costs.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loopr.core.model import Failure
from loopr.core.observations import Trouble
from loopr.driving.guarding import settings_of
from loopr.driving.kit import Kit, Task
from loopr.driving.outcomes import Said
from loopr.errors import LooprError
from loopr.world.activated import left_out
from loopr.world.first_lines import absent_interpreter
from loopr.world.judges import Command, paths_in
from loopr.world.place import head_of
from loopr.world.recipes import lines_behind, programs_of, reader, texts_of
from loopr.world.repo.ground import Ground
from loopr.world.repo.include import ignored_among, included
from loopr.world.repo.named import FILL, PLAIN_FILE, in_submodules, is_below, modes_among, only_here
from loopr.world.repo.ties import ties_among
from loopr.world.repo.venvs import environment_of, made_anew

_OF_IT = (
    rb": (?:(?P<bit>Permission denied|not executable)"
    rb"|(?P<line>not found|No such file|cannot execute|what its first line|\S+: bad interpreter))"
)
_LACKS = (b"No module named", b"not found", b"No such file")
_ASKS = frozenset({Failure.CONFIG, Failure.REFUSED})


class _Tried(NamedTuple):
    """A command that failed: its place, the paths that it may want, its output, its texts."""

    ground: Ground
    worktree: Path
    named: Sequence[str]
    heard: bytes
    texts: Sequence[str]


def with_checkout(kit: Kit, task: Task, command: Command | None, trouble: Trouble | None, said: Said) -> Trouble | None:
    """Add to a trouble which file of the command may be why, and how to bring it there.

    Any printed words must have named that file. A command that could not be run and of which
    nothing was printed may want any file that it names; one that said no wants none.
    """
    ground = kit.ground_of(task)
    if trouble is None or trouble.failure not in _ASKS or ground is None:
        return trouble
    is_refused = trouble.failure is Failure.REFUSED
    heard = said.tail if is_refused else said.tail + os.fsencode(trouble.reason.partition(": ")[2])
    read = reader(said.worktree)
    named = [*dict.fromkeys((*paths_in(command), *programs_of(lines_behind(command, read))))]
    if is_refused or heard.strip():
        named = [each for each in named if each.rpartition("/")[2].encode() in heard]
    tried = _Tried(ground, said.worktree, named, heard, texts_of([command], read))
    with suppress(LooprError, OSError):
        words = "" if is_refused else _not_run(tried, task)
        words = words or _not_there(kit, task, tried)
        if words := words or _without_environment(kit, tried, trouble):
            return replace(trouble, reason=f"{trouble.reason}; {words}")
    return trouble


def _without_environment(kit: Kit, tried: _Tried, trouble: Trouble) -> str:
    """Say of a missing program that it may be in the virtual environment that loops do not get."""
    top = tried.ground.top
    lacks = trouble.failure is Failure.CONFIG or any(each in tried.heard for each in _LACKS)
    folder = left_out(kit.inherited, top) if lacks and top is not None else ""
    if not folder or top is None or (tried.worktree / folder).is_dir():
        return ""
    words = f"loops do not get {folder} of your checkout"
    if trouble.failure is Failure.REFUSED:
        return f"{words}; worktrees.setup makes one"
    cure = made_anew(top, folder, tried.texts)
    return f"{words}, which runs its files: `{cure}` in loopr.yml makes one in each worktree"


def _not_yet_on(ground: Ground, task: Task) -> str:
    """Name the branch that a commit of the base is not on yet, with the command that brings it."""
    return f"on {ground.short_branch(task.loop.plan)}: `loopr update {task.loop.plan}`"


def _not_run(tried: _Tried, task: Task) -> str:
    """Say of a script that is there why it could not be begun, where that was printed of it."""
    for each in tried.named:
        found = re.search(os.fsencode(re.escape(each.rpartition("/")[2])) + _OF_IT, tried.heard)
        if found is None:
            continue
        if found["bit"] and modes_among(tried.ground, task.tip, [each]) == {each: PLAIN_FILE}:
            head = head_of(tried.ground.top).commit if tried.ground.top is not None else ""
            if head and modes_among(tried.ground, head, [each]).get(each, PLAIN_FILE) != PLAIN_FILE:
                return f"{each} was executable, but not yet {_not_yet_on(tried.ground, task)}"
            name = shlex.quote(each)
            cure = f"`chmod +x {name} && git add --chmod=+x {name}`, then commit"
            return f"{each} was committed without its executable bit: {cure}"
        if found["line"] and (absent := absent_interpreter(tried.worktree / each)):
            return f"the first line of {each} named {absent}, which was not here"
    return ""


def _not_there(kit: Kit, task: Task, tried: _Tried) -> str:
    """Say of a file that is in the checkout alone why it is not in the worktree."""
    ground, worktree = tried.ground, tried.worktree
    top = ground.top
    here = [each for each in tried.named if top is not None and (top / each).is_file()]
    absent = [each for each in only_here(ground, task.tip, here) if not (worktree / each).exists()]
    if not absent or ground.top is None or absent[0] in included(ground):
        return ""
    name, setup = absent[0], settings_of(kit, task).worktrees.setup
    words = paths_in(setup)
    known = modes_among(ground, task.tip, words)
    if is_below(name, [each for each in words if each not in known]):
        return f"{name} was in your checkout, but worktrees.setup had not made it here"
    if in_submodules(ground, task.tip, [name]):
        return f"{name} was in your checkout, in a submodule: worktrees.setup has to fill it, `{FILL}`"
    folder = environment_of(ground.top, name)
    if folder:
        where = f"{name} was in your checkout, in a virtual environment, which"
        if setup is not None:
            return f"{where} worktrees.setup has to make anew in each worktree"
        cure = made_anew(ground.top, folder, tried.texts)
        return f"{where} loops do not get: `{cure}` in loopr.yml makes one in each worktree"
    if ignored_among(ground.users_door, [name]):
        tied = next(ties_among(ground.top, [name]), None)
        way = "worktrees.setup may make it" if tied else f"{ground.include} may name it"
        return f"{name} was in your checkout, but git ignored it: {way}"
    if modes_among(ground, head_of(ground.top).commit or task.tip, [name]):
        return f"{name} was committed, but not yet {_not_yet_on(ground, task)}"
    return f"{name} was in your checkout, but not committed"
