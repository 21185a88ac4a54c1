"""What commands name that lies in a checkout, but not so in the commit that loops begin at: they would not find it.

Must never commit anything, nor know what a command is for.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from loopr.core.entries import Command
from loopr.core.scene import Scene
from loopr.engine import Engine
from loopr.ui.begun import recipes_in, run_files_in, scripts_in
from loopr.ui.environments import (
    MOST_NAMED,
    Outset,
    copied,
    few,
    in_environment,
    left_out_of,
    outset_of,
    steps_of,
    within_of,
    without_extra,
)
from loopr.wiring import Workspace
from loopr.world.activated import left_out
from loopr.world.settings import Settings
from loopr.world.settings.parts import check_of

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground

MOST_LOOPS = 200
_MADE_THERE = "loops find it where worktrees.setup makes it"
_WRITTEN = re.compile(r">\s*[^\s;&|<>()]+")


def uncommitted(engine: Engine, workspace: Workspace, plan: str) -> tuple[str, ...]:
    """Say which files that commands of a plan name they would not find as they are here, and what to do."""
    from loopr.grounds import ground_of_plan, stands_at

    forest = engine.forest
    bound = forest.shared.plans.get(plan)
    if bound is None or not bound.base_commit or forest.tree.done(plan):
        return ()
    settings = workspace.settings.of_project(forest.loops[plan].project)
    commands = [*_commands(settings), *_own_commands(engine, settings, plan)]
    words = list(dict.fromkeys(path for each in commands for path in _words_of(each)))
    top = workspace.place.repository or workspace.place.root
    needs = words or settings.land.check or (top / (settings.worktrees.include or ".")).is_file()
    ground = ground_of_plan(workspace, forest, plan) if needs else None  # slow to open
    if ground is None:
        return ()
    commit = stands_at(ground, forest, plan) or bound.base_commit
    outset = outset_of(ground, commit, settings, commands)
    active = left_out(workspace.environ, ground.top) if ground.top is not None else ""
    behind = partial(_behind, workspace, forest, plan)
    found = *_only_here(outset, words, behind), *_scripts(outset, commands), *copied(outset)
    return (*found, *left_out_of(outset, active), *without_extra(outset))


def _behind(workspace: Workspace, scene: Scene, plan: str, paths: Sequence[str]) -> Iterator[str]:
    """Name files that are committed here, and not on the branch of a plan that stays there."""
    from loopr.ui.bases import look  # slow to import

    gone = look(workspace, scene, plan) if paths else None
    if gone is not None and not gone.along:
        brings = f"`loopr update {plan}` brings what {gone.base.branch} has"
        yield f"not on {gone.ground.short_branch(plan)} as here: {few(paths)}; {brings}"


def _only_here(
    outset: Outset,
    words: Sequence[str],
    behind: Callable[[Sequence[str]], Iterable[str]],
) -> Iterator[str]:
    """Say which words are files here that the commit lacks, by the way they get to a worktree.

    Those `behind` are committed here.
    """
    from loopr.world.repo.include import ignored_among
    from loopr.world.repo.named import in_submodules, is_below, only_here
    from loopr.world.repo.ties import ties_among
    from loopr.world.repo.venvs import environment_of

    ground, top, copies = outset.ground, outset.ground.top, set(outset.copied)
    absent = [each for each in only_here(ground, outset.commit, words) if each not in copies]
    elsewhere = in_submodules(ground, outset.commit, absent)
    left = [each for each in absent if each not in elsewhere and not is_below(each, outset.made)]
    folders = {each: environment_of(top, each) for each in left if top is not None}
    within = {each: folder for each, folder in folders.items() if folder}
    ignored = ignored_among(ground.users_door, [each for each in left if each not in within])
    rest = [each for each in left if each not in within and each not in ignored]
    edited, late = _not_there(ground, outset.commit, rest)
    if edited:
        then = "loops work on what is committed, so commit first"
        yield f"not committed as here: {few(edited)}; {then}"
    yield from behind(late)
    tied = [each.place for each in ties_among(top, ignored)] if top is not None else []
    if tied:
        yield f"ignored by git, and leads back into the checkout: {few(tied)}; {_MADE_THERE}"
    if ignored := [each for each in ignored if each not in tied]:
        unless = "; unless worktrees.setup makes them," if outset.is_set_up else ";"
        get = f"loops get the checkout's own if {ground.include} names it"
        yield f"ignored by git: {few(ignored)}{unless} {get}, and none from another loop"
    if within := within | within_of(outset):
        yield from in_environment(outset, within)


def _not_there(ground: Ground, commit: str, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """List the files that are not committed as they are here, and those that only a plan lacks.

    One that the plan has too is left out: its loops have changed it themselves.
    """
    from loopr.world.place import head_of
    from loopr.world.repo.named import files_among, only_here

    head = head_of(ground.top).commit if ground.top is not None and paths else ""
    if head in ("", commit):
        return list(paths), []
    edited, there = only_here(ground, head, paths), files_among(ground, commit, paths)
    return edited, [each for each in paths if each not in {*edited, *there}]


def _scripts(outset: Outset, commands: Sequence[Command | None]) -> Iterator[str]:
    """Say which scripts that commands run are nowhere, and which could not be begun."""
    from loopr.world.repo.include import ignored_among
    from loopr.world.repo.named import PLAIN_FILE, modes_among

    begun = _sorted(path for each in commands for path in scripts_in(each))
    names = _sorted([*begun, *(path for each in commands for path in run_files_in(each))])
    modes = modes_among(outset.ground, outset.commit, names) if names else {}
    recipes = dict.fromkeys(names for each in commands for names in recipes_in(each))
    lost = [names[0] for names in recipes if not _is_somewhere(outset, names)]
    nowhere = _nowhere(outset, [*(each for each in names if each not in modes), *lost])
    if ignored := set(ignored_among(outset.ground.users_door, nowhere)):
        makes = "no loop gets it from another, each has to make it"
        yield f"git ignores {few(sorted(ignored))}: {makes}"
    if nowhere := [each for each in nowhere if each not in ignored]:
        fails = "what runs it fails, unless"
        who = "worktrees.setup or a loop" if outset.is_set_up else "a loop"
        yield f"neither committed nor here: {few(nowhere)}; {fails} {who} makes it before"
    plain = [each for each in begun if modes.get(each) == PLAIN_FILE]
    if plain and not _changes_modes(outset.settings):
        plainly = f"committed without the executable bit: {few(plain)}"
        yield f"{plainly}; `{_made_programs(plain)}`, then commit"
    there = [each for each in begun if each in modes and each not in plain]
    yield from _without_interpreter(outset, there)


def _changes_modes(settings: Settings) -> bool:
    """Say whether a command beside those of loops may make a script executable."""
    texts = (each if isinstance(each, str) else " ".join(each or ()) for each in steps_of(settings))
    return any("chmod" in each for each in texts)


def _made_programs(scripts: Sequence[str]) -> str:
    """Return the command that makes scripts executable, for git as well as in the checkout."""
    names = shlex.join(scripts[:MOST_NAMED])
    return f"chmod +x {names} && git add --chmod=+x {names}"


def _is_somewhere(outset: Outset, names: Sequence[str]) -> bool:
    """Say whether one of some files is in the checkout, or in the commit."""
    from loopr.world.repo.named import files_among

    top = outset.ground.top
    here = top is not None and any((top / each).exists() for each in names)
    return here or bool(files_among(outset.ground, outset.commit, names))


def _nowhere(outset: Outset, paths: Iterable[str]) -> list[str]:
    """Leave out the files that are in the checkout, and those that the setup makes."""
    from loopr.world.repo.named import is_below

    setup, top = outset.settings.worktrees.setup, outset.ground.top
    made = set(outset.words) - {*scripts_in(setup), *run_files_in(setup)}
    away = [each for each in paths if each not in made and not is_below(each, outset.made)]
    return [each for each in away if top is None or not (top / each).exists()]


def _without_interpreter(outset: Outset, scripts: Iterable[str]) -> Iterator[str]:
    """Say which scripts name a program that is not here; a wrapper may bring it."""
    from loopr.world.first_lines import absent_interpreter

    top = outset.ground.top
    if top is None or any(each.wrap for each in outset.settings.types.values()):
        return
    found = [(each, absent) for each in scripts if (absent := absent_interpreter(top / each))]
    for name, absent in found[:MOST_NAMED]:
        yield f"the first line of {name} names {absent}, which is not here"


def _sorted(paths: Iterable[str]) -> list[str]:
    """Return each path once, in order."""
    return sorted(set(paths))


def _words_of(command: Command | None) -> Iterator[str]:
    """Give the paths that a command names, and the recipes that its programs go by."""
    from loopr.world.judges import paths_in

    yield from paths_in(_read_by(command))
    yield from (name for names in recipes_in(command) for name in names)


def _read_by(command: Command | None) -> Command | None:
    """Leave out of a command for the shell what it writes to."""
    return _WRITTEN.sub(" ", command) if isinstance(command, str) else command


def _commands(settings: Settings) -> Iterator[Command | None]:
    """Give every command that is run in a worktree."""
    for each in settings.types.values():
        if each.worktree:
            yield from (each.run, each.check, each.review, _of_agent(settings, each.agent))
    yield from steps_of(settings)


def _of_agent(settings: Settings, name: str | None) -> Command | None:
    """Return the command of an agent preset; one that is not there is told elsewhere."""
    return settings.preset(name).command if name in settings.shelf.names else None


def _own_commands(engine: Engine, settings: Settings, plan: str) -> Iterator[Command | None]:
    """Give the commands that loops of a plan have of their own; of very many, the first."""
    own = (loop.id for loop in engine.forest.tree.walk(plan) if loop.command or loop.checked)
    for each in islice(own, MOST_LOOPS):
        entry = engine.mind.find_entry(each)
        if entry is not None:
            check = check_of(entry.check) if entry.check is not None else None
            yield from (entry.run, check, _of_agent(settings, entry.agent))
