"""How much, how often and how soon: retry delays, lanes, budgets, and the queue before the ceilings."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core import observations as o
from loopr.core.backoff import backoff_ms, half_up
from loopr.core.choose import next_wake
from loopr.core.gates import closed_gates
from loopr.core.grouping import budget_waits, group_key, queue, queue_depth, ready_loops
from loopr.core.ledger import Sums, charge_of
from loopr.core.limits import reserved, rest_ms, usual
from loopr.core.model import Loop, Usage
from loopr.core.policy import (
    Budget,
    LanePolicy,
    Policy,
    ProjectPolicy,
    Retry,
    TypePolicy,
    decode_policy,
    encode_policy,
)
from loopr.core.scene import Scene
from loopr.core.settled import Standing, is_settled, standing
from tests.core.outlines import digest_of, outline
from tests.core.stories import START, STEADY, Story, go_on, settings, tell

# --- retry delays ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "rounded"), [(Fraction(1, 2), 1), (Fraction(3, 2), 2), (Fraction(149, 100), 1), (Fraction(0), 0)]
)
def test_halves_are_rounded_up(value: Fraction, rounded: int) -> None:
    """Whole milliseconds, half up: never to the even neighbour."""
    assert half_up(value) == rounded


@pytest.mark.parametrize(
    ("failures", "delay"), [(1, 30_000), (2, 60_000), (3, 120_000), (4, 240_000), (5, 300_000), (99, 300_000)]
)
def test_the_delay_grows_up_to_its_cap(failures: int, delay: int) -> None:
    """The n-th failure in a row waits base times factor to the n-1, and no longer than the cap."""
    assert backoff_ms(STEADY, failures, "p/a", failures) == delay


def test_a_delay_with_a_fraction_is_rounded_half_up() -> None:
    """A delay that falls between two milliseconds is rounded half up: 3 ms times 1.5 is 5 ms."""
    retry = Retry(base_ms=3, factor=Fraction(3, 2), jitter=Fraction(0))
    assert [backoff_ms(retry, each, "x", 1) for each in (1, 2, 3)] == [3, 5, 7]


def test_a_factor_of_one_never_grows() -> None:
    """A factor of one gives the same delay for ever, also after very many failures."""
    assert backoff_ms(Retry(factor=Fraction(1), jitter=Fraction(0)), 10_000, "x", 1) == 30_000


@given(st.integers(1, 12), st.text("abc/", min_size=1, max_size=8), st.integers(1, 10**6))
def test_jitter_stays_within_its_bounds_and_repeats(failures: int, loop_id: str, attempt: int) -> None:
    """Jitter moves a delay by a tenth at most, and the same loop and attempt give the same delay again."""
    plain = backoff_ms(STEADY, failures, loop_id, attempt)
    moved = backoff_ms(Retry(), failures, loop_id, attempt)
    assert moved == backoff_ms(Retry(), failures, loop_id, attempt)
    assert abs(moved - plain) * 10 <= plain + 5
    assert moved <= 300_000, "the cap is the longest delay, jitter and all"


def test_jitter_spreads_loops_and_attempts() -> None:
    """Different loops, and different attempts of one loop, wait for different times, on both sides of the middle."""
    delays = [backoff_ms(Retry(), 1, f"p/{number}", 1) for number in range(50)]
    delays += [backoff_ms(Retry(), 1, "p/a", number) for number in range(50)]
    assert len(set(delays)) > 90
    assert min(delays) < 28_500
    assert max(delays) > 31_500


def test_a_backoff_ends_at_its_instant() -> None:
    """A loop is eligible again at the very millisecond its delay ends, and the engine wakes then."""
    story = tell("plan p: a\nchoose p/a\nended p/a: infra died\nwait 29999ms\nchoose nobody")
    assert next_wake(story.forest, story.now) == story.now + 1
    story.now += 1
    assert story.choose() == ["p/a"]


# --- lanes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "secs"), [(1, 2), (2, 4), (6, 64), (7, 64), (50, 64)])
def test_a_rest_doubles_up_to_a_minute(hits: int, secs: int) -> None:
    """The n-th limit in a row rests for 2 to the n seconds, and never for more than 64."""
    assert rest_ms(hits) == secs * 1000


def limited(story: Story, loop_id: str, words: str = "") -> None:
    """Let a loop run into the limit of its lane."""
    go_on(story, f"ended {loop_id}: limited slow down {words}")


def lane(story: Story, name: str = "default") -> Any:
    """Return a lane's state."""
    return story.forest.shared.lane(name)


def four(policy: Policy | None = None) -> Story:
    """Begin with four specs that run."""
    story = Story(policy or settings(ramp=True))
    go_on(story, "plan p: a; b; c; d; e; f; g; h; i; j")
    for loop_id in story.choose():
        go_on(story, f"began {loop_id}")
    return story


def test_a_limit_costs_the_loop_nothing() -> None:
    """A loop that was limited is pending again with all its counters as they were, and its lane rests."""
    story = four()
    before = story["p/a"]
    limited(story, "p/a")
    after = story["p/a"]
    kept = ("iteration", "failures", "launch_failures", "not_before", "signature")
    assert [getattr(after, each) for each in kept] == [getattr(before, each) for each in kept]
    assert after.status == "pending"
    assert (lane(story).hits, lane(story).rest_until) == (1, story.now + 2_000)
    story.verify()


@pytest.mark.parametrize(
    ("words", "rest_ms_wanted"),
    [
        ("", 2_000),
        ("after=1s", 2_000),
        ("after=90s", 90_000),
        ("resets=3h by=reader", 10_800_000),
        ("resets=3h", 3_600_000),  # anybody may have written that
        ("after=999999h", 3_600_000),
        ("after=999999h by=reader", 3_600_000),  # no provider's window is so long
        ("resets=90s after=5s", 90_000),
    ],
)
def test_the_provider_may_ask_for_a_longer_rest(words: str, rest_ms_wanted: int) -> None:
    """A lane rests until the reset time or the asked delay, but at least as long as its hits say."""
    story = four()
    limited(story, "p/a", words)
    assert lane(story).rest_until == story.now + rest_ms_wanted


