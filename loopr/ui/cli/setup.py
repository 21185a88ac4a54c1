"""The verb that comes first: init.

Knows what a workspace consists of. Must never know how a file is written, nor what is in the settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from loopr.errors import SettingsError
from loopr.ui import render, views
from loopr.ui.anew import begin_anew
from loopr.ui.cli.apart import choose_folder, set_folder
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.collecting import collecting
from loopr.ui.drafting import Proposal, blocks_of, drafted, makes
from loopr.ui.gate import pass_gate
from loopr.ui.proposing import agents_here, seen
from loopr.ui.room import room_remarks
from loopr.ui.strangers import free_folder, known_plans, remarks_on, strangers
from loopr.ui.surveying import survey, unignored
from loopr.wiring import Workspace, wall_clock
from loopr.world.founding import Step, check_room, file_step, folder_step, ignore_line, lines_step, starter
from loopr.world.place import SETTINGS_FILE, Place, common_git_dir, is_remembered, own_git_dir, remember_place
from loopr.world.repo.ground import HEADS

PLAN, WIDTH = "plan.md", 80
DRY_RUN = f"loopr start --dry-run {PLAN}"
TREE = "holds the tree as files: commit it or have git ignore it, loopr works from what lies there"
FOLDER_KEY = "artifacts"


class _Draft(NamedTuple):
    """The settings that are proposed, their text, what a setup makes beside files of git, and what is told."""

    proposals: Sequence[Proposal] = ()
    blocks: Mapping[str, Sequence[str]] = {}
    makes: Sequence[str] = ()
    told: Sequence[tuple[str, str]] = ()


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
    _check_place(workspace, chosen)
    draft = _draft(workspace, agent or "")
    steps = _steps(workspace, draft, chosen)
    missing = [step for step in steps if not step.done]
    for step in missing if not dry_run else ():
        step.take()
    made, kept = ([step.name for step in steps if step.done is done] for done in (False, True))
    remarks = [*_remarks(frame, workspace), *beside]
    if SETTINGS_FILE in made and not dry_run:
        workspace.in_force.forget()  # the new settings count now
        remarks += [*agents_here(workspace), *room_remarks(workspace)]
    specs = chosen or workspace.settings.artifacts.dir
    if f"{specs}/" in made and workspace.place.repository is not None:
        remarks.append(f"{specs}/ {TREE}")
    if agent is not None and SETTINGS_FILE in kept:
        remarks.append(f"{SETTINGS_FILE} is there, and kept: say `agent: {agent}` in its types yourself")
    if frame.as_json:
        root, rows = str(workspace.place.root), [each._asdict() for each in draft.proposals]
        body = {"workspace": root, "dry_run": dry_run, "made": made, "kept": kept, "proposals": rows}
        body |= {"remarks": remarks, "next": DRY_RUN}
        frame.document(views.document(wall_clock(), body))
        return
    _tell(frame, made, kept, "would make" if dry_run else "made")
    _tell_draft(frame, draft)
    for each in remarks:
        frame.note(render.plain(each))
    if not dry_run:
        _tell_next(frame, draft)


def _check_place(workspace: Workspace, chosen: str) -> None:
    """Refuse a place that cannot be a workspace, before anything is made; its tree may be in a `chosen` folder."""
    place, settings = workspace.place, workspace.settings
    if place.repository is not None and not (place.repository / ".git").exists():
        hint = "add a checkout with `git worktree add`, and call `loopr init` there"
        raise SettingsError(f"{place.repository} is a repository without a checkout", hint=hint)
    check_room(place.root, [SETTINGS_FILE], [chosen or settings.artifacts.dir, settings.worktrees.dir])


def _draft(workspace: Workspace, agent: str) -> _Draft:
    """Propose the settings that the repository is likely to want, where it has none yet."""
    if (workspace.place.root / SETTINGS_FILE).is_file():
        return _Draft()
    found = survey(workspace)
    proposals = drafted(found.facts)
    own = makes(found.facts, proposals)
    return _Draft(
        proposals=proposals,
        blocks=blocks_of(proposals, [*workspace.settings.types], agent),
        makes=unignored(workspace, own),
        told=[*seen(found, proposals)],
    )


def _tell_draft(frame: Frame, draft: _Draft) -> None:
    """Say what was seen of the repository, and what the settings make of it."""
    size = max((len(head) for head, _ in draft.told), default=0)
    for head, text in draft.told:
        frame.lines(render.wrap(f"{head:{size}}  ", render.plain(text), WIDTH))


def _tell_next(frame: Frame, draft: _Draft) -> None:
    """Say what to type now."""
    if any(each.used for each in draft.proposals):
        frame.note("`loopr doctor --try` runs setup and check once, and sees whether the check would notice a fault")
    there = (frame.workspace.place.root / PLAN).is_file()
    frame.note(f"next: {'' if there else f'write {PLAN}, then '}`{DRY_RUN}` shows what it comes to")


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


def _steps(workspace: Workspace, draft: _Draft, chosen: str) -> list[Step]:
    """List what a workspace has; the folder of the tree may be `chosen` just now."""
    place, settings = workspace.place, workspace.settings
    specs, worktrees = chosen or settings.artifacts.dir, settings.worktrees.dir
    own = f"\n{FOLDER_KEY}: {{dir: {specs}}}\n" if chosen else ""
    return [
        file_step(place.root, SETTINGS_FILE, starter(draft.blocks) + own),
        folder_step(place.root, specs),
        folder_step(place.root, worktrees),
        *_ignoring(place, worktrees, draft.makes),
        Step(f"{_name(place, place.state)}/", is_remembered(place), lambda: remember_place(place)),
    ]


def _ignoring(place: Place, worktrees: str, makes: Sequence[str]) -> list[Step]:
    """Have git ignore what is loopr's and what a setup makes, in every checkout of the repository."""
    if place.repository is None:
        return []
    exclude = common_git_dir(place.repository) / "info" / "exclude"
    folder = (place.root / worktrees).relative_to(place.repository).as_posix()
    return [lines_step(exclude, _name(place, exclude), [ignore_line(folder), ".loopr/", *makes])]


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
