"""The verbs that show: tree, ls, status, show, why.

Each looks once and prints; none changes a byte on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from loopr.core.gates import closed_gates
from loopr.core.grouping import Waits, queue
from loopr.core.model import Loop, Status
from loopr.core.offering import offered_words
from loopr.core.policy import OWN_REPO
from loopr.core.scene import Scene
from loopr.errors import UserError
from loopr.ui import documents, needed, render, stands, views
from loopr.ui.cli.frame import Frame, reading, several
from loopr.ui.folding import fold
from loopr.ui.names import counted, find_id
from loopr.ui.older import age_words, stale_lines
from loopr.ui.resources import wanted_words
from loopr.ui.times import localized, say_clock, say_duration, say_tokens
from loopr.ui.tries import try_lines
from loopr.ui.unattended import unattended, unattended_loop
from loopr.ui.unread import behind, missing, unread, words
from loopr.ui.verdicts import last_no, output_of
from loopr.ui.warnings import warnings
from loopr.ui.whereabouts import is_unchanged
from loopr.wiring import Scenery

ROOM = 60
MOST_UNREAD = 3
NOTHING_YET = "nothing is planned here yet: `loopr start --no-run plan.md`"
_ID = "the loop: an id, its last segments, or a prefix"


def draw_tree(frame: Frame, *, loop: str | None, everything: bool, depth: int | None, dot: bool) -> None:
    """Draw the hierarchy as it is now, with what each loop waits for."""
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
    queued = queue(scene, now)
    paint, is_ready = render.Paint(frame.color), stands.readiness(scene, now) if queued.ready else _is_not_ready
    lines, said = fold(scene, tops, room, depth), _last_words(frame, seen)
    frame.lines(render.tree_lines(scene, lines, now, frame.room, paint, said=said, is_ready=is_ready, whole=True))
    alone = unattended(scene, now, frame.workspace.engine())
    drawn = [line.loop for line in lines if line.loop is not None]
    remarks = (part for line in _remarks(seen, queued.depth, alone) for part in render.wrap("", line, frame.room))
    frame.lines(paint("warn", line) for line in remarks)
    tell_unread(frame, unread(frame.workspace, scene, behind(scene, drawn)))
    loops = list(scene.tree.walk(top))
    gone = missing(frame.workspace, scene, loops)
    frame.lines(paint("warn", line) for line in render.wrap("", gone, frame.width) if gone)
    pending = [loop for loop in loops if loop.status is Status.PENDING]
    ready = queued.ready if top is None and not scene.tree.redoing else sum(map(is_ready, pending))
    again = stands.to_do_again(scene, tops)
    done_of = scene.tree.done_of(tops)
    frame.lines(stands.footer(views.counts(loops), done_of, frame.room, ready, again=len(again)))


def tell_unread(frame: Frame, rows: list[views.Row]) -> None:
    """Print which files differ from what was read, a few of them."""
    lines = [line for row in rows[:MOST_UNREAD] for line in render.wrap("", render.plain(words(row)), frame.width)]
    beyond = len(rows) - MOST_UNREAD
    differ = "differs" if beyond == 1 else "differ"
    more = [f"and {counted(beyond, 'more file')} that {differ}"] if beyond > 0 else []
    paint = render.Paint(frame.color)
    frame.lines(paint("warn", line) for line in [*lines, *more])


def _last_words(frame: Frame, seen: Scenery) -> render.Said:
    """Make a function that finds the last words of a loop's agent, or that it is being set up.

    The module that knows agents is imported if any may work.
    """
    scene = seen.scene
    setups = dict[str, str]()
    if rows := documents.setups_now(frame.workspace, seen):
        from loopr.ui.preparing import words_of

        setups = {each["loop"]: words_of(each) for each in rows}
    if not scene.tree.by_status[Status.RUNNING]:
        return lambda loop: setups.get(loop.id, "")
    from loopr.ui.saying import last_words, of_agents
    from loopr.world.runs import Runs

    said = of_agents(last_words(Runs(frame.workspace.place.state), frame.workspace.hide))
    return lambda loop: setups.get(loop.id) or said(loop)


def _is_not_ready(loop: Loop) -> bool:
    """Say of each loop that it waits, where no loop of the workspace is ready."""
    return False


def _remarks(seen: Scenery, depth: Mapping[str, int], alone: str) -> list[str]:
    """List what a person should know beside the tree: lanes, holds, problems, the queue, that no engine runs."""
    scene, now = seen.scene, seen.now
    lines = render.lane_lines(views.lanes(scene), scene, now) + render.hold_lines(scene, now)
    lines += map(render.plain, views.problem_lines(scene))
    lines += [
        f"offered: {render.plain(offered_words(scene, scene.loops[each]))}" for each in sorted(scene.tree.offered)
    ]
    return [*lines, *warnings(scene, depth), *stale_lines(scene), *filter(None, [alone])]


class Words(click.Choice[str]):
    """The words in which loops are told apart, as they are typed."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take what a tree says of a loop that is open for the word of all such loops."""
        words = (stands.typed(each.strip()) for each in value.split(","))
        return ",".join(super(Words, self).convert(each, param, ctx) for each in words)


