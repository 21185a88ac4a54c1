"""The verbs that show: tree, ls, status, show, why.

Each looks once and prints; none changes a byte on disk.
"""

from __future__ import annotations

from itertools import chain, repeat

import click

from loopr.core.gates import closed_gates
from loopr.core.grouping import Waits, queue_depth
from loopr.core.model import Loop, Status
from loopr.core.offering import offered_words
from loopr.core.policy import OWN_REPO
from loopr.core.scene import Scene
from loopr.errors import NotFound, UserError
from loopr.ui import documents, render, views
from loopr.ui.cli.frame import Frame, reading
from loopr.ui.folding import fold
from loopr.ui.names import find_id
from loopr.ui.older import age_words, stale_lines
from loopr.ui.story import moved_words
from loopr.ui.times import say_clock, say_duration, say_tokens
from loopr.ui.unattended import unattended, unattended_loop
from loopr.ui.unread import behind, unread, words
from loopr.ui.warnings import warnings
from loopr.wiring import Scenery

ROOM = 60
MOST_UNREAD = 3
NOTHING_YET = "nothing is planned here yet: `loopr start --no-run plan.md`"
_ID = "the loop: an id, its last segments, or a prefix"


@click.command("tree")
@click.argument("loop", required=False)
@click.option("-a", "--all", "everything", is_flag=True, help="draw every loop, folding nothing")
@click.option("--depth", type=click.IntRange(0), help="draw only so many levels")
@click.option("--dot", is_flag=True, help="print every loop and need as a graph in the DOT language")
@reading
def tree_verb(frame: Frame, *, loop: str | None, everything: bool, depth: int | None, dot: bool) -> None:
    """Draw the hierarchy, with what each loop waits for."""
    seen = frame.workspace.look(frame.at)
    scene, now = seen.scene, seen.now
    if frame.as_json:
        if dot:
            raise UserError("--dot has a format of its own, which is no JSON", hint="leave one of the two out")
        frame.document(documents.tree(frame.workspace, seen, loop))
        return
    top = find_id(scene.loops, loop) if loop else None
    if dot:
        from loopr.core.graph import to_dot  # slow to import

        frame.lines(to_dot(scene.tree, top).splitlines())
        return
    tops = [top] if top else scene.tree.children(None)
    if not tops:
        frame.note(NOTHING_YET)
        return
    room = 0 if everything or depth is not None else max(ROOM, frame.height - 4)
    paint = render.Paint(frame.color)
    lines, said = fold(scene, tops, room, depth), _last_words(frame, scene)
    frame.lines(render.tree_lines(scene, lines, now, frame.width, paint, said=said))
    alone = unattended(scene, now, frame.workspace.engine())
    drawn = [line.loop for line in lines if line.loop is not None]
    frame.lines(paint("warn", render.fit(line, frame.width)) for line in _remarks(seen, alone))
    tell_unread(frame, unread(frame.workspace, scene, behind(scene, drawn)))
    frame.lines(render.footer(views.counts(scene.tree.walk(top)), frame.width))


def tell_unread(frame: Frame, rows: list[views.Row]) -> None:
    """Print which files differ from what was read, a few of them."""
    lines = [line for row in rows[:MOST_UNREAD] for line in render.wrap("", render.plain(words(row)), frame.width)]
    more = [f"and {len(rows) - MOST_UNREAD} files more that differ"] if len(rows) > MOST_UNREAD else []
    paint = render.Paint(frame.color)
    frame.lines(paint("warn", line) for line in [*lines, *more])


def _last_words(frame: Frame, scene: Scene) -> render.Said:
    """Make what finds the last thing that the agent of a loop said; what knows agents is imported if any may work."""
    if not scene.tree.by_status[Status.RUNNING]:
        return lambda loop: ""
    from loopr.ui.saying import last_words, of_agents
    from loopr.world.runs import Runs

    return of_agents(last_words(Runs(frame.workspace.place.state), frame.workspace.hide))


