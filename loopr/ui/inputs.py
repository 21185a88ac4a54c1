"""What a person is to know of the inputs of a plan before it goes on: files that are others in their checkout only.

Must never commit anything, nor know when a plan takes over its base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopr.core.inputs import differing, has_inputs
from loopr.core.scene import Scene

if TYPE_CHECKING:
    from loopr.wiring import Workspace

MOST_NAMED = 5


def uncommitted_inputs(workspace: Workspace, scene: Scene, plan: str) -> tuple[str, ...]:
    """Say which inputs of a plan are others in the checkout than in its commit: what is not committed never counts."""
    from loopr.grounds import ground_of_plan
    from loopr.world.repo.edited import edited

    bound = scene.shared.plans.get(plan)
    if bound is None or not bound.base_commit or not has_inputs(scene, plan):
        return ()
    ground = ground_of_plan(workspace, scene, plan)
    found = differing(scene, plan, edited(ground)) if ground is not None else None
    if found is None or not found.others:
        return ()
    paths = list(dict.fromkeys(path for each in found.others for path in each.paths))
    named = ", ".join(paths[:MOST_NAMED]) + (", …" if len(paths) > MOST_NAMED else "")
    loops = f"{len(found.others)} loop{' names' if len(found.others) == 1 else 's name'}"
    return (f"not committed as here: {named}, which {loops} as inputs; what is not committed does not count",)
