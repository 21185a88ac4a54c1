"""From the forest to plain rows: the one source for every surface.

Each function returns the document of a verb (`formats.md` section 6) as plain JSON values, always with all its keys.
Knows the forest and the words for it. Must never know a terminal, a protocol or a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

from loopr.core.ceilings import full_ceilings
from loopr.core.fairness import usage_of
from loopr.core.gates import closed_gates
from loopr.core.grouping import Waits, queue
from loopr.core.ledger import PROJECT, Sums
from loopr.core.limits import FULL, crew_of, lane_closed
from loopr.core.model import FINISHED, OCCUPYING, Gate, Loop, Status
from loopr.core.offering import owner_of
from loopr.core.policy import Budget
from loopr.core.releasing import releases
from loopr.core.scene import Scene
from loopr.core.scoring import score
from loopr.core.shared import WORKSPACE, Lane
from loopr.core.staleness import is_stale, stale_because
from loopr.core.tips import BRANCH_PLACE
from loopr.core.ways import in_own_words
from loopr.ui.asked import moved_rows, offered_row
from loopr.ui.denials import denied, denied_to
from loopr.ui.older import anew_words, redo_row, stale_row, stale_rows
from loopr.ui.stands import below_row, done_of, done_row, word_of
from loopr.ui.warnings import budget_warnings, warnings

Row = dict[str, Any]
SCHEMA = 1


@lru_cache(1024)
def instant(at: int | None) -> str | None:
    """Write an instant as RFC 3339 in UTC, None if it never was."""
    if not at:
        return None
    return f"{datetime.fromtimestamp(at // 1000, UTC).isoformat()[:19]}.{at % 1000:03d}Z"


def document(now: int, body: Row) -> Row:
    """Head a document with its schema and its instant."""
    return {"schema": SCHEMA, "generated_at": instant(now)} | body


# --- one loop -----------------------------------------------------------------------------------------------------


def loop_row(scene: Scene, loop: Loop, now: int, gates: Iterable[Gate] | None = None) -> Row:
    """Return the one shape that a loop has everywhere; `gates` are the closed ones, where they are known already."""
    below, policy = scene.tree.below[loop.id], scene.policy
    closed = list(closed_gates(scene, loop, now) if gates is None else gates)
    live = loop.leased and loop.status not in FINISHED
    return {
        "id": loop.id,
        "type": loop.type,
        "title": loop.title,
        "status": loop.status.value,
        "state": word_of(scene, loop, closed[0] if closed else None),
        "done": scene.tree.done(loop.id),
        "below": below_row(below),
        "project": loop.project,
        "parent": loop.parent,
        "needs": list(loop.needs),
        "depth": loop.depth,
        "generation": loop.generation,
        "iteration": loop.iteration,
        "max_iterations": scene.judged_as(loop).max_iterations,
        **{key: getattr(loop, key) for key in ("attempt", "failures", "launch_failures", "conflicts")},
        "score": score(policy, loop, now, scene.priority_of(loop))._asdict(),
        "gates": [gate_row(gate) for gate in closed],
        "lease": _lease_row(loop),
        "lane": loop.lane,
        "agent": agent_of(scene, loop, now) or None,
        "branch": f"{policy.branch_prefix}{loop.name}" if live else None,
        "base_commit": loop.base_commit or None,
        "worktree": f"{policy.worktrees_dir}/{loop.name}" if live and loop.id in scene.housed else None,
        "input": _input(scene, loop),
        "output": policy.place_of(loop.id, loop.type),
        "usage": _usage_row(loop),
        "created_at": instant(loop.created),
        "started_at": instant(loop.lease.started_at) if loop.lease else None,
        "updated_at": instant(loop.updated),
        "reason": loop.reason or None,
        "stale": stale_because(scene.tree, loop) if is_stale(scene.tree, loop) else [],
        "redo": redo_row(loop),
    }


def agent_of(scene: Scene, loop: Loop, now: int) -> str:
    """Name the agent that works for a loop, or would now; nothing where a command does."""
    if loop.lease is not None:
        return loop.lease.agent
    return (crew_of(scene, loop, now).agent if loop.status is Status.PENDING else "") or scene.agent_of(loop)


def stand_in(scene: Scene, loop: Loop, now: int) -> str:
    """Say who stands in for a loop's agent, and why as far as that is so now; nothing where nobody does."""
    if loop.lease is None and not scene.policy.type_of(loop.type).fallback:
        return ""
    name, own = agent_of(scene, loop, now), scene.agent_of(loop)
    if loop.status not in (Status.PENDING, *OCCUPYING) or name in ("", own):
        return ""
    closed = lane_closed(scene, scene.crews_of(loop)[0].lanes[0], now) if loop.status is Status.PENDING else None
    return f"{name}, which stands in for {own or 'its command'}{f': {closed[0]}' if closed is not None else ''}"


def _input(scene: Scene, loop: Loop) -> str | None:
    """Name the file that a loop works from: its parent's artifact, or what its plan was started from."""
    if loop.parent is not None:
        parent = scene.loops[loop.parent]
        return scene.policy.place_of(parent.id, parent.type)
    bound = scene.shared.plans.get(loop.id)
    return bound.source if bound else None


