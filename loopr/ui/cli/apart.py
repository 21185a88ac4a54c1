"""What `init` and `start` ask where git tracks files in the folder of the tree that are not loopr's.

Knows a terminal. Must never know which files these are, nor move one.
"""

from __future__ import annotations

import sys
from collections.abc import Collection

import click

from loopr.errors import UserError
from loopr.ui import render
from loopr.ui.cli.frame import Frame
from loopr.ui.strangers import KEY, Strangers, free_folder, known_plans, remarks_on, strangers
from loopr.wiring import Workspace


def keep_apart(frame: Frame, workspace: Workspace, found: Strangers) -> str:
    """Ask at a terminal for the folder of loopr's own tree, and return it; nothing if it was not asked."""
    if not found.files or found.chosen or frame.as_json or not sys.stdin.isatty():
        return ""
    free = free_folder(workspace, known_plans(workspace))
    if not free:
        return ""
    frame.note(render.plain(found.words))
    return free if click.confirm(f"Keep loopr's files in {free}/ instead?", default=True, err=True) else found.folder


def set_folder(workspace: Workspace, folder: str) -> None:
    """Set the folder of the tree; the one that it is anyway too, which then is chosen."""
    from loopr.ui.setting import change

    change(workspace, KEY, folder)


def before_start(frame: Frame, plans: Collection[str], *, ask: bool) -> None:
    """Say before plans that are new begin which files of the repository's own are in the folder of the tree.

    At a terminal a person is asked, and may have loopr's own elsewhere as long as there is no plan.
    """
    workspace = frame.workspace
    found = strangers(workspace, workspace.settings)
    known = known_plans(workspace) if found.files else frozenset[str]()
    new = frozenset(plans) - known
    if not found.files or not new:
        return
    asks = ask and sys.stdin.isatty()
    if asks and (folder := keep_apart(frame, workspace, found)):
        set_folder(workspace, folder)
        found = strangers(workspace, workspace.settings)
    for each in remarks_on(found, new, free_folder(workspace, known)) if found.of(new) or not known else ():
        frame.note(render.plain("; ".join(filter(None, each))))
    if asks and found.of(new) and not click.confirm("Go on?", err=True):
        raise UserError("not started", hint="give the plan another `id:`")
