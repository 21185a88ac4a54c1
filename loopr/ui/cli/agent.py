"""The verbs for agent presets: agent list, show, test and schema.

Must never know a single client.
"""

from __future__ import annotations

import json
import os
import sys

import click

from loopr.ui import render, views
from loopr.ui.checkup.rows import finding_lines
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.presets import Row, here_of, preset_row, preset_rows, preset_words
from loopr.wiring import wall_clock

WIDEST = len("installed")


@click.group("agent")
def agent_verb() -> None:
    """List, show and try the agent presets."""


@agent_verb.command("list")
@framed
def list_verb(frame: Frame) -> None:
    """List the agent presets: shipped ones, those of the workspace's agents/ folder, and those of loopr.yml."""
    workspace = frame.workspace
    rows = preset_rows(workspace.settings, os.environ.get("PATH"), here_of(workspace.place))
    if frame.as_json:
        frame.document(views.document(wall_clock(), {"agents": rows}))
        return
    cells = [(each["name"], _state(each), ", ".join(each["lanes"]), _told(each)) for each in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(3)]
    for row in cells:
        line = "  ".join(render.pad(word, width) for word, width in zip(row, widths, strict=False))
        frame.lines([render.fit(render.plain(f"{line}  {row[3]}".rstrip()), frame.room)])


def _state(row: Row) -> str:
    """Say in a word whether a preset can be used."""
    if row["problem"]:
        return "wrong"
    if row["program"]:
        return "installed"
    return "a shell runs it" if row["shell"] else "not found"


def _told(row: Row) -> str:
    """Say what a preset is, who uses it, or what is wrong with it."""
    if row["problem"]:
        return str(row["problem"])
    used = f"used by {', '.join(row['types'])}" if row["types"] else ""
    own = "" if str(row["from"]).startswith("loopr/") else f"from {row['from']}"
    return " · ".join(filter(None, [row["about"] or "", own, used]))


@agent_verb.command("show")
@click.argument("name")
@framed
def show_verb(frame: Frame, name: str) -> None:
    """Show one preset: its command, environment, lane and reader, and what its messages mean."""
    workspace = frame.workspace
    preset = workspace.settings.preset(name)
    row = preset_row(preset, os.environ.get("PATH"), here_of(workspace.place))
    if frame.as_json:
        frame.document(views.document(wall_clock(), {"agent": row}))
        return
    frame.lines(render.block([(key, render.plain(words)) for key, words in preset_words(row)]))
    if row["program"] is None and row["install"] and not row["shell"]:
        frame.note(f"it is not on this machine: {render.plain(row['install'])}")


@agent_verb.command("test")
@click.argument("name")
@click.option("--live", is_flag=True, help="let it work in a scratch repository too, which its provider may charge for")
@framed
def test_verb(frame: Frame, name: str, live: bool) -> int:
    """Put one preset to the proof: is it installed, and with --live: does it answer, edit, report usage and stop?"""
    from loopr.ui.trial import try_agent

    rows = []
    workspace = frame.workspace
    for found in try_agent(workspace.settings, workspace.place, name, os.environ, live=live):
        rows.append(found)
        if not frame.as_json:
            frame.lines(finding_lines([found], render.Paint(frame.color), WIDEST, wall_clock()))
            sys.stdout.flush()
    failed = any(each.ok is False for each in rows)
    if frame.as_json:
        checks = [each._asdict() | {"hint": each.hint or None} for each in rows]
        frame.document(views.document(wall_clock(), {"agent": name, "ok": not failed, "checks": checks}))
    elif not failed and not live:
        frame.note(f"`loopr agent test {name} --live` lets it work for a minute, in a repository of its own")
    return int(failed)


@agent_verb.command("schema")
@framed
def schema_verb(frame: Frame) -> None:
    """Print the JSON schema of a file in agents/, for editors."""
    from loopr.world.settings.showing import preset_schema

    if frame.as_json:
        frame.document(views.document(wall_clock(), {"json_schema": preset_schema()}))
    else:
        frame.lines([json.dumps(preset_schema(), indent=2)])
