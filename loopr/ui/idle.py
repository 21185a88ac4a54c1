"""Plans of which a start leaves nothing to do: then no engine begins, and no event is written.

Looks as a verb that only shows does. Where anything is in doubt the answer is no, and an engine finds out. Must never
write anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from loopr.core.inputs import has_inputs
from loopr.core.policy import OWN_REPO
from loopr.core.scene import Scene
from loopr.errors import SettingsError
from loopr.ui.older import owes_redo
from loopr.ui.unread import unread
from loopr.wiring import Workspace, differs
from loopr.world.place import commit_of

FOLLOW = "follow"
NO_NEWS: Mapping[str, tuple[str, ...]] = {}
NOTHING_TO_DO = "nothing to do: it is done, and nothing has changed"


class Idle(NamedTuple):
    """Plans that are done, in the order given, their scene, and the first that is not at home.

    `news` says by plan which inputs are not committed, and which work of its base it does not take.
    """

    plans: list[str]
    scene: Scene
    now: int
    away: str = ""
    news: Mapping[str, tuple[str, ...]] = NO_NEWS


def idle(workspace: Workspace, paths: Sequence[Path]) -> Idle | None:
    """Return plans by their files if all of them are done, unchanged, and owe nothing; None where one may not be."""
    if not workspace.place.journal.exists() or workspace.engine() is not None:
        return None
    scene, _, now, _ = workspace.look()
    by_source = {bound.source: plan for plan, bound in scene.shared.plans.items()}
    plans = list(dict.fromkeys(by_source.get(workspace.name_of(each), "") for each in paths))
    if not _is_quiet(workspace, scene) or not all(each and _is_done(workspace, scene, each) for each in plans):
        return None
    away = [each for each in plans if not _is_home(workspace, scene, each)]
    if away and workspace.settings.land.mode == "auto":
        return None
    news: dict[str, tuple[str, ...]] = {}
    for plan in plans:
        told = _news(workspace, scene, plan)
        if told is None:
            return None
        news[plan] = told
    return Idle(plans, scene, now, next((each for each in away if _has_landed(scene, each)), ""), news)


def _is_quiet(workspace: Workspace, scene: Scene) -> bool:
    """Say whether nothing is left or wrong, and the settings are known: in force, or held back."""
    shared, in_force = scene.shared, workspace.in_force
    is_known = (shared.accepted.held or shared.accepted.seal) == in_force.written().seal
    return (
        is_known
        and shared.seal == in_force.policy_seal(in_force.basis)
        and not (scene.occupancy.total or shared.problems or shared.engine.serving or workspace.doubt)
    )


def _is_done(workspace: Workspace, scene: Scene, plan: str) -> bool:
    """Say whether all of a plan is done, its files are those that count, and its branch is where it stands."""
    bound, tip = scene.shared.plans[plan], scene.shared.tip(plan)
    source = workspace.place.root / bound.source
    if (
        not scene.tree.at_rest(plan)
        or owes_redo(scene, plan)
        or tip.moving is not None
        or bound.repo not in ("", OWN_REPO)
    ):
        return False
    if not source.is_file() or differs(source, bound.digest) or bound.source in scene.shared.kept:
        return False
    loops = list(scene.tree.walk(plan))
    offered = any(each.offers.offered or each.offers.unread for each in loops)
    missing = any(each.artifact and not each.on_disk for each in loops)
    if any(each.redoing or each.outdated for each in loops):
        return False
    return (
        not offered and not missing and _stands(workspace, plan, tip.at) and not unread(workspace, scene, loops, None)
    )


def _stands(workspace: Workspace, plan: str, commit: str) -> bool:
    """Say whether the branch of a plan is where the journal says, if it has one."""
    top = workspace.place.repository
    if top is None or not commit:
        return True
    return commit_of(top, f"refs/heads/{workspace.settings.git.branch_prefix}{plan}") == commit


def _is_home(workspace: Workspace, scene: Scene, plan: str) -> bool:
    """Say whether the branch that a plan began at has all of it, or there is nothing to bring there."""
    bound, at, top = scene.shared.plans[plan], scene.shared.tip(plan).at, workspace.place.repository
    base = bound.base_branch and commit_of(top, f"refs/heads/{bound.base_branch}") if top else ""
    if top is None or at in ("", base):
        return True
    from loopr.grounds import ground_of_plan, stands_at  # slow to import, and a plan that has just landed is there
    from loopr.world.repo import home

    try:
        ground = ground_of_plan(workspace, scene, plan)
    except SettingsError:
        return False
    return ground is None or home.is_home(ground, stands_at(ground, scene, plan), bound.base_branch)


def _has_landed(scene: Scene, plan: str) -> bool:
    """Say whether a loop of a plan has gone beyond where it began."""
    base = scene.shared.plans[plan].base_commit
    return any(each.landed not in ("", base) for each in scene.tree.walk(plan))


def _news(workspace: Workspace, scene: Scene, plan: str) -> tuple[str, ...] | None:
    """Say which inputs of a plan are not committed, and which work of its base it does not take.

    None where a start takes something of that, or has more to tell.
    """
    bound, top = scene.shared.plans[plan], workspace.place.repository
    if top is None or not bound.base_branch:
        return ()
    from loopr.ui.inputs import uncommitted_inputs

    said = uncommitted_inputs(workspace, scene, plan) if has_inputs(scene, plan) else ()
    if commit_of(top, f"refs/heads/{bound.base_branch}") in (bound.base_commit, scene.shared.tip(plan).at):
        return said
    from loopr.ui.bases import look, news  # slow to import

    gone = look(workspace, scene, plan)
    if gone is None:
        return said
    follows = workspace.settings.plan_base == FOLLOW and not gone.along
    return None if gone.found.others or follows else (*said, *filter(None, [news(scene, gone, plan)]))
