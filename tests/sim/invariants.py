"""What must hold in every simulated world, after every event, every step and every round.

Everything is counted and formed anew here, from the loops alone and by the words of the specification, and compared
with what the core keeps up to date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core import plan_events as p
from loopr.core import workspace_events as w
from loopr.core.attempt import lands
from loopr.core.choose import pick
from loopr.core.fairness import next_project
from loopr.core.forest import Forest
from loopr.core.gates import (
    NOT_OF_WORKERS,
    closed_for_group,
    closed_gates,
    group_ready_since,
    own_gates_open,
    ready_since,
)
from loopr.core.grouping import Waits, group_key
from loopr.core.judge_events import Conflicted, Refused
from loopr.core.limits import pick_lane, slow_width
from loopr.core.model import OCCUPYING, Failure, Gate, Loop, Status
from loopr.core.owed import WriteDeclared, owed
from loopr.core.policy import DEFAULT_LANE
from loopr.core.scene import Occupancy
from loopr.core.scoring import fixed_score, score
from loopr.core.trust import FILE
from tests.sim import purses
from tests.sim.age import Age
from tests.sim.journals import Told
from tests.sim.merges import Merges, waiting
from tests.sim.patience import Patience

if TYPE_CHECKING:
    from tests.sim.world import World


_OF_OTHERS = ("parent", "needs", "serial", "apart")


class Broken(AssertionError):
    """A promise does not hold."""


def require(holds: bool, words: object) -> None:
    """Complain unless something holds."""
    if not holds:
        raise Broken(words() if callable(words) else str(words))


def gates_of(forest: Forest, loop: Loop, now: int) -> list[Gate]:
    """List what `why` would print."""
    return list(closed_gates(forest, loop, now))


def occupies(loop: Loop) -> bool:
    """Say by the words of the specification whether a loop takes a slot."""
    return loop.ending is not None or loop.status in (Status.LEASED, Status.RUNNING, Status.CHECKING, Status.LANDING)


def holds(forest: Forest, lease: str) -> bool:
    """Say whether a pull worker's lease is the present one."""
    loop_id, _, attempt = lease.rpartition("#")
    loop = forest.loops.get(loop_id)
    return (
        loop is not None and loop.status is Status.RUNNING and loop.lease is not None and loop.attempt == int(attempt)
    )


def is_stale(forest: Forest, seen: o.Observation) -> bool:
    """Say whether an observation quotes an attempt that is neither the present nor an ending one."""
    attempt: int | None = getattr(seen, "attempt", None)
    if attempt is None:
        return False
    loop = forest.loops.get(seen.loop)  # type: ignore[attr-defined]
    if loop is None:
        return True
    if isinstance(seen, o.PackingDone):
        return loop.packed != "packing" or loop.attempt != seen.attempt
    present = [each.attempt for each in (loop.lease, loop.ending) if each is not None]
    return attempt not in present


# --- every event ----------------------------------------------------------------------------------------------------


