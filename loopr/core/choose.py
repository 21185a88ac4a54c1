"""The selector: which loop is leased next, which lease has expired, when to look again.

Yields events one at a time, and whoever asks applies each before asking for the next: so every grant sees all earlier
ones, and the preview is the decision. It asks the same gates that `why` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from loopr.core import events as e
from loopr.core import workspace_events as w
from loopr.core.events import Event
from loopr.core.fairness import next_project
from loopr.core.forest import Forest
from loopr.core.gates import closed_for_group, group_ready_since
from loopr.core.grouping import GroupKey
from loopr.core.hot import ends_at, overdue
from loopr.core.in_vain import others_first
from loopr.core.intake import reclaim
from loopr.core.judge_events import MergeTurnEnded
from loopr.core.limits import budgets_of, crew_of, own_budget_ends, own_budget_reached, pick_lane
from loopr.core.model import Failure, Loop, Status
from loopr.core.packing import make_room
from loopr.core.policy import DEFAULT_LANE
from loopr.core.ranking import Candidate, Group
from loopr.core.redoing import begins
from loopr.core.scoring import score

Open = list[tuple[GroupKey, Group]]
ENGINE = "engine"
"""The holder of every lease that is not a pull worker's."""


def choose(forest: Forest, now: int) -> Iterator[Event]:
    """Decide one round: what has expired or landed as a whole, then grants until a gate closes on everybody."""
    yield from _expired(forest, now)
    yield from _spent_up(forest, now)
    yield from _landed_convoys(forest)
    batch, shut = forest.policy.batch_size, set[GroupKey]()
    granted = 0
    while (loop := pick(forest, now, shut)) is not None:
        if batch and granted >= batch:
            yield w.RoundCut()
            return
        yield from begins(loop)
        yield grant(forest, forest.loops[loop.id], now)
        reached = _nothing_left(forest, forest.loops[loop.id], now)
        if reached:
            yield e.SetAside(loop.id, forest.loops[loop.id].attempt, Failure.BUDGET, reached)
            shut.clear()  # its siblings may have waited for it
        else:
            granted += 1
    yield from make_room(forest, now)


def _expired(forest: Forest, now: int) -> Iterator[Event]:
    """Reclaim the leases of silent holders, and end the turns that took too long."""
    for loop_id in sorted(forest.tree.timed):
        loop = forest.loops[loop_id]
        if loop.lease is not None and loop.lease.expires_at is not None and now >= loop.lease.expires_at:
            yield from reclaim(forest, loop, now, f"the lease of {loop.lease.holder} expired")
        elif loop.ending is not None and loop.ending.expires_at is not None and now >= loop.ending.expires_at:
            yield e.AttemptGone(loop_id, loop.ending.attempt)
    for loop in list(overdue(forest, now)):
        yield MergeTurnEnded(loop.id)


def _nothing_left(forest: Forest, leased: Loop, now: int) -> str | None:
    """Say that a loop has used up what it had of its own, or never had any: it is set aside before anything begins.

    None if it may begin, or if its work is done and it is only to be judged.
    """
    if leased.lease is None or leased.lease.judge_only:
        return None
    return own_budget_reached(forest, leased, now)


def _spent_up(forest: Forest, now: int) -> Iterator[Event]:
    """Set every running loop aside that has used up the time it had of its own."""
    for ends, loop in _timed_by_budget(forest):
        if now >= ends and (reached := own_budget_reached(forest, loop, now)):
            yield e.SetAside(loop.id, loop.attempt, Failure.BUDGET, reached, live=True)


def _timed_by_budget(forest: Forest) -> list[tuple[int, Loop]]:
    """List the running loops that have so much time and no more, by id, with the end of it."""
    running = (forest.loops[each] for each in sorted(forest.tree.by_status[Status.RUNNING]))
    ends = ((own_budget_ends(forest, loop), loop) for loop in running)
    return [(at, loop) for at, loop in ends if at is not None]


def _landed_convoys(forest: Forest) -> Iterator[Event]:
    """Land every convoy whose members are all done."""
    for name, convoy in sorted(forest.shared.convoys.items()):
        if convoy.landed_at is None and convoy.members and all(map(forest.tree.done, convoy.members)):
            yield w.ConvoyLanded(name)


def pick(
    forest: Forest,
    now: int,
    shut: set[GroupKey] | None = None,
    *,
    pull: bool = False,
    wanted: Callable[[GroupKey], bool] = lambda key: True,
    below: tuple[str, ...] = (),
) -> Loop | None:
    """Return the loop that is next, None if a gate is closed on everybody.

    `shut` remembers groups that were found closed: while leases are granted nothing opens. `wanted` narrows the groups
    down for a pull worker, whom the gates `manual` and `pace` do not bind; one that is a loop gets what is `below` it.
    """
    forest.advance(now)
    shut = set() if shut is None else shut
    open_groups: Open = []
    for key, group in forest.ready.groups():
        if key in shut or not wanted(key):
            continue
        member = forest.loops[next(iter(group.members))]
        if closed_for_group(forest, member, now, pull=pull) is None:
            open_groups.append((key, group))
        else:
            shut.add(key)
    if not open_groups:
        return None
    if below:
        return _first_below(forest, open_groups, below, now)
    if pull and any(not key.command for key, _ in open_groups):
        open_groups = [(key, group) for key, group in open_groups if not key.command]
    return _dispatched(forest, open_groups) or _first_of(forest, others_first(forest, open_groups, now), now)


