"""The verb that comes first: init.

Knows what a workspace consists of. Must never know how a file is written, nor what is in the settings.
"""

from __future__ import annotations

import os

import click

from loopr.errors import SettingsError
from loopr.ui import render, views
from loopr.ui.anew import begin_anew
from loopr.ui.cli.apart import choose_folder, set_folder
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.collecting import collecting
from loopr.ui.gate import pass_gate
from loopr.ui.proposing import proposals
from loopr.ui.strangers import free_folder, known_plans, remarks_on, strangers
from loopr.wiring import Workspace, wall_clock
from loopr.world.founding import Step, check_room, file_step, folder_step, ignore_line, lines_step, starter
from loopr.world.place import SETTINGS_FILE, Place, common_git_dir, is_remembered, own_git_dir, remember_place
from loopr.world.repo.ground import HEADS

PLAN = "plan.md"
TREE = "holds the tree as files: commit it or have git ignore it, loopr works from what lies there"
FOLDER_KEY = "artifacts"


@click.command("init")
@click.option("-n", "--dry-run", is_flag=True, help="show what would be made; write nothing")
@click.option("--agent", metavar="NAME", help="let an agent preset work for every type; `agent list` names them")
@click.option("--anew", is_flag=True, help="put a journal that is lost or damaged aside, and begin a new one")
@click.option("-y", "--yes", is_flag=True, help="with --anew: also a journal that works")
@framed
def init_verb(frame: Frame, *, dry_run: bool, agent: str | None, anew: bool, yes: bool) -> None:
    """Make loopr.yml, specs/ and worktrees/ where they are missing; overwrite nothing."""
    workspace = frame.workspace
    if anew or not dry_run:
        pass_gate(workspace, "init", ["--anew"] if anew else [])
    if anew:
        _begin_anew(frame, yes=yes)
        return
    if agent is not None:
        workspace.settings.preset(agent)
    chosen, beside = _folder(frame, workspace, ask=not dry_run)
    steps = _steps(workspace, agent or "", chosen)
    missing = [step for step in steps if not step.done]
    for step in missing if not dry_run else ():
        step.take()
    made, kept = ([step.name for step in steps if step.done is done] for done in (False, True))
    remarks, command = [*_remarks(frame, workspace), *beside], f"loopr start --dry-run {PLAN}"
    if SETTINGS_FILE in made and not dry_run:
        workspace.in_force.forget()  # the new settings count now
        remarks += proposals(workspace)
    specs = chosen or workspace.settings.artifacts.dir
    if f"{specs}/" in made and workspace.place.repository is not None:
        remarks.append(f"{specs}/ {TREE}")
    if agent is not None and SETTINGS_FILE in kept:
        remarks.append(f"{SETTINGS_FILE} is there, and kept: say `agent: {agent}` in its types yourself")
    if frame.as_json:
        root = str(workspace.place.root)
        body = {"workspace": root, "dry_run": dry_run, "made": made, "kept": kept, "remarks": remarks, "next": command}
        frame.document(views.document(wall_clock(), body))
        return
    _tell(frame, made, kept, "would make" if dry_run else "made")
    for each in remarks:
        frame.note(render.plain(each))
    if not dry_run:
        there = (workspace.place.root / PLAN).is_file()
        frame.note(f"next: {'' if there else f'write {PLAN}, then '}`{command}` shows what it comes to")


def _folder(frame: Frame, workspace: Workspace, *, ask: bool) -> tuple[str, list[str]]:
    """Return the folder of the tree that a person has chosen just now, and remarks where nothing was asked."""
    chosen = choose_folder(frame) if ask else ""
    if chosen:
        if (workspace.place.root / SETTINGS_FILE).is_file():
            set_folder(workspace, chosen)
        return chosen, []
    found = strangers(workspace, workspace.settings)
    plans = known_plans(workspace) if found.files else frozenset[str]()
    told = remarks_on(found, plans, free_folder(workspace, plans))
    return "", ["; ".join(filter(None, each)) for each in told]


