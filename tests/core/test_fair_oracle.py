"""Every grant of many random workspaces beside an oracle: project by use and weight, then who starves, then the score.

The oracle goes through all loops and all charges each time, and knows nothing of groups, heaps and running sums. What
keeps a loop from running it takes from the gates, but for the ceilings, which it counts itself.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from loopr.core import observations as o
from loopr.core.choose import choose
from loopr.core.events import Landed, LeaseGranted
from loopr.core.gates import closed_gates, group_ready_since, ready_since
from loopr.core.model import Loop, Usage
from loopr.core.policy import Policy, ProjectPolicy, Retry
from tests.core.outlines import digest_of, outline
from tests.core.stories import Story, go_on, settings

MINUTE, HOUR = 60_000, 3_600_000
PATIENT = Retry(base_ms=2_000, jitter=Fraction(0), max_attempts=99, no_progress=99, same_answer=None)
WEIGHTS = ("1", "1", "2", "3", "1/3", "7/2", "0.001", "1000")
OUTLINES = (
    "a; b; c; d; e; f",
    "serial: a; b; c",
    "a needs b; b; c",
    "a priority 1000; b priority -1000; c",
    "a priority 5; b priority -3; c priority -3; d priority 7",
)
ENDS = ("", "", "refused no", "infra died", "limited 429", "limited 429 after=90s")


class Oracle:
    """What the specification says of one moment."""

    def __init__(self, story: Story) -> None:
        """Look at a workspace."""
        self.story, self.forest, self.now, self.policy = story, story.forest, story.now, story.forest.policy
        self.loops = list(story.forest.loops.values())
        self.busy = [each for each in self.loops if each.lease is not None or each.ending is not None]

    def next(self) -> str | None:
        """Name the loop that is next."""
        ready = [each for each in self.loops if self._may_run(each)]
        if not ready:
            return None
        if self.forest.shared.lane("default").hits:  # after its rest others ask first
            ready = [each for each in ready if each.in_vain == min(one.in_vain for one in ready)]
        project = self._project(sorted({each.project for each in ready}))
        return self._first([each for each in ready if each.project == project]).id

    def _may_run(self, loop: Loop) -> bool:
        """Say whether no gate is closed, and no ceiling reached."""
        if any(gate.gate not in ("project", "capacity") for gate in closed_gates(self.forest, loop, self.now)):
            return False
        most = self.policy.project(loop.project).max_concurrent
        mine = sum(each.project == loop.project for each in self.busy)
        return not self.forest.settles(loop) and len(self.busy) < self.policy.max_loops and (not most or mine < most)

    def _project(self, names: list[str]) -> str:
        """Say whose turn it is: who has nothing yet, else who is furthest below its share; ties as in the file."""
        use, weight = {each: self._use(each, names) for each in names}, {each: self._weight(each) for each in names}
        above = {
            each: Fraction(use[each], sum(use.values()) or 1) - weight[each] / sum(weight.values()) for each in names
        }
        unserved = [each for each in names if not self._served(each)]
        return min(unserved or names, key=lambda each: (above[each], list(self.policy.projects).index(each)))

    def _weight(self, project: str) -> Fraction:
        """Return the weight of a project."""
        return self.policy.project(project).weight

    def _served(self, project: str) -> bool:
        """Say whether a project has something at work, or has landed something within the window."""
        landed = (at for event, at in self.story.log if isinstance(event, Landed) and self._pays(event.loop, project))
        return any(each.project == project for each in self.busy) or any(self._counts(at) for at in landed)

    def _pays(self, loop_id: str, project: str) -> bool:
        """Say whether a project pays for a loop."""
        return self.forest.loops[loop_id].project == project

    def _counts(self, at: int) -> bool:
        """Say whether an instant is within the window."""
        return at > self.now - self.policy.window_ms

    def _charged(self, names: list[str]) -> list[int]:
        """List what each attempt of some projects has cost within the window: its tokens, else its time."""
        charges = [each for each in self.story.charges if each.project in names and self._counts(each.at)]
        return [each.tokens * 1000 if each.tokens is not None else max(1, each.ms * 50) for each in charges]

    def _use(self, project: str, names: list[str]) -> int:
        """Sum up what a project has used, and for each at work its cost so far, or what is usual if that is more."""
        own = self._charged([project])
        all_known = own or self._charged(names)
        usual = sum(all_known) // len(all_known) if all_known else 1000
        return sum(own) + sum(max(usual, self._so_far(each, own)) for each in self.busy if each.project == project)

    def _so_far(self, loop: Loop, own: list[int]) -> int:
        """Price what a loop at work has used: what it told, else its time, as the time of its project has cost."""
        begun = (loop.lease or loop.ending).started_at  # type: ignore[union-attr]
        ms = loop.live.ms or (self.now - begun if begun is not None else 0)
        if loop.live.tokens is not None:
            return loop.live.tokens * 1000
        time = sum(each.ms for each in self.story.charges if each.project == loop.project and self._counts(each.at))
        return ms * sum(own) // time if time else max(1, ms * 50)

    def _first(self, loops: list[Loop]) -> Loop:
        """Return who goes first within a project."""
        since = {each.id: max(ready_since(self.forest, each), group_ready_since(self.forest, each)) for each in loops}
        limit, least = self.policy.starvation_ms, min(0, max(each.priority or 0 for each in loops))
        late = [each for each in loops if since[each.id] <= self.now - limit and (each.priority or 0) >= least]
        if any(since[each.id] <= self.now - 2 * limit for each in late):
            return min(late, key=lambda each: (since[each.id], *self._place(each)))
        if late:
            return min(late, key=lambda each: (-(each.priority or 0), since[each.id], *self._place(each)))
        return min(loops, key=lambda each: (-self._score(each), *self._place(each)))

    def _place(self, loop: Loop) -> tuple[object, ...]:
        """Order what is equal otherwise: the older first, then by the outlines from the plan down."""
        return loop.created, self.forest.tree.order(loop)

    def _score(self, loop: Loop) -> int:
        """Return the score of a spec below a plan."""
        age = min(50, (self.now - loop.created) // MINUTE)
        return 60 + age + 10 - min(30, 5 * (loop.iteration - 1)) + (loop.priority or 0)


def workspace(chance: Random) -> Policy:
    """Draw projects with unequal weights and ceilings, and 1 to 8 slots."""
    names = chance.sample(["zeta", "alpha", "mid", "default"], chance.randint(2, 4))
    projects = {
        each: ProjectPolicy(Fraction(chance.choice(WEIGHTS)), chance.choice([None, None, 1, 2])) for each in names
    }
    window, late = chance.choice([HOUR, 24 * HOUR]), chance.choice([10 * MINUTE, 30 * MINUTE, HOUR])
    slots = chance.randint(1, 8)
    return settings(projects=projects, max_loops=slots, window_ms=window, starvation_ms=late, retry=PATIENT)


def start(story: Story, number: int, chance: Random) -> None:
    """Start one more plan of any project."""
    text = f"{chance.choice(OUTLINES)} # {number}"
    artifact = outline(text, f"p{number}", project=chance.choice(list(story.forest.policy.projects)))
    story.see(o.PlanOffered(f"p{number}", artifact, digest_of(text), f"p{number}.md"))


def live(story: Story, loop_id: str, chance: Random) -> None:
    """Let a loop at work begin, tell something, or end somehow."""
    attempt, step = story[loop_id].attempt, chance.random()
    story.see(o.AttemptBegan(loop_id, attempt))
    if step < 0.4:
        tokens = chance.choice([None, 0, 100, 300, 900])
        story.see(o.AttemptUsed(loop_id, attempt, Usage(tokens, None, chance.choice([0, 1_000, 20_000, HOUR]))))
    if step > 0.2:
        trouble = chance.choice(ENDS)
        go_on(story, f"ended {loop_id}: {trouble}" if trouble else f"ended {loop_id}\njudged {loop_id}")
        if not trouble:
            story.see(o.LandingDone(loop_id, attempt, "c0", digest_of(f"{loop_id}{attempt}"), outline("x (y)")))
            go_on(story, f"cancel {loop_id}/x")


def compare(story: Story) -> int:
    """Play a round, grant by grant, beside the oracle, and count the grants."""
    grants, events = 0, choose(story.forest, story.now)
    while (event := next(events, None)) is not None:
        if isinstance(event, LeaseGranted):
            assert event.loop == Oracle(story).next()
            grants += 1
        story.wish([event])
    assert Oracle(story).next() is None
    return grants


@pytest.mark.parametrize("seed", range(24))
def test_each_grant_is_that_of_the_oracle(seed: int) -> None:
    """Whatever was used, rests, starves or is at its ceiling: each grant is the one that the rules name."""
    chance = Random(seed)
    story, grants = Story(workspace(chance)), 0
    for number in range(24):
        story.now += chance.choice([0, 1, 30_000, MINUTE, 10 * MINUTE, 30 * MINUTE])
        if number < 3 or number % 6 == 0:
            start(story, number, chance)
        for scope in list(story.forest.shared.holds):
            go_on(story, f"resume {scope}")
        if chance.random() < 0.3:
            go_on(story, f"pause project:{chance.choice(list(story.forest.policy.projects))}")
        for loop_id in sorted(story.forest.occupancy.loops):
            if chance.random() < 0.7:
                live(story, loop_id, chance)
        grants += compare(story)
    assert grants > 5
