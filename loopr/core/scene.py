"""All that a decision may look at beside the clock, and the one count of what takes a slot.

Knows how to count; must never know what a count is too high for (`gates.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from loopr.core.entries import just_works
from loopr.core.housing import NEW, PACKING
from loopr.core.ledger import SPENT, Charge, Ledger, Scope, cost_of, read_sums, usd_of
from loopr.core.model import OCCUPYING, Failure, Loop, Status, Usage, decode_loop
from loopr.core.policy import DEFAULT_LANE, Amounts, Policy, Step, TypePolicy
from loopr.core.shared import Shared
from loopr.core.tree import Tree

_GIVEN_BACK = frozenset({Status.COMPLETE, Status.INVALIDATED})
_HOLDING = OCCUPYING - {Status.LANDING}
Line = tuple[str | None, str]
"""A parent and a type: the serial siblings that wait for each other."""


def line_of(loop: Loop) -> Line:
    """Return the line a loop would stand in if it is serial."""
    return loop.parent, loop.type


def holds(loop: Loop) -> Amounts:
    """Return the resources that a loop has: while it is leased, runs or is checked, and while an attempt of it ends."""
    if loop.ending is not None:
        return loop.ending.holds
    return loop.lease.holds if loop.lease is not None and loop.status in _HOLDING else ()


class Crew(NamedTuple):
    """An agent that may work for a loop, nothing for a command, and the lanes that it may use."""

    agent: str
    lanes: tuple[str, ...]


class Occupancy:
    """What takes slots now: every leased, running, checking or landing loop, and every attempt that is still ending."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.loops: dict[str, None] = {}
        self.by_type: dict[str, int] = {}
        self.by_project: dict[str, int] = {}
        self.by_lane: dict[str, int] = {}
        self.api_calls = 0
        self.lines: dict[Line, dict[str, None]] = {}
        self.held: dict[str, int] = {}
        self.holders: dict[str, dict[str, None]] = {}

    @property
    def total(self) -> int:
        """How many slots are taken."""
        return len(self.loops)

    def count(self, loop: Loop, step: int) -> None:
        """Count a loop in (1) or out (-1)."""
        if loop.holds_line:
            line = self.lines.setdefault(line_of(loop), {})
            _mark(line, loop.id, step)
            if not line:
                del self.lines[line_of(loop)]
        if not loop.occupying:
            return
        _mark(self.loops, loop.id, step)
        lane = loop.lane or DEFAULT_LANE
        for table, key in ((self.by_type, loop.type), (self.by_project, loop.project), (self.by_lane, lane)):
            table[key] = table.get(key, 0) + step
            if not table[key]:
                del table[key]
        self.api_calls += step * (lane != DEFAULT_LANE)
        for name, amount in holds(loop):
            self.held[name] = self.held.get(name, 0) + step * amount
            _mark(self.holders.setdefault(name, {}), loop.id, step)
            if not self.held[name]:
                del self.held[name], self.holders[name]


def _mark(into: dict[str, None], key: str, step: int) -> None:
    """Put a key in (1) or take it out (-1)."""
    if step > 0:
        into[key] = None
    else:
        into.pop(key, None)