def test_limits_from_before_the_rest_lengthen_it_without_a_hit() -> None:
    """Attempts that were granted before the rest began may lengthen it, never shorten it, and add no hit."""
    story = four()
    limited(story, "p/a", "after=60s")
    begun = story.now
    limited(story, "p/b")
    limited(story, "p/c", "after=30s")
    assert (lane(story).hits, lane(story).rest_until) == (1, begun + 60_000)
    story.now += 1_000
    limited(story, "p/d", "after=300s")
    assert (lane(story).hits, lane(story).rest_until) == (1, begun + 301_000)
    story.verify()


def test_a_rest_ends_by_its_time_at_equality() -> None:
    """A lane takes loops again at the very instant its rest ends, and the engine wakes then."""
    story = tell("plan p: a; b\nchoose p/a, p/b\nended p/a: limited x after=60s\nended p/b: config no\nwait 59999ms")
    assert next_wake(story.forest, story.now) == story.now + 1
    assert story.choose() == []
    story.now += 1
    assert story.choose() == ["p/a"]


def test_an_old_success_ends_no_rest() -> None:
    """An attempt from before the rest that ends well changes neither the rest nor the hits nor the ramp."""
    story = four()
    limited(story, "p/a", "after=60s")
    before = lane(story)
    go_on(story, "ended p/b\nended p/c: refused no\nended p/d: config no")
    assert lane(story) == before


def test_a_lane_ramps_up_after_its_rest() -> None:
    """After a rest a lane starts with one loop and doubles with each attempt that ends: 1, 2, 4, 8, no ramp."""
    story = Story(settings(max_loops=16))
    go_on(story, "plan p: a; b; c; d; e; f; g; h; i; j; k; l; m; n; o")
    for loop_id in story.choose():
        go_on(story, f"ended {loop_id}: limited slow down" if loop_id == "p/a" else f"lost {loop_id}")
    story.now += 2_000
    seen = []
    for _ in range(5):
        granted = story.choose()
        seen.append((lane(story).ramp, lane(story).hits, story.forest.occupancy.total))
        go_on(story, f"began {granted[0]}\nended {granted[0]}: refused no")
    assert seen == [(1, 1, 1), (2, 0, 2), (4, 0, 4), (8, 0, 8), (None, 0, 15)]
    story.verify()


@pytest.mark.parametrize("numbers", [{"max_loops": 0}, {"lanes": {"default": LanePolicy(max_concurrent=3)}}])
def test_a_ramp_ends_at_the_lanes_own_limit(numbers: dict[str, Any]) -> None:
    """A ramp goes on without a ceiling on loops, and is over once it would be as wide as the lane's limit."""
    story = tell("plan p: a\nchoose p/a\nended p/a: limited x\nwait 2s\nchoose p/a", settings(**numbers))
    go_on(story, "began p/a\nended p/a: refused no")
    assert lane(story).ramp == 2
    go_on(story, "choose p/a\nbegan p/a\nended p/a: refused no")
    assert lane(story).ramp == (4 if "max_loops" in numbers else None)


