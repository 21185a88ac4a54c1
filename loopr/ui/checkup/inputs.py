"""The checks of what loops work from: inputs that are others by now, and files that are copied.

Must never know what else is wrong with a plan, nor take over a base.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from loopr.core.inputs import has_inputs
from loopr.core.policy import DEFAULT_PROJECT, OWN_REPO
from loopr.errors import LooprError
from loopr.ui.bases import look
from loopr.ui.checkup.rows import Finding
from loopr.ui.checkup.waits import BROKEN_ROW
from loopr.ui.collecting import collecting
from loopr.ui.copies import ground_with_copies, leading_back
from loopr.ui.environments import few
from loopr.ui.names import counted
from loopr.wiring import Workspace
from loopr.world.settings import Settings

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground

MOST_NAMED = 10


def _inputs(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Name the loops with other inputs, each with the reason, and what does them again."""
    try:
        scene = workspace.look().scene
    except (LooprError, *BROKEN_ROW):  # told by those who look at the journal
        return
    for plan, bound in sorted(scene.shared.plans.items()):
        gone = look(workspace, scene, plan) if has_inputs(scene, plan) else None
        others = gone.taken.others if gone is not None else ()
        for each in others[:MOST_NAMED]:
            name, _, why = each.partition(" ")
            yield Finding("inputs", None, f"{name}: {why}", f"`loopr start {bound.source}` does it again")
        if len(others) > MOST_NAMED:
            yield Finding("inputs", None, f"and {len(others) - MOST_NAMED} more of {plan}")


def _tests(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Say that a test runner would collect what lies in the worktrees."""
    if words := collecting(workspace.place.root, settings.worktrees.dir):
        fact, _, way = words.partition(": ")
        yield Finding("tests", None, fact, way)


def _copies(workspace: Workspace, settings: Settings) -> Iterator[Finding]:
    """Check that what is copied into worktrees does not lead back into the checkout."""
    try:
        scene = workspace.look().scene
    except (LooprError, *BROKEN_ROW):  # told by those who look at the journal
        return
    from loopr.grounds import repos  # slow to import

    for repo in repos(workspace):
        named = (name for name, each in settings.projects.items() if each.repo == repo)
        project = DEFAULT_PROJECT if repo == OWN_REPO else next(named)
        ground = ground_with_copies(scene, workspace, repo)
        if ground is not None and ground.top is not None:
            yield from _of_ground(workspace, project, ground, ground.top)


def _of_ground(workspace: Workspace, project: str, ground: Ground, top: Path) -> Iterator[Finding]:
    """Check the files of one checkout that are copied."""
    from loopr.world.repo.include import included
    from loopr.world.repo.ties import naming

    if problems := leading_back(workspace, project, ground):
        yield from (Finding("copies", False, f"{each.where} {each.message}", each.hint) for each in problems)
        return
    copies = included(ground)
    names = naming(top, copies)
    if names:
        text = f"{ground.include} copies {few(names)}, which names the whole path of your checkout"
        yield Finding("copies", None, text, "a loop would go there: write paths that hold in each worktree")
    else:
        text = f"{counted(len(copies), 'file')} of your checkout for each worktree, by {ground.include}"
        yield Finding("copies", True, text)


CHECKS = (("inputs", _inputs), ("tests", _tests), ("copies", _copies))
"""What is checked, by the name under which it is told."""