def _remarks(seen: Scenery, alone: str) -> list[str]:
    """List what a person should know beside the tree: lanes, holds, problems, the queue, that no engine runs."""
    scene, now = seen.scene, seen.now
    lines = render.lane_lines(views.lanes(scene), scene, now) + render.hold_lines(scene, now)
    lines += map(render.plain, views.problem_lines(scene))
    lines += [
        f"offered: {render.plain(offered_words(scene, scene.loops[each]))}" for each in sorted(scene.tree.offered)
    ]
    return [*lines, *warnings(scene, queue_depth(scene, now)), *stale_lines(scene), *filter(None, [alone])]


@click.command("ls")
@click.argument("loop", required=False)
@click.option(
    "--status", "wanted", multiple=True, type=click.Choice([each.value for each in Status]), help="only these"
)
@click.option("--type", "types", multiple=True, help="only this type")
@click.option("--project", "projects", multiple=True, help="only this project")
@click.option("--ready", is_flag=True, help="only those that no gate holds back")
@reading
def ls_verb(
    frame: Frame,
    *,
    loop: str | None,
    wanted: tuple[str, ...],
    types: tuple[str, ...],
    projects: tuple[str, ...],
    ready: bool,
) -> None:
    """List loops, one a line: id, type, status, and what it waits for."""
    seen = frame.workspace.look(frame.at)
    scene, now = seen.scene, seen.now
    chosen = documents.chosen_loops(seen, documents.Filter(loop, wanted, types, projects, ready))
    if frame.as_json:
        frame.document(documents.listed(frame.workspace, seen, chosen))
        return
    rows, waits = [], Waits(scene, now)
    for each in chosen:
        gate = waits.first_closed(each) if each.waits else None
        rows.append((each.id, each.type, render.state_word(each, gate), render.detail(scene, each, gate, now)))
    frame.lines(render.table(rows, frame.width))
    if not rows:
        frame.note("no loop is like that" if scene.loops else NOTHING_YET)
    tell_unread(frame, unread(frame.workspace, scene, behind(scene, chosen)))


@click.command("status")
@click.option("--metrics", is_flag=True, help="print counters and gauges in the format that Prometheus reads")
@reading
def status_verb(frame: Frame, metrics: bool) -> None:
    """Say what the workspace as a whole is doing."""
    seen = frame.workspace.look(frame.at)
    if metrics:
        _print_metrics(frame, seen)
        return
    body = documents.status(frame.workspace, seen)
    if frame.as_json:
        frame.document(body)
        return
    frame.lines(_status_lines(frame, seen, body))
    tell_unread(frame, body["unread"])


def _print_metrics(frame: Frame, seen: Scenery) -> None:
    """Print the state and the whole history as numbers."""
    from loopr.ui.metrics import exposition

    if frame.as_json:
        raise UserError("--metrics has a format of its own, which is no JSON", hint="leave one of the two out")
    try:
        with frame.workspace.journal() as journal, journal.snapshot() as seq:
            text = exposition(seen.scene, seen.now, journal.since(0, seq), journal.spent_since(0))
    except NotFound:
        text = exposition(seen.scene, seen.now, (), ())
    frame.lines(text.removesuffix("\n").split("\n"))


def _status_lines(frame: Frame, seen: Scenery, body: views.Row) -> list[str]:
    """Set the status in a few lines a person reads from the top."""
    engine, capacity, queue = body["engine"], body["capacity"], body["queue"]
    who = f"pid {engine['pid']} on {engine['host']}" if engine["pid"] else "but has not said who it is"
    running = f"running, {who}" if engine["running"] else "not running"
    ceiling = f" of {capacity['max_loops']} taken" if capacity["free"] is not None else " taken, no ceiling"
    by_type = ", ".join(f"{n} {name}" for name, n in queue["by_type"].items())
    pairs = [
        ("engine", running + (" (draining)" if engine["draining"] else " (stays)" if engine["stays"] else "")),
        *zip(chain(("loops",), repeat("")), render.footer(body["counts"], frame.width - 8), strict=False),
        ("slots", f"{capacity['occupied']}{ceiling}"),
        *zip(chain(("full",), repeat("")), capacity["full"], strict=False),
        ("queue", f"{queue['depth']} waiting for a slot" + (f": {by_type}" if by_type else "")),
        ("ready", str(body["ready"]) if body["ready"] else ""),
        ("stands", ", ".join(f"{each['id']} is stranded" for each in body["plans"] if each["stranded"])),
        ("host", seen.scene.shared.host[0]),
    ]
    lines = render.block(pairs)
    if len(body["projects"]) > 1:
        lines += ["", *render.table(*_project_table(body["projects"], frame.width))]
    lines += render.lane_lines(body["lanes"], seen.scene, seen.now) + render.hold_lines(seen.scene, seen.now)
    if body["problems"]:
        lines += ["", "problems:"]
        for each in body["problems"]:
            first, *more = render.plain(render.at_place(each["place"], each["text"]), keep_lines=True).split("\n")
            lines += [f"  {first}", *(f"    {line}" for line in more)]
    lines += ["", *(render.plain(_moved_words(each)) for each in body["moved"])] if body["moved"] else []
    if body["offered"]:
        lines += ["", "offered:", *(f"  {render.plain(each['text'])}" for each in body["offered"])]
    return lines + [f"warning: {render.plain(each)}" for each in body["warnings"]]