@pytest.mark.parametrize(
    ("trouble", "hits"),
    [
        ("limited again", 2),
        ("infra died", 1),
        ("timeout too long", 0),
        ("refused no", 0),
        ("config no", 0),
        ("blocked x", 0),
    ],
)
def test_what_resets_the_hits(trouble: str, hits: int) -> None:
    """Hits go back to zero with the first attempt from after the rest that ends in anything but limited or infra."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\nended p/a: limited x\nwait 2s\nchoose p/a\nbegan p/a")
    go_on(story, f"ended p/a: {trouble}")
    assert lane(story).hits == hits


def test_a_second_limit_after_the_rest_is_a_second_hit() -> None:
    """An attempt granted after the rest that is limited again makes the next rest longer."""
    story = tell("plan p: a\nchoose p/a\nended p/a: limited x\nwait 2s\nchoose p/a\nended p/a: limited x")
    assert (lane(story).hits, lane(story).rest_until) == (2, story.now + 4_000)


def test_without_a_ramp_a_lane_is_wide_at_once() -> None:
    """With `ramp: false` everything starts again when the rest ends."""
    tell(
        "plan p: a; b\nchoose p/a, p/b\nended p/a: limited x\nlost p/b\nwait 2s\nchoose p/b, p/a", settings(ramp=False)
    )


def test_a_person_ends_a_rest() -> None:
    """`reset lane:NAME` ends a rest at once; the lane still starts slowly."""
    tell("plan p: a; b\nchoose p/a, p/b\nended p/a: limited x after=300s\nlost p/b\nreset lane:default\nchoose p/b")


def test_a_lane_without_an_account_is_parked_once() -> None:
    """An authentication failure parks the lane, not the loop, and says what to do until a person has done it."""
    story = tell("""
        plan p: a; b
        choose p/a, p/b
        began p/a
        ended p/a: lane the key was refused
        p/a has status pending failures 0 iteration 1
        why p/a: lane lane default is parked: the key was refused; mend it, then `loopr reset lane:default`
        began p/b
        ended p/b: lane the key was refused
        wait 1d
        choose nobody
        reset lane:default
        choose p/a, p/b
    """)
    assert [type(event).__name__ for event, _ in story.log].count("LaneParked") == 1


def test_changed_settings_take_a_parked_lane_back() -> None:
    """A lane that was parked works again once the settings change."""
    story = tell("plan p: a\nchoose p/a\nended p/a: lane no such model")
    story.see(o.PolicySeen(settings(max_loops=7)))
    assert story.choose() == ["p/a"]
    story.verify()


def test_a_lane_with_a_limit_counts_what_uses_it() -> None:
    """`max_concurrent` of a lane closes it for further loops, and the next of the list is taken."""
    lanes = {"one": LanePolicy(max_concurrent=1), "two": LanePolicy(max_concurrent=1)}
    story = tell(
        "plan p: a; b; c\nchoose p/a, p/b\nwhy p/c: lane lane one is at its limit of 1",
        settings(types={"spec": {"lanes": ("one", "two")}}, lanes=lanes),
    )
    assert [story[each].lane for each in ("p/a", "p/b")] == ["one", "two"]


def test_one_lane_resting_leaves_the_others() -> None:
    """A rest of one provider does not touch loops of another lane."""
    tell(
        "plan p: a (k)\nsettle\nplan q: x; y\nchoose p/a/k, q/x, q/y\nended p/a/k: limited x\nlost q/x\nchoose q/x",
        settings(types={"phase": {"lanes": ("paid",)}}),
    )


def test_only_the_judge_runs_again_if_it_was_limited() -> None:
    """If the judge was limited, the next attempt is for the judge alone, also after a second limit or a crash."""
    story = tell("""
        plan p: a
        choose p/a
        began p/a
        ended p/a
        judged p/a: limited slow down
        p/a has status pending judge_only True
        wait 2s
        choose p/a
        lost p/a
        p/a has judge_only True
        choose p/a
        began p/a
        ended p/a: limited again
        p/a has judge_only True
        wait 1m
        choose p/a
        began p/a
        ended p/a
        judged p/a: refused no
        p/a has judge_only False iteration 2
    """)
    assert story["p/a"].attempt == 4


# --- budgets ---------------------------------------------------------------------------------------------------------


def plan(story: Story, name: str, children: str, budget: Budget) -> None:
    """Start a plan with a budget of its own."""
    artifact = outline(children, name, budget=budget)
    story.see(o.PlanOffered(name, artifact, digest_of(children), f"{name}.md"))


@pytest.mark.parametrize("key", ["tokens", "micro_usd", "secs"])
def test_a_budget_of_zero_blocks(key: str) -> None:
    """Zero is a real limit: nothing starts; leaving it out means unlimited."""
    story = tell("plan p: a", settings(budget=Budget(**{key: 0})))
    assert f"the {key.replace('micro_usd', 'usd')} budget of the workspace is reached" in story.gates("p/a")["budget"]
    assert story.choose() == []
    assert tell("plan p: a", settings(budget=Budget(**{key: None}))).choose() == ["p/a"]


def run(story: Story, loop_id: str, tokens: int | None, ms: int = 1_000) -> None:
    """Let a granted loop use so much and be refused."""
    story.see(o.AttemptBegan(loop_id, story[loop_id].attempt))
    go_on(story, f"used {loop_id} {f'{tokens} tokens' if tokens is not None else ''} {ms}ms")
    go_on(story, f"ended {loop_id}: refused no")


def test_a_budget_is_reached_at_its_very_number() -> None:
    """A budget is reached at `>=`: one token less still starts a loop."""
    for tokens, starts in ((99, True), (100, False)):
        story = Story(settings(budget=Budget(tokens=100)))
        go_on(story, "plan p: a; b")
        assert story.choose() == ["p/a"]
        run(story, "p/a", tokens)
        assert bool(story.choose()) is starts


def tree(**numbers: Any) -> Story:
    """Begin three specs, of which the first has handed over two phases already."""
    story = Story(settings(**numbers))
    go_on(story, "plan p: a (k; l); b; c\nsettle")
    return story


def test_nothing_known_lets_one_go_ahead() -> None:
    """Where nobody knows what a loop costs a budget lets one go ahead, of whatever type, until its cost is known."""
    story = tree(budget=Budget(tokens=1000))
    assert story.choose() == ["p/a/k"]
    said = "p/a/k, the first at the cost of the workspace is being measured"
    assert story.gates("p/b") == story.gates("p/a/l") == {"budget": said}
    go_on(story, "began p/a/k\nused p/a/k 900 tokens\nchoose nobody")
    run(story, "p/a/k", 100)
    assert sorted(story.choose()) == ["p/a/k", "p/a/l", "p/b"]
    story.verify()


def test_one_of_an_unmeasured_type_runs_at_a_time() -> None:
    """Until a type has one measured attempt in a scope with a budget, only one of it runs there."""
    story = tree(budget=Budget(tokens=1000))
    story.choose()
    run(story, "p/a/k", 10)
    assert story.choose() == ["p/a/l", "p/a/k", "p/b"]
    assert story.gates("p/c")["budget"] == "p/b, the first spec at the cost of the workspace is being measured"
    run(story, "p/b", 10)
    assert sorted(story.choose()) == ["p/b", "p/c"]
    story.verify()


def test_no_two_types_are_measured_at_once() -> None:
    """While the first of one new type runs, nobody knows what it will cost: that of another new type waits for it."""
    story = Story(settings(budget=Budget(tokens=1000)))
    go_on(story, "plan p: a (k (x)); b (l); c\nsettle\nchoose p/a/k/x")
    run(story, "p/a/k/x", 10)
    assert story.choose() == ["p/a/k/x", "p/b/l"]
    assert story.gates("p/c")["budget"] == "p/b/l, the first phase at the cost of the workspace is being measured"
    run(story, "p/b/l", 10)
    assert story.choose() == ["p/b/l", "p/c"]
    story.verify()


def test_a_type_without_a_measure_costs_what_the_dearest_does() -> None:
    """What runs of a type that was never measured is taken to cost what the dearest type does: never nothing."""
    story = tree(budget=Budget(tokens=200))
    story.choose()
    run(story, "p/a/k", 100)
    go_on(story, "dispatch p/b\nchoose p/b")  # 100 used, and 100 kept for the first spec: there is no room for a phase
    assert reserved(story.forest, ("workspace", ""), story.now).cost == 100_000
    story.verify()


def test_what_others_have_measured_counts_where_the_payer_knows_nothing() -> None:
    """A type is taken to cost what it costs in the project, else in the workspace; only then what the dearest does."""
    projects = {name: ProjectPolicy() for name in ("api", "default")}
    story = Story(settings(projects=projects))
    go_on(story, "plan w: x\nchoose w/x")
    run(story, "w/x", 700)
    story.see(o.PlanOffered("r", outline("a", "r", project="api", budget=Budget(tokens=9_000)), "d", "r.md"))
    scope = ("plan", "r")

    def mean() -> int:
        """Return what a spec of the plan is taken to cost."""
        found = usual(story.forest, scope, story["r/a"], story.now)
        return found.cost if found is not None else 0

    assert mean() == 700_000
    story.forest.ledger.add(charge(story, "r/b", "code", 50))
    assert mean() == 700_000
    story.forest.ledger.add(charge(story, "r2/a", "spec", 300))
    assert mean() == 300_000
    story.forest.ledger.add(charge(story, "r/c", "spec", 20))
    assert mean() == 20_000
    assert usual(story.forest, scope, story["r/a"]._replace(type="plan"), story.now) == Sums(
        1, 50_000, 0, 1_000, 50_000
    )


def charge(story: Story, loop_id: str, type_name: str, tokens: int) -> Any:
    """Make a charge for a loop of the project api."""
    loop = Loop(loop_id, type_name, "X", None, 0, 0, "api")
    return charge_of(story.forest.policy, loop, Usage(tokens, None, 1_000), "default", story.now)


def test_an_attempt_that_used_nothing_has_measured_nothing() -> None:
    """A loop that met a limit at its first word tells nobody what a loop costs: the next one goes ahead alone again."""
    story = Story(settings(budget=Budget(tokens=1000), ramp=False))
    go_on(story, "plan p: a; b; c\nchoose p/a\nbegan p/a\nused p/a 0 tokens 2s\nended p/a: limited slow down\nwait 2s")
    assert story.choose() == ["p/b"]
    assert "p/b, the first at the cost of the workspace" in story.gates("p/a")["budget"]
    run(story, "p/b", 10)
    assert len(story.choose()) == 3
    story.verify()


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_attempts_that_told_nothing_make_no_other_cheaper(slots: int) -> None:
    """Whoever dies without a word says nothing of what the others cost: a plan still stops within a loop's cost."""
    patient = Retry(base_ms=1, cap_ms=1, jitter=Fraction(0), no_progress=99, same_answer=None)
    story, chance, spent = Story(settings(max_loops=slots, retry=patient)), Random(slots), 0
    plan(story, "p", "; ".join("abcdefghijkl"), Budget(tokens=4_000))
    go_on(story, "settle")
    while story.choose() or story.forest.occupancy.total:
        loop_id = chance.choice(sorted(story.forest.occupancy.loops))
        story.now += 1_000
        if spent and chance.random() < 0.7:
            go_on(story, f"began {loop_id}\nended {loop_id}: refused it died at {story.now}")
        else:
            spent += 1_000
            go_on(story, f"began {loop_id}\nused {loop_id} 1000 tokens 1s\nended {loop_id}: config done")
    assert spent == 4_000
    story.verify()


