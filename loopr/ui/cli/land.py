"""The verb that brings a finished plan home: judged as it would be there, never by force.

It works beside an engine as well as without one. All it moves is a person's own: the base branch, and the checkout
that has it. The room in which the result is judged is under the same locks as every worktree, and what is to move is
compared with what was judged at the last moment. Must never know how a branch is moved.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from loopr import wiring
from loopr.core.model import Loop
from loopr.core.offering import offered_words
from loopr.core.scene import Scene
from loopr.errors import EngineHeld, LooprError, Problem, UserError
from loopr.ui import render
from loopr.ui.bases import other_inputs
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.home import Told, count, report
from loopr.ui.gate import pass_gate
from loopr.ui.halves import Half, half_of, undone, words_of
from loopr.ui.homecoming import alone
from loopr.ui.names import find_id
from loopr.ui.older import before_landing
from loopr.wiring import Workspace

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground
    from loopr.world.repo.words import HomeCandidate, Message

REFUSED = 1


class Asked(NamedTuple):
    """Where a plan is to come home to, and how."""

    onto: str
    dry_run: bool = False
    yes: bool = False
    as_recorded: bool = False
    partial: bool = False


@click.command("land")
@click.argument("plan")
@click.option("--onto", metavar="BRANCH", help="this branch, not the one that the plan began at")
@click.option("-n", "--dry-run", is_flag=True, help="show what would come home, and what is in the way; judge nothing")
@click.option("-y", "--yes", is_flag=True, help="go on where a person would be asked")
@click.option("--as-recorded", is_flag=True, help="leave out what others have put on its branch")
@click.option("--partial", is_flag=True, help="of a plan that is not done bring home what has landed up to now")
@framed
def land_verb(frame: Frame, *, plan: str, onto: str | None, **asked: bool) -> int:
    """Bring a plan that is done home to the branch it began at, and the checkout that has that branch along."""
    from loopr.grounds import ground_beside, repo_of_plan

    if not asked["dry_run"]:
        sure = asked["yes"] or asked["partial"]  # a half may come home without a question: who may type --yes decides
        pass_gate(frame.workspace, "land --yes" if sure else "land", [plan])
    scene = frame.workspace.look().scene
    found = scene.loops[find_id(scene.loops, plan)]
    if found.parent is not None:
        raise UserError(f"{found.id} is a {found.type}, and plans come home", hint=f"loopr land {found.plan}")
    bound = scene.shared.plans.get(found.id)
    how = Asked(onto or (bound.base_branch if bound is not None else ""), **asked)
    ground = ground_beside(frame.workspace, scene, repo_of_plan(frame.workspace, scene, found.id))
    if bound is not None and (others := other_inputs(frame.workspace, scene, found.id)):
        frame.note(f"{render.plain(others)}; `loopr start {bound.source}` does that again first")
    for line in _edited(frame.workspace, scene, found.id):
        frame.note(render.plain(line))
    with alone(ground):
        told = _bring(frame, ground, scene, found, how)
    if not told.problems and not how.dry_run:
        _journal(frame.workspace, scene, found.id, told)
    report(frame, found, told, how.dry_run)
    if told.home is not None and told.half is not None:
        _go_on(frame, found.id)
    return REFUSED if told.problems else 0


def _bring(frame: Frame, ground: Ground, scene: Scene, plan: Loop, how: Asked) -> Told:
    """Build what would come home, judge it, and bring it; whatever is in the way is told and nothing has changed."""
    from loopr.grounds import stands_at
    from loopr.ui.homecoming import judged
    from loopr.world.repo.home import build_home, home_problems, leave_home_room
    from loopr.world.repo.landing import Onto
    from loopr.world.repo.words import Refusal

    onto, left = how.onto, undone(scene, plan, wiring.wall_clock())
    half = half_of(scene, plan.id, wiring.wall_clock()) if left and how.partial else None
    if left and half is None:
        return Told(onto, problems=left)
    stands = stands_at(ground, scene, plan.id)
    if not stands:
        return Told(onto, remark=f"{plan.id} has no branch: none of its loops had anything to land")
    foreign = _elsewhere(frame, ground, plan.id, stands)
    if foreign is not None and not how.as_recorded:
        return Told(onto, problems=(foreign,))
    words = _words(frame, plan, part=half is not None)
    try:
        built = build_home(ground, Onto(plan.id, stands), onto, words)
        if isinstance(built, Refusal):
            return Told(onto, problems=built.problems)
        asks = not (how.dry_run or how.yes or built.new == built.old)
        for line in () if asks else _to_know(scene, plan):
            frame.note(render.plain(line))
        if built.new == built.old:
            all_of_it = f"all that has landed of {plan.id}" if half is not None else f"all of {plan.id}"
            return Told(onto, built, remark=f"{onto} has {all_of_it} already", half=half)
        problems = *home_problems(ground, built), *_suspicious(ground, scene, onto)
        if problems or how.dry_run:
            return Told(onto, built, problems=problems, half=half)
        _agree(frame, scene, plan, (_doubts(ground, scene, plan, built), built, half), yes=how.yes)
        no = judged(frame.workspace, plan, ground, built, frame.note)
        if no is not None:
            return Told(onto, built, problems=(no,), half=half)
        return _moved(frame.workspace, ground, plan, built, half)
    finally:
        leave_home_room(ground, plan.id)


def _words(frame: Frame, plan: Loop, *, part: bool) -> Message:
    """Word the merge that brings a plan home."""
    from loopr.driving.wording import about_plan

    title = f"Land {'a part of ' * part}{plan.id}: {plan.title}"
    return about_plan(frame.workspace.settings.commit, title, plan, wiring.wall_clock())


def _agree(frame: Frame, scene: Scene, plan: Loop, about: tuple[str, HomeCandidate, Half | None], *, yes: bool) -> None:
    """Have a person agree to what would come home, and tell what nothing has judged."""
    from loopr.ui.unjudged import landed_unjudged

    doubts, built, half = about
    is_judged = frame.workspace.settings.of_project(plan.project).land.check is not None
    if not is_judged and (unjudged := landed_unjudged(frame.workspace.settings, scene, plan.id)):
        frame.note(unjudged)
    _ask(built, doubts, half, yes, is_judged=is_judged)


def _moved(workspace: Workspace, ground: Ground, plan: Loop, built: HomeCandidate, half: Half | None) -> Told:
    """Move the branch and the checkout, if all is still as it was judged; more may have landed beyond a half."""
    from loopr.world.repo.home import bring_home
    from loopr.world.repo.words import Refusal

    with turn_or_beside(workspace):
        scene = workspace.look().scene
        left = undone(scene, plan, wiring.wall_clock()) if half is None else ()
        problems = left or tuple(_moved_on(ground, scene, built, half))
        if problems:
            return Told(built.branch, built, problems=problems, half=half)
        done = bring_home(ground, built)
    if isinstance(done, Refusal):
        return Told(built.branch, built, problems=done.problems, half=half)
    return Told(built.branch, built, done, half=half)


def _go_on(frame: Frame, plan: str) -> None:
    """Let a plan go on from where the base is now, where nothing of it runs; else its branch stays as it is."""
    from loopr.ui.bases import follow_base
    from loopr.ui.steering import deciding

    try:
        with deciding(frame.workspace) as engine:
            said = follow_base(engine, frame.workspace, plan)
    except LooprError as error:  # it is home; the next `start` says the rest
        said = error.problems[0].message if isinstance(error, UserError) and error.problems else str(error)
    if said:
        frame.note(render.plain(said))


def _journal(workspace: Workspace, scene: Scene, plan: str, told: Told) -> None:
    """Have it remembered that a plan came home, and take back that it could not, where an engine has said so."""
    from loopr.core import observations as o
    from loopr.driving.occasions import LANDING_PLACE

    place, home, partial = f"{LANDING_PLACE}{plan}", told.home, told.half is not None
    news: list[o.Observation] = [] if home is None else [o.CameHome(plan, home.branch, home.commit, partial)]
    news += [o.Noticed(place, "")] if place in scene.shared.problems else []
    if news:
        with workspace.visit() as engine:
            engine.learn(news)


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


def _moved_on(ground: Ground, scene: Scene, built: HomeCandidate, half: Half | None) -> Iterator[Problem]:
    """Say that a plan stands elsewhere by now than when it was judged; a half may have gone on from there."""
    from loopr.world.repo.refs import is_ancestor

    at = scene.shared.tip(built.plan).at
    if built.plan not in scene.shared.tips or at == built.plan_tip:
        return
    if half is None or not is_ancestor(ground.door, built.plan_tip, at):
        yield Problem(f"the branch of {built.plan} has moved meanwhile", hint="run it again")


def _suspicious(ground: Ground, scene: Scene, onto: str) -> Iterator[Problem]:
    """Say whether the move would be taken for a loop's doing: a branch that moves without any checkout explains it."""
    from loopr.world.repo.checkouts import holders
    from loopr.world.repo.ground import HEADS

    if scene.occupancy.total and not holders(ground, HEADS + onto):
        words = f"loops are at work, and {onto} is checked out nowhere: they would be blamed for its move"
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


