"""What tells no tokens costs none, in budgets and in what is shown, and its time counts in the shares all the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from loopr.core import observations as o
from loopr.core.fairness import usage_of
from loopr.core.grouping import budget_waits
from loopr.core.ledger import Sums, read_sums
from loopr.core.policy import Budget, LanePolicy, Policy, ProjectPolicy, decode_policy, encode_policy
from tests.core.stories import Story, go_on, settings, tell

BUSY = "choose p/a\nbegan p/a\nwait 20m"


def projects(**budgets: Budget) -> dict[str, ProjectPolicy]:
    """Return the default project with a budget."""
    return {"default": ProjectPolicy(**budgets)}


def test_loops_without_tokens_use_up_no_budget_of_tokens() -> None:
    """However long they take, they cost nothing, and go side by side; their time counts where time is limited."""
    story = Story(settings(budget=Budget(tokens=100), retry=settings().retry))
    go_on(story, f"plan p: a; b; c; d\n{BUSY}\nended p/a: refused no")
    assert (story["p/a"].spent.cost, story["p/a"].spent.ms) == (0, 1_200_000)
    assert story.choose() == ["p/b", "p/c"]
    go_on(story, "began p/b\nended p/b: refused no\nchoose p/d, p/a")
    story.verify()
    story = tell(f"plan p: a; b\n{BUSY}\nended p/a: refused no", settings(budget=Budget(secs=1_200)))
    assert "budget" in story.gates("p/b")


@pytest.mark.parametrize("trouble", ["refused no", "infra died", "timeout too long", "limited 429"])
def test_a_first_one_that_tells_nothing_lets_no_crowd_start(trouble: str) -> None:
    """Where none has told yet what its type costs, one more runs at once than have ended, until one tells."""
    story = Story(settings(budget=Budget(tokens=2_000), ramp=False))
    go_on(
        story, f"plan p: a; b; c; d; e; f; g; h\nchoose p/a\nbegan p/a\nended p/a: {trouble}\nwait 2s\nchoose p/b, p/c"
    )
    assert story.gates("p/d") == {"budget": "none has told yet what a spec costs the workspace: 2 at once for now"}
    go_on(story, "began p/b\nused p/b 1000 tokens 1s\nended p/b: config done\nchoose nobody")
    story.verify()


def test_who_was_never_served_has_used_nothing() -> None:
    """A hang of twenty minutes that ended in a limit is free of tokens and money, and twenty minutes of a share."""
    lanes = {"default": LanePolicy(micro_usd_per_mtok=5_000_000)}
    policy = settings(projects=projects(budget=Budget(tokens=10, micro_usd=10)), lanes=lanes)
    story = tell(f"plan p: a\n{BUSY}\nended p/a: limited 429", policy)
    used = story.forest.ledger.used(("project", "default"), story.now)
    assert (used.cost, used.usd, used.ms) == (0, 0, 1_200_000)
    assert usage_of(story.forest, "default", ["default"], story.now) == 1_200 * 50 * 1000
    assert (story["p/a"].spent.usd, story["p/a"].spent.estimated) == (0, False)
    go_on(story, "wait 1h\nchoose p/a")
    story.verify()


def test_a_live_attempt_counts_the_same() -> None:
    """While it runs a loop without tokens keeps nothing of a budget, and its time of a share."""
    story = tell(f"plan p: a\n{BUSY}", settings(budget=Budget(tokens=10)))
    assert story.forest.cost_so_far(story["p/a"], story.now) == 0
    assert usage_of(story.forest, "default", ["default"], story.now) == 1_200 * 50 * 1000


def test_a_journal_from_before_keeps_what_it_has_counted() -> None:
    """Under settings from before time was priced: that stands, and what comes under those of now is counted anew."""
    data = encode_policy(settings(budget=Budget(tokens=100_000)))
    del data["time_is_tokens"]
    before = decode_policy(json.loads(json.dumps(data)))
    assert before.time_is_tokens and not Policy().time_is_tokens
    story = tell(f"plan p: a\n{BUSY}\nended p/a: refused no", before)
    assert story["p/a"].spent.cost == 60_000_000
    assert story["p/a"].spent.estimated
    story.see(o.PolicySeen(replace(before, time_is_tokens=False), "now"))
    go_on(story, f"{BUSY}\nended p/a: refused no")
    assert story["p/a"].spent.cost == 60_000_000
    assert story.forest.ledger.used(("plan", "p"), story.now) == Sums(2, 60_000_000, 0, 2_400_000, 120_000_000, told=1)
    story.verify()


def test_sums_from_before_are_read() -> None:
    """A row without a sum of its own for shares has the one that both counted, and all of its attempts had told it."""
    assert read_sums([2, 50, 1, 9]) == Sums(2, 50, 1, 9, 50, 2)
    assert read_sums([2, 50, 1, 9, 70]) == Sums(2, 50, 1, 9, 70, 2)
    assert read_sums([2, 0, 0, 9, 70]) == Sums(2, 0, 0, 9, 70, 0)
    assert read_sums([2, 50, 1, 9, 70, 1]) == Sums(2, 50, 1, 9, 70, 1)


def test_who_waits_for_something_else_first_waits_for_no_budget() -> None:
    """Loops are counted by their first closed gate: one whose lane rests does not wait for the budget yet."""
    story = Story(settings(budget=Budget(tokens=10)))
    go_on(story, "plan p: a; b\nchoose p/a\nbegan p/a\nused p/a 20 tokens\nended p/a: refused no")
    assert list(budget_waits(story.forest, story.now).values()) == [2]
    go_on(story, "pause p/b")
    assert list(budget_waits(story.forest, story.now).values()) == [1]
    lanes = {"default": story.forest.shared.lane("default")._replace(rest_until=story.now + 1_000)}
    story.forest.shared.lanes.update(lanes)
    assert budget_waits(story.forest, story.now) == {}
