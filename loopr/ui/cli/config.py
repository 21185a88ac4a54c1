"""The verbs for settings: config show, check, explain and schema, and set.

`check` and `schema` answer whatever is wrong in the files. Must never know a single key.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import chain
from typing import Any

import click

from loopr.core.accepting import ACCEPT
from loopr.errors import Problem, SettingsError, UserError
from loopr.ui import render, views
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.gate import pass_gate
from loopr.ui.holding import accepted_of, difference_lines, held, take
from loopr.ui.setting import change
from loopr.wiring import Workspace, wall_clock
from loopr.world.settings import Settings, explain, json_schema, show

WRONG = 78


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
    if found := held(frame.workspace):
        frame.note(render.plain(found.words))


@config_verb.command("check")
@framed
def check_verb(frame: Frame) -> int:
    """Say whether the settings are sound, or everything that is wrong with them."""
    problems = _problems(frame.workspace)
    remarks = _remarks(frame.workspace) if not problems else ()
    if frame.as_json:
        rows, more = ([_row(each) for each in found] for found in (problems, remarks))
        ways = _ways(frame.workspace) if not problems else {}
        frame.document(_document({"ok": not problems, "problems": rows, "remarks": more, "ways": ways}))
    elif problems:
        frame.lines(render.plain(str(each)) for each in problems)
    else:
        frame.lines(["the settings are sound"])
        frame.note(", ".join(f"{name}: {way}" for name, way in _ways(frame.workspace).items()))
        for each in remarks:
            frame.note(render.plain(str(each)))
    return WRONG if problems else 0


def _row(problem: Problem) -> dict[str, Any]:
    """Return a problem as data."""
    return {"where": problem.where, "message": problem.message, "hint": problem.hint or None}


def _ways(workspace: Workspace) -> dict[str, str]:
    """Say of each type how its loops come to their end of which no entry says more."""
    from loopr.core.ways import way_of_type

    policy = workspace.in_force.load(workspace.in_force.written()).policy
    return {name: way_of_type(policy, name) for name in policy.types}


def _remarks(workspace: Workspace) -> tuple[Problem, ...]:
    """Return what sound settings ask for and this machine does not have."""
    from loopr.core.policy import DEFAULT_PROJECT
    from loopr.ui.environments import extra_problems
    from loopr.ui.programs import missing_programs
    from loopr.ui.shells import shell_problems
    from loopr.ui.silent import silent_types
    from loopr.world.notify import INSTALL, lacks

    missing = lacks(workspace.settings.notify)
    unheard = [Problem(missing, "notify", INSTALL)] if missing else []
    absent = (missing_programs(workspace, None, "", texts=each) for each in (False, True))
    unread = shell_problems(workspace, None, "", DEFAULT_PROJECT)
    extras = extra_problems(workspace, DEFAULT_PROJECT)
    more = *chain.from_iterable(absent), *unread, *extras
    return (*unheard, *silent_types(workspace.settings), *more)


def _problems(workspace: Workspace) -> tuple[Problem, ...]:
    """Read the settings as they are written, and return what is wrong with them."""
    from loopr.grounds import Written, repository_problems
    from loopr.payers import unknown_projects

    try:
        written = workspace.in_force.load(workspace.in_force.written())  # as they stand in the files
        seen = Written(workspace.place, written)
        scene = workspace.look().scene if workspace.place.journal.exists() else None
        lost = unknown_projects(seen, scene) if scene is not None else []
        return (*repository_problems(seen), *lost)
    except SettingsError as error:
        return error.problems


@config_verb.command("explain")
@click.argument("key")
@framed
def explain_verb(frame: Frame, key: str) -> None:
    """Tell what a key means, what it may hold, and which layer its value came from."""
    settings = frame.workspace.settings
    rows = explain(settings, key)
    waits = _waiting(frame.workspace, key)
    if frame.as_json:
        frame.document(_document(_explained(settings, key, dict(rows)) | {"held_back": waits}))
    else:
        shown = [("held back", f"{_yaml(each['value'])} ({each['from']}); {ACCEPT}") for each in waits]
        frame.lines(render.block([*rows, *shown]))


def _waiting(workspace: Workspace, key: str) -> list[dict[str, Any]]:
    """Return what is held back of a key, or below it, and where it is written."""
    found = held(workspace)
    if found is None or not any(each == key or each.startswith(f"{key}.") for each in found.keys):
        return []
    try:
        settings = workspace.in_force.load(found.texts)
    except UserError as error:  # as they are they do not load
        return [{"value": None, "from": str(error.problems[0])}]
    try:
        return [{"value": settings.value(key), "from": settings.origin(key)}]
    except UserError:  # the project or lane that it is a key of
        return [{"value": None, "from": "it is taken out"}]


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


@config_verb.command("accept")
@click.option("-n", "--dry-run", is_flag=True, help="show what would be accepted; change nothing")
@click.option("-y", "--yes", is_flag=True, help="take it without being asked")
@framed
def accept_verb(frame: Frame, dry_run: bool, yes: bool) -> None:
    """Show which changes of the settings are held back, and take them.

    What changes in loopr.yml and beside it while loops are at work could be a loop's doing, so it
    counts only once a person has said so.
    """
    workspace = frame.workspace
    if not dry_run:
        pass_gate(workspace, "config accept")
    texts, known = workspace.in_force.written(), accepted_of(workspace)
    fresh = bool(known.seal) and texts.seal != known.seal
    found = list(difference_lines(workspace, texts)) if fresh else []
    if fresh:
        workspace.in_force.load(texts)  # what does not load is not taken
    if not frame.as_json:
        frame.lines([render.plain(each) for each in found] or ["nothing is held back"])
    taken = fresh and not dry_run and _is_wanted(yes)
    if taken:
        take(workspace, texts)
        frame.note("accepted: this is in force now")
    if frame.as_json:
        frame.document(_document({"accepted": taken, "differences": found}))


def _is_wanted(yes: bool) -> bool:
    """Ask a person, if there is one; without one only --yes goes on."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UserError("nobody is there to be asked", hint="--yes takes it, --dry-run shows what it is")
    return click.confirm("Take these settings?", abort=True, err=True)


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
    found = change(frame.workspace, key, value, dry_run=dry_run)
    if frame.as_json:
        frame.document(found.document())
        return
    words = f"{key}: {_yaml(found.old)} → {_yaml(found.new)} ({found.file}{', not written' if dry_run else ''})"
    frame.lines([render.plain(words)])
    if found.overruled_by:
        frame.note(f"  but {found.overruled_by} says otherwise, and wins: `loopr config explain {key}`")


def _yaml(value: Any) -> str:
    """Write a value on one line, as it would stand in the file."""
    from loopr.world.settings.writing import flow

    return flow(value)


def _document(body: dict[str, Any]) -> dict[str, Any]:
    """Head a document."""
    return views.document(wall_clock(), body)