class Watch:
    """Replays every event from its text, and looks at each with the state that it was decided in."""

    def __init__(self, world: World) -> None:
        """Begin with an empty forest."""
        self.world = world
        self.shadow = Forest()
        self.grant = 0
        self.limited = ""
        self.attempts: dict[str, int] = {}
        self.began: dict[str, str] = {}
        self.served: dict[str, set[str]] = {}
        self.patience = Patience(world.met)
        self.merges = Merges(world.met)
        self.age = Age(world.met)
        self.cut_at: int | None = None  # when a round was cut short that none has followed

    def told(self, told: list[Told]) -> None:
        """Take what was appended; the rows that follow must be those the journal keeps."""
        for each in told:
            before = len(self.shadow.occupancy.loops)
            if isinstance(each.event, e.LeaseGranted):
                self._granted(each.event, each.at)
            elif isinstance(each.event, w.ConvoyLanded):
                members = self.shadow.shared.convoys[each.event.name].members
                require(all(map(self.shadow.tree.done, members)), f"{each.event} with {members}")
            self._rests(each.event)
            self._costs_one_alone(each.event)
            self._paces(each.event, each.at)
            self._moves(each.event)
            self._hears(each)
            self._by_its_own_word(each.event)
            for problem in self.age.problems(self.shadow, each.event):
                raise Broken(f"{each.event} {problem}")
            for problem in self.patience.problems(self.shadow, each.event):
                raise Broken(f"{each.event} {problem}")
            for problem in self.merges.problems(self.shadow, each.event):
                raise Broken(f"{each.event} {problem}")
            self.shadow.apply(each.event, each.at)
            more = len(self.shadow.occupancy.loops) > before
            require(not more or isinstance(each.event, e.LeaseGranted | e.Approved), f"{each.event} takes a slot")
        self._same_rows()

    def _paces(self, event: e.Event, at: int) -> None:
        """No round of the engine's comes nearer than the delay to one that was cut short, whoever is the engine."""
        policy = self.shadow.policy
        if isinstance(event, w.RoundCut):
            self.cut_at = at
            self.world.met("luck: a round was cut short")
        elif isinstance(event, w.ClockMoved) and self.cut_at is not None:
            self.cut_at += event.by_ms
        elif isinstance(event, e.LeaseGranted) and event.expires_at is None and self.cut_at is not None:
            delay = max(policy.spawn_delay_ms, policy.poll_interval_ms) if policy.batch_size else 0
            require(at >= self.cut_at + delay, f"{event} at {at}, {delay} ms after {self.cut_at} at the earliest")
            self.cut_at = None

    def _moves(self, event: e.Event) -> None:
        """A plan moves from where it stands, as was announced, one move at a time; a loop lands once it has moved."""
        if isinstance(event, p.PlanMoving):
            tip = self.shadow.shared.tip(event.plan)
            require(tip.moving is None or tip.begins, f"{event} while {tip.moving} is under way")
            require(event.old == tip.at, f"{event}, but the plan stands at {tip.at}")
        elif isinstance(event, p.PlanMoved):
            moving = self.shadow.shared.tip(event.plan).moving
            require(moving is not None and moving[:3] == (event.old, event.new, event.why), f"{event} after {moving}")
        elif isinstance(event, e.Landed):
            loop = self.shadow.loops[event.loop]
            moving = self.shadow.shared.tip(loop.plan).moving
            require(lands(loop), f"{event} of a landing that was never announced")
            require(moving is None or moving.loop != loop.id, f"{event} while {moving} is open")

    def _by_its_own_word(self, event: e.Event) -> None:
        """Nothing that has a command or a judge completes by a file that came while loops were at work.

        Nor does anything by declaration beside a file that loopr did not write.
        """
        loop = self.shadow.loops.get(event.loop) if isinstance(event, e.LoopEvent) else None
        if loop is None:
            return
        if isinstance(event, e.ArtifactAccepted) and event.by == FILE and loop.status is not Status.COMPLETE:
            own = self.shadow.policy.type_of(loop.type)
            judged = own.has_command or own.judged or own.reviewed or own.approve
            require(not (judged or loop.command or loop.checked), f"{event} completes {loop}")
        if isinstance(event, e.Settled):
            waits = loop.offers.unread or loop.offers.offered not in ("", loop.artifact)
            require(not waits and not loop.on_offer, f"{event} beside {loop.offers}")
        if isinstance(event, e.LeaseGranted):
            require(not loop.on_offer, f"{event} for a loop that is on offer")

    def _hears(self, told: Told) -> None:
        """Whoever is told of events has heard of more than before, and of none that has not happened."""
        if isinstance(told.event, w.ListenerHeard):
            before = self.shadow.shared.heard.get(told.event.listener, -1)
            require(before < told.event.upto < told.seq, f"{told.event} at {told.seq}, after {before}")

    def _rests(self, event: e.Event) -> None:
        """A limit lets the lane rest, in the same breath, unless the attempt is from before the rest."""
        rested = event.lane if isinstance(event, w.LaneRested) else ""
        require(self.limited in ("", rested), f"{event}, but {self.limited} was limited and must rest")
        self.limited = ""
        if isinstance(event, e.Limited) and event.failure is Failure.LIMITED:
            loop = self.shadow.loops[event.loop]
            if loop.lease is not None and loop.lease.grant > self.shadow.shared.lane(loop.lease.lane).rest_grant:
                self.limited = loop.lease.lane

    def _costs_one_alone(self, event: e.Event) -> None:
        """A limit is a loop's own failure only where it began a rest before, and the lane has served another since."""
        if isinstance(event, w.LaneRested) and event.hits > self.shadow.shared.lane(event.lane).hits:
            self.served.pop(event.lane, None)
        elif isinstance(event, w.LaneWorked):
            self.served.setdefault(event.lane, set()).add("")
        if not isinstance(event, e.LoopEvent):
            return
        for names in self.served.values():
            if "" in names:
                names.discard("")
                names.add(event.loop)  # whose end it is that the lane has worked for
        loop = self.shadow.loops.get(event.loop)
        if isinstance(event, e.Broke) and event.failure is Failure.LIMITED:
            lane = loop.lane if loop is not None else None
            require(self.began.get(event.loop) == lane, f"{event}, which began a rest of {self.began.get(event.loop)}")
            require(self.served.get(lane or "", set()) - {event.loop}, f"{event}, but served was {self.served}")
            self.world.met("luck: a limit was a loop's own")
        elif isinstance(event, e.Limited) and event.failure is Failure.LIMITED:
            if (
                loop is not None
                and loop.lease
                and loop.lease.grant > self.shadow.shared.lane(loop.lease.lane).rest_grant
            ):
                self.began[event.loop] = loop.lease.lane
        elif isinstance(event, e.LeaseExpired | Refused | Conflicted | e.Broke | e.SetAside | e.Landed):
            self.began.pop(event.loop, None)

    def _same_rows(self) -> None:
        """Compare the rows that follow from the replay with those that were stored."""
        stored = self.world.journal.rows()
        for table, key, body in self.shadow.take_rows().changes:
            kept = stored.get((table, key))
            if table != "entries" and kept != body:
                raise Broken(f"{key}: replay {body}, rows {kept}")

    def _granted(self, event: e.LeaseGranted, at: int) -> None:
        """Ask of every lease whether it may be."""
        forest, loop = self.shadow, self.shadow.loops[event.loop]
        require(event.grant == self.grant + 1, f"{event} after grant {self.grant}")
        require(event.attempt > self.attempts.get(loop.id, 0), f"{event} reissues attempt {self.attempts.get(loop.id)}")
        self.grant, self.attempts[loop.id] = event.grant, event.attempt
        require(loop.status is Status.PENDING, f"{event} for a loop that is {loop.status}")
        parent = forest.loops[loop.parent] if loop.parent is not None else None
        require(parent is None or parent.status is Status.COMPLETE, f"{event} before its parent is complete")
        require(loop.ending is None, f"{event} while {loop.ending} lives")
        pull = event.expires_at is not None
        closed = [each for each in gates_of(forest, loop, at) if not (pull and each.gate in NOT_OF_WORKERS)]
        require(not closed, f"{event} past {closed}")
        self._below_ceilings(event, loop, at)
        self._below_offers(event, loop)
        self._by_whom(event, loop, at)
        busy = [each for each in forest.loops.values() if occupies(each)]
        for problem in purses.problems(forest, loop, busy, at, self.world.met):
            raise Broken(f"{event} {problem}")

    def _below_offers(self, event: e.LeaseGranted, loop: Loop) -> None:
        """All that a loop wants of the machine is granted with its lease, and never more is held than is offered."""
        forest = self.shadow
        said = (each.resources for each in (loop, *forest.tree.ancestors(loop)) if each.resources is not None)
        wanted = next(said, forest.policy.types[loop.type].resources)
        require(event.holds == wanted, f"{event} holds something else than {wanted}")
        holding = [each for each in forest.loops.values() if occupies(each) and each.status is not Status.LANDING]
        most = forest.policy.max_worktrees or (forest.policy.max_loops + 4 if forest.policy.max_loops > 0 else None)
        if most is not None and event.expires_at is None:
            over = (Status.COMPLETE, Status.INVALIDATED)
            with_one = [each for each in forest.loops.values() if each.leased and each.status not in over]
            others = [each.id for each in with_one if each.packed in ("", "packing") and each is not loop]
            has = loop in with_one and loop.packed == ""
            bound = max(most, forest.policy.max_loops)
            require(has or len(others) < bound, f"{event} beside {len(others)} worktrees of {bound}")
            require(loop.packed != "packing", f"{event} while its worktree is packed")
        for name, amount in wanted:
            held = sum(dict((each.lease or each.ending).holds).get(name, 0) for each in holding)  # type: ignore[union-attr]
            offered = forest.policy.resources.get(name, 0)
            require(held + amount <= offered, f"{event}: {held} of {offered} {name} are held already")
            self.world.met("luck: a resource was granted")
            if held:
                self.world.met("luck: a resource was shared")

    def _by_whom(self, event: e.LeaseGranted, loop: Loop, at: int) -> None:
        """The agent is the one whose turn it is by the number of failures, and the lane one of its."""
        own, counts = self.shadow.policy.type_of(loop.type), dict(loop.tally)
        early = "refused" if loop.id in self.patience.early else ""
        steps = own.escalate.items()
        reached = [step.agent for name, step in steps if counts.get(name, 0) >= step.after or name == early]
        agent = "" if loop.command else ([own.agent, *reached][-1])
        if reached and agent == reached[-1]:
            self.world.met("luck: an agent took over")
        if loop.judge_only and (judges := self._judges(loop)):
            lanes = judges
        else:
            agent, lanes = self._who_can(loop, agent, at)
        require(event.lane in lanes, f"{event} on none of {lanes}")
        works = not loop.judge_only and event.expires_at is None
        require(event.agent == (agent if works else ""), f"{event}, but {agent} is to work")

    def _judges(self, loop: Loop) -> tuple[str, ...]:
        """List the lanes of a loop's judges: its type's, of one that just does the work the last type's."""
        types = self.shadow.policy.types
        own, last = types[loop.type], next(each for each in types.values() if each.child is None)
        just_works = loop.command and loop.leaf is not False and not self.shadow.tree.children(loop.id)
        return last.judge_lanes if just_works and not (own.judge_lanes or own.reviewed) else own.judge_lanes

    def _who_can(self, loop: Loop, agent: str, at: int) -> tuple[str, tuple[str, ...]]:
        """Whose work it is does it, unless all its lanes rest or are parked: then the first goes on who can."""
        own = self.shadow.policy.type_of(loop.type)
        others = [] if loop.command or loop.judge_only else [each for each in own.fallback if each != agent]
        for name in (agent, *others):
            lanes = own.lanes if name in ("", own.agent) else (name,)
            states = [self.shadow.shared.lane(each) for each in lanes]
            if not all(lane.parked or at < lane.rest_until for lane in states):
                self.world.met("luck: another stood in" if name != agent else "luck: nobody had to stand in")
                return name, lanes
        return agent, ()

    def _below_ceilings(self, event: e.LeaseGranted, loop: Loop, at: int) -> None:
        """Count anew what is occupied, and compare with every ceiling."""
        policy, busy = self.shadow.policy, [each for each in self.shadow.loops.values() if occupies(each)]
        lane = policy.lane(event.lane).max_concurrent
        ramp = self.shadow.shared.lane(event.lane).ramp
        slow = slow_width(self.shadow, event.lane, at)
        counts = {
            "max_loops": (len(busy) - len(waiting(self.shadow)), policy.max_loops if policy.max_loops > 0 else None),
            "per_type": (sum(each.type == loop.type for each in busy), policy.per_type.get(loop.type)),
            "project": (
                sum(each.project == loop.project for each in busy),
                policy.project(loop.project).max_concurrent,
            ),
            "lane": (sum((each.lane or DEFAULT_LANE) == event.lane for each in busy), lane),
            "ramp": (sum((each.lane or DEFAULT_LANE) == event.lane for each in busy), ramp),
            "slow": (sum((each.lane or DEFAULT_LANE) == event.lane for each in busy), slow),
        }
        if event.lane != DEFAULT_LANE:
            calls = sum((each.lane or DEFAULT_LANE) != DEFAULT_LANE for each in busy)
            counts["api calls"] = (calls, policy.max_api_calls if policy.max_api_calls > 0 else None)
        for name, (count, limit) in counts.items():
            require(limit is None or count < limit, f"{event} at {name}: {count} of {limit}")
        if self.shadow.is_serial(loop):
            line = [
                each.id
                for each in busy
                if self.shadow.is_serial(each) and (each.parent, each.type) == (loop.parent, loop.type)
            ]
            require(not line, f"{event} beside its serial siblings {line}")


