"""What a person, a script or an agent may ask for, validated once for every surface.

Turns words into observations and wishes for the engine; an answer is plain values. Must never know a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from loopr.core import observations as o
from loopr.core.declaring import lost_work, outline_problems
from loopr.core.entries import Artifact, Entry
from loopr.core.filing import plan_declares
from loopr.core.grouping import queue_depth
from loopr.core.model import Loop
from loopr.core.policy import OWN_REPO
from loopr.core.shared import Bound
from loopr.engine import Engine
from loopr.errors import Deferred, NotFound, PlanError, Problem, SettingsError, UserError
from loopr.payers import no_project
from loopr.ui.copies import check_copies
from loopr.ui.elsewhere import astray, check_judges
from loopr.ui.enqueued import Enqueued, loops_of, summary
from loopr.ui.hazards import filter_problems
from loopr.ui.holding import ONLY_HELD, TAKE_HELD, held_settings
from loopr.ui.likely import check_likeness, or_checklist, reading_remarks
from loopr.ui.mending import put_back
from loopr.ui.names import counted
from loopr.ui.nearby import meant_instead
from loopr.ui.offers import is_put_off
from loopr.ui.programs import absent_programs
from loopr.ui.room import room_remarks
from loopr.ui.shells import unreadable_texts
from loopr.ui.silent import silent_remarks
from loopr.ui.taken_up import take_up
from loopr.ui.unready import check_scripts
from loopr.wiring import Workspace
from loopr.world.settings.presets import instead_of

Confirm = Callable[[str], bool]


def nobody(text: str) -> bool:
    """Answer for a person where there is none: a word on a file is nobody else's."""
    return False


class Plan(NamedTuple):
    """A plan file, read and found sound by itself."""

    source: str
    path: Path
    text: str
    digest: str
    artifact: Artifact

    @property
    def id(self) -> str:
        """The id of the plan."""
        return self.artifact.id


def read_plans(workspace: Workspace, paths: Iterable[Path]) -> list[Plan]:
    """Read plan files, all of them or none: every problem of every file is told at once."""
    plans: list[Plan] = []
    problems: list[Problem] = []
    missing = True
    for path in paths:
        try:
            plan = Plan(*workspace.read_plan(path))
            plans += [plan] if all(each.path != plan.path for each in plans) else []
        except (PlanError, NotFound) as error:
            hint = _instead(workspace, path) if isinstance(error, NotFound) else ""
            told = [replace(each, hint=hint or each.hint) for each in error.problems]
            problems += or_checklist(workspace.policy, path, told)
            missing = missing and isinstance(error, NotFound)
    if problems and missing:
        raise NotFound("", problems=problems)
    for index, plan in enumerate(plans):
        twin = next((each for each in plans[:index] if each.id == plan.id), None)
        if twin is not None:
            problems.append(Problem(f"has the id of {twin.source}: {plan.id}", plan.source, "give it another `id:`"))
    if problems:
        raise PlanError("", problems=problems)
    return plans


def _instead(workspace: Workspace, path: Path) -> str:
    """Say which file a missing plan file may stand for: its copy, or one of nearly that name."""
    scene = workspace.look().scene
    bound = scene.shared.plans.get(path.name)
    if bound is not None and workspace.has_file(bound.source):
        return f"{path.name} is a plan that was started from {bound.source}"
    plan = next((name for name, each in scene.shared.plans.items() if each.source == workspace.name_of(path)), None)
    if plan is None or not scene.loops[plan].artifact:
        return "" if path.is_symlink() else meant_instead(path, workspace.name_of)
    copy = scene.policy.place_of(plan, scene.loops[plan].type)
    back = "" if workspace.has_file(copy) else " once `loopr doctor --fix` has put it back"
    return f"its copy is {copy}{back}: start that, or copy it to where the plan was"


def enqueue(
    engine: Engine, workspace: Workspace, plan: Plan, confirm: Confirm, *, to_run: bool, word: Confirm = nobody
) -> Enqueued:
    """Bring one plan into the tree, or in line with its changed file, and settle its declared loops.

    One that is not `to_run` now may lack programs, which is said. A file that changed while loops were at work is
    offered, unless a person's `word` is that it is theirs.
    """
    bound, before = _binding(engine, workspace, plan), loops_of(engine.forest, plan.id)
    loop = engine.forest.loops.get(plan.id)
    fresh = (bound is None or bound.digest != plan.digest) and not is_put_off(engine, bound, plan, word)
    _check_project(workspace, plan)
    repo, top = _home(engine, workspace, plan)
    foretold: dict[str, Any] = {}
    cleared = loop is not None and bool(loop.artifact) and engine.hands.digest_of(plan.id, loop.type) is None
    if fresh:
        check_likeness(engine.forest.policy, plan.source, plan.text, plan.artifact, confirm)
        _check_agents(workspace, plan)
        check_judges(engine.forest, workspace, plan.artifact, plan.source, confirm)
        foretold = _foretell(engine, workspace, plan, confirm if to_run else None)
        _check_outline(engine, loop, plan)
        _check_loss(engine, plan, confirm)
        _copy(engine, bound, plan, confirm)
    elif bound is not None and bound.digest != plan.digest:
        return _as_it_was(engine, workspace, plan, before)
    else:
        _put_back(engine, plan)
    said = plan.id, plan.artifact, plan.digest, plan.source
    base = workspace.start_point(top, plan.artifact.project)
    events = engine.learn([o.PlanOffered(*said, base.branch, base.commit, repo)])
    back = put_back(engine, [plan.id]).back if cleared else ()  # whoever takes the plan away takes it all
    events += engine.rescan(plan.id)
    events += take_up(engine, workspace, plan.id)
    done = summary(engine, plan.id, before, events)
    remarks = _remarks(engine, workspace, plan, fresh=fresh, ours=repo == OWN_REPO)
    edited = loop is not None and fresh
    return done._replace(put_back=back, remarks=remarks, edited=edited, **foretold)


