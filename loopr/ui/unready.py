"""Commands that begin a script which the commit that loops begin at does not have.

A file that the plan itself or a setup may make is left out, so that a question is rarely asked in
vain. Knows one commit and the checkout. Must never commit anything, nor look into a script.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from loopr.core.entries import Command
from loopr.core.filing import plan_declares
from loopr.core.scene import Scene
from loopr.errors import PlanError, Problem
from loopr.ui.begun import recipes_in, run_files_in, scripts_in
from loopr.ui.environments import MOST_NAMED, few, steps_of
from loopr.ui.programs import needs_of
from loopr.wiring import Workspace
from loopr.world.judges import begun_in
from loopr.world.place import head_of
from loopr.world.recipes import text_of

if TYPE_CHECKING:
    from loopr.ui.requests import Plan
    from loopr.world.repo.ground import Ground

_INSTALLS = re.compile(
    r"(?:\S*/)?(?:python[\d.]*|pypy[\d.]*) -m (?:venv|virtualenv|pip)\b.*"
    r"|(?:\S*/)?(?:pip[\d.]*|uv|poetry|npm|pnpm|yarn|bundle|cargo|virtualenv) .*"
    r"|git submodule update.*"
)
"""The commands of a setup that make no script of the project's own."""


class Begun(NamedTuple):
    """The first command that begins a file: its place, its key, and other files that would do."""

    where: str
    key: str
    instead: tuple[str, ...] = ()


def check_scripts(
    scene: Scene,
    workspace: Workspace,
    plan: Plan,
    confirm: Callable[[str], bool],
) -> None:
    """Refuse a plan with commands that begin uncommitted scripts, unless a person wants it."""
    problem = unready(scene, workspace, plan)
    if problem is not None and not confirm(f"{problem.where} {problem.message}"):
        raise PlanError("", problems=[problem])


def unready(scene: Scene, workspace: Workspace, plan: Plan) -> Problem | None:
    """Say which scripts that commands of a plan begin are not committed.

    A plan may yet take its base: a script that is committed there is told elsewhere.
    """
    named, begun = _named(scene, workspace, plan), _begun(scene, workspace, plan)
    repo, top = workspace.repository(plan.artifact.project) if named or begun else ("", None)
    named = {path: at for path, at in named.items() if top is not None and _is_own(top, path)}
    if top is None or not (named or begun):
        return None
    from loopr.grounds import ground_beside, stands_at  # slow to import

    ground, bound = ground_beside(workspace, scene, repo), scene.shared.plans.get(plan.id)
    base = workspace.start_point(top, plan.artifact.project)
    if bound is not None and bound.base_branch:
        base = head_of(top, bound.base_branch)
    stands = (stands_at(ground, scene, plan.id) or bound.base_commit) if bound else ""
    absent = _absent(ground, list(filter(None, [stands, base.commit])), named)
    if not absent:
        return _unshared(ground, begun)
    first = next(at for path, at in named.items() if path in absent)
    on = f" on {base.branch}" if base.branch and head_of(top).branch != base.branch else ""
    mend = f"commit that{on}" if on else f"`git add {shlex.join(absent[:MOST_NAMED])}`, then commit"
    message = f"{first.key}: not committed{on}: {few(absent)}; loops work on what is committed"
    return Problem(message, first.where, f"{mend}; --yes starts it as it is")


def _unshared(ground: Ground, begun: Mapping[str, Begun]) -> Problem | None:
    """Say which files that commands begin are ignored by git, so that no loop has them."""
    from loopr.world.repo.include import ignored_among, included
    from loopr.world.repo.ties import ties_among
    from loopr.world.repo.venvs import environment_of

    ignored = set(ignored_among(ground.users_door, [*begun]))
    own = [each for each in ignored if ground.top is None or not environment_of(ground.top, each)]
    lost = set(own).difference(included(ground)) if own else set()
    if not lost:
        return None
    first = next(at for path, at in begun.items() if path in lost)
    message = f"{first.key}: git ignores {few(sorted(lost))}, which no loop gets from another"
    tied = ground.top is not None and next(ties_among(ground.top, sorted(lost)), None)
    way = "make it in worktrees.setup" if tied else f"name it in {ground.include}"
    mend = f"make it in the same command, or {way}"
    return Problem(message, first.where, f"{mend}; --yes starts it as it is")


