"""The verb that clears away what is needed no more, and says of everything else why it is kept.

Nothing that is not safe elsewhere ever goes unless a person names its loop. Must never know how to tell what is safe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopr import wiring
from loopr.core.inbox import land_line
from loopr.core.policy import OWN_REPO
from loopr.core.scene import Scene
from loopr.errors import SettingsError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.land import turn_or_beside
from loopr.ui.gate import pass_gate
from loopr.ui.homecoming import HOME_LOCK
from loopr.ui.in_use import in_use, is_over, living, names_of
from loopr.ui.old_runs import DAY_MS, old_runs, remove_run
from loopr.ui.remains import Item, lines_of, row_of
from loopr.wiring import Workspace

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground
    from loopr.world.repo.words import Leftover

    Found = Mapping[str, tuple[Ground, list[Leftover]]]

IN_USE = "in use"
_TAKEN_BACK = ("its commits have not landed", "its commits are nowhere else")
"""Why a branch or a ref of a loop that is over is kept until a person names its loop."""


@click.command("gc")
@click.option("-n", "--dry-run", is_flag=True, help="say what would go, and why all else is kept; remove nothing")
@click.option("--forget", metavar="ID|@CONVOY", help="only this: let go what is kept of all in it that is over")
@click.option("--cache", "cached", is_flag=True, help="only this: what setups have made and is copied into worktrees")
@click.option("-v", "--verbose", is_flag=True, help="name each thing, also where several are summed up")
@click.option("-y", "--yes", is_flag=True, help="go on where a person would be asked")
@framed
def gc_verb(frame: Frame, dry_run: bool, forget: str | None, *, cached: bool, verbose: bool, yes: bool) -> None:
    """Remove worktrees, branches, refs and run folders that are needed no more; what is not safe elsewhere is kept."""
    workspace = frame.workspace
    workspace.doubt = workspace.in_force.go_by_accepted()
    if not dry_run:
        pass_gate(workspace, "gc --forget" if forget else "gc", [forget] if forget else [])
    scene = workspace.look().scene
    if forget is not None:
        from loopr.ui.cli.forget import Asked, forget_all

        forget_all(frame, scene, forget, Asked(dry_run, yes, verbose))
        return
    if cached:
        _forget_cache(frame, scene, dry_run)
        return
    names = in_use(scene)
    runs = [*old_runs(workspace.place.state, names, workspace.settings.logs.keep_days)]
    found = _leftovers(grounds_of(frame, scene), scene, names)
    items = [*(_items(workspace, scene, found) if found else _plain(workspace, names)), *runs]
    if dry_run:
        gone = [each for each in items if each.may_go]
    else:
        went = _clear(workspace, found, names, items) if found else _clear_plain(workspace, names)
        gone = [*went, *runs]
        workspace.hands().rescue([Path(each.place) for each in runs], {each.artifact for each in scene.loops.values()})
        for each in runs:
            remove_run(Path(each.place))
    kept = [each for each in items if each not in gone]
    _report(frame, {repo: ground for repo, (ground, _) in found.items()}, gone, kept, (dry_run, verbose))


def _report(
    frame: Frame, grounds: Mapping[str, Ground], gone: list[Item], kept: list[Item], how: tuple[bool, bool]
) -> None:
    """Say what went and what is kept: sums by reason first, and what is in use at the end."""
    dry_run, verbose = how
    if frame.as_json:
        rows = {"removed": [row_of(each) for each in gone], "kept": [row_of(each) for each in kept], "forgotten": []}
        frame.document(views.document(wiring.wall_clock(), {"dry_run": dry_run, **rows}))
        return
    told = [each for each in kept if each.why != IN_USE]
    sizes = sizes_of(grounds, told)
    frame.lines(lines_of("would go" if dry_run else "removed", gone, frame.width, all_named=verbose))
    frame.lines(lines_of("would stay" if dry_run else "kept", told, frame.width, sizes, all_named=verbose))
    if len(kept) > len(told):
        frame.note(f"{len(kept) - len(told)} more in use")
    if not gone and not kept:
        frame.note("there is nothing to clear away")


def _forget_cache(frame: Frame, scene: Scene, dry_run: bool) -> None:
    """Take away what setups have made and is kept: the next worktree runs its setup again."""
    from loopr.world.repo.caching import entries, forget_cache

    grounds = grounds_of(frame, scene).values()
    found = [str(each) for ground in grounds for each in entries(ground)]
    for ground in () if dry_run else grounds:
        forget_cache(ground)
    if frame.as_json:
        rows = {"removed": [] if dry_run else found, "kept": found if dry_run else [], "forgotten": []}
        frame.document(views.document(wiring.wall_clock(), {"dry_run": dry_run, **rows}))
        return
    frame.lines(f"{'would go' if dry_run else 'removed'}  {each}" for each in found)
    if not found:
        frame.note("no setup is kept")


def sizes_of(grounds: Mapping[str, Ground], items: Sequence[Item]) -> dict[str, int]:
    """Return by plan how many bytes the refs of landed loops hold that nothing else does."""
    from loopr.world.repo.leftovers import size_of

    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in items:
        if each.landed and each.repo is not None:
            places[each.repo, each.loop.partition("/")[0]].append(each.place)
    return {plan: size_of(grounds[repo], refs) for (repo, plan), refs in places.items() if repo in grounds}


def grounds_of(frame: Frame, scene: Scene) -> dict[str, Ground]:
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


# --- what is there --------------------------------------------------------------------------------------------------


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
    return [
        each._replace(why=_why_of_plan(ground, scene, each.name))
        if each.kind == "branch" and each.name in done
        else each
        for each in found
    ]


def _why_of_plan(ground: Ground, scene: Scene, plan: str) -> str:
    """Say why the branch of a plan that is done is kept, with the line that goes on."""
    if _is_home(ground, scene, plan):
        return f"the plan is done, and may go on: `loopr gc --forget {plan}` lets its branch go"
    return f"the plan is done, and not home: `{land_line(scene, plan)}` brings it home"


def _is_home(ground: Ground, scene: Scene, plan: str) -> bool:
    """Say whether the branch that a plan began at has all of it."""
    from loopr.grounds import stands_at
    from loopr.world.repo.home import is_home

    bound = scene.shared.plans.get(plan)
    return bound is not None and is_home(ground, stands_at(ground, scene, plan), bound.base_branch)


def _items(workspace: Workspace, scene: Scene, found: Found) -> Iterator[Item]:
    """Give what is there of all repositories; what has landed of plans that are long home goes by itself."""
    days = workspace.settings.logs.keep_days
    limit = wiring.wall_clock() - int(days * DAY_MS)
    why = f"it has landed and is home, and the plan was done longer ago than logs.keep_days ({days:g})"
    home = _at_home(scene, found)
    for repo, (_, rows) in found.items():
        for each in items_of(scene, rows, repo):
            plan = each.loop.partition("/")[0]
            if each.landed and home.get(plan) and scene.tree.done_at(plan) < limit and is_over(scene.loops[each.loop]):
                yield each._replace(may_go=True, why=why)
            elif each.landed and home.get(plan) is False:
                yield each._replace(first=land_line(scene, plan))
            else:
                yield each


def _at_home(scene: Scene, found: Found) -> dict[str, bool]:
    """Say of each plan that is done whether it is home."""
    plans = {plan: bound for plan, bound in scene.shared.plans.items() if plan in scene.loops and bound.repo in found}
    done = (plan for plan in plans if scene.tree.done(plan))
    return {plan: _is_home(found[plans[plan].repo][0], scene, plan) for plan in done}


def items_of(scene: Scene, rows: Sequence[Leftover], repo: str | None) -> list[Item]:
    """Say of what is left in a repository to which loop it belongs, and whether a person's word lets it go."""
    owners = {name: loop for loop in scene.loops.values() for name in names_of(loop)}
    found: list[Item] = []
    for each in rows:
        owner = owners.get(each.name if each.kind == "branch" else each.name.partition("/")[2].partition("/")[0])
        item = Item(*each, repo)
        if owner is not None and each.kind in ("branch", "ref") and each.why != IN_USE:
            landed = each.kind == "ref" and each.name.startswith("landed/")
            item = item._replace(loop=owner.id, landed=landed, lets_go=landed or each.why in _TAKEN_BACK)
        found.append(item)
    return found