def _remarks(engine: Engine, workspace: Workspace, plan: Plan, *, fresh: bool, ours: bool) -> tuple[str, ...]:
    """Remark on how a plan reads, on what its types cannot hand over, and on the disk that it may take."""
    forest = engine.forest
    reads = reading_remarks(forest, plan.text, plan.artifact) if fresh else ()
    room = room_remarks(workspace, forest.tree.below[plan.id].total) if fresh and ours else ()
    return (*reads, *silent_remarks(workspace, forest, plan.id), *room)


def _foretell(
    engine: Engine,
    workspace: Workspace,
    plan: Plan,
    to_run: Confirm | None,
) -> dict[str, Any]:
    """Name absent programs and texts that sh could not run; refuse to run without the programs.

    Where it is `to_run`, a person is asked about scripts that are not committed.
    """
    of_plan = engine.forest, workspace, plan.artifact, plan.source
    (absent, unlikely), unreadable = absent_programs(*of_plan), unreadable_texts(*of_plan)
    absent = [*absent, *filter_problems(workspace, plan.artifact.project)]
    if absent and to_run:
        raise SettingsError("", problems=[*absent, *unlikely, *unreadable])
    if to_run:
        check_scripts(engine.forest, workspace, plan, to_run)
    said = {"absent": absent + unlikely, "unreadable": unreadable, "astray": astray(*of_plan)}
    return {key: (*map(str, problems),) for key, problems in said.items()}


def _as_it_was(engine: Engine, workspace: Workspace, plan: Plan, before: Mapping[str, Loop]) -> Enqueued:
    """Go on with what counts of a plan, while its file waits for a person's word."""
    events = engine.rescan(plan.id)
    events += take_up(engine, workspace, plan.id)
    return summary(engine, plan.id, before, events)._replace(waits=True)


def _binding(engine: Engine, workspace: Workspace, plan: Plan) -> Bound | None:
    """Return the file that the plan is bound to; refuse another file of that id, and another id of that file."""
    plans = engine.forest.shared.plans
    renamed = [name for name, bound in plans.items() if bound.source == plan.source and name != plan.id]
    if renamed:
        hint = f"put `id: {renamed[0]}` into its front matter, or start a copy under another name"
        raise PlanError(f"was started as {renamed[0]}, and its id is {plan.id} now", where=plan.source, hint=hint)
    bound = plans.get(plan.id)
    if bound is not None and bound.source != plan.source and workspace.has_file(bound.source):
        hint = f"give it another `id:`, or start {bound.source}"
        raise PlanError(f"plan {plan.id} belongs to {bound.source}", where=plan.source, hint=hint)
    return bound


def ensure_room(engine: Engine, plans: Iterable[Plan]) -> None:
    """Defer plans, all of them, while the queue is full by the settings of now and one of them is new."""
    engine.mind.take_policy()
    forest = engine.forest
    if all(each.id in forest.loops for each in plans):
        return
    depth, limit = sum(queue_depth(forest, forest.at).values()), forest.policy.queue_limits()[1]
    if limit is not None and depth >= limit:
        wait = f"{counted(depth, 'loop')} wait{'s' * (depth == 1)} for a slot"
        raise Deferred(f"the queue is full: {wait}, the hard limit is {limit}", hint=_LATER)


_LATER = "nothing was stored: start the plan later, or raise queue.hard_limit"


def _check_project(workspace: Workspace, plan: Plan) -> None:
    """Refuse a plan of a project that the settings do not know: a misspelt name would escape what they say of it."""
    projects, name = workspace.settings.projects, plan.artifact.project
    waiting = held_settings(workspace) if name not in projects else None
    if waiting is not None and name in waiting.projects:
        raise PlanError(f"there is no project {name}: {ONLY_HELD}", where=plan.source, hint=TAKE_HELD)
    at = plan.artifact.project_at
    problem = no_project(workspace.settings, name, f"{plan.source}:{at.line}:{at.col}")
    if problem is not None:
        raise PlanError("", problems=[problem])


