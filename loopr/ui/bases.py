"""Where a plan's branch stands beside the branch that it began at: it goes along until something of its own has landed.

Must never know a loop's work, nor move the branch of a plan that a loop is at work on.
"""

from __future__ import annotations

from loopr.core import wishes
from loopr.core.forest import Forest
from loopr.core.tips import BEGUN_AGAIN
from loopr.engine import Engine
from loopr.errors import SettingsError
from loopr.wiring import Workspace


def follow_base(engine: Engine, workspace: Workspace, plan: str) -> str:
    """Let a plan of which nothing has landed begin where its base is now; else say what its branch lacks, if anything.

    For whoever starts, runs or resets: what a person has mended on the base is there for the next attempt.
    """
    from loopr.driving.moves import move_plan
    from loopr.grounds import base_of, ground_of_plan
    from loopr.world.repo.refs import is_ancestor

    forest = engine.forest
    bound, tip = forest.shared.plans.get(plan), forest.shared.tip(plan)
    ground = ground_of_plan(workspace, forest, plan) if bound is not None and bound.base_branch else None
    if bound is None or ground is None or forest.tree.done(plan):
        return ""
    base, stands = base_of(ground, forest, plan), tip.stands or bound.base_commit
    if not base or (tip.at and tip.moving is not None) or is_ancestor(ground.door, base, stands):
        return ""
    fresh = stands == bound.base_commit or is_ancestor(ground.door, stands, base)
    if not fresh or _at_work(forest, plan):
        own = ground.short_branch(plan)
        lacks = f"{bound.base_branch} has commits that {own} lacks"
        return f"{lacks}; to bring them there: `loopr update {plan}`"
    if tip.at:
        move_plan(engine.mind, ground, plan, base, BEGUN_AGAIN)
    engine.mind.decide(lambda forest, now: wishes.begin_at(forest, plan, base))
    why = f"nothing of {plan} has" if stands == bound.base_commit else f"{bound.base_branch} has all of {plan} that has"
    return f"{why} landed, so it goes on from {bound.base_branch} as it is now, {base[:12]}"


def _at_work(forest: Forest, plan: str) -> bool:
    """Say whether a loop of a plan is at work."""
    return any(forest.loops[each].plan == plan for each in forest.occupancy.loops)


def is_home(workspace: Workspace, forest: Forest, plan: str) -> bool:
    """Say whether the branch that a plan began at has all of it; no where the settings do not say where that is."""
    from loopr.grounds import ground_of_plan, stands_at
    from loopr.world.repo import home

    bound = forest.shared.plans.get(plan)
    try:
        ground = ground_of_plan(workspace, forest, plan) if bound is not None else None
    except SettingsError:  # what is wrong with them has been told by whoever works with them
        return False
    if bound is None or ground is None:
        return False
    return home.is_home(ground, stands_at(ground, forest, plan), bound.base_branch)