@click.command("ls")
@click.argument("loop", required=False)
@several("--status", "wanted", type=Words(stands.ALL_WORDS), help="only these, with commas between")
@several("--type", "types", help="only these types, with commas between")
@several("--project", "projects", help="only these projects, with commas between")
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
        rows.append((each.id, each.type, stands.word_of(scene, each, gate), render.detail(scene, each, gate, now)))
    frame.lines(render.table(rows, frame.room, whole=True))
    if not rows:
        frame.note("no loop is like that" if scene.loops else NOTHING_YET)
    tell_unread(frame, unread(frame.workspace, scene, behind(scene, chosen)))


@click.command("show")
@click.argument("loop")
@reading
def show_verb(frame: Frame, loop: str) -> None:
    """Tell all about one loop: where it stands, its tries and its children."""
    from loopr.ui.convoys import way_words  # tree and why, which are asked most, do without

    seen = frame.workspace.look(frame.at)
    body = documents.show(frame.workspace, seen, loop)
    if frame.as_json:
        frame.document(body)
        return
    row, found = body["loop"], seen.scene.loops[body["loop"]["id"]]
    waits = next((gate["reason"] for gate in row["gates"]), "") if found.status is not Status.COMPLETE else ""
    pairs = [
        ("id", row["id"]),
        ("title", row["title"]),
        ("type", f"{row['type']}, project {row['project']}{_home_of(seen.scene, found)}"),
        ("status", row["state"] + _since(frame, seen.scene, found, seen.now)),
        ("why", waits),
        ("age", age_words(seen.scene, found, next(closed_gates(seen.scene, found, seen.now), None))),
        ("left", render.left_by(seen.scene, found)),
        ("needs", ", ".join(row["needs"])),
        ("frees", ", ".join(body["frees"])),
        ("agent", _agent(seen.scene, found, seen.now)),
        ("tries", _tries(row)),
        ("failures", _failures(row)),
        ("used", _used(row["usage"])),
        ("subtree", stands.roll_up(seen.scene, found) if row["below"]["total"] else ""),
        ("ahead", way_words(body["progress"]) if row["below"]["total"] else ""),
        ("resources", wanted_words(seen.scene, found)),
        *_places(row, body["places"]),
        ("reason", row["reason"] or ""),
        ("refused", "; ".join(map(render.plain, body["denied"]))),
        ("created", say_clock(found.created, seen.now)),
    ]
    frame.lines([*render.block(pairs, frame.width), *try_lines(body["attempts"], seen.now, frame.width)])
    rows = [(each["id"], each["type"], each["state"], each["title"]) for each in body["children"]]
    frame.lines(["", *render.table(rows, frame.room, whole=True)] if rows else [])
    tell_unread(frame, body["unread"])


def _since(frame: Frame, scene: Scene, loop: Loop, now: int) -> str:
    """Say since when a loop waits for what comes after its command, and whether that has left all as it was."""
    since = render.since(loop, now)
    same = bool(since) and is_unchanged(frame.workspace, scene, loop)
    return (f", {since}" if since else "") + ("; no file changed" if same else "")


def _places(row: views.Row, places: views.Row) -> list[tuple[str, str]]:
    """Say where the work of a loop lies, and what it reads and hands over."""
    lies = [(name, places[name] or "") for name in ("branch", "landed", "logs")]
    return [("worktree", row["worktree"] or ""), *lies, ("input", row["input"] or ""), ("output", row["output"])]


def _home_of(scene: Scene, loop: Loop) -> str:
    """Say which repository a loop works in, if that is not the one around the workspace."""
    bound = scene.shared.plans.get(loop.plan)
    repo = bound.repo if bound is not None else OWN_REPO
    return "" if repo == OWN_REPO else f", in {render.plain(repo)}" if repo else ", in no repository"


def _agent(scene: Scene, loop: Loop, now: int) -> str:
    """Name the agent that works for a loop now, and why it is not the first one; nothing where a command does."""
    taken = scene.taken_over(loop)
    own = scene.agent_of(loop)
    if taken is not None:
        early = loop.taken_early and dict(loop.tally).get(taken[0], 0) < taken[1].after
        own += f", which took over {'as nothing had changed' if early else f'after {taken[1].after} times {taken[0]}'}"
    return views.stand_in(scene, loop, now) or own


