"""What operators find: a workspace with loops in every status and no engine, and plans whose loops wait at a gate.

`stand` builds the first: a loop called `parked-x` is parked. Knows how a loop gets into each status, and how to read
from the journal which way each has gone, and past which gates. Knows nothing of what a verb does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from loopr.core.codec import decode
from loopr.core.events import LeaseGranted, LoopEvent
from loopr.core.forest import Forest
from loopr.core.gates import closed_gates
from loopr.core.model import Status
from loopr.world.journal import Journal
from tests.e2e.repos import Ended, Repo

TOP = "demo/s/"
NEVER = "parked-never"
"""What keeps pending whatever needs it."""
SETTINGS = """\
types:
  plan: {child: spec}
  spec: {child: code}
  code: {approve: true, worktree: false}
retry: {base_secs: 3600, max_iterations: {code: 2}}
timeouts: {grace_secs: 1}
hooks: {pre_run: %s}
"""
BEFORE = 'case "$LOOPR_LOOP" in */leased-*) tell "$LOOPR_LOOP"; wait_at gate ;; esac'
WORK = """
case "$LOOPR_LOOP" in
  */parked-*) echo "no ink"; exit 78 ;;
  */failed-*) exit 1 ;;
  */running-*) tell "$LOOPR_LOOP"; wait_at gate ;;
