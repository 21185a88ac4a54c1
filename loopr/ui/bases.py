"""Where a plan's branch stands beside the branch that it began at, and when it goes along with that.

It does until something of its own has landed, and again once that is home; else by a merge, where somebody asks or a
loop has other inputs. Must never know a loop's work, nor move the branch of a plan that a loop is at work on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from loopr.core import wishes
from loopr.core.forest import Forest
from loopr.core.inputs import Differing, differing, has_inputs
from loopr.core.moving import TipMoved
from loopr.core.scene import Scene
from loopr.core.taking import Taken, taken
from loopr.core.tips import BEGUN_AGAIN
from loopr.engine import Engine
from loopr.errors import LooprError, SettingsError
from loopr.wiring import Workspace
from loopr.world.place import commit_of

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground
    from loopr.world.repo.words import Start

FOLLOW = "follow"
MOST_LOOPS, MOST_PATHS = 5, 3


class Wants(NamedTuple):
    """Whether somebody asks for the base to be merged, whether that may be judged now, and who is told meanwhile."""

    update: bool = False
    to_run: bool = True
    say: Callable[[str], None] = lambda text: None


class Gone(NamedTuple):
    """How far the base of a plan has gone on from where the plan stands, and whose inputs are others there.

    `along` is true where the plan has nothing that would be lost if it went along; `clashes` are files that the two do
    not agree on.
    """

    ground: Ground
    base: Start
    stands: str
    along: bool
    nothing: bool
    commits: int
    taken: Taken
    found: Differing
    clashes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Say how far the base has gone on, and who has other inputs there."""
        far = f"{self.base.branch} is {self.commits} commit{'s' * (self.commits != 1)} on"
        others = self.found.others
        if not others:
            return far
        paths = list(dict.fromkeys(path for each in others for path in each.paths))
        named = f"{', '.join(paths[:MOST_PATHS])}{', …' if len(paths) > MOST_PATHS else ''}"
        loops = f"{', '.join(each.loop for each in others[:MOST_LOOPS])}{', …' if len(others) > MOST_LOOPS else ''}"
        has = "has" if len(others) == 1 else "have"
        return f"{far}: {len(others)} of {self.found.total} {has} other inputs ({named}): {loops}"


def look(workspace: Workspace, forest: Scene, plan: str) -> Gone | None:
    """Compare a plan with its base; None where that has nothing which the plan lacks."""
    from loopr.grounds import base_of, ground_of_plan
    from loopr.world.repo.refs import is_ancestor
    from loopr.world.repo.scanning import changed_entries
    from loopr.world.repo.updating import count_beyond, join
    from loopr.world.repo.words import Start

    bound, tip = forest.shared.plans.get(plan), forest.shared.tip(plan)
    ground = ground_of_plan(workspace, forest, plan) if bound is not None and bound.base_branch else None
    if bound is None or ground is None:
        return None
    base, stands = base_of(ground, forest, plan), tip.stands or bound.base_commit
    if not base or (tip.at and tip.moving is not None) or is_ancestor(ground.door, base, stands):
        return None
    nothing = stands == bound.base_commit
    joined = None if nothing else join(ground, stands, base)
    along = nothing or (joined is not None and joined.home)
    then, found = base if along or joined is None else joined.tree, Differing()
    if tip.at and has_inputs(forest, plan):
        paths = [each.path for each in changed_entries(ground.door, stands, then)]
        found = differing(forest, plan, paths)
    commits = count_beyond(ground, base, (stands, bound.base_commit))
    into = taken(base, bound.base_commit, found)
    clashes = joined.files if joined is not None else ()
    return Gone(ground, Start(bound.base_branch, base), stands, along, nothing, commits, into, found, clashes)


def follow_base(engine: Engine, workspace: Workspace, plan: str, *, anew: bool = False) -> str:
    """Let a plan of which nothing has landed begin where its base is now; else say what its branch lacks, if anything.

    For whoever runs or resets: what a person has mended on the base is there for the next attempt. One that is done
    stays where it is, unless something of it is made `anew`.
    """
    if engine.forest.tree.done(plan) and not anew:
        return ""
    gone = look(workspace, engine.forest, plan)
    if gone is None:
        return ""
    if not gone.along or _at_work(engine.forest, plan):
        return _lacks(gone, plan)
    return _begin_again(engine, gone, plan)


def start_from_base(engine: Engine, workspace: Workspace, plan: str, wants: Wants) -> str:
    """Let a plan that is started begin where its base is now, or merge that, where anything speaks for it; say so.

    One that is done and home has nothing to begin, unless a loop has other inputs there.
    """
    forest = engine.forest
    gone = look(workspace, forest, plan)
    if gone is None:
        return ""
    others = bool(gone.found.others)
    asked = wants.update or workspace.settings.plan_base == FOLLOW
    idle = forest.tree.done(plan) and not others and not wants.update
    if idle and (gone.along or not asked):
        return news(forest, gone, plan)
    if _at_work(forest, plan) or (not gone.along and not (others or asked)):
        return _lacks(gone, plan)
    if gone.along:
        return _begin_again(engine, gone, plan)
    return _merge(engine, workspace, gone, plan, wants)


