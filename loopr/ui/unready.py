"""Commands that begin a script which the commit that loops begin at does not have: they fail for certain.

Knows one commit and the checkout. Must never commit anything, nor look into a script.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from loopr.core.entries import Command
from loopr.core.filing import plan_declares
from loopr.core.scene import Scene
from loopr.errors import PlanError, Problem
from loopr.ui.begun import recipes_in, run_files_in, scripts_in
from loopr.ui.environments import MOST_NAMED, changes_modes, few, made_programs, outset_of
from loopr.ui.programs import needs_of
from loopr.ui.shells import of_project
from loopr.wiring import Workspace
from loopr.world.place import head_of

if TYPE_CHECKING:
    from loopr.ui.requests import Plan
    from loopr.world.repo.ground import Ground

_BEFORE_ALL, _ON_THE_WAY_HOME = "worktrees.setup", "land.check"


class Place(NamedTuple):
    """The first command that begins a file: its place and its key; `is_begun` if the file is a program."""

    where: str
    key: str
    is_begun: bool


class _Lacks(NamedTuple):
    """The files that are not committed, and the scripts that are committed as no programs."""

    absent: list[str]
    plain: list[str]


def check_scripts(scene: Scene, workspace: Workspace, plan: Plan, confirm: Callable[[str], bool]) -> None:
    """Refuse a plan whose commands begin scripts that are not committed, unless a person wants it."""
    problem = unready(scene, workspace, plan)
    if problem is not None and not confirm(f"{problem.where} {problem.message}"):
        raise PlanError("", problems=[problem])


def unready(scene: Scene, workspace: Workspace, plan: Plan) -> Problem | None:
    """Say which scripts that commands of a plan begin are not committed, or not as programs.

    A plan may yet take its base: a script that is committed there is told elsewhere.
    """
    named = _named(scene, workspace, plan)
    repo, top = workspace.repository(plan.artifact.project) if named else ("", None)
    if top is None or not any((top / each).is_file() for each in named):
        return None
    from loopr.grounds import ground_beside, stands_at  # slow to import

    ground, bound = ground_beside(workspace, scene, repo), scene.shared.plans.get(plan.id)
    base = workspace.start_point(top, plan.artifact.project)
    if bound is not None and bound.base_branch:
        base = head_of(top, bound.base_branch)
    commits = [(stands_at(ground, scene, plan.id) or bound.base_commit) if bound else "", base.commit]
    lacks = _lacking(workspace, plan, ground, list(filter(None, commits)), named)
    if not any(lacks):
        return None
    first = next(at for path, at in named.items() if path in (*lacks.absent, *lacks.plain))
    on = f" on {base.branch}" if base.branch and head_of(top).branch != base.branch else ""
    words = [f"not committed{on}: {few(lacks.absent)}"] if lacks.absent else []
    words += [f"committed without the executable bit: {few(lacks.plain)}"] if lacks.plain else []
    message = f"{first.key}: {'; '.join(words)}; loops work on what is committed"
    return Problem(message, first.where, _cure(lacks, on))


def _cure(lacks: _Lacks, on: str) -> str:
    """Say which commands bring scripts to where loops find them."""
    steps = [made_programs(lacks.plain)] if lacks.plain else []
    steps += [f"git add {shlex.join(lacks.absent[:MOST_NAMED])}"] if lacks.absent else []
    mend = f"commit that{on}" if on else f"`{' && '.join(steps)}`, then commit"
    return f"{mend}; --yes starts it as it is"


def _named(scene: Scene, workspace: Workspace, plan: Plan) -> dict[str, Place]:
    """Map each file that commands of a plan begin or go by to the first command that does."""
    found: dict[str, Place] = {}
    for command, where, key in _commands(scene, workspace, plan):
        for path in scripts_in(command):
            found[path] = found.get(path, Place(where, key, True))._replace(is_begun=True)
        recipes = (names[0] for names in recipes_in(command))
        for path in (*run_files_in(command), *recipes):
            found.setdefault(path, Place(where, key, False))
    return found


def _commands(scene: Scene, workspace: Workspace, plan: Plan) -> Iterator[tuple[Command, str, str]]:
    """Give the commands of a plan that begin in a worktree, each with its place and its key."""
    entries = plan.artifact.entries if plan_declares(scene, plan.artifact) else None
    for own, need in needs_of(workspace, entries, plan.source):
        if own.worktree and own.wrap is None:
            yield need.command, need.where, need.key
    for command, (where, key) in of_project(workspace, plan.artifact.project):
        if command is not None and key.endswith((_BEFORE_ALL, _ON_THE_WAY_HOME)):
            yield command, where, key


def _lacking(
    workspace: Workspace, plan: Plan, ground: Ground, commits: Sequence[str], named: Mapping[str, Place]
) -> _Lacks:
    """List the files that are in the checkout and in none of some commits, or not as programs."""
    from loopr.world.repo.include import ignored_among
    from loopr.world.repo.named import PLAIN_FILE, is_below, modes_among
    from loopr.world.repo.venvs import environment_of

    settings, top = workspace.settings.of_project(plan.artifact.project), ground.top
    setup = settings.worktrees.setup
    modes = [modes_among(ground, each, named) for each in commits]
    if top is None or not modes:
        return _Lacks([], [])
    outset = outset_of(ground, commits[0], settings, ())
    given = {*outset.words} - {*scripts_in(setup), *run_files_in(setup)} | {*outset.copied}
    away = [each for each in named if each not in given and not any(each in known for known in modes)]
    away = [each for each in away if not is_below(each, outset.made)]
    here = [each for each in away if (top / each).is_file() and not environment_of(top, each)]
    ignored = set(ignored_among(ground.users_door, here))
    begun = [each for each, at in named.items() if at.is_begun and not changes_modes(settings)]
    plain = [each for each in begun if all(known.get(each) == PLAIN_FILE for known in modes)]
    return _Lacks([each for each in here if each not in ignored], plain)
