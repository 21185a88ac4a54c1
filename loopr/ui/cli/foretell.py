"""The verb that foretells: `next`, the engine's next round or the leases that pull workers would get.

It prints what would be decided, and decides nothing. Must never know how that is found out.
"""

from __future__ import annotations

import click

from loopr.ui import documents, render
from loopr.ui.cli.frame import Frame, reading, several
from loopr.ui.cli.see import tell_unread


@click.command("next")
@click.option("--pull", is_flag=True, help="show the leases that pull workers would get, and take none")
@several("--type", "types", metavar="TYPE", help="with --pull: only loops of this type")
@several("--project", "projects", metavar="NAME", help="with --pull: only loops of this project")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="with --pull: at most so many leases")
@reading
def next_verb(
    frame: Frame, *, pull: bool, types: tuple[str, ...], projects: tuple[str, ...], limit: int | None
) -> None:
    """Show the next round of launches before it is decided."""
    wanted = documents.pulled(pull, {"type": types, "project": projects, "limit": limit})
    body = documents.coming(frame.workspace, frame.at, wanted)
    if frame.as_json:
        frame.document(body)
        return
    if body["refused"]:
        frame.note(render.plain(body["refused"]))
    if not body["grants"]:
        frame.note(
            f"nothing would {'be leased' if pull else 'start'} now"
            + (": `loopr why ID` says why" if body["held"] else "")
        )
    rows = [
        (str(n), each["id"], each["project"], str(each["score"]["total"]), render.plain(each["stands_in"] or ""))
        for n, each in enumerate(body["grants"], 1)
    ]
    frame.lines(render.table(rows, frame.room, ("#", "loop", "project", "score", "")) if rows else [])
    held: dict[str, list[str]] = {}
    for each in body["held"]:
        held.setdefault(each["gate"], []).append(each["id"])
    tell_unread(frame, body["unread"])
    for gate, ids in held.items():
        named = f"{', '.join(ids[:3])}{f' and {len(ids) - 3} more' if len(ids) > 3 else ''}"
        frame.lines(render.wrap("", f"held by {gate}: {len(ids)} ({named})", frame.room))
