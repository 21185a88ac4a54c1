"""What a person is to know of the inputs of a plan before it goes on: files that are others in their checkout only.

Must never commit anything, nor know when a plan takes over its base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from loopr.core.inputs import differing, has_inputs, unmatched
from loopr.core.scene import Scene

if TYPE_CHECKING:
    from loopr.wiring import Workspace
    from loopr.world.repo.ground import Ground

MOST_NAMED = 5


def uncommitted_inputs(workspace: Workspace, scene: Scene, plan: str) -> tuple[str, ...]:
    """Say which inputs of a plan are others in the checkout than in its commit: what is not committed never counts."""
    from loopr.world.repo.edited import edited

    ground = _ground(workspace, scene, plan)
    return tuple(_edited(scene, plan, edited(ground))) if ground is not None else ()


def absent_inputs(workspace: Workspace, scene: Scene, plan: str) -> tuple[str, ...]:
    """Say which inputs of a plan are no file of its base."""
    from loopr.grounds import base_of
    from loopr.world.repo.named import paths_of

    ground = _ground(workspace, scene, plan)
    if ground is None:
        return ()
    there = paths_of(ground, scene.shared.plans[plan].base_commit)
    # a start may take the base
    there += paths_of(ground, base) if (base := base_of(ground, scene, plan)) else []
    return tuple(_unmatched(scene, plan, there, ground.top))


def _ground(workspace: Workspace, scene: Scene, plan: str) -> Ground | None:
    """Open the repository of a plan with inputs that has a base."""
    from loopr.grounds import ground_of_plan

    bound = scene.shared.plans.get(plan)
    is_asked = bound is not None and bound.base_commit and has_inputs(scene, plan)
    return ground_of_plan(workspace, scene, plan) if is_asked else None


def _edited(scene: Scene, plan: str, files: Sequence[str]) -> Iterator[str]:
    """Name the inputs among the files that are edited and not committed."""
    found = differing(scene, plan, files)
    if not found.others:
        return
    paths = list(dict.fromkeys(path for each in found.others for path in each.paths))
    named = ", ".join(paths[:MOST_NAMED]) + (", …" if len(paths) > MOST_NAMED else "")
    loops = f"{len(found.others)} loop{' names' if len(found.others) == 1 else 's name'}"
    yield f"not committed as here: {named}, which {loops} as inputs; what is not committed does not count"


def _unmatched(scene: Scene, plan: str, files: Sequence[str], top: Path | None) -> Iterator[str]:
    """Name the inputs that are no file of the base: a slip, or a file that other loops make.

    A file that is here, and not committed, is told as that.
    """
    absent = unmatched(scene, plan, files)
    found = {each: loops for each, loops in absent.items() if top is None or not (top / each).is_file()}
    if found:
        patterns = ", ".join(islice(found, MOST_NAMED)) + (", …" if len(found) > MOST_NAMED else "")
        loops = list(dict.fromkeys(loop for each in found.values() for loop in each))
        of = f"{loops[0]}{f' and {len(loops) - 1} more' if len(loops) > 1 else ''}"
        inputs = f"an input of {of}" if len(found) == 1 else f"inputs of {of}"
        yield f"no file of the base is {patterns}, {inputs}; what loops make is no input, `needs` is for that"