# --- every step -----------------------------------------------------------------------------------------------------


def after_a_step(world: World) -> None:
    """Count everything anew."""
    forest = world.shadow
    now = max(world.wall, forest.at)
    _same_occupancy(forest)
    _same_tree(forest)
    _nothing_below_what_says_so(world)
    _nobody_lives_uncounted(world)
    for problem in world.watch.age.differences(forest):
        raise Broken(problem)
    forest.advance(now)
    gates = {each.id: gates_of(forest, each, now) for each in forest.loops.values()}
    for name in {each.gate for closed in gates.values() for each in closed}:
        world.met(f"gate: {name}")
    waits = Waits(forest, now)
    for loop_id, closed in gates.items():
        for each in closed:
            own = each.gate in _OF_OTHERS and loop_id in re.split(r"[ ,]", each.reason)
            require(
                not own and not each.reason.startswith(f"{loop_id}, the first"),
                f"{loop_id} is told to wait for itself: {each}",
            )
        told, every = waits.first_closed(forest.loops[loop_id]), waits.closed(forest.loops[loop_id])
        require(told == next(iter(closed), None), f"{loop_id} waits for {told} with its group, alone for {closed}")
        require(every == closed, f"{loop_id} waits for all of {every} with its group, alone for {closed}")
    _ready_as_formed(forest, gates, now)
    _next_by_the_formula(forest, gates, now)


