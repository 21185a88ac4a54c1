"""What `doctor` looks at, in the order in which it is shown; looking changes nothing on disk.

`machine.py` looks at what is installed and at disks, `repository.py` at what git says, `memory.py` at settings, journal
and artifacts, `waits.py` at what stands still, `inputs.py` at what
loops work from and at what reads their worktrees. Must never know how a finding is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from loopr.errors import SettingsError
from loopr.ui.checkup import inputs, machine, memory, repository, waits
from loopr.ui.checkup.rows import Finding, guarded, stopped
from loopr.wiring import Workspace
from loopr.world.settings import Settings, load

__all__ = ["Finding", "checkup"]


def checkup(open_workspace: Callable[[], Workspace]) -> list[Finding]:
    """Look at the machine, and at the workspace as far as there is one."""
    found = machine.programs()
    try:
        workspace = open_workspace()
    except (SettingsError, OSError) as error:
        return [*found, *stopped("workspace", error)]
    found.append(Finding("workspace", True, str(workspace.place.root)))
    settings = _settings_or_defaults(workspace)
    for check, look in (*repository.CHECKS, *memory.CHECKS, *waits.CHECKS, *inputs.CHECKS, *machine.CHECKS):
        found += guarded(check, partial(look, workspace, settings))
    return found


def _settings_or_defaults(workspace: Workspace) -> Settings:
    """Return what the other checks compare with: wrong settings are a finding of their own."""
    try:
        return workspace.settings
    except SettingsError:
        return load(None, environ={}, home=None)
