"""The verb that clears away what is needed no more, and says of everything else why it is kept.

Nothing that is not safe elsewhere ever goes unless a person names its loop. Must never know how to tell what is safe.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopr import wiring
from loopr.core import wishes
from loopr.core.model import FINISHED, Loop, Status
from loopr.core.naming import generation_name, judge_room
from loopr.core.policy import OWN_REPO
from loopr.core.scene import Scene
from loopr.errors import SettingsError, UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.land import turn_or_beside
from loopr.ui.gate import pass_gate
from loopr.ui.homecoming import HOME_LOCK
from loopr.ui.names import find_id
from loopr.ui.old_runs import old_runs, remove_run
from loopr.ui.remains import Item, lines_of, row_of
from loopr.wiring import Workspace

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground
    from loopr.world.repo.words import Leftover

    Found = Mapping[str, tuple[Ground, list[Leftover]]]

IN_USE = "in use"


@click.command("gc")
@click.option("-n", "--dry-run", is_flag=True, help="say what would go, and why all else is kept; remove nothing")
@click.option("--forget", metavar="ID", help="only this: let go what is kept of a loop that is over")
@click.option("-y", "--yes", is_flag=True, help="go on where a person would be asked")
@framed
def gc_verb(frame: Frame, dry_run: bool, forget: str | None, yes: bool) -> None:
    """Remove worktrees, branches, refs and run folders that are needed no more; what is not safe elsewhere is kept."""
    workspace = frame.workspace
    workspace.doubt = workspace.in_force.go_by_accepted()
    if not dry_run:
        pass_gate(workspace, "gc --forget" if forget else "gc", [forget] if forget else [])
    scene = workspace.look().scene
    if forget is not None:
        _forget(frame, scene, scene.loops[find_id(scene.loops, forget)], dry_run=dry_run, yes=yes)
        return
    names = _in_use(scene)
    runs = [*old_runs(workspace.place.state, names, workspace.settings.logs.keep_days)]
    found = _leftovers(_grounds(frame, scene), scene, names)
    items = [*(Item(*each, each_repo) for each_repo, (_, rows) in found.items() for each in rows), *runs]
    if not found:
        items += _plain(workspace, names)
    cleared = _clear if found else _clear_plain
    gone = [each for each in items if each.may_go] if dry_run else [*cleared(workspace, found, names), *runs]
    if not dry_run:
        workspace.hands().rescue([Path(each.place) for each in runs], {each.artifact for each in scene.loops.values()})
        for each in runs:
            remove_run(Path(each.place))
    kept = [each for each in items if each not in gone]
    if frame.as_json:
        rows = {"removed": [row_of(each) for each in gone], "kept": [row_of(each) for each in kept], "forgotten": []}
        frame.document(views.document(wiring.wall_clock(), {"dry_run": dry_run, **rows}))
        return
    frame.lines(lines_of("would go" if dry_run else "removed", gone, frame.width))
    told = [each for each in kept if each.why != IN_USE]
    frame.lines(lines_of("kept", told, frame.width))
    if len(kept) > len(told):
        frame.note(f"{len(kept) - len(told)} more in use")
    if not items:
        frame.note("there is nothing to clear away")


def _grounds(frame: Frame, scene: Scene) -> dict[str, Ground]:
    """Open every repository that there is: those of projects, and those that plans began in."""
    from loopr.grounds import ground_beside, repos, top_of

    workspace = frame.workspace
    found: dict[str, Ground] = {}
    for repo in dict.fromkeys([*repos(workspace), *(bound.repo for bound in scene.shared.plans.values())]):
        if top_of(workspace, repo) is None:
            continue
        try:
            ground = ground_beside(workspace, scene, repo)
            if all(each.common != ground.common for each in found.values()):
                found[repo] = ground
        except SettingsError as error:
            if repo == OWN_REPO:
                raise
            frame.note(f"not looked at: {render.plain(error.message)}")
    return found


# --- what is in use -------------------------------------------------------------------------------------------------


def is_over(loop: Loop) -> bool:
    """Say whether nothing of a loop runs or is to run: complete, cancelled or no longer declared."""
    return loop.status in FINISHED and not loop.occupying


def _names(loop: Loop) -> list[str]:
    """Name every generation of a loop."""
    return [generation_name(loop.id, each) for each in range(1, loop.generation + 1)]


def _in_use(scene: Scene) -> set[str]:
    """Name the generations that are not over, and the plans that may still go on.

    A plan that is done may get another loop at any time, which begins where the others have landed: its branch stays
    until a person lets it go.
    """
    found = {loop.id for loop in scene.loops.values() if loop.parent is None and loop.status not in _ENDED}
    for loop in scene.loops.values():
        if loop.ending is not None:  # of whichever generation it is
            found.update(_names(loop))
        elif not is_over(loop):
            found.update((loop.name, judge_room(loop.name, loop.attempt)))
    return found


_ENDED = frozenset({Status.CANCELLED, Status.INVALIDATED})


def _leftovers(grounds: Mapping[str, Ground], scene: Scene, names: Set[str]) -> Found:
    """List what is there of each repository, with its reason; a folder that several see is told of once."""
    from loopr.world.repo.slots import load

    lived_in, found = living(), dict[str, "tuple[Ground, list[Leftover]]"]()
    known = {str(slot.place(ground)) for ground in grounds.values() for slot in load(ground).values()}
    for repo, ground in grounds.items():
        rows = _leftovers_of(ground, scene, names, lived_in)
        rows = [each for each in rows if each.kind != "folder" or each.place not in known]
        known |= {each.place for each in rows}
        found[repo] = ground, rows
    return found


def _leftovers_of(ground: Ground, scene: Scene, names: Set[str], lived_in: Callable[[Path], str]) -> list[Leftover]:
    """List what is there of one repository."""
    from loopr.world.repo.leftovers import leftovers

    found = leftovers(ground, {*names, *_homes(ground, scene)}, lived_in)
    done = {loop.id for loop in scene.loops.values() if loop.parent is None and scene.tree.done(loop.id)}
    why = "the plan is done, and may go on: `loopr gc --forget {}` lets its branch go"
    return [
        each._replace(why=why.format(each.name)) if each.kind == "branch" and each.name in done else each
        for each in found
    ]


def _homes(ground: Ground, scene: Scene) -> Iterator[str]:
    """Name the rooms of plans on their way home, while one is."""
    from loopr.world.lock import holder

    if holder(ground.state / HOME_LOCK) is not None:
        yield from (f"{loop.id}.home" for loop in scene.loops.values() if loop.parent is None)


def living() -> Callable[[Path], str]:
    """Look once where all processes work, and return what says which of them works in a folder, if any does."""
    from loopr.world.launcher import proc

    found: list[tuple[int, Path]] = []
    with suppress(OSError):  # where there is no /proc
        found = [(pid, Path(folder)) for pid in proc.pids() if (folder := proc.folder(pid))]

    def lived_in(folder: Path) -> str:
        return next((f"process {pid} works in it" for pid, at in found if at.is_relative_to(folder)), "")

    return lived_in


def _clear(workspace: Workspace, found: Found, names: Set[str]) -> list[Item]:
    """Remove what may still go."""
    from loopr.world.repo.leftovers import clear_away

    gone: list[Item] = []
    for repo, (ground, rows) in found.items():
        with turn_or_beside(workspace):
            scene = workspace.look().scene
            used = {*names, *_in_use(scene), *_homes(ground, scene)}
            gone += (Item(*each, repo) for each in clear_away(ground, rows, used, living()))
    return gone


def _plain(workspace: Workspace, names: Set[str]) -> Iterator[Item]:
    """List the folders of loops where there is no repository at all."""
    from loopr.world.repo.plain import plain_folders

    worktrees = workspace.place.root / workspace.settings.worktrees.dir
    yield from (Item(*each) for each in plain_folders(worktrees, names, living()))


def _clear_plain(workspace: Workspace, found: Found, names: Set[str]) -> list[Item]:
    """Remove those of them that may still go."""
    from loopr.world.repo.plain import remove_plain

    with turn_or_beside(workspace):
        used = {*names, *_in_use(workspace.look().scene)}
        chosen = [each for each in _plain(workspace, used) if each.may_go]
        worktrees = workspace.place.root / workspace.settings.worktrees.dir
        gone = remove_plain(worktrees, [each.name for each in chosen]) if chosen else set()
    return [each for each in chosen if each.name in gone]


# --- forgetting -----------------------------------------------------------------------------------------------------


def _forget(frame: Frame, scene: Scene, loop: Loop, *, dry_run: bool, yes: bool) -> None:
    """Let go what is kept of a loop that is over, because a person asks for it."""
    from loopr.grounds import base_of, ground_of_plan

    loops = _meant(scene, loop)
    ground = ground_of_plan(frame.workspace, scene, loop.plan)
    items = _kept_of(frame.workspace, ground, scene, loops)
    if not dry_run:
        _ask(loop, items, yes)
        with turn_or_beside(frame.workspace):
            if loop.status is Status.INVALIDATED:
                with frame.workspace.visit() as engine:
                    engine.mind.decide(lambda forest, now: wishes.forget(forest, loop.id))
            items = _let_go(ground, scene, loops, items)
            if ground is not None and (base := base_of(ground, scene, loop.id)):
                with frame.workspace.visit() as engine:
                    engine.mind.decide(lambda forest, now: wishes.begin_at(forest, loop.id, base))
    ids = [each.id for each in loops]
    if frame.as_json:
        body = {"dry_run": dry_run, "removed": [row_of(each) for each in items], "kept": [], "forgotten": ids}
        frame.document(views.document(wiring.wall_clock(), body))
        return
    frame.lines(lines_of("would go" if dry_run else "removed", items, frame.width))
    frame.note(f"{'would be ' if dry_run else ''}forgotten: {', '.join(ids)}")


def _meant(scene: Scene, loop: Loop) -> list[Loop]:
    """Return a loop that is over, with what was below it if it is no longer declared."""
    if loop.parent is None and scene.tree.done(loop.id):
        return [loop]
    if not is_over(loop) or (loop.parent is None and loop.status not in _ENDED):
        raise UserError(f"cannot forget {loop.id}: it is not over", hint=f"`loopr cancel {loop.id}` ends it first")
    if loop.status is not Status.INVALIDATED:
        return [loop]
    below = (scene.loops[each] for each in sorted(scene.tree.by_status[Status.INVALIDATED]))
    return [each for each in below if f"{each.id}/".startswith(f"{loop.id}/")]


def _kept_of(workspace: Workspace, ground: Ground | None, scene: Scene, loops: list[Loop]) -> list[Item]:
    """List the refs that are kept of loops; the branch of a plan goes only if a person's own has its work."""
    if ground is None:
        return []
    from loopr.world.repo.leftovers import leftovers

    plan = loops[0].id if loops[0].parent is None else ""
    names = {name for each in loops for name in _names(each)}
    _refuse_held(ground, names)
    items = [Item(*each) for each in leftovers(ground, _in_use(scene) - {plan}, living())]
    branch = next((each for each in items if (each.kind, each.name) == ("branch", plan)), None)
    if branch is not None and not branch.may_go:
        raise UserError(f"cannot forget {plan}: {branch.why}", hint=f"loopr land {plan}")
    wanted = [each for each in items if each.kind in ("branch", "ref") and _owner(each) in names]
    return [*wanted, *([branch] if branch is not None else [])]


