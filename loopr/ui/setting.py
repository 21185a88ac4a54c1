"""Changes one setting in loopr.yml, and says what it was and what it is, for every surface alike.

Must never know a single key, nor a terminal or a protocol.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from loopr import wiring
from loopr.errors import UserError
from loopr.ui import views
from loopr.ui.gate import pass_gate
from loopr.ui.holding import take_one
from loopr.world.place import SETTINGS_FILE
from loopr.world.settings import set_key

_LATER_LAYERS = ("loopr.local.yml:", "LOOPR_", "--set")


class Changed(NamedTuple):
    """What became of a key; `overruled_by` is the later layer that says otherwise, if there is one."""

    key: str
    old: Any
    new: Any
    file: str
    dry_run: bool
    overruled_by: str | None

    def document(self) -> views.Row:
        """Return it as a document."""
        return views.document(wiring.wall_clock(), self._asdict())


def change(workspace: wiring.Workspace, key: str, value: str, *, dry_run: bool = False) -> Changed:
    """Change a setting in the file, keeping its comments; refuse what would be wrong."""
    if not dry_run:
        pass_gate(workspace, "set", [key, "VALUE"])
    if key.partition(".")[0] == "projects":
        _check_payers(workspace, key, value)
    path, home = workspace.place.root / SETTINGS_FILE, workspace.environ.get("HOME")
    known = Path(home) if home else None
    old, new = set_key(
        path,
        key,
        value,
        environ=workspace.environ,
        home=known,
        dry_run=dry_run,
        then=lambda: take_one(workspace, key, value),
    )
    workspace.in_force.forget()
    return Changed(key, old, new, path.name, dry_run, _winner(workspace, key))


def _check_payers(workspace: wiring.Workspace, key: str, value: str) -> None:
    """Refuse a change after which a plan that is not over would have no project."""
    from loopr.grounds import Written
    from loopr.payers import check_payers
    from loopr.world.settings.edit import edited

    if workspace.place.journal.exists():
        try:
            later = workspace.in_force.load(edited(workspace.in_force.written(), key, value))
        except UserError:  # told where it is written
            return
        check_payers(Written(workspace.place, later), workspace.look().scene)


def _winner(workspace: wiring.Workspace, key: str) -> str | None:
    """Return the later layer that overrules the file, if there is one."""
    try:
        origin = workspace.settings.origin(key)
    except UserError:  # the file was wrong before a dry run, or does not have the key yet
        return None
    return origin if origin.startswith(_LATER_LAYERS) else None
