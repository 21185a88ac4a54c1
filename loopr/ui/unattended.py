"""Says that something would go on, and that no engine runs that does it.

Must never know who asks, nor how an engine is begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loopr.core.grouping import ready_loops
from loopr.core.model import OCCUPYING, Loop
from loopr.core.scene import Scene
from loopr.core.states import LANDS_NOW, ON_THE_WAY
from loopr.ui.unfinished import unfinished

WORDS = "no engine runs: `loopr run` goes on"
WITH_NEXT = "its commits land with the next `loopr run`"
NO_PAYER = "no engine would begin (`loopr config check`): there is no project {}, and {} names it"


def unattended(scene: Scene, now: int, holder: Mapping[str, Any] | None, ready: int | None = None) -> str:
    """Say that something is left to do and no engine runs; nothing where one does, or where nothing could go on.

    `ready` is how many loops are ready, where that is known already.
    """
    if serves(holder):
        return ""
    found = scene.occupancy.total and unfinished(scene)
    return _words(scene) if found or (ready if ready is not None else any(ready_loops(scene, now))) else ""


def unattended_loop(scene: Scene, loop: Loop, holder: Mapping[str, Any] | None, *, runnable: bool) -> str:
    """Say the same of one loop, which is `runnable` if no gate is closed."""
    if serves(holder):
        return ""
    owner = loop.lease or loop.ending
    left = loop.status in OCCUPYING and owner is not None and owner.expires_at is None
    return _words(scene) if left or runnable else ""


def tell_landing(gates: Iterable[dict[str, Any]], holder: Mapping[str, Any] | None) -> None:
    """Say in what a loop waits for that the next engine lands it, where none serves."""
    for gate in gates:
        if not serves(holder):
            gate["reason"] = gate["reason"].replace(LANDS_NOW, WITH_NEXT).replace(ON_THE_WAY, WITH_NEXT)


def _words(scene: Scene) -> str:
    """Say that `run` goes on, or that no engine would begin."""
    return unpaid(scene) or WORDS


def unpaid(scene: Scene) -> str:
    """Say that no engine would begin, as a plan under way has an unknown project; else nothing."""
    lost = (each for each in scene.tree.children(None) if scene.loops[each].project not in scene.policy.projects)
    for plan in lost:
        from loopr.grounds import is_over  # slow to import, and few workspaces come here

        if not is_over(scene, plan):
            return NO_PAYER.format(scene.loops[plan].project, plan)
    return ""


def serves(holder: Mapping[str, Any] | None) -> bool:
    """Say whether the holder of the workspace is an engine."""
    return holder is not None and holder["kind"] == "engine"
