"""The check of what loops work from: files that are others on the base of their plan by now.

Must never know what else is wrong with a plan, nor take over a base.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopr.core.inputs import has_inputs
from loopr.errors import LooprError
from loopr.ui.bases import look
from loopr.ui.checkup.rows import Finding
from loopr.ui.checkup.waits import BROKEN_ROW
from loopr.ui.collecting import collecting
from loopr.wiring import Workspace
from loopr.world.settings import Settings

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


CHECKS = (("inputs", _inputs), ("tests", _tests))
"""What is checked, by the name under which it is told."""