def _doubts(ground: Ground, scene: Scene, plan: Loop, built: HomeCandidate) -> str:
    """Give the doubts that a person should know before a yes: of the branch, and of its loops."""
    moved = _unexplained(ground, scene, plan, built)
    return "; ".join(filter(None, [moved, *_to_know(scene, plan)]))


def _to_know(scene: Scene, plan: Loop) -> Iterator[str]:
    """Say which files of a plan wait for a word, and which loops are, or could be, done again."""
    offered = (scene.loops[each] for each in sorted(scene.tree.offered))
    yield from (offered_words(scene, each) for each in offered if each.plan == plan.id)
    yield from before_landing(scene, plan.id)


def _edited(workspace: Workspace, scene: Scene, plan: str) -> Iterator[str]:
    """Say which edits of a plan's files were not taken up: the work that comes home is older."""
    from loopr.ui.documents import to_start
    from loopr.ui.unread import unread_anywhere, words

    bound = scene.shared.plans.get(plan)
    if bound is not None and bound.source in to_start(workspace, scene):
        takes = f"`loopr start {shlex.quote(bound.source)}` takes that up"
        yield f"{bound.source} was edited after what comes home was begun; {takes}"
    yield from map(words, unread_anywhere(workspace, scene, plan))


def _ask(built: HomeCandidate, unexplained: str, half: Half | None, yes: bool, *, is_judged: bool) -> None:
    """Ask a person, if there is one; without one only --yes goes on. A half that is judged needs no word."""
    if yes or (half is not None and is_judged and not unexplained):
        return
    doubts = [render.plain(unexplained)] if unexplained else []
    if half is not None and not is_judged:
        doubts.append(f"nothing judges a part of {built.plan}: land.check is not set")
    if not sys.stdin.isatty():
        told = "".join(f"; {each}" for each in doubts)
        raise UserError(f"nobody is there to be asked{told}", hint="--yes goes on, --dry-run shows what would be done")
    for line in (*doubts, *map(render.plain, words_of(half) if half is not None else ())):
        click.echo(line, err=True)
    what = "what has landed" if half is not None else count(built.commits, "commit")
    click.confirm(f"Bring {what} of {built.plan} home to {built.branch}?", abort=True, err=True)
