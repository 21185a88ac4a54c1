"""Files that are copied into each worktree, and would lead from there back into the checkout.

Knows the list of copies, and the setting that makes a virtual environment instead. Must never copy
anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from loopr.core.entries import Command
from loopr.core.scene import Scene
from loopr.errors import Problem, SettingsError
from loopr.ui.shells import of_project
from loopr.wiring import Workspace
from loopr.world.recipes import reader, texts_of

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground
    from loopr.world.repo.ties import Tie


def check_copies(scene: Scene, workspace: Workspace, project: str, repo: str) -> None:
    """Refuse to begin where the list of copies names what leads back into the checkout."""
    ground = ground_with_copies(scene, workspace, repo)
    if ground is not None and (problems := leading_back(workspace, project, ground)):
        raise SettingsError("", problems=problems)


def ground_with_copies(scene: Scene, workspace: Workspace, repo: str) -> Ground | None:
    """Open a repository of the workspace if it has a list of files to copy."""
    from loopr.grounds import ground_beside, top_of

    top, include = top_of(workspace, repo), workspace.settings.worktrees.include
    there = top is not None and bool(include) and (top / (include or "")).is_file()
    return ground_beside(workspace, scene, repo) if there else None  # slow to open


def leading_back(workspace: Workspace, project: str, ground: Ground) -> list[Problem]:
    """List what would be copied and leads back into the checkout, with what to do instead."""
    from loopr.world.repo.include import MOST_TOLD, included, refused
    from loopr.world.repo.ties import ties_among

    if ground.top is None:
        return []
    ties = [*islice(ties_among(ground.top, included(ground)), MOST_TOLD)]
    return [refused(ground, each, _instead(workspace, project, ground, each)) for each in ties]


def _instead(workspace: Workspace, project: str, ground: Ground, tie: Tie) -> str:
    """Say how each worktree gets what it cannot be given as a copy."""
    from loopr.world.repo.venvs import made_anew

    settings, top = workspace.settings.of_project(project), ground.top
    if settings.worktrees.setup is not None or top is None or not tie.is_environment:
        return "worktrees.setup makes it in each worktree"
    commands = *_judges(workspace, project), settings.land.check
    line = made_anew(top, tie.place, texts_of(commands, reader(top)))
    return f"add to loopr.yml, so that each worktree makes one: `{line}`"


def _judges(workspace: Workspace, project: str) -> Iterable[Command | None]:
    """Give the checks of all types, and the commands beside those of loops."""
    yield from (each.check for each in workspace.settings.types.values())
    yield from (command for command, _ in of_project(workspace, project))