def other_inputs(workspace: Workspace, scene: Scene, plan: str) -> str:
    """Name the loops with other inputs on the base of a plan, nothing where there are none."""
    gone = look(workspace, scene, plan) if has_inputs(scene, plan) else None
    return gone.words if gone is not None and gone.found.others else ""


def foretold(workspace: Workspace, scene: Scene, plan: str) -> str:
    """Say before a start that a plan lacks work of its base, and name loops with new inputs."""
    bound, top = scene.shared.plans.get(plan), workspace.place.repository
    if bound is None or top is None or not bound.base_branch:
        return ""
    base = commit_of(top, f"refs/heads/{bound.base_branch}")
    if base and base in (bound.base_commit, scene.shared.tip(plan).at):
        return ""  # git itself is slow to import
    gone = look(workspace, scene, plan)
    if gone is None or (gone.along and not gone.found.others):
        return ""
    return gone.words if gone.along else _lacks(gone, plan)


def _lacks(gone: Gone, plan: str) -> str:
    """Say that the base has what a plan does not have, and how it gets there."""
    short = gone.ground.short_branch(plan)
    said = gone.words if gone.found.others else f"{gone.base.branch} has commits that {short} lacks"
    if gone.clashes:
        named = ", ".join(gone.clashes[:MOST_PATHS]) + (", …" if len(gone.clashes) > MOST_PATHS else "")
        return f"{said}, and conflicts with it in {named}: `loopr update {plan}` says how that is mended"
    there = "that" if gone.found.others else "them"
    return f"{said}; to bring {there} there: `loopr update {plan}`"


def _begin_again(engine: Engine, gone: Gone, plan: str) -> str:
    """Let a plan begin at its base; what it leaves is kept, where the base has it under other names."""
    from loopr.driving.moves import move_plan
    from loopr.world.repo.refs import is_ancestor
    from loopr.world.repo.tips import keep

    ground, base = gone.ground, gone.base
    if engine.forest.shared.tip(plan).at:
        if not gone.nothing and not is_ancestor(ground.door, gone.stands, base.commit):
            keep(ground, plan, gone.stands, engine.mind.now())
        try:
            move_plan(engine.mind, ground, plan, base.commit, BEGUN_AGAIN, old=gone.stands, base=gone.taken)
        except TipMoved:
            return _lacks(gone, plan)
    else:
        engine.mind.decide(lambda forest, now: wishes.begin_at(forest, plan, base.commit))
    landed = any(each.landed for each in engine.forest.tree.walk(plan))
    why = f"{base.branch} has all of {plan} that has" if landed else f"nothing of {plan} has"
    said = [f"{why} landed, so it goes on from {base.branch} as it is now, {base.commit[:12]}"]
    lost = [] if gone.nothing else [lacking(engine.forest, ground, plan, (gone.stands, base.commit), base.branch)]
    return "; ".join(filter(None, [gone.words if gone.found.others else "", *said, *lost]))


def news(scene: Scene, gone: Gone, plan: str) -> str:
    """Say that a done plan takes no new commits of its base, or which files the base lacks."""
    if not gone.along:
        return _lacks(gone, plan)
    return lacking(scene, gone.ground, plan, (gone.stands, gone.base.commit), gone.base.branch)


def lacking(scene: Scene, ground: Ground, plan: str, step: tuple[str, str], name: str) -> str:
    """Say which files of a plan's loops a commit called by a name lacks, nothing where none are."""
    from loopr.world.repo.missing import missing_words, missing_work

    return missing_words(missing_work(ground, *step), name, [each.id for each in scene.tree.walk(plan)])


def _merge(engine: Engine, workspace: Workspace, gone: Gone, plan: str, wants: Wants) -> str:
    """Merge the base into a plan's branch if a judge says yes; else say why not, and that it goes on from the old."""
    from loopr.ui.updating import Case, take_in

    if not wants.to_run:
        return _lacks(gone, plan)
    case = Case(gone.ground, engine.forest.loops[plan], gone.base, gone.stands)
    try:
        done = take_in(engine, workspace, case, wants.say)
    except (LooprError, OSError) as error:
        return f"{gone.words}; not taken, so it goes on from the old base: {error}"
    if done.problems:
        why = "; ".join(f"{each.message}{f' ({each.hint})' if each.hint else ''}" for each in done.problems)
        return f"{gone.words}; not taken, so it goes on from the old base: {why}"
    judged = f", {done.judge} said yes" if done.judge else ""
    return f"{gone.words}; it goes on with {gone.base.branch} merged{judged}, {done.new[:12]}"


def _at_work(forest: Forest, plan: str) -> bool:
    """Say whether a loop of a plan is at work."""
    return any(forest.loops[each].plan == plan for each in forest.occupancy.loops)


def is_home(workspace: Workspace, forest: Scene, plan: str) -> bool:
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
