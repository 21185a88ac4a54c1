"""A goal as a person types it: who works for it, what judges it, and the file that it becomes.

Must never know a terminal, nor what becomes of a plan.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import NamedTuple

from loopr.core.entries import Command
from loopr.core.goals import Goal, Work, goal_plan
from loopr.core.ladder import Ladder
from loopr.core.slugs import id_problem, slug
from loopr.errors import PlanError, Problem, SettingsError, UserError
from loopr.ui.presets import here_of, program_of
from loopr.ui.requests import Plan
from loopr.wiring import Workspace
from loopr.world.artifacts import digest, parse_artifact
from loopr.world.publishing import publish
from loopr.world.settings.keys import NO_CHECK
from loopr.world.settings.parts import TypeSettings
from loopr.world.settings.presets import is_name

_JUDGE = 'such as --check "make test"; --check none says that nothing is to judge it'


class Wanted(NamedTuple):
    """What a person said of a goal."""

    words: str
    check: str | None = None
    run: str | None = None
    agent: str | None = None
    id: str = ""


def write_goal(workspace: Workspace, wanted: Wanted) -> Plan:
    """Turn a goal into a plan, with the path at which its file belongs; nothing is written yet."""
    if not wanted.words.strip():
        raise UserError("the goal has no words", hint='say it in quotes: loopr goal "Make the tests green" --check CMD')
    if wanted.id and (problem := id_problem(wanted.id)):
        raise UserError(problem, hint=f"--id {slug(wanted.id)}")
    ladder = Ladder(workspace.policy.types)
    levels = ladder.levels()
    if len(levels) < 2:
        raise SettingsError(
            "the ladder ends at the plan: nothing below it could work for a goal", hint="give it a child"
        )
    own = workspace.settings.types[levels[-1]]
    work = _work(workspace, own, wanted)
    if ladder.judged_between() and work.run is None and work.agent is None:
        work = work._replace(run=own.run, agent=own.agent)  # at another level nobody else would work for it
    return _plan(workspace, goal_plan(wanted.words, ladder, work, wanted.id))


def judged_by(workspace: Workspace, wanted: Wanted) -> str:
    """Say what of the type judges a goal that names no check of its own; nothing where it names one."""
    if wanted.check is not None:
        return ""
    own = workspace.settings.types[Ladder(workspace.policy.types).levels()[-1]]
    said = [("check", own.check), ("review", own.review), ("review_agent", own.review_agent)]
    judges = [f"types.{own.name}.{key}: {_typed(value)}" for key, value in said if value is not None]
    judges += [f"types.{own.name}.approve: a person"] if own.approve else []
    return f"judged by {', '.join(judges)}" if judges else f"judged by nothing: types.{own.name}.check is {NO_CHECK}"


def _typed(command: Command) -> str:
    """Write a command as a person types it."""
    return command if isinstance(command, str) else shlex.join(command)


def place_goal(plan: Plan) -> bool:
    """Write the file of a goal, over none that says something else; tell whether it was not there yet."""
    if plan.path.is_file() and plan.path.read_bytes() == plan.text.encode():
        return False
    plan.path.parent.mkdir(parents=True, exist_ok=True)
    if not publish(plan.path, plan.text.encode(), lambda there: False):
        hint = (
            f"another check or worker for that one: edit {plan.source}, then `loopr start {shlex.quote(plan.source)}`; "
            "--id NAME gives this goal another place"
        )
        raise PlanError("is there already, and says something else", where=plan.source, hint=hint)
    return True


def ensure_free(plan: Plan) -> None:
    """Refuse a goal whose place is taken by a file that says something else."""
    if plan.path.is_file() and plan.path.read_bytes() != plan.text.encode():
        place_goal(plan)


def _work(workspace: Workspace, own: TypeSettings, wanted: Wanted) -> Work:
    """Return who works for a goal and what judges it; refuse at once whatever of that is not said."""
    problems: list[Problem] = []
    run = agent = check = None
    try:
        check = _judge(own, wanted.check)
    except UserError as error:
        problems += error.problems
    try:
        run, agent = _worker(workspace, own, wanted)
    except UserError as error:
        problems += error.problems
    if problems:
        raise UserError("", problems=problems)
    return Work(run, agent, check)


def _plan(workspace: Workspace, goal: Goal) -> Plan:
    """Read a goal back as the plan that it is, at the place of its artifact."""
    policy = workspace.policy
    place = policy.place_of(goal.id, policy.root_type)
    raw = goal.text.encode()
    artifact = parse_artifact(raw, place, type_name=policy.root_type, types=policy.types, fallback_id=goal.id)
    return Plan(place, Path(workspace.place.root) / place, goal.text, digest(raw), artifact)


def _judge(own: TypeSettings, check: str | None) -> str | None:
    """Return the check that the plan names; None where the type's own judge holds, or none is to."""
    judged = own.check is not None or own.review is not None or own.review_agent is not None or own.approve
    if check is None and not judged and not own.unjudged:
        raise UserError("a goal needs what judges it: a command that ends with 0 once it is reached", hint=_JUDGE)
    if check is not None and not check.strip():
        raise UserError("the check has no words", hint=_JUDGE)
    if check == NO_CHECK and judged:
        hint = "leave out --check, or name a command"
        raise UserError(f"types.{own.name} has a judge of its own, which would judge this goal too", hint=hint)
    return None if check == NO_CHECK else check


def _worker(workspace: Workspace, own: TypeSettings, wanted: Wanted) -> tuple[str | None, str | None]:
    """Return the command or the agent that the plan names; neither where the type has one of its own."""
    if wanted.run is not None and wanted.agent is not None:
        raise UserError("--run and --agent both do the work", hint="leave one of them out")
    if wanted.agent is not None and not is_name(wanted.agent):
        hint = f"--run {shlex.quote(wanted.agent)} has a command of your own do the work; its prompt comes on stdin"
        raise UserError(f"--agent {wanted.agent} is no name of a preset: `loopr agent list` shows them", hint=hint)
    if wanted.run is not None or wanted.agent is not None:
        return wanted.run, wanted.agent
    if own.run is not None or own.agent is not None:
        return None, None
    path = os.environ.get("PATH")
    shelf = workspace.settings.shelf
    there = [name for name in shelf.names if _is_here(workspace, name, path)]
    if len(there) == 1:
        return None, there[0]
    known = f"installed are {', '.join(there)}" if there else f"none of {', '.join(shelf.names)} is installed here"
    first = there[0] if there else "NAME"
    hint = (
        f"{known}: say --agent {first}, or --run COMMAND; `loopr set types.{own.name}.agent {first}` says it for good"
    )
    raise UserError("nobody is named who works for the goal", hint=hint)


def _is_here(workspace: Workspace, name: str, path: str | None) -> bool:
    """Tell whether the program of an agent preset is on this machine."""
    try:
        command = workspace.settings.preset(name).command
        return program_of(command, path, here_of(workspace.place)) is not None
    except SettingsError:
        return False
