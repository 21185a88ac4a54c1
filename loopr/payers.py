"""Which projects pay: those of the settings, and `default`. A plan that names another is at fault, or they are.

Must never know what a project may spend, nor where its repository is but to see whether a plan is home.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopr.core.model import Loop, Status
from loopr.core.policy import DEFAULT_PROJECT
from loopr.core.scene import Scene
from loopr.errors import LooprError, Problem, SettingsError
from loopr.grounds import Settled, ground_of_plan, is_over, stands_at

if TYPE_CHECKING:
    from loopr.world.settings import Settings

MOST_NAMED = 5


def no_project(settings: Settings, name: str, where: str) -> Problem | None:
    """Word a plan file whose project the settings do not know; None where they do."""
    if name in _known(settings):
        return None
    return Problem(f"project: there is no project {name}", where, f"{_near(settings, name)}{_added(settings, name)}")


def unknown_projects(workspace: Settled, scene: Scene) -> list[Problem]:
    """Say which projects of plans that are not over the settings do not know; plans that are home do not count."""
    known = _known(workspace.settings)
    lost: dict[str, list[str]] = {}
    for plan in scene.tree.children(None):
        loop = scene.loops[plan]
        if loop.project not in known and _counts(workspace, scene, loop):
            lost.setdefault(loop.project, []).append(plan)
    return [_lost(workspace.settings, scene, name, plans) for name, plans in lost.items()]


def check_payers(workspace: Settled, scene: Scene) -> None:
    """Refuse settings that do not know the project of a plan that is not over."""
    problems = unknown_projects(workspace, scene)
    if problems:
        raise SettingsError("", problems=problems)


def _known(settings: Settings) -> set[str]:
    """Name the projects that there are."""
    return {DEFAULT_PROJECT, *settings.projects}


def _counts(workspace: Settled, scene: Scene, plan: Loop) -> bool:
    """Say whether it still matters who pays for a plan: something is to be done of it, or to be brought home."""
    if plan.status is Status.CANCELLED or not is_over(scene, plan.id):
        return plan.status is not Status.CANCELLED
    bound = scene.shared.plans.get(plan.id)
    if bound is None or not bound.base_branch:
        return False
    from loopr.world.repo.home import is_home  # slow to import, and few plans come this far

    try:
        ground = ground_of_plan(workspace, scene, plan.id)
        return ground is not None and not is_home(ground, stands_at(ground, scene, plan.id), bound.base_branch)
    except (LooprError, OSError):  # said where it is needed
        return False


def _lost(settings: Settings, scene: Scene, name: str, plans: list[str]) -> Problem:
    """Say that plans name a project that the settings do not know, and how one is renamed."""
    many = len(plans) > 1
    told = ", ".join(plans[:MOST_NAMED]) + (", …" if len(plans) > MOST_NAMED else "")
    words = f"projects: there is no {name}, and {told} {'name' if many else 'names'} it, not over or not home yet"
    bound = scene.shared.plans.get(plans[0])
    rename = f"to rename it have both names there, `loopr start {bound.source if bound else plans[0]}` with the new one"
    hint = f"{_near(settings, name)}{_added(settings, name)}; {rename}, and take {name} out after that"
    return Problem(words, _where(settings), hint)


def _near(settings: Settings, name: str) -> str:
    """Name the project that is meant, as far as can be guessed, for the front of a hint."""
    from loopr.world.settings.check import nearest

    near = nearest(name, _known(settings))
    return f"did you mean {near}? Else " if near else ""


def _added(settings: Settings, name: str) -> str:
    """Say how a project is added."""
    from loopr.world.settings.writing import flow

    others = [each for each in settings.projects if each != DEFAULT_PROJECT]
    key = flow(name)
    if others:
        return f"add `{key}: {{}}` under `projects` in loopr.yml"
    return f"add `projects: {{{key}: {{}}}}` to loopr.yml"


def _where(settings: Settings) -> str:
    """Say where projects were written."""
    said = settings.story.get("projects")
    return said[-1].where if said else ""