def _begin_anew(frame: Frame, *, yes: bool) -> None:
    """Begin a journal anew, and say where everything of the old one is kept."""
    begun = begin_anew(frame.workspace, yes=yes)
    if frame.as_json:
        body = {"kept": str(begun.folder), "refs": begun.refs}
        frame.document(views.document(wall_clock(), body))
        return
    place = frame.workspace.place
    frame.lines([f"kept  {render.plain(_name(place, begun.folder))}/  the old journal and its runs"])
    branches = sorted(each for each in begun.refs if each.startswith(HEADS))
    frame.lines(f"kept  {render.plain(begun.refs[each])}  was {render.plain(each)}" for each in branches)
    others = len(begun.refs) - len(branches)
    if others:
        frame.lines([f"kept  {others} more refs: `git for-each-ref refs/loopr/old` lists them"])
    specs = frame.workspace.settings.artifacts.dir
    frame.note(f"what lies in {specs}/ counts as done at the next start: move away what is to be done again")


def _tell(frame: Frame, made: list[str], kept: list[str], word: str) -> None:
    """Say what was made and what was there."""
    lines = [f"{word}  {name}" for name in made]
    if not made:
        lines = ["everything is there already"]
    elif kept:
        lines.append(f"kept  {', '.join(kept)}")
    frame.lines(render.plain(line) for line in lines)


def _steps(workspace: Workspace, agent: str, chosen: str) -> list[Step]:
    """List what a workspace has; refuse where it cannot be. The folder of the tree may be `chosen` just now."""
    place, settings = workspace.place, workspace.settings
    if place.repository is not None and not (place.repository / ".git").exists():
        hint = "add a checkout with `git worktree add`, and call `loopr init` there"
        raise SettingsError(f"{place.repository} is a repository without a checkout", hint=hint)
    specs, worktrees = chosen or settings.artifacts.dir, settings.worktrees.dir
    check_room(place.root, [SETTINGS_FILE], [specs, worktrees])
    own = f"\n{FOLDER_KEY}: {{dir: {specs}}}\n" if chosen else ""
    return [
        file_step(place.root, SETTINGS_FILE, starter(agent, list(settings.types)) + own),
        folder_step(place.root, specs),
        folder_step(place.root, worktrees),
        *_ignoring(place, worktrees),
        Step(f"{_name(place, place.state)}/", is_remembered(place), lambda: remember_place(place)),
    ]


def _ignoring(place: Place, worktrees: str) -> list[Step]:
    """Have git ignore what is loopr's, in every checkout of the repository; the .loopr/ of each worktree too."""
    if place.repository is None:
        return []
    exclude = common_git_dir(place.repository) / "info" / "exclude"
    folder = (place.root / worktrees).relative_to(place.repository).as_posix()
    return [lines_step(exclude, _name(place, exclude), [ignore_line(folder), ".loopr/"])]


def _name(place: Place, path: object) -> str:
    """Call a path by its way from the workspace."""
    return os.path.relpath(str(path), place.root)


def _remarks(frame: Frame, workspace: Workspace) -> list[str]:
    """Say what a person may not expect of the place that was found."""
    place, start = workspace.place, frame.directory.resolve()
    top, said = place.repository, []
    if start != place.root:
        said.append(f"the workspace is {place.root}, not {start}: a repository has one, for all its checkouts")
    elif top is not None and own_git_dir(top) != common_git_dir(top):
        said.append(f"this is a linked worktree of {common_git_dir(top)}: its other checkouts use this workspace too")
    if top is None:
        said.append(
            "this is no repository: each loop works in a folder of its own, and nothing lands; `git init` first"
        )
    elif not workspace.start_point(top).commit:
        said.append("nothing has been committed yet: a plan starts from a commit")
    if words := collecting(place.root, workspace.settings.worktrees.dir):
        said.append(words)
    return said