def test_money_without_tokens_is_a_measure() -> None:
    """Whoever tells what it cost in money, and no token, has told what such a loop costs."""
    story = Story(settings(budget=Budget(micro_usd=9_000_000)))
    go_on(story, "plan p: a; b; c\nchoose p/a\nbegan p/a\nused p/a 0 tokens 2 usd 1s\nended p/a: refused no")
    assert len(story.choose()) == 3
    assert reserved(story.forest, ("workspace", ""), story.now).usd == 6_000_000
    story.verify()


def test_judges_of_another_account_are_kept_for_too() -> None:
    """What a loop's judges will cost on a lane of their own is reserved while its command runs, and no longer."""
    judged = {"spec": {"lanes": ("work",), "judge_lanes": ("judge",), "judged": True}}
    story = Story(settings(types=judged, budget=Budget(tokens=10_000)))
    go_on(story, "plan p: a; b\nchoose p/a\nbegan p/a\nused p/a 90 tokens 1s\nended p/a")
    go_on(story, "used p/a 10 tokens 1s\njudged p/a: refused no\nchoose p/b, p/a\nbegan p/b")
    kept = [reserved(story.forest, ("workspace", ""), story.now, but="p/a").cost]
    go_on(story, "used p/b 50 tokens 1s\nended p/b")
    kept.append(reserved(story.forest, ("workspace", ""), story.now, but="p/a").cost)
    assert kept == [100_000, 50_000]
    story.verify()


COSTS = st.fixed_dictionaries({each: st.integers(1, 9) for each in ("spec", "phase", "code")})
HANDED_OVER = {"spec": ": k; l", "phase": ": x; y", "code": ""}


@given(COSTS, st.integers(1, 120), st.integers(1, 6), st.booleans())
def test_a_plan_stops_within_one_loops_cost_of_its_budget(
    costs: dict[str, int], budget: int, slots: int, backwards: bool
) -> None:
    """Whatever the types cost and whoever ends first, a plan is done or stops within one loop's cost of its budget."""
    story = Story(settings(max_loops=slots))
    plan(story, "p", "a; b (m; n (u; v)); c", Budget(tokens=budget))
    go_on(story, "settle")
    spent = 0
    while story.choose() or story.forest.occupancy.total:
        first = story[sorted(story.forest.occupancy.loops, reverse=backwards)[0]]
        spent += costs[first.type]
        go_on(story, f"began {first.id}\nused {first.id} {costs[first.type]} tokens 1s")
        go_on(story, f"finish {first.id}#{first.attempt}{HANDED_OVER[first.type]}")
    done = all(each.status == "complete" for each in story.forest.loops.values())
    assert done or spent >= budget
    assert spent < budget + max(costs.values())