def _begun(scene: Scene, workspace: Workspace, plan: Plan) -> dict[str, Begun]:
    """Map each file that a `run` begins before anything could make it to that command.

    Where a step runs beside the loops, it may make any.
    """
    settings = workspace.settings.of_project(plan.artifact.project)
    if any(each is not None for each in steps_of(settings)):
        return {}
    found: dict[str, Begun] = {}
    for command, where, key in _commands(scene, workspace, plan):
        for path in scripts_in(command) if key.rpartition(".")[2] == "run" else ():
            found.setdefault(path, Begun(where, key))
    return found


def _named(scene: Scene, workspace: Workspace, plan: Plan) -> dict[str, Begun]:
    """Map each file that commands of a plan begin or go by to the first command that does.

    A file that another command names may be made by that one. Where a step beside the loops does
    more than install, it may make any.
    """
    if not all(map(_installs, steps_of(workspace.settings.of_project(plan.artifact.project)))):
        return {}
    found: dict[str, Begun] = {}
    texts: dict[str, set[str]] = {}
    for command, where, key in _commands(scene, workspace, plan):
        mine = texts.setdefault(text_of(command), set())
        for path in (*scripts_in(command), *run_files_in(command)):
            found.setdefault(path, Begun(where, key))
            mine.add(path)
        for names in recipes_in(command):
            found.setdefault(names[0], Begun(where, key, instead=names[1:]))
            mine.add(names[0])
    return {path: at for path, at in found.items() if not _is_made(path, texts)}


def _is_made(path: str, texts: Mapping[str, set[str]]) -> bool:
    """Say whether a command that does not begin a file names it: that one may make it."""
    name = re.compile(rf"(?<![\w.-]){re.escape(PurePosixPath(path).name)}(?![\w-])")
    return any(name.search(text) for text, begun in texts.items() if path not in begun)


def _installs(command: Command | None) -> bool:
    """Say whether a command that prepares a worktree only installs packages."""
    begun = (" ".join(words) for words, _ in begun_in(text_of(command)))
    return all(not each or _INSTALLS.fullmatch(each) for each in begun)


def _is_own(top: Path, path: str) -> bool:
    """Say whether a path is a file of the checkout itself, not of another repository or a link."""
    above = [top / each for each in PurePosixPath(path).parents if str(each) != "."]
    elsewhere = any(each.is_symlink() or (each / ".git").exists() for each in above)
    return (top / path).is_file() and not elsewhere


def _commands(scene: Scene, workspace: Workspace, plan: Plan) -> Iterator[tuple[Command, str, str]]:
    """Give the commands of a plan that begin in a worktree, each with its place and its key."""
    entries = plan.artifact.entries if plan_declares(scene, plan.artifact) else None
    for own, need in needs_of(workspace, entries, plan.source):
        if own.worktree and own.wrap is None:
            yield need.command, need.where, need.key


def _absent(ground: Ground, commits: Sequence[str], named: Mapping[str, Begun]) -> list[str]:
    """List the files that are in none of some commits, and that git does not ignore."""
    from loopr.world.repo.include import ignored_among
    from loopr.world.repo.named import files_among
    from loopr.world.repo.venvs import environment_of

    if ground.top is None or not commits:
        return []
    asked = [*named, *(name for at in named.values() for name in at.instead)]
    there = {path for each in commits for path in files_among(ground, each, asked)}
    away = [path for path, at in named.items() if there.isdisjoint((path, *at.instead))]
    here = [path for path in away if not environment_of(ground.top, path)]
    ignored = set(ignored_among(ground.users_door, here))
    return [path for path in here if path not in ignored]