def _nothing_below_what_says_so(world: World) -> None:
    """A complete loop whose file says that nothing is below has no children."""
    forest = world.shadow
    for loop_id in forest.tree.by_status.get(Status.COMPLETE, ()):
        file = world.contents.get(forest.loops[loop_id].artifact)
        if file is not None and file.empty:
            require(not forest.tree.children(loop_id), f"{loop_id} has children, and its file says that it has none")


def _same_occupancy(forest: Forest) -> None:
    """Compare the running count with a new one."""
    kept, new = forest.occupancy, Occupancy()
    for loop in forest.loops.values():
        if occupies(loop) or loop.holds_line:
            new.count(loop, 1)
    for name in ("loops", "by_type", "by_project", "by_lane", "api_calls", "lines", "held", "holders"):
        ours, theirs = getattr(kept, name), getattr(new, name)
        require(ours == theirs, f"occupancy.{name} is {ours}, counted anew {theirs}")


def _same_tree(forest: Forest) -> None:
    """Compare the counters and lists of the tree with new ones."""
    tree, loops = forest.tree, forest.loops
    below = {each: [0, 0, 0, 0, 0, 0, 0] for each in loops}
    parents = {each.parent for each in loops.values() if each.status is not Status.INVALIDATED}
    for loop in loops.values():
        require(loop.parent is None or loop.parent in loops, f"{loop.id} has lost its parent")
        here = loop.status is not Status.INVALIDATED
        ended = loop.since if loop.status in (Status.COMPLETE, Status.INVALIDATED) else 0
        marks = (loop.status is Status.COMPLETE, loop.status in OCCUPYING, loop.status is Status.PARKED)
        for above in tree.ancestors(loop):
            counts = below[above.id]
            for place, mark in enumerate((True, *marks, loop.status is Status.FAILED)):
                counts[place] += here and mark
            counts[5] = max(counts[5], ended)
            counts[6] += loop.status is Status.COMPLETE and loop.id in parents
    for loop_id, counts in below.items():
        kept = tree.below[loop_id]
        ours = [kept.total, kept.complete, kept.running, kept.parked, kept.failed, kept.latest, kept.heads]
        if kept.total > kept.complete:  # when the last of them was done is asked only once all are
            ours[5] = counts[5]
        require(ours == counts, f"below {loop_id}: {ours}, counted anew {counts}")
    for parent in (None, *loops):
        wanted = sorted(
            (0 if parent is None else each.place, each.id)
            for each in loops.values()
            if each.parent == parent and each.status is not Status.INVALIDATED
        )
        require(tree.children(parent) == [each for _, each in wanted], f"children of {parent}: {tree.children(parent)}")
    for status, listed in tree.by_status.items():
        require(set(listed) == {each.id for each in loops.values() if each.status is status}, f"by_status {status}")
    require(set(tree.ending) == {each.id for each in loops.values() if each.ending}, "the list of endings")


