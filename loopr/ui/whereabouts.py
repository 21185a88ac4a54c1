"""Where the work of a loop lies by now: its branch, the commit that it has landed as, and what its command said.

Looks whether each is there. Must never open any of them.
"""

from __future__ import annotations

import os

from loopr.core.model import Loop
from loopr.core.policy import OWN_REPO
from loopr.core.scene import Scene
from loopr.ui.views import Row
from loopr.wiring import Workspace
from loopr.world.place import commit_of
from loopr.world.runs import Runs


def whereabouts(workspace: Workspace, scene: Scene, loop: Loop) -> Row:
    """Return the branch of a loop, its landed commit, and the folder of its last attempt; None what is not there."""
    name = loop.id if loop.parent is None else loop.name
    branch, folder = f"{scene.policy.branch_prefix}{name}", Runs(workspace.place.state).folder(loop.name, loop.attempt)
    return {
        "branch": branch if _tip(workspace, scene, loop, branch) else None,
        "landed": loop.landed or None,
        "logs": os.path.relpath(folder, workspace.place.root) if loop.attempt and folder.is_dir() else None,
    }


def is_unchanged(workspace: Workspace, scene: Scene, loop: Loop) -> bool:
    """Tell whether the branch of a loop at work is still where it began; False where that cannot be told at once."""
    return bool(loop.base_commit) and _tip(workspace, scene, loop, f"{scene.policy.branch_prefix}{loop.name}") == (
        loop.base_commit
    )


def _tip(workspace: Workspace, scene: Scene, loop: Loop, branch: str) -> str:
    """Return the commit of a branch; nothing where there is none, or another repository would have it."""
    bound, top = scene.shared.plans.get(loop.plan), workspace.place.repository
    is_here = top is not None and bound is not None and bound.repo == OWN_REPO
    return (commit_of(top, f"refs/heads/{branch}") or "") if is_here and top is not None else ""