def _tries(row: views.Row) -> str:
    """Say how often a loop was tried, and how many of these were refused of as many as may be."""
    refused = row["iteration"] - 1
    more = f", {refused} of at most {row['max_iterations']} refused" if refused else ""
    return f"{row['attempt']}{more}" if row["attempt"] else ""


def _failures(row: views.Row) -> str:
    """Say how many attempts in a row ended without a verdict, and how many of the last ones did not even start."""
    unstarted = row["launch_failures"]
    return f"{row['failures']}{f', {unstarted} of them did not start' if unstarted else ''}" if row["failures"] else ""


def _used(usage: views.Row) -> str:
    """Say what a loop has used, nothing if it has used nothing."""
    words = [f"{say_tokens(usage['tokens'])} tokens"] if usage["tokens"] else []
    words += [f"${usage['usd']:.2f}"] if usage["usd"] else []
    words += [say_duration(round(usage["seconds"] * 1000))] if usage["seconds"] else []
    beside = round(usage["beside_seconds"] * 1000)
    words += [f"and {say_duration(beside)} for setup and judges"] if beside else []
    return ", ".join(words)


_PARTS = (("age", "age"), ("depth", "depth"), ("retry", "tries"), ("priority", "priority"))
_BELOW_0 = "; below 0, waiting wins it no turn before what has more: it may wait for ever"


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


def _score_words(score: views.Row) -> str:
    """Say where a loop stands among the ready ones: its score, with the parts that are not 0."""
    parts = [(name, -score[key] if key == "retry" else score[key]) for key, name in _PARTS]
    told = [f" {'-' if part < 0 else '+'} {name} {abs(part)}" for name, part in parts if part]
    endless = _BELOW_0 if score["priority"] < 0 else ""
    return f"{score['total']} = type {score['base']}{''.join(told)}; the highest goes first{endless}"


def _beside(scene: Scene, loop: Loop, body: views.Row) -> Iterator[tuple[str, str]]:
    """Give what else a person may want to know of a loop, each under its word."""
    if judge := last_no(loop):
        yield judge, f"{output_of(judge, loop.id)} prints what it said"
    yield from needed.below(scene, loop)
    if body["update"]:
        yield "update", needed.words(needed.call_of(body["update"]))
    if body["conflict"] and body["conflict"]["hint"]:
        yield "conflict", body["conflict"]["hint"]
    if body["setup"]:
        from loopr.ui.preparing import words_of

        yield "setup", f"{words_of(body['setup'])}; its output is in {body['setup']['folder']}"
    for row in body["unread"]:
        yield "", words(row)


def _why_lines(frame: Frame, scene: Scene, body: views.Row, now: int) -> list[str]:
    """Set the reasons, the score and the story below each other."""
    loop = scene.loops[body["id"]]
    first = next(closed_gates(scene, loop, now), None)
    word = stands.word_of(scene, loop, first)
    state = "no gate is closed: it waits for its turn, `loopr next`" if body["runnable"] else word
    lines = [", ".join(filter(None, (f"{loop.id} ({loop.type}): {state}", render.since(loop, now))))]
    if scene.taken_over(loop) is not None or views.stand_in(scene, loop, now):
        lines += render.wrap(f"  {'agent':9} ", render.plain(_agent(scene, loop, now)), frame.width)
    if words_of_age := age_words(scene, loop):
        lines += render.wrap(f"  {'age':9} ", render.plain(words_of_age), frame.width)
    for gate in body["gates"]:
        until = f" (until {localized(gate['until'], now)})" if gate["until"] else ""
        reason = localized(render.plain(gate["reason"]), now) + until
        lines += render.wrap(f"  {gate['gate']:9} ", reason, frame.width)
    for word, text in _beside(scene, loop, body):
        lines += render.wrap(f"  {word:9} ", render.plain(text), frame.width)
    if loop.status is Status.PENDING:
        lines += render.wrap(f"  {'score':9} ", _score_words(body["score"]), frame.width)
    lines.append("story:")
    clocks = [localized(each["at"], now) for each in body["story"]]
    size = max(map(len, clocks), default=0)
    for each, clock in zip(body["story"], clocks, strict=True):
        took = "" if each["seconds"] is None else f"after {say_duration(round(each['seconds'] * 1000))}: "
        lines += render.wrap(f"  {each['seq']:>5}  {clock:{size}}  ", took + render.plain(each["text"]), frame.width)
    return lines