def _nobody_lives_uncounted(world: World) -> None:
    """Every process that lives is the present or the ending attempt of its loop, hence the only one."""
    for loop_id, attempt in world.hands.alive():
        loop = world.shadow.loops.get(loop_id)
        present = [each.attempt for each in (loop.lease, loop.ending) if each is not None] if loop else []
        require(attempt in present, f"{loop_id}#{attempt} lives, but the loop is {loop}")


def _ready_as_formed(forest: Forest, gates: dict[str, list[Gate]], now: int) -> None:
    """The groups hold exactly whom they should, as they should, and open and close as a whole."""
    grouped: dict[str, Any] = {}
    for key, group in forest.ready.groups():
        require(bool(group.members), f"group {key} is empty")
        heaps = {
            entry.id: (fixed, entry)
            for fixed, heap in group.classes.items()
            for entry in heap
            if not group._stale(entry)
        }
        lines = [(priority, each) for priority, line in group.lines.items() for each in line.waiting]
        since = {each.entry.id: (each.ready, p) for p, each in lines if not group._stale(each.entry)}
        head = forest.loops[next(iter(group.members))]
        shut = closed_for_group(forest, head, now)
        for loop_id in group.members:
            loop = forest.loops[loop_id]
            grouped[loop_id] = key
            fixed, entry = heaps[loop_id]
            require(key == group_key(forest, loop), f"{loop_id} stands in {key}, not in {group_key(forest, loop)}")
            exact = fixed_score(forest.policy, loop, _priority(forest, loop))
            require(fixed == exact, f"{loop_id} stands in class {fixed}")
            require(entry.order == forest.tree.order(loop), f"{loop_id} stands at {entry.order}")
            require(
                entry.created == loop.created, f"{loop_id} was created at {loop.created}, stands at {entry.created}"
            )
            if loop_id in since:
                stands = ready_since(forest, loop), _priority(forest, loop)
                require(since[loop_id] == stands, f"{loop_id} is ready since, with priority: {stands}")
            require(
                bool(shut) == bool(gates[loop_id]),
                f"group of {loop_id} is closed by {shut}, the loop by {gates[loop_id]}",
            )
    wanted = {each.id for each in forest.loops.values() if own_gates_open(forest, each) and each.not_before <= now}
    require(set(grouped) == wanted, f"ready are {sorted(grouped)}, should be {sorted(wanted)}")
    settling = {each.loop for each in owed(forest) if isinstance(each, WriteDeclared)}
    wanted = {each.id for each in forest.loops.values() if _settles(forest, each, gates[each.id])}
    require(settling == wanted, f"{settling} settle, should be {wanted}")