def gate_row(gate: Gate) -> Row:
    """Return a closed gate as data."""
    return {"gate": gate.gate, "reason": gate.reason, "until": instant(gate.until)}


def _lease_row(loop: Loop) -> Row | None:
    """Return the present lease."""
    if loop.lease is None:
        return None
    return {"id": loop.lease_id, "holder": loop.lease.holder, "expires_at": instant(loop.lease.expires_at)}


def _usage_row(loop: Loop) -> Row:
    """Return what a loop has used, its live attempt included."""
    spent, live = loop.spent, loop.live
    usd = (spent.usd + (live.micro_usd or 0)) / 1_000_000
    row: Row = {"tokens": spent.tokens + (live.tokens or 0), "usd": usd}
    row |= {"seconds": (spent.ms + live.ms) / 1000, "beside_seconds": spent.beside_ms / 1000}
    return row | {"estimated": spent.estimated}


# --- many loops ---------------------------------------------------------------------------------------------------


def tree(scene: Scene, now: int, workspace: str, loops: Iterable[Loop] | None = None) -> Row:
    """Return all loops, or some, flat and in tree order, with their counts."""
    chosen, waits = list(scene.tree.walk() if loops is None else loops), Waits(scene, now)
    return document(
        now,
        {
            "workspace": workspace,
            "loops": [loop_row(scene, loop, now, waits.closed(loop)) for loop in chosen],
            "counts": counts(chosen),
            **done_row(done_of(scene, chosen)),
            "lanes": lanes(scene),
        },
    )


def counts(loops: Iterable[Loop]) -> dict[str, int]:
    """Count loops by status, in the order of a life."""
    found = Counter(map(attrgetter("status"), loops))
    return {each.value: found[each] for each in Status if each in found}


def lanes(scene: Scene) -> Row:
    """Return the state of every lane that is named, used or was ever hit."""
    names = {*scene.policy.lanes, *scene.shared.lanes}
    for each in scene.policy.types.values():
        names.update((*each.lanes, *each.judge_lanes))
        for agent in (*(step.agent for step in each.escalate.values()), *each.fallback):
            names.update(scene.policy.agents.get(agent, (agent,)))
    return {name: _lane_row(scene, name, scene.shared.lane(name)) for name in sorted(names)}


def _lane_row(scene: Scene, name: str, lane: Lane) -> Row:
    """Return one lane."""
    return {
        "max_concurrent": scene.policy.lane(name).max_concurrent,
        "occupied": scene.occupancy.by_lane.get(name, 0),
        "hits": lane.hits,
        "rest_until": instant(lane.rest_until),
        "ramp": lane.ramp,
        "parked": lane.parked or None,
        "reason": lane.reason or None,
        "window_used": lane.level / FULL if lane.level else None,
        "window_ends": instant(lane.level_until),
    }


def status(scene: Scene, now: int, engine: Mapping[str, Any] | None, changed: Iterable[str] = ()) -> Row:
    """Return what the workspace as a whole is doing; `changed` are plan files that were edited since their start."""
    policy, hold = scene.policy, scene.shared.holds.get(WORKSPACE)
    depth, ready = queue(scene, now)
    soft, hard = policy.queue_limits()
    occupied = scene.occupancy
    return document(
        now,
        {
            "engine": _engine_row(scene, engine),
            "paused": {"by": hold.by, "at": instant(hold.at), "reason": hold.reason} if hold else None,
            "capacity": {
                "max_loops": policy.max_loops,
                "occupied": occupied.total,
                "free": None if policy.unbounded else max(0, policy.max_loops - occupied.total),
                "per_type": {
                    name: {"limit": policy.per_type.get(name), "occupied": occupied.by_type.get(name, 0)}
                    for name in policy.types
                },
                "max_api_calls": policy.max_api_calls,
                "api_calls": occupied.api_calls,
                "full": list(full_ceilings(scene)),
            },
            "counts": counts(scene.tree.walk()),
            **done_row(scene.tree.done_of(scene.tree.children(None))),
            "queue": {"depth": sum(depth.values()), "by_type": depth, "soft_limit": soft, "hard_limit": hard},
            "ready": ready,
            "lanes": lanes(scene),
            "projects": projects(scene, now),
            "problems": problems(scene),
            **_to_know(scene),
            "warnings": [
                *warnings(scene, depth),
                *budget_warnings(scene, now, instant),
                *denied(scene, now),
                *(f"{each} has changed: start it again" for each in changed),
            ],
        },
    )


def _to_know(scene: Scene) -> Row:
    """Return what a person should know of, or say a word to."""
    offered = [offered_row(scene, scene.loops[each]) for each in sorted(scene.tree.offered)]
    return {"moved": moved_rows(scene), "offered": offered, "stale": stale_rows(scene)}


