"""The verb that takes a goal in words, with a command that judges it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from loopr.ui import render
from loopr.ui.cli.apart import keep_apart
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.cli.start import start_verb
from loopr.ui.edits import remarks_on
from loopr.ui.enqueueing import rehearse
from loopr.ui.gate import pass_gate
from loopr.ui.goals import Wanted, ensure_free, judged_by, place_goal, write_goal
from loopr.ui.requests import Plan


@click.command("goal")
@click.argument("words", metavar="GOAL...", nargs=-1, required=True)
@click.option("--check", metavar="CMD", help="the command that judges it: 0 is reached; none: nothing judges it")
@click.option("--agent", metavar="NAME", help="the agent preset that works for it; `agent list` names them")
@click.option("--run", metavar="CMD", help="the command that works for it, instead of an agent")
@click.option("--id", "own_id", metavar="ID", help="the id of its plan; left out, it is made from the words")
@click.option("-n", "--dry-run", is_flag=True, help="print the plan that it becomes; write nothing")
@click.option("--no-run", is_flag=True, help="write and enqueue the plan, and start nothing")
@click.option("--detach", is_flag=True, help="leave the work to an engine in the background")
@click.option("--until", "--for", "span", metavar="DURATION", help="start nothing more after, say, 6h")
@click.option("-y", "--yes", is_flag=True, help="go on where a person would be asked")
@framed
def goal_verb(
    frame: Frame,
    *,
    words: tuple[str, ...],
    check: str | None,
    agent: str | None,
    run: str | None,
    own_id: str | None,
    **given: Any,
) -> int:
    """Write a goal as a plan of one loop, and drive it until a command of yours says that it is reached."""
    workspace, dry_run = frame.workspace, given["dry_run"]
    if not (dry_run or given["yes"]):
        keep_apart(frame)
    wanted = Wanted(" ".join(words), check, run, agent, own_id or "")
    plan, judges = write_goal(workspace, wanted), judged_by(workspace, wanted)
    if not dry_run:
        pass_gate(workspace, "goal", [shlex.quote(" ".join(words))], lambda scene: [plan.id])
    ensure_free(plan)
    admitted = rehearse(
        workspace, [plan], lambda text: dry_run or given["yes"], to_run=not (dry_run or given["no_run"])
    )
    if not dry_run:
        fresh = place_goal(plan)
        told = f"{'wrote' if fresh else 'as before:'} {plan.source}{f'; {judges}' if judges else ''}"
        frame.note(render.plain(told))
        return start_written(frame, [plan], given)
    if frame.as_json:
        frame.document(admitted.document(workspace) | {"file": plan.source, "text": plan.text})
        return 0
    frame.lines(plan.text.splitlines())
    for remark in (each for done in admitted.done for each in remarks_on(done)):
        frame.note(render.plain(remark))
    frame.note(f"would be written to {render.plain(plan.source)}, and started")
    if judges:
        frame.note(render.plain(judges))
    return 0


def start_written(frame: Frame, plans: Sequence[Plan], given: Mapping[str, Any]) -> int:
    """Start plans whose files loopr has written itself, as `start` does with the options that were given."""
    common = {"directory": str(frame.directory), "as_json": frame.as_json, "no_color": not frame.color}
    paths = tuple(str(plan.path) for plan in plans)
    call = click.get_current_context().invoke
    code: int = call(start_verb, plans=paths, stay=False, sets=frame.sets, **common, **given)
    return code