def test_what_runs_is_reserved() -> None:
    """A start is checked against what was used plus, for each loop at work, its use so far or the mean of its type."""
    story = Story(settings(budget=Budget(tokens=100)))
    go_on(story, "plan p: a; b; c; d")
    story.choose()
    run(story, "p/a", 30)
    assert story.choose() == ["p/b", "p/c", "p/d"]  # 30 used, 30 and 30 reserved: the fourth would start at 120
    scope = ("workspace", "")
    assert reserved(story.forest, scope, story.now).cost == 90_000
    go_on(story, "began p/b\nused p/b 50 tokens 1s")
    assert reserved(story.forest, scope, story.now).cost == 110_000
    assert "budget" in story.gates("p/a")
    story.verify()


def test_a_rolling_window_frees_a_budget_to_the_millisecond() -> None:
    """What a project or workspace used stops counting one window after it was charged, and the engine wakes then."""
    story = Story(settings(budget=Budget(tokens=10), window_ms=3_600_000))
    go_on(story, "plan p: a")
    story.choose()
    run(story, "p/a", 10)
    assert story.choose() == []
    assert next_wake(story.forest, story.now) == story.now + 3_600_000
    story.now += 3_599_999
    assert story.choose() == []
    story.now += 1
    assert story.choose() == ["p/a"]
    story.verify()


def test_a_window_opens_a_budget_once_enough_has_passed() -> None:
    """A loop is told the very millisecond at which the window has let go of enough, not that of the first charge."""
    story = Story(settings(budget=Budget(tokens=100), window_ms=3_600_000))
    go_on(story, "plan p: a")
    for tokens in (10, 30, 70):
        assert story.choose() == ["p/a"]
        run(story, "p/a", tokens)
        story.now += 600_000
    (gate,) = closed_gates(story.forest, story["p/a"], story.now)
    assert gate.until == START + 600_000 + 3_600_000
    assert budget_waits(story.forest, story.now) == {(gate.reason, gate.until): 1}
    story.now = gate.until - 1
    assert story.choose() == []
    story.now += 1
    assert story.choose() == ["p/a"]
    story.verify()


def test_of_several_budgets_the_last_to_open_is_told() -> None:
    """Where several budgets are used up a loop waits for the one that opens last, or never: that is what it is told."""
    projects = {"default": ProjectPolicy(budget=Budget(tokens=20))}
    story = Story(settings(budget=Budget(tokens=100), projects=projects, window_ms=3_600_000))
    go_on(story, "plan p: a\nchoose p/a")
    run(story, "p/a", 15)
    story.now += 600_000
    assert story.choose() == ["p/a"]
    run(story, "p/a", 85)
    (gate,) = closed_gates(story.forest, story["p/a"], story.now)
    assert (gate.reason, gate.until) == ("the tokens budget of project default is reached", story.now + 3_600_000)
    plan(story, "q", "x", Budget(tokens=0))
    (gate,) = closed_gates(story.forest, story["q/x"], story.now)
    assert (gate.reason, gate.until) == ("the tokens budget of plan q is reached", None)
    assert sorted(budget_waits(story.forest, story.now).values()) == [1, 1]


def test_a_budget_that_no_window_opens_is_the_end() -> None:
    """Where a budget was lowered to nothing, no window ever helps: nothing is waited for, whatever was used before."""
    story = Story(settings(budget=Budget(tokens=100)))
    go_on(story, "plan p: a\nchoose p/a")
    run(story, "p/a", 10)
    story.see(o.PolicySeen(settings(budget=Budget(tokens=0))))
    assert is_settled(story.forest, story.now)
    assert standing(story.forest, ["p"], story.now) is Standing.SPENT
    story.see(o.PolicySeen(settings(budget=Budget(tokens=10))))
    assert not is_settled(story.forest, story.now)


def test_a_plans_budget_never_frees() -> None:
    """A plan's budget counts from its start: no time brings it back, and nothing wakes for it."""
    story = Story()
    plan(story, "p", "a; b", Budget(tokens=10))
    assert story.choose() == ["p/a"]
    run(story, "p/a", 10)
    assert "the tokens budget of plan p is reached" in story.gates("p/a")["budget"]
    story.now += 30 * 86_400_000
    assert story.choose() == []
    assert next_wake(story.forest, story.now) is None
    story.verify()
    plan(story, "p", "a; b; c", Budget(tokens=20))
    assert "p/b" in story.choose()
    story.verify()


def test_a_plans_budget_leaves_other_plans_alone() -> None:
    """A plan that has used up its budget does not hold back a plan without one."""
    story = Story()
    plan(story, "p", "a", Budget(tokens=0))
    go_on(story, "plan q: x\nchoose q/x")


def test_what_others_run_is_reserved_for_them() -> None:
    """Loops of another plan or project at work neither fill a budget that is not theirs nor measure its types."""
    story = Story(settings(projects={"api": ProjectPolicy(budget=Budget(tokens=10)), "default": ProjectPolicy()}))
    go_on(story, "plan q: x\nchoose q/x\nbegan q/x\nused q/x 500 tokens")
    plan(story, "p", "a", Budget(tokens=10))
    story.see(o.PlanOffered("r", outline("b", "r", project="api"), "d", "r.md"))
    assert sorted(story.choose()) == ["p/a", "r/b"]


def test_a_projects_budget_holds_its_plans_only() -> None:
    """A project that has used up its budget does not hold back the others."""
    story = Story(settings(projects={"poor": ProjectPolicy(budget=Budget(tokens=0)), "default": ProjectPolicy()}))
    story.see(o.PlanOffered("p", outline("a", "p", project="poor"), "d", "p.md"))
    go_on(story, "plan q: x\nchoose q/x\nwhy p/a: budget the tokens budget of project poor is reached")


