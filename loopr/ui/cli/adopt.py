"""The verb that brings into a plan what a person has made beside it: a commit of theirs becomes part of the plan.

Nothing judges it, since a person says so; what has landed is never lost. Must never know how a branch is moved.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from loopr import wiring
from loopr.core.tips import ADOPTED
from loopr.errors import NotFound, UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.gate import pass_gate
from loopr.ui.names import find_id

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground
    from loopr.world.repo.words import Brought, Message


class Adopted(NamedTuple):
    """What a plan stands at after an adoption: from where it came, what was adopted, and how the branch followed.

    `others` are the loops that have other inputs there, each with the reason; `lost` says which
    work it lacks.
    """

    old: str
    commit: str
    new: str
    brought: Brought | None = None
    others: tuple[str, ...] = ()
    lost: str = ""


@click.command("adopt")
@click.argument("plan")
@click.argument("commit", required=False)
@click.option("--replace", is_flag=True, help="take the place of what has landed, as after an amended commit")
@click.option("-y", "--yes", is_flag=True, help="replace it also where the files are not the same")
@framed
def adopt_verb(frame: Frame, *, plan: str, commit: str | None, replace: bool, yes: bool) -> int:
    """Bring a commit into a plan: what others put on its branch, or what you name; nothing judges it."""
    from loopr.driving.wording import about_plan
    from loopr.grounds import ground_beside, repo_of_plan, stands_at
    from loopr.ui.bases import lacking
    from loopr.ui.steering import deciding
    from loopr.world.repo.tips import keep

    pass_gate(frame.workspace, "adopt", [plan])
    with deciding(frame.workspace) as engine:
        forest = engine.forest
        found = forest.loops[find_id(forest.loops, plan)]
        if found.parent is not None:
            raise UserError(f"{found.id} is a {found.type}, and plans adopt", hint=f"loopr adopt {found.plan}")
        ground = ground_beside(frame.workspace, forest, repo_of_plan(frame.workspace, forest, found.id))
        stands = stands_at(ground, forest, found.id)
        if not stands:
            raise UserError(f"{found.id} has no branch yet", hint="it gets one at its first lease")
        chosen = _commit(frame, ground, commit) if commit else _found(ground, found.id, stands)
        lost = lacking(forest, ground, found.id, (stands, chosen), chosen[:12]) if replace else ""
        if replace:
            new = _replaced(ground, stands, chosen, lost, yes=yes)
        else:
            title = f"Adopt {chosen[:12]}"
            words = about_plan(frame.workspace.settings.commit, title, found, wiring.wall_clock())
            new = _merged(ground, found.id, (stands, chosen), words)
        if replace:
            keep(ground, found.id, stands, wiring.wall_clock())
        if new == stands:
            done = Adopted(stands, chosen, new)
        else:
            from loopr.driving.moves import move_plan
            from loopr.ui.updating import brought_along

            base = brought_along(forest, ground, found.id, stands, new)
            moved = move_plan(engine.mind, ground, found.id, new, ADOPTED, old=stands, base=base)
            done = Adopted(stands, chosen, new, moved, base.others, lost)
    _report(frame, ground, found.id, done)
    return 0


def _commit(frame: Frame, ground: Ground, name: str) -> str:
    """Return the commit that a name stands for where the person is, be that another checkout of the repository."""
    from loopr.world.repo.calls import call
    from loopr.world.repo.refs import commit_of

    said = call(frame.directory, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"], {})
    found = commit_of(ground.door, os.fsdecode(said.out).strip()) if said.code == 0 else commit_of(ground.door, name)
    if not found:
        raise NotFound(f"there is no commit called {name}", hint="name one of `git log`, or a branch")
    return found


def _found(ground: Ground, plan: str, stands: str) -> str:
    """Return what somebody else has put on a plan's branch: what stands there, else the newest that was kept."""
    from loopr.world.repo.tips import foreign_tip, kept_tips

    found = foreign_tip(ground, plan, stands) or next(iter(reversed(kept_tips(ground, plan).values())), "")
    if not found:
        short = ground.short_branch(plan)
        raise NotFound(f"nobody has put anything else on {short}", hint=f"name a commit: loopr adopt {plan} COMMIT")
    return found


def _merged(ground: Ground, plan: str, tips: tuple[str, str], message: Message) -> str:
    """Return the commit that has both what has landed and what is adopted, or raise with the lines that make one."""
    from loopr.world.repo.home import by_hand
    from loopr.world.repo.making import make_commit
    from loopr.world.repo.merging import merge_trees
    from loopr.world.repo.refs import is_ancestor, merge_base

    (stands, commit), door = tips, ground.door
    if is_ancestor(door, commit, stands):
        return stands
    if is_ancestor(door, stands, commit):
        return commit
    if not merge_base(door, stands, commit):
        short = ground.short_branch(plan)
        raise UserError(f"{commit[:12]} has no commit in common with {short}", hint="`--replace` takes it all the same")
    tree, files, _ = merge_trees(door, stands, commit)
    if files:
        words = f"{commit[:12]} conflicts with what has landed in {', '.join(files)}"
        raise UserError(words, hint=by_hand(ground, plan, stands, commit[:12]))
    return make_commit(door, tree, [stands, commit], message)


def _replaced(ground: Ground, stands: str, commit: str, lost: str, *, yes: bool) -> str:
    """Return the commit that replaces the landed one; a person is asked where its files are others.

    `lost` says which files of the plan's loops it lacks.
    """
    import sys

    from loopr.world.repo.refs import tree_of

    if yes or tree_of(ground.door, commit) == tree_of(ground.door, stands):
        return commit
    words = f"{commit[:12]} has other files than what has landed, {stands[:12]}{f'; {lost}' if lost else ''}"
    if not sys.stdin.isatty():
        raise UserError(words, hint="--yes replaces it all the same; without --replace it is merged")
    click.confirm(f"{words}. Replace it?", abort=True, err=True)
    return commit


def _report(frame: Frame, ground: Ground, plan: str, done: Adopted) -> None:
    """Say what came of it."""
    folder = done.brought.folder if done.brought is not None and done.brought.outcome in ("lags", "left") else ""
    if frame.as_json:
        row: views.Row = {"plan": plan, "adopted": done.commit, "from": done.old, "to": done.new}
        frame.document(views.document(wiring.wall_clock(), row | {"checkout": folder or None}))
        return
    if done.brought is None:
        frame.note(f"{plan} has {done.commit[:12]} already")
        return
    frame.lines([f"{plan} stands at {done.new[:12]}, with {done.commit[:12]} adopted; nothing has judged it"])
    for name, _, why in (each.partition(" ") for each in done.others):
        frame.note(f"{name} has other inputs: {render.plain(why)}")
    if done.lost:
        frame.note(render.plain(done.lost))
    if folder:
        frame.note(f"{ground.short_branch(plan)} lags: checked out in {render.plain(folder)}")