def _first_below(forest: Forest, open_groups: Open, below: tuple[str, ...], now: int) -> Loop | None:
    """Return the loop with the highest score among those whose ids begin so."""
    names = [each for _, group in open_groups for each in group.members if each.startswith(below)]
    loops = [forest.loops[each] for each in names]

    def rank(loop: Loop) -> tuple[int, int, str]:
        """Say how soon a loop goes: the smaller, the sooner."""
        total = score(forest.policy, loop, now, forest.priority_of(loop)).total
        return -total, loop.created, loop.id

    return min(loops, key=rank, default=None)


def _dispatched(forest: Forest, open_groups: Open) -> Loop | None:
    """Return the first loop that a person put ahead of everything and that no gate holds back."""
    for loop_id in forest.shared.dispatch:
        if any(loop_id in group.members for _, group in open_groups):
            return forest.loops[loop_id]
    return None


def _first_of(forest: Forest, open_groups: Open, now: int) -> Loop | None:
    """Return the first loop of the next project: one with a conflict to mend, else one that starves.

    Else the one with the highest score.
    """
    project = next_project(forest, sorted({key.project for key, _ in open_groups}), now)
    groups = [(key, group) for key, group in open_groups if key.project == project]
    mending = _mending(forest, groups)
    if mending is not None:
        return mending
    found = _starving(forest, groups, now) or _best(forest, groups, now)
    return forest.loops[found.id] if found is not None else None


def _mending(forest: Forest, groups: Open) -> Loop | None:
    """Return the loop with the earliest conflict, of those that may mend theirs now."""
    waiting = (forest.loops[each] for each in forest.tree.clashing)
    ready = (loop for loop in waiting if any(loop.id in group.members for _, group in groups))
    return min(ready, key=lambda loop: loop.clash.number, default=None)


def _best(forest: Forest, groups: Open, now: int) -> Candidate | None:
    """Return the highest score of several groups."""
    heads = (group.best(forest.policy, now) for _, group in groups)
    return min((head for head in heads if head is not None), default=None)


def _starving(forest: Forest, groups: Open, now: int) -> Candidate | None:
    """Return the loop that starves: the highest priority first, up to twice the bound; then the longest wait.

    Priorities below 0 are served after what is better and ready, however long they wait.
    """
    limit = forest.policy.starvation_ms
    if not limit or now - limit < 0:
        return None
    found: list[tuple[int, Candidate]] = []
    for _, group in groups:
        floor = group_ready_since(forest, forest.loops[next(iter(group.members))])
        heads = group.longest(floor) if floor <= now - limit else ()
        found += [(-priority, head) for priority, head in heads if head.rank <= now - limit]
    if found and min(found)[0] > 0:
        best = max(group.highest() for _, group in groups)
        found = [each for each in found if -each[0] == best]
    else:
        found = [each for each in found if each[0] <= 0]
    longest = min((head for _, head in found), default=None)
    if longest is None or longest.rank <= now - 2 * limit:
        return longest
    return min(found)[1]


def grant(forest: Forest, loop: Loop, now: int, *, holder: str = ENGINE, pull: bool = False) -> e.LeaseGranted:
    """Write the lease of a loop's next attempt."""
    return e.LeaseGranted(
        loop.id,
        loop.attempt + 1,
        forest.shared.grants + 1,
        pick_lane(forest, loop, now) or DEFAULT_LANE,
        holder,
        now + forest.policy.lease_ttl_ms if pull else None,
        loop.judge_only and not pull,
        "" if pull or loop.judge_only else crew_of(forest, loop, now).agent,
        loop.past.worked if loop.judge_only and not pull else forest.shared.grants + 1,
        forest.resources_of(loop),
    )


def take(
    forest: Forest,
    now: int,
    *,
    holder: str,
    limit: int,
    types: Iterable[str] = (),
    projects: Iterable[str] = (),
    below: tuple[str, ...] = (),
) -> Iterator[Event]:
    """Lease loops to a pull worker: those without a command first, then in the usual order."""
    only_types, only_projects, shut = set(types), set(projects), set[GroupKey]()

    def wanted(key: GroupKey) -> bool:
        """Say whether a worker asked for such loops."""
        return (not only_types or key.type in only_types) and (not only_projects or key.project in only_projects)

    yield from _expired(forest, now)
    for _ in range(limit):
        loop = pick(forest, now, shut, pull=True, wanted=wanted, below=below)
        if loop is None:
            return
        yield from begins(loop)
        yield grant(forest, forest.loops[loop.id], now, holder=holder, pull=True)


def next_wake(forest: Forest, now: int) -> int | None:
    """Return the instant at which something may change by itself, if there is one."""
    lanes = (at for lane in forest.shared.lanes.values() for at in (lane.rest_until, lane.level_until))
    timed = (forest.loops[each] for each in forest.tree.timed)
    expiries = (each.expires_at for loop in timed for each in (loop.lease, loop.ending) if each is not None)
    candidates = [forest.ready.next_backoff(), forest.shared.paced_until(), forest.shared.host[1], *lanes, *expiries]
    candidates += [forest.ledger.frees_at(scope, now) for scope in _budgeted(forest)]
    candidates += [ends for ends, _ in _timed_by_budget(forest)]
    candidates += [ends_at(forest, forest.loops[each]) for each in forest.tree.clashing]
    return min((at for at in candidates if at is not None and at > now), default=None)


def _budgeted(forest: Forest) -> set[tuple[str, str]]:
    """List whose budgets the ready loops depend on."""
    members = (forest.loops[next(iter(group.members))] for _, group in forest.ready.groups())
    return {scope for loop in members for scope, _, _ in budgets_of(forest, loop)}
