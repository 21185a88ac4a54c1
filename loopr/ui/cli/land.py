"""The verb that brings a finished plan home: judged as it would be there, never by force.

It works beside an engine as well as without one. All it moves is a person's own: the base branch, and the checkout
that has it. The room in which the result is judged is under the same locks as every worktree, and what is to move is
compared with what was judged at the last moment. Must never know how a branch is moved.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from loopr import wiring
from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.errors import Deferred, EngineHeld, Problem, UserError
from loopr.ui import render
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.home import Told, count, report
from loopr.ui.gate import pass_gate
from loopr.ui.names import find_id
from loopr.wiring import Workspace

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground
    from loopr.world.repo.words import CameHome, HomeCandidate

REFUSED = 1
HOME_LOCK = "home.lock"


class Asked(NamedTuple):
    """Where a plan is to come home to, and how."""

    onto: str
    dry_run: bool = False
    yes: bool = False
    as_recorded: bool = False


@click.command("land")
@click.argument("plan")
@click.option("--onto", metavar="BRANCH", help="this branch, not the one that the plan began at")
@click.option("-n", "--dry-run", is_flag=True, help="show what would come home, and what is in the way; judge nothing")
@click.option("-y", "--yes", is_flag=True, help="go on where a person would be asked")
@click.option("--as-recorded", is_flag=True, help="leave out what others have put on its branch")
@framed
def land_verb(frame: Frame, *, plan: str, onto: str | None, **asked: bool) -> int:
    """Bring a plan that is done home to the branch it began at, and the checkout that has that branch along."""
    from loopr.grounds import ground_beside, repo_of_plan

    if not asked["dry_run"]:
        pass_gate(frame.workspace, "land --yes" if asked["yes"] else "land", [plan])
    scene = frame.workspace.look().scene
    found = scene.loops[find_id(scene.loops, plan)]
    if found.parent is not None:
        raise UserError(f"{found.id} is a {found.type}, and plans come home", hint=f"loopr land {found.plan}")
    bound = scene.shared.plans.get(found.id)
    how = Asked(onto or (bound.base_branch if bound is not None else ""), **asked)
    ground = ground_beside(frame.workspace, scene, repo_of_plan(frame.workspace, scene, found.id))
    with _alone(ground):
        told = _bring(frame, ground, scene, found, how)
    if not told.problems and not how.dry_run:
        _journal(frame.workspace, scene, found.id, told.home)
    report(frame, found, told, how.dry_run)
    return REFUSED if told.problems else 0


def _bring(frame: Frame, ground: Ground, scene: Scene, plan: Loop, how: Asked) -> Told:
    """Build what would come home, judge it, and bring it; whatever is in the way is told and nothing has changed."""
    from loopr.grounds import stands_at
    from loopr.ui.homecoming import judged
    from loopr.world.repo.home import build_home, home_problems, leave_home_room
    from loopr.world.repo.landing import Onto
    from loopr.world.repo.words import Message, Refusal

    onto, undone = how.onto, _undone(scene, plan)
    if undone is not None:
        return Told(onto, problems=(undone,))
    stands = stands_at(ground, scene, plan.id)
    if not stands:
        return Told(onto, remark=f"{plan.id} has no branch: none of its loops had anything to land")
    foreign = _elsewhere(frame, ground, plan.id, stands)
    if foreign is not None and not how.as_recorded:
        return Told(onto, problems=(foreign,))
    words = Message(f"Land {plan.id}: {plan.title}", trailers=(("Loopr-Plan", plan.id),), at_ms=wiring.wall_clock())
    try:
        built = build_home(ground, Onto(plan.id, stands), onto, words)
        if isinstance(built, Refusal):
            return Told(onto, problems=built.problems)
        if built.new == built.old:
            return Told(onto, built, remark=f"{onto} has all of {plan.id} already")
        problems = *home_problems(ground, built), *_suspicious(ground, scene, onto)
        if problems or how.dry_run:
            return Told(onto, built, problems=problems)
        _ask(built, _unexplained(ground, scene, plan, built), how.yes)
        no = judged(frame.workspace, plan, ground, built, frame.note)
        return Told(onto, built, problems=(no,)) if no is not None else _moved(frame.workspace, ground, plan, built)
    finally:
        leave_home_room(ground, plan.id)


def _moved(workspace: Workspace, ground: Ground, plan: Loop, built: HomeCandidate) -> Told:
    """Move the branch and the checkout, if all is still as it was judged."""
    from loopr.world.repo.home import bring_home
    from loopr.world.repo.words import Refusal

    with turn_or_beside(workspace):
        scene = workspace.look().scene
        undone = _undone(scene, plan) or _moved_on(scene, built)
        if undone is not None:
            return Told(built.branch, built, problems=(undone,))
        done = bring_home(ground, built)
    if isinstance(done, Refusal):
        return Told(built.branch, built, problems=done.problems)
    return Told(built.branch, built, done)


def _journal(workspace: Workspace, scene: Scene, plan: str, home: CameHome | None) -> None:
    """Have it remembered that a plan came home, and take back that it could not, where an engine has said so."""
    from loopr.core import observations as o
    from loopr.driving.occasions import LANDING_PLACE

    place = f"{LANDING_PLACE}{plan}"
    news: list[o.Observation] = [] if home is None else [o.CameHome(plan, home.branch, home.commit)]
    news += [o.Noticed(place, "")] if place in scene.shared.problems else []
    if news:
        with workspace.visit() as engine:
            engine.learn(news)


@contextmanager
def _alone(ground: Ground) -> Iterator[None]:
    """Let one plan come home at a time: a judge may take long, and neither an engine nor a turn waits for it."""
    from loopr.world.lock import EngineLock

    try:
        lock = EngineLock.acquire(ground.state / HOME_LOCK, "turn", wait_turn_secs=0)
    except EngineHeld:
        raise Deferred("another `loopr land` is at work", hint="try again once it has ended") from None
    with lock:
        yield


@contextmanager
def turn_or_beside(workspace: Workspace) -> Iterator[None]:
    """Hold the workspace for a moment, or go on beside the engine that does: for what no engine ever touches."""
    from loopr.world.lock import EngineLock

    with ExitStack() as stack:
        try:
            stack.enter_context(EngineLock.acquire(workspace.place.lock, "turn"))
        except EngineHeld:
            holder = workspace.engine()
            if holder is not None and holder["kind"] != "engine":
                raise
        yield


# --- what is in the way ---------------------------------------------------------------------------------------------


def _undone(scene: Scene, plan: Loop) -> Problem | None:
    """Say what is not complete of a plan."""
    if scene.tree.done(plan.id):
        return None
    left = [each for each in scene.tree.walk(plan.id) if each.status is not Status.COMPLETE]
    named = ", ".join(f"{each.id} ({each.status})" for each in left[:5]) + (", …" if len(left) > 5 else "")
    return Problem(f"{plan.id} is not done: {named}", hint=f"`loopr tree {plan.id}` says what it waits for")


def _elsewhere(frame: Frame, ground: Ground, plan: str, stands: str) -> Problem | None:
    """Say that somebody has put something else on a plan's branch; tell where one that lags is checked out."""
    from loopr.world.repo.tips import foreign_tip, holder_of, stands_right

    short, foreign = ground.short_branch(plan), foreign_tip(ground, plan, stands)
    if foreign:
        hint = (
            f"`loopr adopt {plan}` brings it in, `loopr land {plan} --as-recorded` leaves it out, "
            f"`loopr adopt {plan} --replace` takes it in place of what landed"
        )
        return Problem(f"{short} stands at {foreign[:12]}, which loopr did not make; it made {stands[:12]}", hint=hint)
    folder = "" if stands_right(ground, plan, stands) else holder_of(ground, plan)
    if folder:
        frame.note(f"{short} lags: checked out in {render.plain(folder)}")
    return None