class Scene:
    """The state of a workspace as decisions see it."""

    def __init__(self, policy: Policy | None = None) -> None:
        """Begin with an empty workspace."""
        self.tree = Tree()
        self.shared = Shared(policy)
        self.occupancy = Occupancy()
        self.housed: dict[str, None] = {}  # the loops that have a worktree
        self.packing: dict[str, None] = {}  # those of them whose worktree is being packed
        self.ledger = Ledger(self.shared.policy.window_ms)
        self.at = 0  # the latest instant that it was brought up to

    def read(
        self,
        loops: Iterable[str],
        records: Mapping[str, str],
        charges: Iterable[Charge],
        policy: Policy | None = None,
    ) -> None:
        """Take everything from the rows of a journal, under another policy if one is given.

        `charges` are those of the rolling window.
        """
        values = {key: json.loads(text) for key, text in records.items()}
        self.shared.read({key: value for key, value in values.items() if not key.startswith(SPENT)})
        self.shared.policy = policy or self.shared.policy
        self.ledger = Ledger(self.policy.window_ms)
        self.ledger.read({key: read_sums(value) for key, value in values.items() if key.startswith(SPENT)}, charges)
        self.tree.fill(json.loads(f"[{','.join(loops)}]", object_pairs_hook=decode_loop))
        for loop in self.loops.values():
            if loop.engaged or loop.lease is not None or loop.ending is not None:
                self.occupancy.count(loop, 1)
            if loop.leased:
                self.house(loop)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.shared.policy

    @property
    def loops(self) -> dict[str, Loop]:
        """All loops by id."""
        return self.tree.loops

    def needs_worktree(self, loop: Loop) -> bool:
        """Say whether a loop works in a worktree, and not without git."""
        bound = self.shared.plans.get(loop.plan)
        return self.policy.type_of(loop.type).worktree and (bound is None or bool(bound.repo))

    def house(self, loop: Loop) -> None:
        """Keep whether a loop has a worktree: from its first grant until it is given back, or packed."""
        lasts = loop.leased and loop.status not in _GIVEN_BACK and loop.packed in ("", PACKING)
        has = lasts and self.needs_worktree(loop)
        _mark(self.housed, loop.id, 1 if has else -1)
        _mark(self.packing, loop.id, 1 if has and loop.packed else -1)

    def housing(self, loop: Loop) -> str:
        """Say what a loop that waits needs before it can work in a worktree: a new one, or that its own is packed."""
        if loop.id in self.packing:
            return PACKING
        return "" if loop.id in self.housed or not self.needs_worktree(loop) else NEW

    def is_serial(self, loop: Loop) -> bool:
        """Say whether a loop runs one after another with its siblings: by its entry, its outline or its type."""
        return loop.serial or not self.policy.type_of(loop.type).parallel

    def priority_of(self, loop: Loop) -> int:
        """Return the priority of a loop: its own, else that of the nearest above it, else 0."""
        if loop.priority is not None:
            return loop.priority
        said = (each.priority for each in self.tree.ancestors(loop))
        return next((each for each in said if each is not None), 0)

    def resources_of(self, loop: Loop) -> Amounts:
        """Return what a loop wants of the named resources: by its entry, else by the nearest above it, else its type's.

        What an entry says takes the place of all that would hold without it.
        """
        if self.tree.resourced:  # asked of each of very many loops
            said = (each.resources for each in (loop, *self.tree.ancestors(loop)) if each.resources is not None)
            found = next(said, None)
            if found is not None:
                return found
        return self.policy.type_of(loop.type).resources

    def agent_of(self, loop: Loop) -> str:
        """Name the agent that works for a loop now, nothing where a command does: one that took over, else its own."""
        taken = self.taken_over(loop)
        if taken is not None:
            return taken[1].agent
        return loop.agent if loop.command else self.policy.type_of(loop.type).agent

    def taken_over(self, loop: Loop) -> tuple[str, Step] | None:
        """Return the escalation that a loop has come to, with its class; nobody takes over from an entry's command."""
        steps = self.policy.type_of(loop.type).escalate
        if not steps or (loop.command and not loop.agent):
            return None
        counts = dict(loop.tally)
        early = Failure.REFUSED if loop.taken_early else None
        reached = [(name, step) for name, step in steps.items() if counts.get(name, 0) >= step.after or name == early]
        return reached[-1] if reached else None

    def crews_of(self, loop: Loop) -> tuple[Crew, ...]:
        """List who may make a loop's next attempt: whose work it is, then those that stand in while it cannot go on.

        Nobody stands in for a judge, nor for an entry's command.
        """
        own = self.policy.type_of(loop.type)
        if loop.judge_only and (judges := self.judged_as(loop).judge_lanes):
            return (Crew("", judges),)
        if not (own.agent or own.escalate or loop.agent or own.fallback):  # as where nothing but commands works
            return (Crew("", own.lanes),)
        agent = self.agent_of(loop)
        first = Crew(agent, self._lanes_of_agent(agent, own))
        if not own.fallback or loop.judge_only or (loop.command and not loop.agent):
            return (first,)
        return (first, *(Crew(name, self._lanes_of_agent(name, own)) for name in own.fallback if name != agent))

    def _lanes_of_agent(self, agent: str, own: TypePolicy) -> tuple[str, ...]:
        """List the lanes of an agent in a type; one that is not the type's own has lanes of its own."""
        return self.policy.agents.get(agent, (agent,)) if agent and agent != own.agent else own.lanes

    def lanes_of(self, loop: Loop) -> tuple[str, ...]:
        """List the lanes a loop may use, whoever works for it, the preferred one first."""
        crews = self.crews_of(loop)
        return crews[0].lanes if len(crews) == 1 else tuple(lane for crew in crews for lane in crew.lanes)

    def settles(self, loop: Loop) -> bool:
        """Say whether a loop completes by declaration: its children are declared in its entry, or implied."""
        if loop.outline:
            return True
        own = self.policy.type_of(loop.type)
        if own.has_command or loop.command or own.judged or own.reviewed or own.approve or own.child is None:
            return False
        return loop.parent is not None and self.policy.type_of(own.child).child is None

    def is_leaf(self, loop: Loop) -> bool:
        """Say whether a loop may just do the work and hand nothing over: no child is wanted of it, and it has none."""
        if self.policy.type_of(loop.type).child is None:
            return True
        if not loop.command or loop.outline or loop.parent is None:
            return False
        own = just_works(run=not loop.agent, agent=bool(loop.agent), leaf=loop.leaf)
        return own and not self.tree.has_children(loop.id)

    def judged_as(self, loop: Loop) -> TypePolicy:
        """Return the policy that a loop is judged by: its type's, which a leaf's completes by that of the last one."""
        return self.policy.leaf_of(loop.type) if self.is_leaf(loop) else self.policy.type_of(loop.type)

    def live_usage(self, loop: Loop, now: int) -> Usage:
        """Say what an occupied loop has used so far; its duration is up to now where nobody said one."""
        owner = loop.lease or loop.ending
        if loop.live.ms or owner is None or owner.started_at is None:
            return loop.live
        return loop.live._replace(ms=max(0, now - owner.started_at))

    def mean_use(self, scope: Scope, now: int) -> int | None:
        """Return what an attempt of a payer uses on average as shares count it, in thousandths of a token."""
        sums = self.ledger.used(scope, now)
        return sums.use // sums.attempts if sums.attempts else None

    def cost_so_far(self, loop: Loop, now: int) -> int:
        """Price what an occupied loop has used so far as budgets count it, in thousandths of a token."""
        return cost_of(self.policy, self.live_usage(loop, now))

    def usd_so_far(self, loop: Loop, now: int) -> int:
        """Price what an occupied loop has used so far, in micro-dollars."""
        lane = loop.lane or DEFAULT_LANE
        return usd_of(self.policy, self.live_usage(loop, now), lane, self.ledger.price(lane, now)) or 0