esac
"""
AT_GATE = 'begin; tell "$LOOPR_LOOP"; wait_at gate; end'
QUICK = 'say "$LOOPR_LOOP"; echo "$LOOPR_ATTEMPT" >> "$(basename "$LOOPR_LOOP")"'
BY_ENGINE = ("leased", "running", "awaiting", "landing", "parked", "failed")
"""What an engine brings about before it is killed; everything else a person or a pull worker does."""
STATUSES = {each.value.partition("_")[0]: each for each in Status}


class Way(NamedTuple):
    """One step that a loop has gone: the event, and the statuses before and after it."""

    loop: str
    event: type[LoopEvent]
    old: Status | None
    new: Status


def status_of(name: str) -> str:
    """Say in which status a loop of that name stands."""
    return name.partition("-")[0]


def names(cohort: str, statuses: Iterable[str]) -> list[str]:
    """Name a loop for each status."""
    return [f"{each}-{cohort}" for each in statuses]


def ids(loops: Iterable[str]) -> list[str]:
    """Return the whole ids of loops."""
    return [f"{TOP}{each}" for each in loops]


def plan_text(repo: Repo, loops: Sequence[str], *, bodies: Sequence[str] = (), first: Sequence[str] = ()) -> str:
    """Write the plan: a spec with all loops, and one behind it; those of `bodies` have other work than before."""
    run = repo.script("work", WORK)
    rows = []
    for name in (*first, NEVER, *loops):
        status = status_of(name)
        more = f", run: '{run}'" if status in BY_ENGINE else ""
        more += f", needs: [{NEVER}]" if status in ("pending", "cancelled", "invalidated") else ""
        more += ", body: other work" if name in bodies else ""
        rows.append(f"      - {{id: {name}{more}}}\n")
    late = "  - {id: late, needs: [s], codes: [{id: x}" + (", {id: y}" if first else "") + "]}\n"
    return f"---\nspecs:\n  - id: s\n    codes:\n{''.join(rows)}{late}---\n# Demo\n"


def stand(repo: Repo, loops: Sequence[str]) -> None:
    """Bring loops into the statuses that their names begin with."""
    repo.settings(SETTINGS % repo.script("before", BEFORE))
    repo.write({"plan.md": plan_text(repo, loops)})
    repo.gate("gate")
    of = {status: [each for each in (NEVER, *loops) if status_of(each) == status] for status in STATUSES}
    for each in of["complete"]:
        repo.drop(f"{TOP}{each}/code.md", f"# {each}\n")
    engine = repo.begin("start", "plan.md")
    repo.heard(len(of["leased"]) + len(of["running"]))
    repo.until("passed", len(of["awaiting"]) + len(of["landing"]))
    repo.until("set_aside", len(of["parked"]))
    repo.until("refused", 2 * len(of["failed"]))
    repo.until("attempt_started", sum(len(of[each]) for each in BY_ENGINE) - len(of["leased"]) + len(of["failed"]))
    engine.kill()
    if of["checking"]:
        repo.loopr("lease", "take", "--holder", "ada", "--limit", str(len(of["checking"])))
        repo.loopr("lease", "complete", *(f"{each}#1" for each in of["checking"]))
    if of["landing"]:
        repo.loopr("approve", *of["landing"])
    if of["cancelled"]:
        repo.loopr("cancel", *of["cancelled"])
    if of["invalidated"]:
        restart(repo, [each for each in loops if status_of(each) != "invalidated"])
    found = {way.loop: way.new for way in ways(repo)}
    assert {each: found[f"{TOP}{each}"] for each in loops} == {each: STATUSES[status_of(each)] for each in loops}


def restart(repo: Repo, loops: Sequence[str], *, bodies: Sequence[str] = (), first: Sequence[str] = ()) -> None:
    """Start the plan again, with other loops or other work; loops are at work, so it is offered, and taken."""
    repo.write({"plan.md": plan_text(repo, loops, bodies=bodies, first=first)})
    assert "`loopr approve demo --file`" in repo.loopr("start", "--no-run", "--yes", "plan.md").err
    repo.loopr("approve", "demo", "--file")
    repo.loopr("start", "--no-run", "plan.md")


def ways(repo: Repo) -> Iterator[Way]:
    """Give every step that a loop has gone, by a replay of the journal."""
    forest = Forest()
    with Journal.open(repo.state / "loopr.db", readonly=True) as journal:
        for each in journal.since(0):
            event = decode(each.event, each.version, each.data)
            old = forest.loops.get(event.loop) if isinstance(event, LoopEvent) else None
            forest.apply(event, each.at)
            if isinstance(event, LoopEvent):
                yield Way(event.loop, type(event), old.status if old else None, forest.loops[event.loop].status)


# --- plans of loops that are alike ----------------------------------------------------------------------------------


def plan(repo: Repo, children: Sequence[str], *, work: str = AT_GATE, text: str = "", name: str = "demo") -> None:
    """Set a repository up for a plan whose code loops wait at a gate."""
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: '{repo.script('code', work)}'}}\n"
        f"timeouts: {{grace_secs: 1}}\nretry: {{base_secs: 0.05}}\n{text}"
    )
    repo.write({"plan.md": outline(children, name)})
    if "gate" not in repo.gates:
        repo.gate("gate")


def outline(children: Sequence[str], name: str = "demo") -> str:
    """Write a plan."""
    rows = "".join(f"  - {{id: {each}}}\n" for each in children)
    return f"---\nid: {name}\nchildren:\n{rows}---\n# {name}\n"


def numbered(count: int, prefix: str = "n") -> list[str]:
    """Return some names."""
    return [f"{prefix}{each}" for each in range(count)]


def at_once(repo: Repo, lines: Sequence[str], code: int | None = 0) -> list[Ended]:
    """Run several commands at the same time, to their ends."""
    return [each.ended(code) for each in [repo.begin(*line.split()) for line in lines]]


def past_gates(repo: Repo) -> list[str]:
    """Name every lease that was granted past a gate, by a replay of the journal with the gates asked before each."""
    forest, found = Forest(), []
    with Journal.open(repo.state / "loopr.db", readonly=True) as journal:
        for each in journal.since(0):
            event = decode(each.event, each.version, each.data)
            if isinstance(event, LeaseGranted):
                forest.advance(each.at)
                closed = [gate.gate for gate in closed_gates(forest, forest.loops[event.loop], each.at)]
                pulls = {"manual"} if event.expires_at is not None else set()
                found += [f"{each.seq} {event.loop}: {gate}" for gate in closed if gate not in pulls]
            forest.apply(event, each.at)
    return found