def _engine_row(scene: Scene, engine: Mapping[str, Any] | None) -> Row:
    """Return who serves the workspace."""
    live = engine if engine is not None and engine.get("kind") == "engine" else None
    return {
        "running": live is not None,
        "pid": (live["pid"] or None) if live else None,
        "host": (live["host"] or None) if live else None,
        "since": instant(live["since"]) if live and live["since"] else None,
        "draining": live is not None and scene.shared.engine.draining,
        "stays": bool(live and live["stays"]),
    }


def projects(scene: Scene, now: int) -> Row:
    """Return how the slots are shared, and what each project has used."""
    names = list(dict.fromkeys((*scene.policy.projects, *(each.project for each in scene.loops.values()))))
    usage = {name: usage_of(scene, name, names, now) for name in names}
    weight = {name: scene.policy.project(name).weight for name in names}
    busy = {each.project for each in scene.loops.values() if each.status is not Status.INVALIDATED}
    all_usage, all_weight = sum(usage.values()), sum(weight[name] for name in busy)
    return {
        name: {
            "weight": float(weight[name]),
            "usage": usage[name] / 1000,
            "share": usage[name] / all_usage if all_usage else 0.0,
            "target": float(weight[name] / all_weight) if name in busy else 0.0,
            "occupied": scene.occupancy.by_project.get(name, 0),
            "budget": budget_row(scene.policy.project(name).budget, scene.ledger.used((PROJECT, name), now)),
        }
        for name in names
    }


def budget_row(budget: Budget, used: Sums) -> Row:
    """Return the limits of a payer beside what it has used."""
    return {
        "tokens": {"limit": budget.tokens, "used": used.cost / 1000},
        "usd": {"limit": None if budget.micro_usd is None else budget.micro_usd / 1e6, "used": used.usd / 1e6},
        "secs": {"limit": budget.secs, "used": used.ms / 1000},
    }


def problem_lines(scene: Scene) -> list[str]:
    """Say beside a tree what is wrong: of a plan's branch in its own words, of all else only how much it is."""
    branches = [text for place, text in sorted(scene.shared.problems.items()) if place.startswith(BRANCH_PLACE)]
    count = len(scene.shared.problems) - len(branches)
    return [*branches, *([f"{count} problem{'s' * (count != 1)}: `loopr status` tells"] if count else [])]


def problems(scene: Scene) -> list[Row]:
    """List what needs a person's eye: bad files, loops set aside, and landed work that nobody declares any more."""
    known = sorted(scene.shared.problems.items())
    found = [{"place": at, "text": text, "loop": owner_of(scene, at)} for at, text in known]
    for status in (Status.PARKED, Status.FAILED):
        for loop_id in sorted(scene.tree.by_status[status]):
            loop = scene.loops[loop_id]
            text = loop.reason or "no reason was given"
            found.append({"place": f"{loop_id} ({status})", "text": text, "loop": loop_id})
    for loop_id in sorted(scene.tree.by_status[Status.INVALIDATED]):
        loop = scene.loops[loop_id]
        if loop.landed:
            found.append({"place": loop_id, "text": _stays(scene, loop), "loop": loop_id})
    return found


def _stays(scene: Scene, loop: Loop) -> str:
    """Say where the landed work of an undeclared loop is, and which command takes it away."""
    branch, bound = f"{scene.policy.branch_prefix}{loop.plan}", scene.shared.plans.get(loop.plan)
    on = f" on {bound.base_branch}" if bound is not None and bound.base_branch else ""
    undo = f"once home, `git revert {loop.landed}`{on} takes it away"
    if loop.generation > 1:  # its earlier work was done again, or anew
        names = f"`git log --grep 'Loopr-Loop: {loop.id}$' {branch}` names its commits"
        undo = f"{names}; once home, `git revert`{on} takes them away"
    undo += " where nothing else counts on that"
    said = (undo, anew_words(scene, loop), f"`loopr gc --forget {loop.id}` ends this line")
    head = f"it is no longer declared, and what it has landed is in the history of {branch}"
    return f"{head}: {'; '.join(filter(None, said))}"


# --- why ------------------------------------------------------------------------------------------------------------


def why(scene: Scene, loop: Loop, now: int, story: list[Row]) -> Row:
    """Return every closed gate of a loop, its score with its parts, and its story so far."""
    gates = [in_own_words(scene, loop, gate) for gate in closed_gates(scene, loop, now)]
    return document(
        now,
        {
            "id": loop.id,
            "runnable": not gates,
            "gates": [gate_row(gate) for gate in gates],
            "offered": offered_row(scene, loop) if loop.offers.offered else None,
            "stale": stale_row(scene, loop),
            "redo": redo_row(loop),
            "score": score(scene.policy, loop, now, scene.priority_of(loop))._asdict(),
            "story": story,
        },
    )


def show(scene: Scene, loop: Loop, now: int, attempts: list[Row]) -> Row:
    """Return one loop with its attempts and its children, and what its completion sets free."""
    children = [loop_row(scene, scene.loops[each], now) for each in scene.tree.children(loop.id)]
    frees = releases(scene.tree, loop.id)
    body = {"loop": loop_row(scene, loop, now), "attempts": attempts, "children": children, "frees": frees}
    return document(now, body | {"denied": denied_to(scene, loop)})
