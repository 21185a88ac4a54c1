"""Looks after the branches of plans: wherever somebody moves one, it is brought back to where the journal says it is.

A cheap look at time stamps says whether to look closely, and that is done on another thread. Nothing else in loopr ever
asks a branch where its plan stands, so that what is foreign there can wait a moment. Must never decide where one is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from loopr.core import observations as o
from loopr.core.forest import Forest
from loopr.core.plan_observations import ForeignSeen, PlanStands
from loopr.core.settled import is_settled
from loopr.core.tips import BRANCH_PLACE, Tip, read_tip
from loopr.driving.acts import Act, Do, Tell
from loopr.driving.jobs import Jobs, Key
from loopr.driving.kit import Kit
from loopr.errors import LooprError
from loopr.world.journal import Journal
from loopr.world.repo.ground import PLANS, Ground
from loopr.world.repo.landing import is_there
from loopr.world.repo.tips import Aim, alone_with_plans, bring, drop_kept, is_gone, stands_right
from loopr.world.repo.words import Brought

EVERY_MS = 1_000
MOST_KEPT = 10  # of what is made while some attempts live: the first and the last so many
Mark = tuple[int, ...]


class Case(NamedTuple):
    """A plan to be looked at closely: who is at work beside it, whether what is foreign is left, what is told of it."""

    plan: str
    during: tuple[str, ...]
    leave: bool
    known: str


class Settled(NamedTuple):
    """What came of looking closely: where the journal says that a plan stands, and what became of its branch.

    `trouble` says why a move that was announced was not made.
    """

    tip: Tip
    brought: Brought
    trouble: str = ""


def at_work(forest: Forest) -> tuple[str, ...]:
    """Name the leases of all attempts that may be moving something at this moment."""
    found = (forest.loops[each] for each in forest.occupancy.loops)
    owners = ((loop.id, loop.lease or loop.ending) for loop in found)
    return tuple(f"{loop}#{owner.attempt}" for loop, owner in owners if owner is not None)


class Tips:
    """Knows how the branches of plans looked last."""

    def __init__(self, kit: Kit, jobs: Jobs) -> None:
        self._kit, self._jobs = kit, jobs
        self._marks: dict[str, Mark] = {}
        self._odd: set[str] = set()  # to be looked at again, whatever the marks say
        self._kept: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        self._gone: set[str] = set()  # of these nothing is at work, and nobody misses the branch
        self._next = 0

    def look(self, forest: Forest, now: int) -> None:
        """Look at the plans of which something is at work, once a second at all; begin what is to be done."""
        busy = dict.fromkeys(each.partition("/")[0] for each in forest.occupancy.loops)
        self._odd |= self._gone & busy.keys()
        self._gone -= busy.keys()
        plans: Iterable[str] = busy
        if every := now >= self._next:
            self._next, plans = now + EVERY_MS, list(forest.shared.tips)
        for plan in plans:
            ground, tip = self._ground_of(forest, plan), forest.shared.tip(plan)
            if ground is None or not tip.at or Key("tips", plan, 0) in self._jobs:
                continue
            known = forest.shared.problems.get(f"{BRANCH_PLACE}{plan}", "")
            if self._is_due(ground, plan, tip, every, known):
                case = Case(plan, at_work(forest), not self._goes_on(forest, plan, now), known)
                self._jobs.begin(Key("tips", plan, 0), self._look_closely(ground, case), lambda error: None)

    def _ground_of(self, forest: Forest, plan: str) -> Ground | None:
        """Return the repository that a plan works in."""
        bound = forest.shared.plans.get(plan)
        return self._kit.grounds.get(bound.repo) if bound is not None else None

    def _is_due(self, ground: Ground, plan: str, tip: Tip, every: bool, known: str) -> bool:
        """Say whether a branch may stand elsewhere than it should; a landing sees to the one that it moves."""
        if tip.moving is not None and tip.moving.loop:
            return False
        mark = _mark(ground, plan)
        if mark == self._marks.get(plan) and tip.moving is None:
            return every and plan in self._odd
        self._marks[plan] = mark
        return bool(known or tip.moving or plan in self._odd) or not stands_right(ground, plan, tip.at)

    def _goes_on(self, forest: Forest, plan: str, now: int) -> bool:
        """Say whether something of a plan is at work, or will be without a person."""
        if any(each.partition("/")[0] == plan for each in forest.occupancy.loops):
            return True
        return plan in forest.loops and not is_settled(forest, now, [plan])

    # -- one of them

    def _look_closely(self, ground: Ground, case: Case) -> Act:
        """Bring one branch to where it belongs, and tell what was there."""
        plan = case.plan
        self._odd.add(plan)
        try:
            found: Settled | None = yield Do(partial(self._bring, ground, plan, case.leave))
        except (LooprError, OSError):  # asked again in a second
            return None
        if found is None or found.brought.outcome in ("right", "moved"):
            self._odd.discard(plan)
        if found is None:
            self._gone |= {plan} if case.leave else set()
            return None
        tip, done = found.tip, found.brought
        if tip.moving is not None:
            yield Tell(PlanStands(plan, tip.moving.new, found.trouble))
        if done.foreign is not None and self._is_news(ground, case, done):
            back = tip.stands if done.outcome == "moved" else ""
            yield Tell(ForeignSeen(plan, done.foreign, done.kept, back, case.during))
        return o.Noticed(f"{BRANCH_PLACE}{plan}", _words(ground, plan, done))

    def _bring(self, ground: Ground, plan: str, leave: bool) -> Settled | None:
        """Ask the journal where a plan stands by now, and bring its branch there, if that is anybody's to do."""
        with alone_with_plans(ground):
            tip = self._recorded(plan)
            if not tip.at or (tip.moving is not None and tip.moving.loop) or (leave and is_gone(ground, plan)):
                return None
            aim, trouble = Aim(tip.at, leave=leave), ""
            if tip.moving is not None and is_there(ground, tip.moving.new):  # asked once: what is told is what was done
                aim = Aim(tip.moving.new, tip.moving.old)
            elif tip.moving is not None:
                trouble = "its commit is gone"
            return Settled(tip, bring(ground, plan, aim, self._kit.clock()), trouble)

    def _recorded(self, plan: str) -> Tip:
        """Read where a plan stands: others may have decided that a moment ago."""
        with Journal.open(self._kit.place.journal, readonly=True) as journal:
            row = journal.row("records", f"tip/{plan}")
        return read_tip(json.loads(row)) if row else Tip()

    def _is_news(self, ground: Ground, case: Case, done: Brought) -> bool:
        """Say whether to tell of a foreign tip; of what attempts make again and again, the first and last are kept."""
        if done.behind and (case.known or done.outcome == "lags"):
            return False
        if case.known and (done.foreign or "is gone") in case.known:  # it was left there
            return False
        if not case.during:
            return True
        kept = self._kept.setdefault((case.plan, case.during), [])
        if len(kept) >= 2 * MOST_KEPT and (old := kept.pop(MOST_KEPT)) not in kept:
            with suppress(LooprError, OSError):
                drop_kept(ground, old)
        kept.append(done.kept)
        return len(kept) <= MOST_KEPT


def _mark(ground: Ground, plan: str) -> Mark:
    """Give the time stamps of the branch of a plan and of its copy; nobody can set these."""
    found: list[int] = []
    for name in (ground.branch(plan), PLANS + plan):
        try:
            status = (ground.common / name).lstat()
        except OSError:
            found.append(0)
        else:
            found += (status.st_ctime_ns, status.st_ino)
    return tuple(found)


def _words(ground: Ground, plan: str, done: Brought) -> str:
    """Say what a person is to know of a branch that is not where it belongs."""
    short = ground.short_branch(plan)
    if done.outcome == "lags":
        return f"{short} lags: checked out in {done.folder}"
    if done.outcome == "left":
        where = f" and is checked out in {done.folder}" if done.folder else ""
        found = f"stands at {done.foreign}, which loopr did not make,{where}" if done.foreign else "is gone"
        return f"{short} {found}: `loopr adopt {plan}` brings it in, `loopr land` says what else there is"
    return ""