def _refuse_held(ground: Ground, names: Set[str]) -> None:
    """Refuse to forget what somebody has checked out: git would not let the branch go."""
    from loopr.world.repo.checkouts import checkouts

    branches = {ground.branch(each) for each in names}
    for each in checkouts(ground):
        if each.branch in branches:
            hint = "`loopr gc` gives that folder back first, or says why not" if each.ours else "switch it there"
            raise UserError(f"the branch {each.branch.removeprefix('refs/heads/')} is in {each.folder}", hint=hint)


def _owner(item: Item) -> str:
    """Return the generation that a branch or a ref belongs to."""
    return item.name if item.kind == "branch" else item.name.split("/")[1]


def _ask(loop: Loop, items: list[Item], yes: bool) -> None:
    """Ask a person, if there is one, and name what is nowhere else; without one only --yes goes on."""
    if yes:
        return
    lost = [each.name for each in items if not each.may_go]
    if not sys.stdin.isatty():
        raise UserError("nobody is there to be asked", hint="--yes goes on, --dry-run shows what would be let go")
    what = f", with what is nowhere else in {', '.join(lost)}" if lost else ""
    click.confirm(f"Forget {loop.id}{what}?", abort=True, err=True)


def _let_go(ground: Ground | None, scene: Scene, loops: list[Loop], items: list[Item]) -> list[Item]:
    """Delete the refs that no checkout holds, and return those that went."""
    if ground is None:
        return []
    from loopr.world.repo.leftovers import clear_away, forget, leftovers

    gone = {ref for each in loops for name in _names(each) for ref in forget(ground, name)}
    for plan in (each.id for each in loops if each.parent is None):
        used = _in_use(scene) - {plan}
        branch = [each for each in leftovers(ground, used) if (each.kind, each.name) == ("branch", plan)]
        gone |= {each.place for each in clear_away(ground, branch, used, living())}
    return [each for each in items if each.place in gone]