def _settles(forest: Forest, loop: Loop, gates: list[Gate]) -> bool:
    """Say whether a loop completes by declaration now: nothing but that its children are declared closes a gate."""
    return loop.status is Status.PENDING and forest.settles(loop) and [each.gate for each in gates] == ["status"]


def _next_by_the_formula(forest: Forest, gates: dict[str, list[Gate]], now: int) -> None:
    """The pick is what sorting everything by the words of the specification gives."""
    found, wanted = pick(forest, now), _formula(forest, gates, now)
    require((found and found.id) == wanted, lambda: f"next is {found and found.id}, by the formula {wanted}")


def _formula(forest: Forest, gates: dict[str, list[Gate]], now: int) -> str | None:
    """Say who is next, in the plainest way."""
    runnable = [each for each in forest.loops.values() if not gates[each.id]]
    by_id = {each.id for each in runnable}
    first = next((each for each in forest.shared.dispatch if each in by_id), None)
    if first is not None or not runnable:
        return first
    runnable = [each for each in runnable if not _lets_others_ask(forest, each, runnable, now)]
    project = next_project(forest, sorted({each.project for each in runnable}), now)
    unserved = {each.project for each in runnable if _unserved(forest, each.project, now)}
    require(project in unserved or not unserved, f"{project} goes before {unserved}, which had nothing yet")
    mine = [each for each in runnable if each.project == project]
    if any(each.clash.number for each in mine):
        return min((each.clash.number, each.id) for each in mine if each.clash.number)[1]
    limit = forest.policy.starvation_ms
    ready = {each.id: max(ready_since(forest, each), group_ready_since(forest, each)) for each in mine}
    starved = [each for each in mine if limit and ready[each.id] <= now - limit]
    said = {each.id: _priority(forest, each) for each in mine}
    starved = [each for each in starved if said[each.id] >= 0 or said[each.id] == max(said.values())]
    if any(ready[each.id] <= now - 2 * limit for each in starved):
        starved = [each for each in starved if ready[each.id] <= now - 2 * limit]
    elif starved:
        starved = [each for each in starved if said[each.id] == max(said[one.id] for one in starved)]
    if starved:
        return min(starved, key=lambda each: (ready[each.id], each.created, forest.tree.order(each), each.id)).id
    totals = {each.id: score(forest.policy, each, now, said[each.id]).total for each in mine}
    return min(mine, key=lambda each: (-totals[each.id], each.created, forest.tree.order(each), each.id)).id