def test_time_is_a_budget_too() -> None:
    """A budget of seconds counts how long attempts took."""
    story = Story(settings(budget=Budget(secs=60)))
    go_on(story, "plan p: a\nchoose p/a\nbegan p/a\nwait 59s\nended p/a: refused no\nchoose p/a\nbegan p/a")
    go_on(story, "wait 1s\nended p/a: refused no")
    assert "the secs budget of the workspace is reached" in story.gates("p/a")["budget"]


def test_what_a_client_has_rounded_is_an_estimate() -> None:
    """Figures that are rounded count as they are, and are told apart from what was measured."""
    story = Story()
    go_on(story, "plan p: a; b\nchoose p/a, p/b\nbegan p/a\nbegan p/b\nused p/b 100 tokens 1s\nended p/b: refused no")
    story.see(o.AttemptUsed("p/a", 1, Usage(2_000, 8_600, 1_000, estimated=True)))
    go_on(story, "ended p/a: refused no")
    assert [(each.loop, each.tokens, each.estimated) for each in story.charges] == [
        ("p/b", 100, False),
        ("p/a", 2_000, True),
    ]
    assert (story["p/a"].spent.estimated, story["p/b"].spent.estimated) == (True, False)
    story.verify()


def test_money_without_a_report_is_priced_by_the_lane() -> None:
    """Tokens times the lane's price count where the client reports no money."""
    lanes = {"default": LanePolicy(micro_usd_per_mtok=3_000_000)}
    story = Story(settings(budget=Budget(micro_usd=3), lanes=lanes))
    go_on(story, "plan p: a\nchoose p/a")
    run(story, "p/a", 1)
    assert story.choose() == []
    assert story["p/a"].spent.usd == 3


def test_money_that_nobody_told_is_not_nothing() -> None:
    """A client that is ended before it tells its cost has paid for its tokens what they usually cost on its lane."""
    story = Story(settings(types={"spec": {"lanes": ("paid",), "budget": Budget(micro_usd=7_000_000)}}))
    go_on(story, "plan p: a; b; c\nchoose p/a, p/b, p/c\nbegan p/a\nbegan p/b\nbegan p/c")
    go_on(story, "used p/a 100 tokens 2 usd 1s\nended p/a: refused no\nused p/b 300 tokens\nused p/c 349 tokens")
    assert reserved(story.forest, ("workspace", ""), story.now).usd == 12_980_000
    go_on(story, "ended p/b: infra gone")
    assert story["p/b"].spent.usd == 6_000_000
    assert story["p/c"].status == "running"
    go_on(story, "used p/c 350 tokens")
    assert (story["p/c"].status, story["p/c"].reason[:29]) == ("parked", "its own budget of $7.00 is us")
    story.verify()


def test_only_an_account_has_a_price() -> None:
    """What commands without a lane cost in money is what they say: of those that say nothing, nothing is known."""
    story = tell("""
        plan p: a; b
        choose p/a, p/b
        began p/a
        began p/b
        used p/a 100 tokens 2 usd 1s
        ended p/a: refused no
        used p/b 300 tokens 1s
        ended p/b: refused no
    """)
    assert [each.micro_usd for each in story.charges] == [2_000_000, None]


def test_what_is_known_of_work_never_grows_less() -> None:
    """An engine that begins to listen in the middle takes nothing back; only what is told at the end may be less."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\nused p/a 90 tokens 3 usd\nused p/a 20 tokens")
    assert story["p/a"].live == Usage(90, 3_000_000)
    go_on(story, "used p/a 95 tokens")
    assert story["p/a"].live.tokens == 95
    go_on(story, "used p/a 40 tokens 1s\nended p/a: refused no")
    assert story["p/a"].spent.tokens == 40


def test_money_that_is_being_spent_counts() -> None:
    """What a running attempt has cost so far is reserved, and parks a loop with a budget of its own."""
    lanes = {"default": LanePolicy(micro_usd_per_mtok=3_000_000)}
    story = Story(settings(types={"spec": {"budget": Budget(micro_usd=30)}}, lanes=lanes))
    go_on(story, "plan p: a\nchoose p/a\nbegan p/a\nused p/a 9 tokens")
    assert reserved(story.forest, ("workspace", ""), story.now).usd == 27
    assert story["p/a"].status == "running"
    go_on(story, "used p/a 10 tokens")
    assert story["p/a"].status == "parked"


@pytest.mark.parametrize("key", ["tokens", "micro_usd", "secs"])
def test_a_loop_with_nothing_of_its_own_never_begins(key: str) -> None:
    """A budget of zero of a loop's own parks it before it has begun, at no charge; one that has more begins."""
    story = tell("plan p: a", settings(types={"spec": {"budget": Budget(**{key: 0})}}))
    story.choose()
    assert (story["p/a"].status, story.charges) == ("parked", [])
    assert story["p/a"].reason.startswith("its own budget of ")
    story.verify()
    story = tell("plan p: a\nchoose p/a", settings(types={"spec": {"budget": Budget(**{key: 1})}}))
    assert story["p/a"].status == "leased"


def choose_with_less(story: Story) -> None:
    """Lower the budget of each loop to 9 tokens, and decide a round a minute later."""
    story.see(o.PolicySeen(settings(types={"spec": {"budget": Budget(tokens=9)}})))
    go_on(story, "wait 1m")
    story.choose()


def test_siblings_do_not_wait_for_one_that_does_not_begin() -> None:
    """The next of those that run one after another starts in the round in which the one before is parked."""
    story = tell(
        """
        plan p: serial: a; b
        choose p/a
        began p/a
        used p/a 9 tokens 1s
        ended p/a: limited slow down
        """,
        settings(types={"spec": {"budget": Budget(tokens=10)}}),
    )
    choose_with_less(story)
    assert [story[each].status for each in ("p/a", "p/b")] == ["parked", "leased"]
    story.verify()


