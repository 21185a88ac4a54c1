"""Plans that are done, and of which a start would do something again: their base has other inputs by now.

Costs a look at one ref for a plan with inputs, and git only where that is another. Must never move anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopr.core.inputs import has_inputs
from loopr.core.policy import OWN_REPO
from loopr.core.scene import Scene
from loopr.errors import SettingsError, WorldError
from loopr.ui.older import some
from loopr.wiring import Workspace
from loopr.world.place import commit_of


class Newer(NamedTuple):
    """The loops of a plan with other inputs on its base, and the file whose start does them again.

    `clashes` names the plan where its base conflicts with it.
    """

    loops: tuple[str, ...]
    source: str
    clashes: str = ""

    @property
    def command(self) -> str:
        """Return the command that does them again, or says how the base can be taken first."""
        return f"loopr update {self.clashes}" if self.clashes else f"loopr start {self.source}"

    @property
    def words(self) -> str:
        """Name the loops with other inputs, and the command that does them again."""
        if self.clashes:
            return f"inputs changed: {some(self.loops)}; the base conflicts: `{self.command}` says how that is mended"
        them = "it" if len(self.loops) == 1 else "them"
        return f"inputs changed: {some(self.loops)}; `{self.command}` does {them} again"


def newer_inputs(workspace: Workspace, scene: Scene, plans: Sequence[str]) -> list[Newer]:
    """List the plans of some that are done and have other inputs on their base."""
    return [found for each in plans if (found := _newer(workspace, scene, each)) is not None]


def _newer(workspace: Workspace, scene: Scene, plan: str) -> Newer | None:
    """Compare the inputs of a plan that is done with its base, if that is another by now."""
    bound, top = scene.shared.plans.get(plan), workspace.place.repository
    if bound is None or top is None or not bound.base_branch or not scene.tree.at_rest(plan):
        return None
    if not has_inputs(scene, plan):
        return None
    base = commit_of(top, f"refs/heads/{bound.base_branch}") if bound.repo in ("", OWN_REPO) else None
    if base in (bound.base_commit, scene.shared.tip(plan).at):
        return None
    from loopr.ui.bases import look  # slow to import

    try:
        gone = look(workspace, scene, plan)
    except (SettingsError, WorldError):  # told by whoever needs the branch
        return None
    others = gone.found.others if gone is not None else ()
    clashes = plan if gone is not None and gone.clashes else ""
    return Newer(tuple(each.loop for each in others), bound.source, clashes) if others else None