def _moved_on(scene: Scene, built: HomeCandidate) -> Problem | None:
    """Say that a plan stands elsewhere by now than when it was judged."""
    if built.plan not in scene.shared.tips or scene.shared.tip(built.plan).at == built.plan_tip:
        return None
    return Problem(f"the branch of {built.plan} has moved meanwhile", hint="run it again")


def _suspicious(ground: Ground, scene: Scene, onto: str) -> Iterator[Problem]:
    """Say whether the move would be taken for a loop's doing: a branch that moves without any checkout explains it."""
    from loopr.world.repo.checkouts import holders
    from loopr.world.repo.ground import HEADS

    if scene.occupancy.total and not holders(ground, HEADS + onto):
        words = f"attempts are at work, and {onto} is checked out nowhere: they would be blamed for its move"
        yield Problem(words, hint=f"check {onto} out in some folder, or wait until nothing runs")


def _unexplained(ground: Ground, scene: Scene, plan: Loop, built: HomeCandidate) -> str:
    """Say that the branch has a commit that came while loops ran and that no checkout explains, nothing if not."""
    from loopr.core.shared import moved_key
    from loopr.ui.story import moved_words
    from loopr.world.repo.refs import is_ancestor

    bound = scene.shared.plans.get(plan.id)
    moved = scene.shared.moved.get(moved_key(bound.repo, built.branch)) if bound is not None else None
    if moved is None or moved.explained or not is_ancestor(ground.door, moved.new, built.old):
        return ""
    return moved_words(built.branch, moved.during, explained=False, undo=moved.undo)


def _ask(built: HomeCandidate, unexplained: str, yes: bool) -> None:
    """Ask a person, if there is one; without one only --yes goes on."""
    if yes:
        return
    if not sys.stdin.isatty():
        told = f"; {render.plain(unexplained)}" if unexplained else ""
        raise UserError(f"nobody is there to be asked{told}", hint="--yes goes on, --dry-run shows what would be done")
    text = f"Bring {count(built.commits, 'commit')} of {built.plan} home to {built.branch}?"
    if unexplained:
        click.echo(render.plain(unexplained), err=True)
    click.confirm(text, abort=True, err=True)
