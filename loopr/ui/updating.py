"""How a plan takes over the branch that it began at: merged, judged, and moved, with an engine at work or without.

Must never know a terminal, nor what a merge is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from loopr.core import observations as o
from loopr.core import wishes
from loopr.core.inputs import differing
from loopr.core.moving import TipMoved
from loopr.core.taking import NOTHING_TAKEN, Taken, taken
from loopr.core.tips import UPDATE_PLACE, UPDATED
from loopr.errors import Deferred, Problem, SettingsError, UserError
from loopr.ui.homecoming import LAND_CHECK, alone, judged
from loopr.wiring import Workspace, wall_clock
from loopr.world.settings.keys import Command

if TYPE_CHECKING:
    from loopr.core.model import Loop
    from loopr.core.scene import Scene
    from loopr.engine import Engine
    from loopr.world.repo.ground import Ground
    from loopr.world.repo.words import Brought, Start

TRIES = 5
NO_JUDGE: tuple[str, Command | None] = ("", None)


class Case(NamedTuple):
    """A plan in its repository, the base that it is to take over, and where it stands: nowhere before it has begun."""

    ground: Ground
    loop: Loop
    base: Start
    stands: str


class Updated(NamedTuple):
    """What became of a plan that was to take over its base: where it stood and stands, or what is in the way.

    `commits` are those of the base that it lacked; `judge` names the check that said yes, if one was asked. `others`
    are the loops that have other inputs there, each with the reason.
    """

    plan: str
    branch: str
    base: str
    old: str
    new: str
    commits: tuple[str, ...] = ()
    judge: str = ""
    brought: Brought | None = None
    problems: tuple[Problem, ...] = ()
    others: tuple[str, ...] = ()


def update(workspace: Workspace, plan: str, say: Callable[[str], None]) -> Updated:
    """Bring the base branch into a plan's, whoever is at work; what lands meanwhile has it merged and judged anew."""
    from loopr.ui.steering import deciding

    for _ in range(TRIES):
        scene = workspace.look().scene
        case = _case(workspace, scene, plan)
        with alone(case.ground):
            found = _judged(workspace, scene, case, say)
            if found.problems or found.new == found.old:
                if found.problems or f"{UPDATE_PLACE}{plan}" in scene.shared.problems:
                    with deciding(workspace) as engine:
                        _note(engine, found)
                return found
            with deciding(workspace) as engine:
                try:
                    return _moved(engine, case, found)
                except TipMoved:
                    continue
    words = f"loops of {plan} landed faster than it could be judged, {TRIES} times"
    raise Deferred(words, hint=f"`loopr pause {plan}` first, and `loopr resume {plan}` afterwards")


def take_in(engine: Engine, workspace: Workspace, case: Case, say: Callable[[str], None]) -> Updated:
    """Bring a base into the branch of a plan of which nothing is at work.

    Where there is no `land.check`, the check of the last type stands in.
    """
    last = next(each for each in workspace.settings.types.values() if each.child is None)
    with alone(case.ground):
        found = _judged(workspace, engine.forest, case, say, (f"types.{last.name}.check", last.check))
        if not found.problems:
            return _moved(engine, case, found)
        _note(engine, found)
        return found


def _note(engine: Engine, found: Updated) -> None:
    """Have it remembered why a plan has not taken its base; take it back where that has nothing.

    Its cure names commits that are others once more has landed: the verb tells that of now.
    """
    why = "; ".join(each.message for each in found.problems)
    told = f"{why} (`loopr update {found.plan}` says how that is mended)"
    text = f"{found.branch} at {found.base[:12]} was not taken: {told}" if why else ""
    engine.learn([o.Noticed(f"{UPDATE_PLACE}{found.plan}", text)])