def _home(engine: Engine, workspace: Workspace, plan: Plan) -> tuple[str, Path | None]:
    """Return the repository of a plan, and its top: the one that it began in, else that of its project.

    One whose loops could get no sound worktree is refused.
    """
    bound = engine.forest.shared.plans.get(plan.id)
    home = workspace.repository(plan.artifact.project) if bound is None else (bound.repo, None)
    repo, top = home
    if plan.id not in engine.forest.loops and top is not None:
        _check_repository(workspace, plan, repo, top)
    check_copies(engine.forest, workspace, plan.artifact.project, repo)
    return home


def _check_repository(workspace: Workspace, plan: Plan, repo: str, top: Path) -> None:
    """Refuse a new plan whose loops could get no worktree."""
    if not any(each.worktree for each in workspace.settings.types.values()):
        return
    project = plan.artifact.project
    named, base = workspace.settings.of_project(project).git.base, workspace.start_point(top, project)
    if not base.commit:
        words = f'has no branch "{named}" (git.base)' if named else "has no commit yet, and worktrees begin at one"
        hint = f"git branch {named}" if named else 'make one first: git commit --allow-empty -m "begin"'
        raise SettingsError(f"the repository {'' if repo == OWN_REPO else f'{repo} '}{words}", hint=hint)
    name = workspace.in_the_way(top, plan.id)
    if name:
        branch = f"{workspace.settings.git.branch_prefix}{plan.id}"
        hint = f"rename it: git branch -m {name} {name.replace('/', '-')}-old, or set git.branch_prefix"
        raise SettingsError(f'a branch called "{name}" is in the way of the plan\'s own, "{branch}"', hint=hint)


def _check_agents(workspace: Workspace, plan: Plan) -> None:
    """Refuse a plan with an entry whose agent no preset is for, naming those that there are."""
    named = [(each.agent, each) for each in _entries(plan.artifact.entries) if each.agent is not None]
    names = workspace.settings.shelf.names if named else []
    unknown = [(agent, entry) for agent, entry in named if agent not in names]
    if not unknown:
        return
    waiting = held_settings(workspace)
    there = waiting.shelf.names if waiting is not None else []
    problems = [
        Problem(
            f"agent: {agent} names no preset" + (f": {ONLY_HELD}" if agent in there else ""),
            f"{plan.source}:{entry.position.line}:{entry.position.col}",
            TAKE_HELD if agent in there else instead_of(agent, names),
        )
        for agent, entry in unknown
    ]
    raise SettingsError("", problems=problems)


def _entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Give entries with all that are nested in them."""
    for each in entries:
        yield each
        yield from _entries(each.children)


def _check_outline(engine: Engine, loop: Loop | None, plan: Plan) -> None:
    """Refuse a plan whose outline cannot count as a whole."""
    forest = engine.forest
    if not plan_declares(forest, plan.artifact):
        return
    as_loop = loop or Loop(plan.id, forest.policy.root_type, plan.artifact.title, None, 0, 0, plan.artifact.project)
    problems = outline_problems(forest, as_loop, plan.artifact, plan.source)
    if problems:
        raise PlanError("", problems=problems)


def _check_loss(engine: Engine, plan: Plan, confirm: Confirm) -> None:
    """Ask before loops with landed work are no longer declared."""
    if not plan_declares(engine.forest, plan.artifact):
        return  # its loop has written what it declares
    lost = lost_work(engine.forest, plan.id, plan.artifact.entries)
    count = "1 loop with landed work is" if len(lost) == 1 else f"{len(lost)} loops with landed work are"
    if lost and not confirm(f"{count} no longer declared: {', '.join(lost[:5])}"):
        hint = "--yes goes on; a renamed entry keeps its work under its old `id:`"
        raise UserError(f"{plan.source} no longer declares loops with landed work: {', '.join(lost[:5])}", hint=hint)


def _copy(engine: Engine, bound: Bound | None, plan: Plan, confirm: Confirm) -> None:
    """Put the plan where it is watched, unless a person has edited it there."""
    if not plan_declares(engine.forest, plan.artifact):
        engine.hands.keep_input(plan.id, plan.text)
        return
    there = engine.hands.digest_of(plan.id, engine.forest.policy.root_type)
    ours = {None, plan.digest, bound.digest if bound is not None else None}
    copy = engine.forest.policy.place_of(plan.id, engine.forest.policy.root_type)
    if there not in ours and not confirm(f"{copy} was edited too, and would be replaced"):
        hint = f"bring the two together, or let {plan.source} win with --yes"
        raise PlanError(f"has changed, and so has its copy {copy}", where=plan.source, hint=hint)
    if there != plan.digest:
        engine.hands.publish_plan(plan.id, engine.forest.policy.root_type, plan.text, {there or ""})


def _put_back(engine: Engine, plan: Plan) -> None:
    """Put the plan back where it is watched, if somebody has cleared that away."""
    root = engine.forest.policy.root_type
    if plan_declares(engine.forest, plan.artifact) and engine.hands.digest_of(plan.id, root) is None:
        engine.hands.publish_plan(plan.id, root, plan.text, frozenset())