def _moved_words(row: views.Row) -> str:
    """Tell that a branch has moved, and what may follow."""
    words = moved_words(row["branch"], row["during"], explained=row["explained"], undo=row["undo"])
    return words if row["explained"] else f"{words}; `loopr land` onto {row['branch']} asks first"


def _project_table(projects: views.Row, width: int) -> tuple[list[list[str]], int, list[str]]:
    """Set the shares of the projects in columns."""
    rows = [
        [
            name,
            f"{row['weight']:g}",
            f"{row['share']:.0%}",
            f"{row['target']:.0%}",
            say_tokens(row["budget"]["tokens"]["used"]),  # `usage` has what shares count, time too
            str(row["occupied"]),
        ]
        for name, row in projects.items()
    ]
    return rows, width, ["project", "weight", "share", "target", "used", "running"]


@click.command("show")
@click.argument("loop")
@reading
def show_verb(frame: Frame, loop: str) -> None:
    """Tell all about one loop: where it stands, its attempts and its children."""
    from loopr.ui.convoys import way_words  # tree and why, which are asked most, do without

    seen = frame.workspace.look(frame.at)
    body = documents.show(frame.workspace, seen, loop)
    if frame.as_json:
        frame.document(body)
        return
    row = body["loop"]
    found = seen.scene.loops[row["id"]]
    waits = next((gate["reason"] for gate in row["gates"]), "") if found.status is not Status.COMPLETE else ""
    pairs = [
        ("id", row["id"]),
        ("title", row["title"]),
        ("type", f"{row['type']}, project {row['project']}{_home_of(seen.scene, found)}"),
        ("status", row["status"] + (" and done" if row["done"] else "")),
        ("why", waits),
        ("age", age_words(seen.scene, found, next(closed_gates(seen.scene, found, seen.now), None))),
        ("left", render.left_by(seen.scene, found)),
        ("needs", ", ".join(row["needs"])),
        ("frees", ", ".join(body["frees"])),
        ("agent", _agent(seen.scene, found, seen.now)),
        ("tries", f"iteration {row['iteration']} of {row['max_iterations']}, attempt {row['attempt']}"),
        ("failures", _failures(row)),
        ("used", _used(row["usage"])),
        ("subtree", render.roll_up(seen.scene, found) if row["below"]["total"] else ""),
        ("ahead", way_words(body["progress"]) if row["below"]["total"] else ""),
        ("worktree", row["worktree"] or ""),
        ("input", row["input"] or ""),
        ("output", row["output"]),
        ("reason", row["reason"] or ""),
        ("refused", "; ".join(map(render.plain, body["denied"]))),
        ("created", say_clock(found.created, seen.now)),
    ]
    frame.lines([*render.block(pairs, frame.width), *_attempt_lines(body["attempts"], frame.width)])
    rows = [(each["id"], each["type"], each["status"], each["title"]) for each in body["children"]]
    if rows:
        frame.lines(["", *render.table(rows, frame.width)])
    tell_unread(frame, body["unread"])