def _priority(forest: Forest, loop: Loop) -> int:
    """Return what the nearest of a loop and those above it says, in the plainest way."""
    names = loop.id.split("/")
    above = [forest.loops["/".join(names[:length])].priority for length in range(len(names), 0, -1)]
    return next((each for each in above if each is not None), 0)


def _lets_others_ask(forest: Forest, loop: Loop, runnable: list[Loop], now: int) -> bool:
    """Say whether another wants the lane that a loop has asked in vain more often: it has not worked since its rest."""
    lane = forest.shared.lane(loop.vain_on)
    if not loop.in_vain or not lane.hits or pick_lane(forest, loop, now) != loop.vain_on:
        return False
    others = (each for each in runnable if pick_lane(forest, each, now) == loop.vain_on)
    return any((each.in_vain if each.vain_on == loop.vain_on else 0) < loop.in_vain for each in others)


def _unserved(forest: Forest, project: str, now: int) -> bool:
    """Say whether a project has completed nothing in the window and has nothing at work."""
    last = forest.shared.completed.get(project)
    busy = any(occupies(each) and each.project == project for each in forest.loops.values())
    return not busy and (last is None or last <= now - forest.policy.window_ms)


# --- every round ----------------------------------------------------------------------------------------------------


def after_a_round(forest: Forest, now: int) -> None:
    """Whatever does not run has a reason, the pace too."""
    for loop in forest.loops.values():
        require(bool(gates_of(forest, loop, now)) or occupies(loop), f"{loop.id} has no closed gate and was not chosen")


def same_state(live: Forest, twin: Forest) -> None:
    """A forest from the rows is the live one."""
    require(live.policy == twin.policy, "the policy from the rows is another one")
    require(live.loops == twin.loops, lambda: _differences(live.loops, twin.loops))
    ours, theirs = live.shared, twin.shared
    for key in [each for each in ours.row_keys() if each != "policy"]:
        require(
            ours.row(key) == theirs.row(key), lambda key=key: f"{key}: live {ours.row(key)}, rows {theirs.row(key)}"
        )
    require(ours.row_keys() == theirs.row_keys(), "live and rows have other keys")
    require(
        live.ledger.totals() == twin.ledger.totals(), lambda: _differences(live.ledger.totals(), twin.ledger.totals())
    )


def _differences(ours: Mapping[str, object], theirs: Mapping[str, object]) -> str:
    """Name what differs between two tables."""
    keys = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
    return "\n".join(f"{key}: live {ours.get(key)}\n     from rows {theirs.get(key)}" for key in keys)
