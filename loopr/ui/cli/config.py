"""The verbs for settings: config show, check, explain and schema, and set.

`check` and `schema` answer whatever is wrong in the files. Must never know a single key.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from loopr.errors import Problem, SettingsError, UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.wiring import Workspace, wall_clock
from loopr.world.place import SETTINGS_FILE
from loopr.world.settings import Settings, explain, json_schema, set_key, show

WRONG = 78
_LATER_LAYERS = ("loopr.local.yml:", "LOOPR_", "--set")


@click.group("config")
def config_verb() -> None:
    """Show, check and explain the settings."""


@config_verb.command("show")
@click.argument("key", required=False)
@framed
def show_verb(frame: Frame, key: str | None) -> None:
    """Print all settings as they are merged from every layer, or one of them."""
    settings = frame.workspace.settings
    value = settings.value(key) if key else settings.values
    if frame.as_json:
        frame.document(_document({"key": key, "value": value}))
    else:
        frame.lines([render.plain(_yaml(value) if key else show(settings).rstrip("\n"), keep_lines=True)])


@config_verb.command("check")
@framed
def check_verb(frame: Frame) -> int:
    """Say whether the settings are sound, or everything that is wrong with them."""
    problems = _problems(frame.workspace)
    if frame.as_json:
        rows = [{"where": each.where, "message": each.message, "hint": each.hint or None} for each in problems]
        frame.document(_document({"ok": not problems, "problems": rows}))
    elif problems:
        frame.lines(render.plain(str(each)) for each in problems)
    else:
        frame.lines(["the settings are sound"])
    return WRONG if problems else 0


def _problems(workspace: Workspace) -> tuple[Problem, ...]:
    """Read the settings, and return what is wrong with them."""
    try:
        workspace.settings  # noqa: B018 - they are read when they are asked for
    except SettingsError as error:
        return error.problems
    return ()


@config_verb.command("explain")
@click.argument("key")
@framed
def explain_verb(frame: Frame, key: str) -> None:
    """Tell what a key means, what it may hold, and which layer its value came from."""
    settings = frame.workspace.settings
    rows = explain(settings, key)
    if frame.as_json:
        frame.document(_document(_explained(settings, key, dict(rows))))
    else:
        frame.lines(render.block(rows))


def _explained(settings: Settings, key: str, said: Mapping[str, str]) -> dict[str, Any]:
    """Return the explanation of a key as data."""
    from loopr.world.settings.reading import plain

    return {
        "key": key,
        "value": settings.value(key),
        "from": said["from"],
        "meaning": said["meaning"],
        "default": settings.default(key),
        "allowed": said["allowed"],
        "keys": said["keys"].split(", ") if "keys" in said else [],
        "shadowed": [{"from": node.where, "value": plain(node)} for node in settings.shadowed(key)],
    }


@config_verb.command("schema")
@framed
def schema_verb(frame: Frame) -> None:
    """Print the JSON schema of loopr.yml, for editors."""
    if frame.as_json:
        frame.document(_document({"json_schema": json_schema()}))
    else:
        frame.lines([json.dumps(json_schema(), indent=2)])


@click.command("set", context_settings={"ignore_unknown_options": True})  # so that -1 is a value
@click.argument("key")
@click.argument("value")
@click.option("-n", "--dry-run", is_flag=True, help="show what would change; write nothing")
@framed
def set_verb(frame: Frame, key: str, value: str, dry_run: bool) -> None:
    """Change a setting in loopr.yml, keeping its comments; refuse what would be wrong."""
    path, home = frame.workspace.place.root / SETTINGS_FILE, os.environ.get("HOME")
    known = Path(home) if home else None
    old, new = set_key(path, key, value, environ=os.environ, home=known, dry_run=dry_run)
    winner = _winner(frame, key)
    if frame.as_json:
        body = {"key": key, "old": old, "new": new, "file": path.name, "dry_run": dry_run, "overruled_by": winner}
        frame.document(_document(body))
        return
    words = f"{key}: {_yaml(old)} → {_yaml(new)} ({path.name}{', not written' if dry_run else ''})"
    frame.lines([render.plain(words)])
    if winner:
        frame.note(f"  but {winner} says otherwise, and wins: `loopr config explain {key}`")


def _winner(frame: Frame, key: str) -> str | None:
    """Return the later layer that overrules the file, if there is one."""
    try:
        origin = frame.workspace.settings.origin(key)
    except UserError:  # the file was wrong before a dry run, or does not have the key yet
        return None
    return origin if origin.startswith(_LATER_LAYERS) else None


def _yaml(value: Any) -> str:
    """Write a value on one line, as it would stand in the file."""
    from loopr.world.settings.writing import flow

    return flow(value)


def _document(body: dict[str, Any]) -> dict[str, Any]:
    """Head a document."""
    return views.document(wall_clock(), body)
