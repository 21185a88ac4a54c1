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
from loopr.ui.environments import MOST_NAMED, few
from loopr.ui.programs import needs_of
from loopr.ui.shells import of_project
from loopr.ui.uncommitted import changes_modes, made_programs, outset_of
from loopr.wiring import Workspace

if TYPE_CHECKING:
    from loopr.ui.requests import Plan
    from loopr.world.repo.ground import Ground

_BEFORE_ALL, _ON_THE_WAY_HOME = "worktrees.setup", "land.check"


class Place(NamedTuple):
    """The first command that begins a file: its place and its key; `is_begun` if the file is a program."""

    where: str
    key: str
    is_begun: bool


def check_scripts(scene: Scene, workspace: Workspace, plan: Plan, confirm: Callable[[str], bool]) -> None:
    """Refuse a plan whose commands begin scripts that are not committed, unless a person wants it."""
    problem = unready(scene, workspace, plan)
    if problem is not None and not confirm(f"{problem.where} {problem.message}"):
        raise PlanError("", problems=[problem])


def unready(scene: Scene, workspace: Workspace, plan: Plan) -> Problem | None:
    """Say which scripts that commands of a plan begin are not committed, or not as programs."""
    named = _named(scene, workspace, plan)
    repo, top = workspace.repository(plan.artifact.project) if named else ("", None)
    if top is None or not any((top / each).is_file() for each in named):
        return None
    from loopr.grounds import ground_beside, stands_at  # slow to import

    ground, bound = ground_beside(workspace, scene, repo), scene.shared.plans.get(plan.id)
    base = bound.base_commit if bound is not None else workspace.start_point(top, plan.artifact.project).commit
    commit = (stands_at(ground, scene, plan.id) if bound is not None else "") or base
    if not commit:
        return None
    absent, plain = _lacking(workspace, plan, ground, commit, named)
    if not (absent or plain):
        return None
    first = named[(absent or plain)[0]]
    words = [f"not committed: {few(absent)}"] if absent else []
    words += [f"committed without the executable bit: {few(plain)}"] if plain else []
    message = f"{first.key}: {'; '.join(words)}; loops work on what is committed"
    return Problem(message, first.where, _cure(absent, plain))


def _cure(absent: Sequence[str], plain: Sequence[str]) -> str:
    """Say which commands bring scripts to where loops find them."""
    steps = [made_programs(plain)] if plain else []
    steps += [f"git add {shlex.join(absent[:MOST_NAMED])}"] if absent else []
    return f"`{' && '.join(steps)}`, then commit; --yes starts it as it is"


def _named(scene: Scene, workspace: Workspace, plan: Plan) -> dict[str, Place]:
    """Map each file that commands of a plan begin or go by to the first command that does."""
    found: dict[str, Place] = {}
    for command, where, key in _commands(scene, workspace, plan):
        for path in scripts_in(command):
            found[path] = found[path] if path in found and found[path].is_begun else Place(where, key, True)
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
    workspace: Workspace, plan: Plan, ground: Ground, commit: str, named: Mapping[str, Place]
) -> tuple[list[str], list[str]]:
    """List the files that are in the checkout alone, and the scripts that are no programs in the commit."""
    from loopr.world.repo.include import ignored_among
    from loopr.world.repo.named import PLAIN_FILE, is_below, modes_among
    from loopr.world.repo.venvs import environment_of

    settings, top = workspace.settings.of_project(plan.artifact.project), ground.top
    setup, outset = settings.worktrees.setup, outset_of(ground, commit, settings, ())
    modes = modes_among(ground, commit, named)
    given = {*outset.words} - {*scripts_in(setup), *run_files_in(setup)} | {*outset.copied}
    away = [each for each in named if each not in modes and each not in given]
    away = [each for each in away if not is_below(each, outset.made)]
    here = [each for each in away if top is not None and (top / each).is_file()]
    here = [each for each in here if top is not None and not environment_of(top, each)]
    ignored = set(ignored_among(ground.users_door, here))
    plain = [each for each, at in named.items() if modes.get(each) == PLAIN_FILE and at.is_begun]
    return [each for each in here if each not in ignored], plain if not changes_modes(settings) else []