def _home_of(scene: Scene, loop: Loop) -> str:
    """Say which repository a loop works in, if that is not the one around the workspace."""
    bound = scene.shared.plans.get(loop.plan)
    repo = bound.repo if bound is not None else OWN_REPO
    return "" if repo == OWN_REPO else f", in {render.plain(repo)}" if repo else ", in no repository"


def _agent(scene: Scene, loop: Loop, now: int) -> str:
    """Name the agent that works for a loop now, and why it is not the first one; nothing where a command does."""
    taken = scene.taken_over(loop)
    name = scene.agent_of(loop)
    own = name
    if taken is not None:
        early = loop.taken_early and dict(loop.tally).get(taken[0], 0) < taken[1].after
        own += f", which took over {'as nothing had changed' if early else f'after {taken[1].after} times {taken[0]}'}"
    return views.stand_in(scene, loop, now) or own


def _attempt_lines(attempts: list[views.Row], width: int) -> list[str]:
    """Set the attempts below each other, with what became of them."""
    lines = ["", "attempts:"] if attempts else []
    for each in attempts:
        head = f"  {each['attempt']:>3}  {each['started_at']}  "
        by = f"{each['agent']}: " if each["agent"] else ""
        lines += render.wrap(head, render.plain(f"{by}{each['outcome'] or 'has not ended'}"), width)
    return lines


def _failures(row: views.Row) -> str:
    """Say how many attempts in a row ended without a verdict, and how many of the last ones did not even start."""
    unstarted = row["launch_failures"]
    return f"{row['failures']}{f', {unstarted} of them did not start' if unstarted else ''}" if row["failures"] else ""


def _used(usage: views.Row) -> str:
    """Say what a loop has used, nothing if it has used nothing."""
    words = [f"{say_tokens(usage['tokens'])} tokens"] if usage["tokens"] else []
    words += [f"${usage['usd']:.2f}"] if usage["usd"] else []
    words += [say_duration(round(usage["seconds"] * 1000))] if usage["seconds"] else []
    return ", ".join(words)


_BELOW_0 = "below 0, waiting wins it no turn before what has more: it may wait for ever"


@click.command("why")
@click.argument("loop")
@reading
def why_verb(frame: Frame, loop: str) -> None:
    """Say why a loop does not run: every closed gate, its score with its parts, its story."""
    seen = frame.workspace.look(frame.at)
    body = documents.why(frame.workspace, seen, loop)
    if frame.as_json:
        frame.document(body)
        return
    frame.lines(_why_lines(frame, seen.scene, body, seen.now))
    found = seen.scene.loops[body["id"]]
    alone = unattended_loop(seen.scene, found, frame.workspace.engine(), runnable=body["runnable"])
    frame.lines([alone] if alone else [])


def _why_lines(frame: Frame, scene: Scene, body: views.Row, now: int) -> list[str]:
    """Set the reasons, the score and the story below each other."""
    score, loop = body["score"], scene.loops[body["id"]]
    state = "no gate is closed: it waits for its turn, `loopr next`" if body["runnable"] else f"{loop.status}"
    lines = [f"{loop.id} ({loop.type}): {state}"]
    if scene.taken_over(loop) is not None or views.stand_in(scene, loop, now):
        lines += render.wrap(f"  {'agent':9} ", render.plain(_agent(scene, loop, now)), frame.width)
    if words_of_age := age_words(scene, loop):
        lines += render.wrap(f"  {'age':9} ", render.plain(words_of_age), frame.width)
    for gate in body["gates"]:
        until = f" (until {gate['until']})" if gate["until"] else ""
        lines += render.wrap(f"  {gate['gate']:9} ", render.plain(gate["reason"]) + until, frame.width)
    for row in body["unread"]:
        lines += render.wrap(f"  {'':9} ", render.plain(words(row)), frame.width)
    parts = f"base {score['base']} + age {score['age']} + depth {score['depth']} - retry {score['retry']}"
    parts += f" + priority {score['priority']}" if score["priority"] else ""
    lines.append(f"score {score['total']} = {parts}")
    if score["priority"] < 0:
        lines += render.wrap("  ", _BELOW_0, frame.width)
    lines.append("story:")
    for each in body["story"]:
        lines += render.wrap(f"  {each['seq']:>5}  {each['at']}  ", render.plain(each["text"]), frame.width)
    return lines
