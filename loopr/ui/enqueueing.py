"""Brings plans into the tree without driving them: all of them or none, with or without an engine at work.

Must never know what a plan leads to, nor a terminal or a protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopr.core.forest import Forest
from loopr.engine import Engine
from loopr.errors import EngineHeld
from loopr.ui import views
from loopr.ui.requests import Confirm, Enqueued, Plan, enqueue
from loopr.wiring import Workspace


class Admitted(NamedTuple):
    """What became of plans, the forest that they are in, and who serves the workspace (nobody: it was our own turn)."""

    forest: Forest
    done: tuple[Enqueued, ...]
    dry_run: bool = False
    beside: str = ""

    def document(self, workspace: Workspace, now: int | None = None) -> views.Row:
        """Return the document of the plans: their loops at an instant, and what became of each plan."""
        at = self.forest.at if now is None else now
        loops = [loop for each in self.done for loop in self.forest.tree.walk(each.plan)]
        body = views.tree(self.forest, at, str(workspace.place.root), loops)
        return body | {"dry_run": self.dry_run, "plans": [each._asdict() for each in self.done]}


def rehearse(workspace: Workspace, plans: Sequence[Plan], confirm: Confirm) -> Admitted:
    """Decide on paper, and write nothing."""
    with workspace.rehearsal() as engine:
        return Admitted(engine.forest, _all(engine, workspace, plans, confirm), dry_run=True)


def admit(workspace: Workspace, plans: Sequence[Plan], confirm: Confirm) -> Admitted:
    """Enqueue plans in a turn of our own, or beside the engine that serves the workspace."""
    beside = ""
    try:
        with workspace.turn() as engine:
            return Admitted(engine.forest, _all(engine, workspace, plans, confirm))
    except EngineHeld as held:
        beside = held.problems[0].message
    with workspace.visit() as engine:
        return Admitted(engine.forest, _all(engine, workspace, plans, confirm), beside=beside)


def left_behind(workspace: Workspace, forest: Forest, plan: str) -> str:
    """Say that the branch that a plan began at has commits which the plan's own lacks, and how it gets them."""
    from loopr.grounds import ground_of_plan
    from loopr.world.repo.branches import plan_tip
    from loopr.world.repo.refs import is_ancestor, read_refs

    bound, ground = forest.shared.plans[plan], ground_of_plan(workspace, forest, plan)
    tip = plan_tip(ground, plan).tip if ground is not None else ""
    if ground is None or not tip or not bound.base_branch:
        return ""
    base = read_refs(ground.door, f"refs/heads/{bound.base_branch}").get(f"refs/heads/{bound.base_branch}", "")
    if not base or is_ancestor(ground.door, base, tip):
        return ""
    own = ground.short_branch(plan)
    takes = f"`git switch {own} && git merge {bound.base_branch} && git switch -`"
    return f"{bound.base_branch} has commits that {own} lacks; to bring them there: {takes}"


def _all(engine: Engine, workspace: Workspace, plans: Sequence[Plan], confirm: Confirm) -> tuple[Enqueued, ...]:
    """Enqueue one after the other."""
    return tuple(enqueue(engine, workspace, plan, confirm) for plan in plans)
