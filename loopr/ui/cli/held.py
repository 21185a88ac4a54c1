"""What `start` and `run` ask before they drive by settings of which something is held back.

Must never know a plan, nor decide what is held back.
"""

from __future__ import annotations

import sys

import click

from loopr.ui import render
from loopr.ui.cli.frame import Frame
from loopr.ui.holding import difference_lines, held, take


def offer_held(frame: Frame, *, ask: bool = True) -> bool:
    """Show held settings, and take them if a person says so; return whether they were taken.

    A no goes on with the accepted ones.
    """
    workspace = frame.workspace
    found = held(workspace)
    if found is None:
        return False
    frame.note(render.plain(found.words))
    if found.doubt or not ask or not sys.stdin.isatty() or workspace.in_force.within:
        return False
    for line in difference_lines(workspace, found.texts):
        frame.note(f"  {render.plain(line)}")
    if not click.confirm("Take these settings?", err=True):
        return False
    take(workspace, found.texts)
    return True