def _case(workspace: Workspace, scene: Scene, plan: str) -> Case:
    """Find a plan with its repository and its base, or say why it has none."""
    from loopr.grounds import base_of, ground_of_plan, stands_at
    from loopr.world.repo.words import Start

    bound = scene.shared.plans.get(plan)
    ground = ground_of_plan(workspace, scene, plan) if bound is not None else None
    if bound is None or ground is None:
        raise SettingsError(f"{plan} works without git: there is nothing to take over")
    if not bound.base_branch:
        raise UserError(f"{plan} began at a detached HEAD", hint=f"name a commit: loopr adopt {plan} COMMIT")
    base = Start(bound.base_branch, base_of(ground, scene, plan))
    if not base.commit:
        raise UserError(f'there is no branch called "{base.branch}"', hint=f"loopr adopt {plan} BRANCH")
    return Case(ground, scene.loops[plan], base, stands_at(ground, scene, plan))


def _judged(
    workspace: Workspace,
    scene: Scene,
    case: Case,
    say: Callable[[str], None],
    stand_in: tuple[str, Command | None] = NO_JUDGE,
) -> Updated:
    """Build what a plan and its base come to, and have it judged."""
    from loopr.driving.wording import about_plan
    from loopr.world.repo.home import leave_home_room
    from loopr.world.repo.landing import Onto
    from loopr.world.repo.updating import build_update
    from loopr.world.repo.words import Refusal

    ground, loop, base, stands = case
    begun = scene.shared.plans[loop.id].base_commit
    found = Updated(loop.id, base.branch, base.commit, stands or begun, base.commit)
    if not stands:
        return found
    try:
        title = f"Update {loop.id} from {base.branch}"
        message = about_plan(workspace.settings.commit, title, loop, wall_clock())
        built = build_update(ground, Onto(loop.id, stands), base, message)
        if isinstance(built, Refusal):
            return found._replace(new=stands, problems=built.problems)
        found = found._replace(new=built.new, commits=built.commits)
        if built.new in (stands, base.commit):
            return found
        has_own = workspace.settings.of_project(loop.project).land.check is not None
        judge = LAND_CHECK if has_own else stand_in[0] if stand_in[1] is not None else ""
        if judge:
            say(f"{loop.id}: {judge} is asked about {base.branch} merged into its branch")
        no = judged(workspace, loop, ground, built, say, stand_in=stand_in)
        return found._replace(judge=judge, problems=(no,) if no is not None else ())
    finally:
        leave_home_room(ground, loop.id)


def _moved(engine: Engine, case: Case, found: Updated) -> Updated:
    """Let the plan stand there, if it still stands where it was judged; one without a branch begins there."""
    from loopr.driving.moves import move_plan

    if not case.stands:
        engine.mind.decide(lambda forest, now: wishes.begin_at(forest, found.plan, found.base))
        return found
    into = _into(engine.forest, case.ground, found.plan, found.base, (found.old, found.new))
    done = move_plan(engine.mind, case.ground, found.plan, found.new, UPDATED, old=found.old, base=into)
    return found._replace(brought=done, others=into.others)


def brought_along(scene: Scene, ground: Ground, plan: str, stands: str, new: str) -> Taken:
    """Say what of its base a plan takes over with a commit that somebody else has made: nothing, or up to where."""
    from loopr.grounds import base_of
    from loopr.world.repo.refs import is_ancestor, merge_base

    base = base_of(ground, scene, plan)
    common = merge_base(ground.door, new, base) if base else ""
    if not common or is_ancestor(ground.door, common, stands):
        return NOTHING_TAKEN
    return _into(scene, ground, plan, common, (stands, new))


def _into(scene: Scene, ground: Ground, plan: str, base: str, tips: tuple[str, str]) -> Taken:
    """Say which loops of a plan have other inputs where it takes over a base and moves from one commit to another."""
    from loopr.world.repo.scanning import changed_entries

    paths = [each.path for each in changed_entries(ground.door, *tips)]
    return taken(base, scene.shared.plans[plan].base_commit, differing(scene, plan, paths))
