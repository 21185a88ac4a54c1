"""The verb that opens a shell, or runs a command, in the worktree of a loop.

The command takes the place of this process. Must never change anything itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from loopr import wiring
from loopr.core.housing import PACKED
from loopr.core.model import Loop, Status
from loopr.core.scene import Scene
from loopr.core.states import people_say
from loopr.errors import NotFound, UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.names import find_id

if TYPE_CHECKING:
    from loopr.world.repo.ground import Ground

SHELL = "/bin/sh"


class Folder(NamedTuple):
    """Where a loop works, and the branch there; none where it works without git."""

    path: Path
    branch: str = ""


@click.command("shell")
@click.argument("loop")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@framed
def shell_verb(frame: Frame, loop: str, command: tuple[str, ...]) -> None:
    """Open a shell in the worktree of a loop, or run a command there; with --json only say where it is."""
    scene = frame.workspace.look().scene
    found = scene.loops[find_id(scene.loops, loop)]
    ground = _ground(frame, scene, found)
    folder = _folder(frame, ground, found)
    if frame.as_json:
        if command:
            raise UserError("--json only says where the worktree is", hint="leave it out to run a command there")
        body = {"id": found.id, "folder": str(folder.path), "branch": folder.branch or None, "busy": found.occupying}
        frame.document(views.document(wiring.wall_clock(), body))
        return
    name = render.plain(frame.workspace.name_of(folder.path))
    frame.note(f"{found.id}: {name}" + (f", on {folder.branch}" if folder.branch else ""))
    if found.occupying:
        frame.note(f"try {found.attempt} is at work there: what you change is committed as its own")
    _become(folder.path, list(command) or [os.environ.get("SHELL") or SHELL], _environment(ground))


def _ground(frame: Frame, scene: Scene, loop: Loop) -> Ground | None:
    """Open the repository that a loop works in, if there is one."""
    from loopr.grounds import ground_of_plan

    return ground_of_plan(frame.workspace, scene, loop.plan)


def _folder(frame: Frame, ground: Ground | None, loop: Loop) -> Folder:
    """Return where a loop works, or say why it has no place of its own now."""
    plain = frame.workspace.place.root / frame.workspace.settings.worktrees.dir / loop.name
    if ground is None:
        if plain.is_dir():
            return Folder(plain)
        raise _none(loop, "")
    from loopr.world.repo.slots import load, slot_of

    slot = slot_of(ground, loop.name)
    if slot is None and loop.packed == PACKED and not frame.as_json:
        return Folder(_laid_again(frame, ground, loop), ground.short_branch(loop.name))
    if slot is not None and slot.state == "used" and slot.place(ground).is_dir():
        return Folder(slot.place(ground), ground.short_branch(loop.name))
    if slot is not None and slot.state != "used":
        word = "being made ready" if slot.state == "preparing" else "being given back"
        raise NotFound(f"the worktree of {loop.id} is {word}", hint="try again in a moment")
    aside = [each.place(ground) for each in load(ground).values() if (each.name, each.state) == (loop.name, "retired")]
    if not aside and slot is None and plain.is_dir():  # of a type that works without git
        return Folder(plain)
    raise _none(loop, f"one was set aside and lies in {aside[-1]}" if aside else "")


def _laid_again(frame: Frame, ground: Ground, loop: Loop) -> Path:
    """Lay the worktree of a loop whose own was packed, as its last try has left it; nothing is set up in it."""
    from loopr.grounds import stands_at
    from loopr.world.processes.strays import living_in
    from loopr.world.repo.worktrees import take

    tip = stands_at(ground, frame.workspace.look().scene, loop.plan)
    folder = take(ground, loop.name, tip, living_in, known=True).folder
    frame.note(f"{loop.id}: its worktree was packed, and is laid again from its branch")
    return folder


def _none(loop: Loop, hint: str) -> NotFound:
    """Say why a loop has no worktree."""
    if not loop.leased:
        return NotFound(
            f"{loop.id} has no worktree: it never began, and is {people_say(loop)}",
            hint=hint or f"`loopr why {loop.id}` says what it waits for",
        )
    if loop.status is Status.COMPLETE:
        said = "it was given back when its work was done"
        return NotFound(f"{loop.id} has no worktree: {said}", hint=hint or f"`loopr diff {loop.id}` shows its work")
    said = "its next try makes it, from its branch"
    return NotFound(f"{loop.id} has no worktree now: it is {people_say(loop)}", hint=hint or said)


def _environment(ground: Ground | None) -> dict[str, str]:
    """Return the environment of a shell: a person's own, in which git never leaves the worktree."""
    if ground is None:
        return dict(os.environ)
    from loopr.world.repo.worktrees import command_environment

    ours, unset = command_environment(ground)
    return {name: value for name, value in os.environ.items() if name not in unset} | ours


def _become(folder: Path, command: list[str], environment: dict[str, str]) -> None:
    """Turn into a command: its exit code and its signals are its own."""
    sys.stderr.flush()
    os.chdir(folder)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        words = (error.strerror or str(error)).lower()
        raise UserError(f"{render.plain(command[0])} cannot be started: {words}", hint="name a program") from error