def test_work_that_is_done_is_judged_whatever_it_has_used() -> None:
    """A judge that a limit has kept from its verdict is asked again: what is judged was paid for."""
    story = tell(
        """
        plan p: a
        choose p/a
        began p/a
        used p/a 9 tokens 1s
        ended p/a
        judged p/a: limited slow down
        """,
        settings(types={"spec": {"budget": Budget(tokens=10)}}),
    )
    choose_with_less(story)
    assert (story["p/a"].status, story["p/a"].lease.judge_only) == ("leased", True)


def test_a_loop_that_a_limit_sent_back_does_not_begin_beyond_its_budget() -> None:
    """What a loop used before a limit met it counts: if that is all it had, it is not begun again after the rest."""
    story = tell(
        """
        plan p: a
        choose p/a
        began p/a
        used p/a 9 tokens 1s
        ended p/a: limited slow down
        """,
        settings(types={"spec": {"budget": Budget(tokens=10)}}),
    )
    go_on(story, "wait 2s\nchoose p/a\nbegan p/a\nused p/a 0 tokens 1s\nended p/a: limited slow down")
    assert story["p/a"].status == "pending"
    choose_with_less(story)
    assert (story["p/a"].status, story["p/a"].attempt) == ("parked", 3)
    assert "raise types.spec.budget" in story["p/a"].reason


def test_a_loops_own_budget_is_no_gate_but_parks_it() -> None:
    """Reaching its own budget stops and parks a loop; its slot is kept until the attempt has ended."""
    story = tell("""
        plan p: a budget 100
        why p/a: nothing
        choose p/a
        began p/a
        used p/a 99 tokens
        p/a is running
        used p/a 100 tokens
        p/a is parked
        why p/a: stopping try 1 was told to stop
        gone p/a
    """)
    words = "its own budget of 100 tokens is used up: it has used 100 tokens; raise `budget` in its entry"
    assert words in story.gates("p/a")["status"]
    assert story["p/a"].spent.cost == 100_000


def test_a_loops_own_budget_counts_all_its_attempts() -> None:
    """What earlier attempts used counts; one that told no tokens has used none."""
    story = Story()
    go_on(story, "plan p: a budget 100\nchoose p/a\nbegan p/a\nused p/a 60 tokens\nended p/a: refused no")
    go_on(story, "p/a is pending\nchoose p/a\nbegan p/a\nwait 20m\nended p/a: refused no\np/a is pending")
    go_on(story, "choose p/a\nbegan p/a\nused p/a 40 tokens\nended p/a: infra died")
    assert story["p/a"].status == "parked"
    assert "its own budget" in story["p/a"].reason
    story.verify()


def test_a_type_may_have_a_budget_for_each_of_its_loops() -> None:
    """The smaller of a loop's and its type's budget parks it."""
    story = Story(settings(types={"spec": {"budget": Budget(tokens=10)}}))
    go_on(story, "plan p: a budget 100; b budget 5; c\nchoose p/a, p/b, p/c")
    for loop_id, tokens in (("p/a", 10), ("p/b", 5), ("p/c", 9)):
        go_on(story, f"began {loop_id}\nused {loop_id} {tokens} tokens")
    assert [story[each].status for each in ("p/a", "p/b", "p/c")] == ["parked", "parked", "running"]


def test_what_waits_for_a_person_is_paid_for_already() -> None:
    """An attempt whose work waits for approval counts against the budget while it waits, and only once after."""
    story = Story(settings(types={"spec": {"approve": True}}, budget=Budget(tokens=10)))
    go_on(story, "plan p: a; b\nchoose p/a\nbegan p/a\nused p/a 10 tokens 1s\nended p/a\njudged p/a")
    assert "budget" in story.gates("p/b")
    assert story["p/a"].spent.cost == 10_000
    story.verify()
    story.now += 3_600_000
    go_on(story, "approve p/a\nlanded p/a: x")
    assert story["p/a"].spent.cost == 10_000
    assert [each.at for each in story.charges] == [START]
    story.verify()


# --- back-pressure ---------------------------------------------------------------------------------------------------


def test_the_queue_is_what_only_ceilings_hold_back() -> None:
    """The queue counts pending loops whose only closed gates are a type's, project's, lane's or the whole's ceiling."""
    story = tell(
        """
        plan p: a; b; c; d needs a; e (k; l; m)
        settle
        choose p/e/k, p/e/l
        pause p/c
        """,
        settings(max_loops=2),
    )
    assert queue_depth(story.forest, story.now) == {"phase": 1, "spec": 2}
    go_on(story, "host sick")
    assert queue_depth(story.forest, story.now) == {}


@pytest.mark.parametrize(
    ("numbers", "depth"),
    [
        ({"per_type": {"spec": 1}}, 2),
        ({"projects": {"default": ProjectPolicy(max_concurrent=1)}}, 2),
        ({"lanes": {"default": LanePolicy(max_concurrent=1)}}, 2),
        ({"max_loops": 1}, 2),
        ({"budget": Budget(tokens=5)}, 0),
    ],
)
def test_which_gates_make_a_queue(numbers: dict[str, Any], depth: int) -> None:
    """A ceiling makes a queue, a budget does not."""
    story = tell("plan p: a; b; c\nchoose p/a", settings(**numbers))
    assert sum(queue_depth(story.forest, story.now).values()) == depth


