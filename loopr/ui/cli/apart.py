"""What `init`, `start` and `goal` ask where git tracks files in the folder of the tree that are not loopr's.

Knows a terminal. Must never know which files these are, nor move one.
"""

from __future__ import annotations

import sys
from collections.abc import Collection

import click

from loopr.errors import UserError
from loopr.ui import render
from loopr.ui.cli.frame import Frame
from loopr.ui.strangers import KEY, free_folder, is_chosen, known_plans, remarks_on, strangers
from loopr.wiring import Workspace


def choose_folder(frame: Frame) -> str:
    """Ask at a terminal for the folder of loopr's own tree, and return it; nothing if that was not asked.

    It is asked as long as there is no plan, and nothing is written anywhere of that folder.
    """
    workspace = frame.workspace
    if frame.as_json or not sys.stdin.isatty() or is_chosen(workspace.settings):
        return ""
    found = strangers(workspace, workspace.settings)
    free = free_folder(workspace, known_plans(workspace)) if found.files else ""
    if not free:
        return ""
    frame.note(render.plain(found.words))
    return free if click.confirm(f"Keep loopr's files in {free}/ instead?", default=True, err=True) else found.folder


def set_folder(workspace: Workspace, folder: str) -> None:
    """Set the folder of the tree; the one that it is anyway too, which then is chosen."""
    from loopr.ui.setting import change

    change(workspace, KEY, folder)


def keep_apart(frame: Frame) -> None:
    """Have a person choose the folder before anything is written into it."""
    if folder := choose_folder(frame):
        set_folder(frame.workspace, folder)


def before_start(frame: Frame, plans: Collection[str], *, ask: bool) -> None:
    """Say before plans that are new begin which other files are in the folder of the tree.

    At a terminal a person is asked where such files are in the very folder of a plan.
    """
    workspace = frame.workspace
    found = strangers(workspace, workspace.settings)
    known = known_plans(workspace) if found.files else frozenset[str]()
    new = frozenset(plans) - known
    clashes = found.of(new)
    for each in remarks_on(found, new, free_folder(workspace, known)) if clashes or not known else ():
        frame.note(render.plain("; ".join(filter(None, each))))
    if clashes and ask and sys.stdin.isatty() and not click.confirm("Go on?", err=True):
        raise UserError("not started", hint="give the plan another `id:`")