def _homes(ground: Ground, scene: Scene) -> Iterator[str]:
    """Name the rooms of plans on their way home, while one is."""
    from loopr.world.lock import holder

    if holder(ground.state / HOME_LOCK) is not None:
        yield from (f"{loop.id}.home" for loop in scene.loops.values() if loop.parent is None)


# --- what goes ------------------------------------------------------------------------------------------------------


def _clear(workspace: Workspace, found: Found, names: Set[str], items: Sequence[Item]) -> list[Item]:
    """Remove what may still go."""
    from loopr.world.repo.leftovers import clear_away, let_go

    gone: list[Item] = []
    for repo, (ground, rows) in found.items():
        with turn_or_beside(workspace):
            scene = workspace.look().scene
            used = {*names, *in_use(scene), *_homes(ground, scene)}
            went = {each.place for each in clear_away(ground, rows, used, living())}
            over = _items(workspace, scene, {repo: found[repo]})
            went |= let_go(ground, [each.place for each in over if each.landed and each.may_go])
        gone += (each for each in items if each.repo == repo and each.place in went)
    return gone


def _plain(workspace: Workspace, names: Set[str]) -> Iterator[Item]:
    """List the folders of loops where there is no repository at all."""
    from loopr.world.repo.plain import plain_folders

    worktrees = workspace.place.root / workspace.settings.worktrees.dir
    yield from (Item(*each) for each in plain_folders(worktrees, names, living()))


def _clear_plain(workspace: Workspace, names: Set[str]) -> list[Item]:
    """Remove those of them that may still go."""
    from loopr.world.repo.plain import remove_plain

    with turn_or_beside(workspace):
        used = {*names, *in_use(workspace.look().scene)}
        chosen = [each for each in _plain(workspace, used) if each.may_go]
        worktrees = workspace.place.root / workspace.settings.worktrees.dir
        gone = remove_plain(worktrees, [each.name for each in chosen]) if chosen else set()
    return [each for each in chosen if each.name in gone]
