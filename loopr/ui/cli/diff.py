"""The verb that shows what a loop or a plan has changed.

git makes the text and its colours. Must never change anything.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from loopr import wiring
from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.core.states import people_say
from loopr.errors import NotFound, UserError
from loopr.ui import views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.logs import Sink
from loopr.ui.names import find_id
from loopr.world.veil import Veil

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground

_OWN = ("--no-ext-diff", "--no-textconv")  # a program of the repository's settings is nobody's who reads


class Range(NamedTuple):
    """Two commits with a change between them, and what a person should know of it."""

    old: str
    new: str
    remark: str = ""


@click.command("diff")
@click.argument("loop", required=False)
@click.option("--stat", is_flag=True, help="count the lines, file by file")
@click.option("--waiting", is_flag=True, help="every change that waits for a person's word, of it and all below it")
@framed
def diff_verb(frame: Frame, loop: str | None, stat: bool, waiting: bool) -> None:
    """Show a loop's change: on its branch, or as it has landed; of a plan, all that has landed on its branch."""
    from loopr.grounds import ground_beside, repo_of_plan

    if waiting:
        from loopr.ui.cli.waiting import show_waiting

        show_waiting(frame, loop, stat=stat)
        return
    if loop is None:
        raise UserError("diff names no loop", hint="`loopr ls` lists them; `loopr diff --waiting` shows all that waits")
    scene = frame.workspace.look().scene
    found = scene.loops[find_id(scene.loops, loop)]
    ground = ground_beside(frame.workspace, scene, repo_of_plan(frame.workspace, scene, found.plan))
    change = _of_plan(ground, scene, found) if found.parent is None else change_of(ground, scene, found)
    if frame.as_json:
        frame.document(views.document(wiring.wall_clock(), change_document(ground, found, change, stat)))
        return
    if change.remark:
        frame.note(change.remark)
    form = [f"--stat={frame.width}"] if stat else ["--patch"]
    text = said(ground, change, *form, f"--color={'always' if frame.color else 'never'}")
    if not text and not change.remark:
        frame.note(_nothing(found))
    sink = Sink(frame, Veil())
    sink.write(text)
    sink.close()


def said(ground: Ground, change: Range, *form: str) -> bytes:
    """Ask git for the difference."""
    return ground.door.run("diff", *_OWN, *form, "--end-of-options", change.old, change.new, "--").out


def _nothing(loop: Loop) -> str:
    """Say that there is no difference, and where there may be one."""
    if loop.parent is None:
        return f"nothing has landed on the branch of {loop.id} yet"
    words = f"nothing is committed on the branch of {loop.id} that its plan lacks"
    if loop.status is Status.COMPLETE:
        return words
    return f"{words}; `loopr shell {loop.id}` looks at what lies in its worktree"


def _of_plan(ground: Ground, scene: Scene, plan: Loop) -> Range:
    """Return the branch of a plan against the commit it began at."""
    from loopr.grounds import stands_at
    from loopr.world.repo.refs import merge_base

    tip, bound = stands_at(ground, scene, plan.id), scene.shared.plans.get(plan.id)
    base = bound.base_commit if bound is not None else ""
    if not tip or not base:
        raise NotFound(f"{plan.id} has no branch yet", hint="a plan gets one when its first loop is leased")
    return Range(merge_base(ground.door, base, tip) or base, tip)


def change_of(ground: Ground, scene: Scene, loop: Loop) -> Range:
    """Return what has landed of a loop, or its branch against that of its plan."""
    if loop.status is Status.COMPLETE and loop.landed:
        return _landed(ground, loop)
    tip, base = _parted(ground, scene, loop)
    if tip and base:
        at_work = f"try {loop.attempt} is at work: what it has not committed is not shown" if loop.occupying else ""
        return Range(base, tip, at_work)
    if loop.landed:
        return _landed(ground, loop)._replace(remark="this is what has landed before its input changed")
    if loop.status is Status.COMPLETE:
        raise NotFound(f"{loop.id} has no commits: it is done without any", hint=f"loopr show {loop.id}")
    raise NotFound(f"{loop.id} has no branch yet: it is {people_say(loop)}", hint="it gets one at its first lease")


def _parted(ground: Ground, scene: Scene, loop: Loop) -> tuple[str, str]:
    """Return where a loop's own branch stands, and where it parted from its plan's; nothing if there is none."""
    from loopr.grounds import stands_at
    from loopr.world.repo.ground import LANDED, WORK
    from loopr.world.repo.refs import merge_base, read_refs

    places = ground.branch(loop.name), LANDED + loop.name, WORK + loop.name
    refs, base = read_refs(ground.door, *places), stands_at(ground, scene, loop.plan)
    tip = next((refs[place] for place in places if place in refs), "")
    return tip, merge_base(ground.door, base, tip) if tip and base else ""


def _landed(ground: Ground, loop: Loop) -> Range:
    """Return the commit that landed; nothing, where the loop had nothing to land and the commit is another's."""
    from loopr.world.repo.refs import commit_of

    door, commit = ground.door, loop.landed
    if not commit_of(door, commit):
        raise NotFound(f"the commit {commit} of {loop.id} is gone", hint="its plan's branch was taken away")
    said = door.run("log", "-1", "--format=%(trailers:key=Loopr-Loop,valueonly)", "--end-of-options", commit).line
    if loop.id not in said.split():
        return Range(commit, commit, f"{loop.id} had nothing to land")
    return Range(commit_of(door, f"{commit}^1"), commit)


def change_document(ground: Ground, loop: Loop, change: Range, stat: bool) -> views.Row:
    """Return the change as data; what is not UTF-8 in it is replaced."""
    parts = os.fsdecode(said(ground, change, "--numstat", "--no-renames", "-z")).split("\0")[:-1]
    files = []
    for added, removed, path in (part.split("\t", 2) for part in parts):
        counts = [None if count == "-" else int(count) for count in (added, removed)]  # of a binary file
        files.append({"path": path, "added": counts[0], "removed": counts[1]})
    text = None if stat else said(ground, change, "--patch", "--no-color").decode("utf-8", "replace")
    return {"id": loop.id, "from": change.old, "to": change.new, "files": files, "diff": text}