@pytest.mark.parametrize(
    ("numbers", "told", "ready"),
    [
        ({}, "", 3),
        ({}, "pause p/c", 2),
        ({}, "host sick", 0),
        ({}, "choose p/a, p/b, p/c\nended p/a: infra died", 0),
        ({"max_loops": 1}, "choose p/a", 0),
    ],
)
def test_ready_loops_are_counted_as_they_are_listed(numbers: dict[str, Any], told: str, ready: int) -> None:
    """One pass counts the queue and the ready loops: as many as there are in the list of these."""
    story = tell(f"plan p: a; b; c; d needs a\n{told}", settings(**numbers))
    assert queue(story.forest, story.now).ready == ready
    assert len(list(ready_loops(story.forest, story.now))) == ready


def test_a_resting_lane_makes_no_queue() -> None:
    """Loops that wait for a lane's rest or its account do not count as queued; those behind its limit do."""
    story = tell("plan p: a; b; c\nchoose p/a, p/b, p/c\nended p/a: limited x\nlost p/b\nlost p/c")
    assert queue_depth(story.forest, story.now) == {}


def test_the_queue_has_limits_of_its_own() -> None:
    """The soft limit is four per slot and at least eight, the hard one twice that; without a ceiling there are none."""
    assert Policy(max_loops=1).queue_limits() == (8, 16)
    assert Policy(max_loops=50).queue_limits() == (200, 400)
    assert Policy(max_loops=50, soft_limit=5).queue_limits() == (5, 10)
    assert Policy(max_loops=50, hard_limit=7).queue_limits() == (200, 7)
    assert Policy(max_loops=0).queue_limits() == (None, None)
    assert Policy(max_loops=-1, soft_limit=3).queue_limits() == (None, None)


@pytest.mark.parametrize("ceiling", [0, -1])
def test_without_a_ceiling_everything_starts(ceiling: int) -> None:
    """`max_loops` 0 or -1 means direct dispatch: no ceiling on loops."""
    story = Story(settings(max_loops=ceiling))
    go_on(story, "plan p: " + "; ".join(f"s{number}" for number in range(120)))
    assert len(story.choose()) == 120


# --- the next instant ------------------------------------------------------------------------------------------------


def test_the_engine_wakes_at_the_earliest_instant() -> None:
    """`next_wake` is the earliest of backoff, rest, expiry, pace, budget window and host probe; none means never."""
    story = Story(settings(batch_size=2, poll_interval_ms=500, types={"phase": {"lanes": ("paid",)}}))
    go_on(story, "plan p: a; b; c (k)\nsettle")

    def wakes() -> int | None:
        """Say in how many milliseconds the engine wakes."""
        at = next_wake(story.forest, story.now)
        return None if at is None else at - story.now

    assert wakes() is None
    assert len(story.choose()) == 2
    assert wakes() == 500
    story.now += 500
    story.choose()
    assert wakes() is None
    go_on(story, "ended p/a: infra died")
    assert wakes() == 30_000
    go_on(story, "ended p/c/k: limited x after=20s")
    assert wakes() == 20_000
    story.see(o.HostSeen("full", story.now + 10_000))
    assert wakes() == 10_000
    story.see(o.HostSeen(""))
    go_on(story, "ended p/b: host the disk is full")
    assert wakes() == 20_000
    story.verify()


def test_a_host_that_refuses_costs_nothing_and_is_probed_again() -> None:
    """A machine that cannot start anything closes the gate `host` for all, costs no loop anything, and is probed."""
    story = tell("""
        plan p: a; b
        choose p/a, p/b
        ended p/a: host no space left
        p/a has status pending failures 0 not_before 0
        why p/a: host no space left
        lost p/b
        wait 5m
        choose nobody
        host fine
        choose p/a, p/b
    """)
    assert story["p/a"].attempt == 2


def test_a_host_that_refuses_again_and_again_is_left_alone_for_longer() -> None:
    """Each refusal in a row doubles the rest of the machine up to the cap; an attempt that was made ends the row."""
    story = tell("plan p: a")

    def rest_after(refusals: int) -> int:
        """Let the machine refuse so often, and return for how many milliseconds it is left alone then."""
        for _ in range(refusals):
            go_on(story, "choose p/a\nended p/a: host no space left")
            rest = story.forest.shared.host.until - story.now
            story.now += rest
            story.see(o.HostSeen("", refusals=story.forest.shared.host.refusals))
        return rest

    assert rest_after(1) == 30_000
    assert rest_after(1) == 60_000
    assert rest_after(5) == 300_000
    go_on(story, "choose p/a\nbegan p/a\nended p/a: refused no")
    assert rest_after(1) == 30_000
    story.verify()


# --- agents ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "lanes"),
    [("", ("main", "spare")), ("claude", ("main", "spare")), ("opus", ("claude",)), ("codex", ("codex",))],
)
def test_an_agent_of_its_own_brings_its_lanes(agent: str, lanes: tuple[str, ...]) -> None:
    """An entry that names another agent than its type uses that agent's account, not the type's."""
    types = {"plan": TypePolicy("plan", "code"), "code": TypePolicy("code", agent="claude", lanes=("main", "spare"))}
    policy = Policy(types=types, agents={"opus": ("claude",)})
    loop = Loop("p/a", "code", "A", "p", 0, 1, "default", command=bool(agent), agent=agent)
    assert decode_policy(encode_policy(policy)) == policy
    assert Scene(policy).lanes_of(loop) == lanes


def test_a_lane_that_is_parked_holds_back_its_own_loops_only() -> None:
    """Loops of one type that use different accounts are let run and held back apart."""
    types = {"plan": TypePolicy("plan", "code"), "code": TypePolicy("code", agent="claude", lanes=("claude",))}
    scene = Scene(Policy(types=types))
    plain = Loop("p/a", "code", "A", "p", 0, 1, "default", command=True)
    loops = [plain._replace(id=f"p/{name}", agent=name) for name in ("claude", "codex")]
    scene.loops["p"] = Loop("p", "plan", "P", None, 0, 0, "default")
    assert len({group_key(scene, each) for each in loops}) == 2
