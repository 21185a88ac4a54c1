"""Lanes before their wall, agents that take over, and what a loop may still use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loopr.core import observations as o
from loopr.core.choose import next_wake, pick
from loopr.core.events import LeaseGranted
from loopr.core.gates import closed_gates, first_closed
from loopr.core.grouping import Waits
from loopr.core.limits import UNKNOWN_WINDOW_MS, slow_width, tokens_left
from loopr.core.model import Failure
from loopr.core.policy import Budget, LanePolicy, Policy, Step, decode_policy, encode_policy
from loopr.core.settled import Standing, is_settled, standing
from loopr.core.workspace_events import LaneMeasured
from tests.core.stories import Story, go_on, settings, tell

SLOW = {"default": LanePolicy(max_concurrent=8, slow_above=800)}
MANY = "; ".join("abcdefghij")


def told(story: Story, level: int, after_ms: int | None = 60_000, lane: str = "default") -> int:
    """Let a provider say how much of a lane's window is used, and count the events that follow."""
    resets_at = None if after_ms is None else story.now + after_ms
    return len(story.see(o.LaneLevel(lane, level, resets_at)))


# --- before the wall --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "width"), [(799, 8), (800, 8), (850, 6), (900, 4), (975, 1), (1000, 1), (1200, 1)])
def test_a_lane_narrows_as_its_window_does(level: int, width: int) -> None:
    """Above `slow_above` a lane takes fewer, from all at the warning down to one at the wall."""
    story = Story(settings(lanes=SLOW))
    go_on(story, f"plan p: {MANY}")
    told(story, level)
    assert len(story.choose()) == width
    story.verify()


def test_a_lane_that_slows_down_says_so() -> None:
    """A loop behind a narrow lane says why; it goes on when another has ended, or when the window begins anew."""
    story = Story(settings(lanes=SLOW))
    go_on(story, "plan p: a; b; c")
    told(story, 990)
    go_on(
        story,
        """
        choose p/a
        why p/b: lane 99% of lane default's window is used: only 1 at once until it begins anew
        """,
    )
    assert not is_settled(story.forest, story.now)
    assert next_wake(story.forest, story.now) == story.now + 60_000
    go_on(story, "finish p/a\nchoose p/b\nwait 60s\nchoose p/c")
    story.verify()


def test_only_what_makes_a_difference_is_written_down() -> None:
    """A level below the warning is no event, nor is the same one again; one that falls below it takes the brake off."""
    story = Story(settings(lanes=SLOW))
    assert [told(story, each) for each in (100, 700, 850, 850, 860, 790, 790)] == [0, 0, 1, 0, 1, 1, 0]
    assert slow_width(story.forest, "default", story.now) is None
    assert told(story, 990, lane="other") == 0
    story.verify()


def test_a_level_without_an_end_is_forgotten() -> None:
    """Where nobody says when the window ends, a level holds for a while, and longer with each time it is told."""
    story = Story(settings(lanes=SLOW))
    assert told(story, 900, None) == 1
    assert next_wake(story.forest, story.now) == story.now + UNKNOWN_WINDOW_MS
    story.now += UNKNOWN_WINDOW_MS
    assert slow_width(story.forest, "default", story.now) is None
    assert told(story, 900, None) == 1
    assert slow_width(story.forest, "default", story.now) == 4


def test_an_end_that_cannot_be_meant_is_none() -> None:
    """A window that is said to end in years, or to have ended already, is one of which nobody knows the end."""
    story = Story(settings(lanes=SLOW))
    for after_ms in (33 * 86_400_000, -1):
        assert told(story, 900 - after_ms % 7, after_ms) == 1
        assert story.forest.shared.lane("default").level_until == story.now + UNKNOWN_WINDOW_MS


def test_a_person_takes_the_brake_off() -> None:
    """`reset lane:NAME` forgets the level, as it does a rest."""
    story = Story(settings(lanes=SLOW))
    go_on(story, "plan p: a; b")
    told(story, 1000)
    go_on(story, "choose p/a\nreset lane:default\nchoose p/b")
    story.verify()


def test_a_lane_without_a_limit_narrows_from_the_ceilings_above_it() -> None:
    """The widest that a lane can be is the least of its own limit, the slots, and for an account the API calls."""
    account = {"paid": LanePolicy(slow_above=500)}
    story = Story(settings(lanes=account, max_loops=6, max_api_calls=4))
    told(story, 750, lane="paid")
    assert slow_width(story.forest, "paid", story.now) == 2
    story = Story(settings(lanes={"default": LanePolicy(slow_above=500)}, max_loops=0, max_api_calls=4))
    told(story, 600)
    assert slow_width(story.forest, "default", story.now) == 1


def test_the_clock_moves_a_level_too() -> None:
    """A clock that was behind takes the end of a window with it."""
    story = Story(settings(lanes=SLOW))
    told(story, 900)
    story.now -= 500_000
    story.see(o.ClockBehind(500_000))
    assert story.forest.shared.lane("default").level_until == story.now + 60_000
    story.verify()


# --- several accounts -------------------------------------------------------------------------------------------------

POOL = {"one": LanePolicy(max_concurrent=1), "two": LanePolicy(max_concurrent=1), "three": LanePolicy()}


def test_a_pool_takes_the_first_free_account() -> None:
    """Of several lanes the first with room is taken; one that rests or is parked is passed over, and comes back."""
    story = tell(
        """
        plan p: a; b; c; d
        choose p/a, p/b, p/c, p/d
        ended p/a: limited x after=60s
        ended p/b: lane the key was refused
        choose p/a, p/b
        wait 60s
        ended p/a: refused no
        choose p/a
        """,
        settings(types={"spec": {"lanes": ("one", "two", "three")}}, lanes=POOL),
    )
    lanes = [event.lane for event, _ in story.log if isinstance(event, LeaseGranted)]
    assert lanes == ["one", "two", "three", "three", "three", "three", "one"]


def test_where_every_account_is_parked_a_person_is_needed() -> None:
    """A plan of which every lane is parked does not end well: it is stuck until somebody mends one of them."""
    story = tell(
        "plan p: a\nchoose p/a\nended p/a: lane no credit", settings(types={"spec": {"lanes": ("one", "two")}})
    )
    assert not is_settled(story.forest, story.now)
    go_on(story, "choose p/a\nended p/a: lane no credit")
    assert is_settled(story.forest, story.now)
    assert standing(story.forest, ["p"], story.now) is Standing.STUCK
    go_on(story, "reset lane:two\nchoose p/a\nfinish p/a: x")
    assert standing(story.forest, ["p/a"], story.now) is not Standing.STUCK


@pytest.mark.parametrize("field", ["policy", "seal"])
def test_any_changed_settings_take_a_parked_lane_back(field: str) -> None:
    """What decisions see of the settings need not change: a key in a lane's environment is a change too."""
    story = Story()
    policy = story.forest.policy
    story.see(o.PolicySeen(policy, "before"))
    go_on(story, "plan p: a\nchoose p/a\nended p/a: lane the key was refused")
    assert story.see(o.PolicySeen(policy, "before")) == []
    changed = o.PolicySeen(policy, "after") if field == "seal" else o.PolicySeen(replace(policy, max_loops=3), "before")
    story.see(changed)
    assert story.choose() == ["p/a"]
    story.verify()


# --- somebody else takes over -----------------------------------------------------------------------------------------


def escalating(**steps: tuple[int, str]) -> Policy:
    """Return a policy under which agents take over from the command of a spec."""
    types: dict[str, Any] = {
        "spec": {"agent": "small", "lanes": ("small",), "escalate": {k: Step(*v) for k, v in steps.items()}}
    }
    return settings(types=types, agents={"big": ("work", "home")})


def agents(story: Story) -> list[tuple[str, str]]:
    """List who was granted leases, and on which lanes."""
    return [(event.agent, event.lane) for event, _ in story.log if isinstance(event, LeaseGranted)]


REFUSED = "choose p/a\nbegan p/a\nended p/a: refused no"


def test_another_agent_takes_over_after_so_many_refusals() -> None:
    """With the refusal that makes the number full the other agent works, on the lanes that it has."""
    story = tell(f"plan p: a\n{REFUSED}\n{REFUSED}\n{REFUSED}", escalating(refused=(2, "big")))
    assert agents(story) == [("small", "small"), ("small", "small"), ("big", "work")]
    assert story.forest.taken_over(story["p/a"]) == ("refused", Step(2, "big"))


def test_classes_are_counted_apart() -> None:
    """Other failures do not count, and where several are full the last of the settings has the word."""
    story = tell(
        f"""
        plan p: a
        {REFUSED}
        choose p/a
        began p/a
        ended p/a: infra died
        wait 300s
        choose p/a
        began p/a
        ended p/a: timeout too long
        wait 300s
        choose p/a
        began p/a
        ended p/a: limited 429
        wait 300s
        {REFUSED}
        choose p/a
        """,
        escalating(refused=(2, "big"), timeout=(1, "patient")),
    )
    assert [agent for agent, _ in agents(story)] == ["small", "small", "small", "patient", "patient", "patient"]


def test_a_conflict_may_be_somebody_elses_work() -> None:
    """A conflict while landing counts as one, not as a refusal."""
    story = tell(
        "plan p: a\nchoose p/a\nbegan p/a\nended p/a\njudged p/a\nlanded p/a: conflict x\nchoose p/a",
        escalating(refused=(1, "wrong"), conflict=(1, "big")),
    )
    assert [agent for agent, _ in agents(story)] == ["small", "big"]


@pytest.mark.parametrize(
    ("wish", "failure", "agent"),
    [
        ("retry", "refused", "small"),
        ("reset", "refused", "big"),
        ("reset", "infra", "small"),
        ("renew", "refused", "small"),
    ],
)
def test_a_person_begins_the_counting_again(wish: str, failure: str, agent: str) -> None:
    """`retry` begins with the first agent again; `reset` forgives only what came to no verdict."""
    policy = replace(escalating(refused=(1, "big"), infra=(1, "big")), retry=replace(settings().retry, max_attempts=1))
    story = tell(f"plan p: a\nchoose p/a\nbegan p/a\nended p/a: {failure} x", policy)
    if failure == "refused":
        go_on(story, "choose p/a\nbegan p/a\nended p/a: config x")
    go_on(story, f"{wish} p/a\nchoose p/a")
    assert agents(story)[-1][0] == agent
    story.verify()


def test_nobody_takes_over_from_the_command_of_an_entry() -> None:
    """What an entry itself says to run is run, however often it is refused; an agent that it names may be replaced."""
    story = Story(escalating(refused=(1, "big")))
    go_on(story, "plan p: a; b")
    loops = story.forest.loops
    loops["p/a"] = loops["p/a"]._replace(command=True, tally=(("refused", 5),))
    loops["p/b"] = loops["p/b"]._replace(command=True, agent="own", tally=(("refused", 5),))
    assert [story.forest.agent_of(loops[each]) for each in ("p/a", "p/b")] == ["", "big"]
    assert story.forest.lanes_of(loops["p/a"]) == ("small",)


def test_a_pull_worker_is_nobodys_agent() -> None:
    """A lease that a pull worker takes names no agent."""
    story = tell("plan p: a\ntake ada: p/a", escalating(refused=(1, "big")))
    assert agents(story)[0][0] == ""


def test_whoever_took_over_rests_alone() -> None:
    """A rest of the first agent's lane holds nobody back who works on another by now."""
    story = tell(
        "plan p: a; b\nchoose p/a, p/b\nbegan p/a\nended p/a: refused no\nended p/b: limited 429 after=99s\nchoose p/a",
        escalating(refused=(1, "big")),
    )
    assert story["p/a"].lane == "work"
    assert Failure.LIMITED not in dict(story["p/b"].tally)


# --- somebody stands in -----------------------------------------------------------------------------------------------


def standing_in(*names: str, spec: dict[str, Any] | None = None, **numbers: Any) -> Policy:
    """Return a policy under which others stand in for the agent of a spec, which has two accounts."""
    own = {"agent": "first", "lanes": ("one", "two"), "fallback": names or ("other",)}
    return settings(types={"spec": own | (spec or {})}, agents={"other": ("else",)}, **numbers)


def test_another_agent_stands_in_while_all_accounts_rest() -> None:
    """While every lane of an agent rests another one works, on its own lane; when one is back its own agent is too."""
    policy = standing_in()
    assert decode_policy(encode_policy(policy)) == policy
    story = tell(
        """
        plan p: a
        choose p/a
        ended p/a: limited 429 after=100s
        choose p/a
        ended p/a: limited 429 after=200s
        choose p/a
        ended p/a: refused no
        wait 99s
        choose p/a
        ended p/a: refused no
        wait 1s
        choose p/a
        """,
        policy,
    )
    assert agents(story) == [("first", "one"), ("first", "two"), *[("other", "else")] * 2, ("first", "one")]


def test_nobody_stands_in_for_who_is_only_busy() -> None:
    """A lane that is at its limit, or slow after its rest, is waited for: what rests or is parked has a stand-in."""
    one = {"lanes": ("one",)}
    story = tell(
        "plan p: a; b\nchoose p/a\nwhy p/b: lane lane one is at its limit of 1\n"
        "ended p/a: lane no key\nchoose p/a, p/b",
        standing_in(spec=one, lanes={"one": LanePolicy(max_concurrent=1)}),
    )
    assert agents(story) == [("first", "one"), ("other", "else"), ("other", "else")]
    tell(
        "plan p: a; b\nchoose p/a, p/b\nended p/a: limited x after=60s\nended p/b: refused no\npause p/a\npause p/b\n"
        "wait 60s\nresume p/a\nresume p/b\nchoose p/b\nwhy p/a: lane lane one starts slowly after its rest",
        standing_in(spec=one),
    )


def test_where_all_rest_the_first_to_come_back_is_waited_for() -> None:
    """Where nobody can stand in the loop waits for whoever is back first, and is told whose lane it waits for."""
    story = tell(
        """
        plan p: a
        choose p/a
        ended p/a: limited 429 after=300s
        choose p/a
        ended p/a: limited busy after=60s
        why p/a: lane lane one is backing off: 429
        """,
        standing_in(spec={"lanes": ("one",)}),
    )
    (gate,) = closed_gates(story.forest, story["p/a"], story.now)
    assert gate.until == next_wake(story.forest, story.now) == story.now + 60_000
    go_on(story, "wait 60s\nchoose p/a\np/a has lane else")


def test_stand_ins_have_an_order() -> None:
    """Of several the first stands in who can; whoever took over has stand-ins too, but for itself."""
    policy = standing_in("other", "last", spec={"lanes": ("one",), "escalate": {"refused": Step(1, "other")}})
    story = tell(
        """
        plan p: a
        choose p/a
        ended p/a: lane no key
        choose p/a
        ended p/a: limited x after=60s
        choose p/a
        ended p/a: refused no
        choose p/a
        ended p/a: limited x after=60s
        wait 59s
        """,
        policy,
    )
    assert [agent for agent, _ in agents(story)] == ["first", "other", "last", "last"]
    go_on(story, "wait 1s\nchoose p/a")
    assert agents(story)[-1] == ("other", "else")
    story.verify()


def test_a_parked_account_with_a_stand_in_ends_nothing() -> None:
    """A plan whose agent is locked out goes on with the one that stands in; where that is parked too it is stuck."""
    story = tell("plan p: a\nchoose p/a\nended p/a: lane no key", standing_in(spec={"lanes": ("one",)}))
    assert not is_settled(story.forest, story.now)
    go_on(story, "choose p/a\nended p/a: lane no key either")
    assert is_settled(story.forest, story.now)
    assert standing(story.forest, ["p"], story.now) is Standing.STUCK


def test_nobody_stands_in_for_a_judge_or_for_a_command_of_an_entry() -> None:
    """What an entry itself says to run is run, and a judge that met a limit waits for its lane."""
    story = Story(standing_in(spec={"lanes": ("one",)}))
    go_on(story, "plan p: a; b\nchoose p/a, p/b\nbegan p/a\nended p/a\njudged p/a: limited x after=60s\nlost p/b")
    assert story["p/a"].judge_only
    assert [crew.agent for crew in story.forest.crews_of(story["p/a"])] == ["first"]
    go_on(story, "choose p/b")
    own = story["p/b"]._replace(command=True)
    assert [crew.agent for crew in story.forest.crews_of(own)] == [""]
    assert [crew.agent for crew in story.forest.crews_of(own._replace(agent="mine"))] == ["mine", "other"]


# --- what a loop may use ----------------------------------------------------------------------------------------------


def test_a_loops_own_time_ends_by_the_clock() -> None:
    """A running loop is set aside at the very instant at which its time is used up, and the engine wakes then."""
    story = Story(settings(types={"spec": {"budget": Budget(secs=60)}}))
    go_on(story, "plan p: a; b\nchoose p/a, p/b\nbegan p/a\nwait 20s\nended p/a: infra died\nwait 300s\nchoose p/a")
    go_on(story, "wait 5s\nbegan p/a\nbegan p/b\nused p/b 10 tokens")
    assert next_wake(story.forest, story.now) == story.now + 40_000
    go_on(story, "wait 39s\nchoose nobody\np/a is running\nwait 1s\nchoose nobody\np/a is parked\np/b is running")
    words = "its own budget of 60 secs is used up: it has used 60 secs; raise types.spec.budget"
    assert words in story["p/a"].reason
    go_on(story, "gone p/a\nwait 20s\nchoose nobody\np/b is parked")
    story.verify()


def test_what_nobody_has_told_ends_nothing() -> None:
    """A budget of tokens stops no attempt on the word of the clock: only its stream tells what it has used."""
    story = Story(settings(types={"spec": {"budget": Budget(tokens=50, micro_usd=1)}}))
    go_on(story, "plan p: a\nchoose p/a\nbegan p/a\nwait 1h\nchoose nobody\np/a is running\nused p/a 50 tokens")
    assert story["p/a"].status == "parked"


def test_the_plans_own_budget_is_its_trees() -> None:
    """The time of a whole plan is a gate before its loops, not a clock over its own attempt."""
    story = tell("plan p: a")
    loops = story.forest.loops
    loops["p"] = loops["p"]._replace(budget=Budget(secs=1))
    assert next_wake(story.forest, story.now) is None


@pytest.mark.parametrize(
    ("numbers", "left"),
    [
        ({}, None),
        ({"budget": Budget(secs=5)}, None),
        ({"budget": Budget(tokens=1000)}, 1000 - 300 - 300),
        ({"budget": Budget(tokens=300)}, 0),
        ({"types": {"spec": {"budget": Budget(tokens=120)}}}, 120),
        ({"types": {"spec": {"budget": Budget(tokens=120)}}, "budget": Budget(tokens=650)}, 50),
    ],
)
def test_a_command_is_told_what_is_left(numbers: dict[str, Any], left: int | None) -> None:
    """The tokens that an attempt may use are the least that a budget has left, less what is kept for others."""
    story = Story(settings(**numbers))
    go_on(story, "plan p: a; b; c\nchoose p/a" if "budget" in numbers else "plan p: a; b; c\nchoose p/a, p/b, p/c")
    story.forest.ledger.add(_charge(story, 300))
    loops = story.forest.loops
    loops["p/b"] = loops["p/b"]._replace(live=loops["p/b"].live._replace(tokens=50, ms=1))
    story.forest.occupancy.loops["p/b"] = None
    assert tokens_left(story.forest, story["p/a"], story.now) == left


def _charge(story: Story, tokens: int) -> Any:
    """Make a charge of another type."""
    from loopr.core.ledger import charge_of
    from loopr.core.model import Usage

    return charge_of(story.forest.policy, story["p"], Usage(tokens, None, 1000), "default", story.now)


def test_a_lane_is_measured_in_so_many_words() -> None:
    """The event has the lane, the level and when it ends."""
    story = Story(settings(lanes=SLOW))
    told(story, 850)
    assert story.log[-1][0] == LaneMeasured("default", 850, story.now + 60_000)


# --- judges of another account ----------------------------------------------------------------------------------------


def judged(*names: str, **numbers: Any) -> Policy:
    """Return a policy under which the judges of specs have lanes of their own."""
    spec = {"lanes": ("work",), "judge_lanes": names or ("judge",), "judged": True}
    return settings(types={"spec": spec}, **numbers)


def test_a_judge_uses_its_own_lane() -> None:
    """Once the command has ended its lane is free, and the judge's is taken; each is paid for what it used."""
    story = Story(judged())
    go_on(story, "plan p: a\nchoose p/a\nbegan p/a\nused p/a 100 tokens 5s\nended p/a")
    assert (story["p/a"].lane, story.forest.occupancy.by_lane) == ("judge", {"judge": 1})
    go_on(story, "used p/a 7 tokens 1s\njudged p/a\nlanded p/a: x")
    assert [(each.lane, each.tokens) for each in story.charges] == [("work", 100), ("judge", 7)]
    assert story["p/a"].spent.tokens == 107
    story.verify()


def test_the_time_of_a_landing_is_nobodys() -> None:
    """A judge that says nothing of its use is priced by its time, which ends with its verdict."""
    story = Story(judged())
    go_on(story, "plan p: a\nchoose p/a\nbegan p/a\nwait 5s\nended p/a\nwait 2s\njudged p/a\nwait 1h\nlanded p/a: x")
    assert [(each.lane, each.ms) for each in story.charges] == [("work", 5_000), ("judge", 2_000)]


def test_a_judge_waits_for_its_lane() -> None:
    """Where the judges' lane takes nobody the loop waits, free of cost, and its next attempt is for the judge alone."""
    story = tell(
        """
        plan p: a; b
        choose p/a, p/b
        began p/a
        ended p/a
        began p/b
        ended p/b
        p/a is checking
        p/b has status pending judge_only True failures 0 iteration 1
        why p/b: lane lane judge is at its limit of 1
        choose nobody
        judged p/a
        landed p/a: x
        choose p/a/x, p/b
        p/b has lane judge
        began p/b
        ended p/b
        judged p/b
        p/b is landing
        """,
        judged(lanes={"judge": LanePolicy(max_concurrent=1)}),
    )
    assert story["p/b"].attempt == 2


def test_a_judges_limit_rests_the_judges_lane() -> None:
    """A limit that a judge meets is its lane's: the commands of others go on meanwhile."""
    story = tell(
        """
        plan p: a; b
        choose p/a, p/b
        lost p/b
        began p/a
        ended p/a
        judged p/a: limited slow down after=300s
        p/a has status pending judge_only True
        choose p/b
        why p/a: lane lane judge is backing off: slow down
        wait 300s
        choose p/a
        """,
        judged(),
    )
    assert not story.forest.shared.lane("work").hits


def test_a_judge_may_have_several_lanes() -> None:
    """The first that takes it is used; one that the loop is on already is kept, unless it rests by now."""
    story = Story(judged("one", "work"))
    go_on(story, "plan p: a; b; c\nchoose p/a, p/b, p/c\nbegan p/a\nended p/a")
    assert story["p/a"].lane == "work"
    go_on(story, "ended p/b: limited 429 after=300s\nbegan p/c\nended p/c")
    assert story["p/c"].lane == "one"
    story.verify()


def test_a_judge_is_an_api_call_too() -> None:
    """A judge that would be one API call too many waits, if its command was none."""
    types: dict[str, Any] = {"spec": {"judge_lanes": ("judge",)}}
    story = Story(settings(types=types, max_api_calls=1))
    go_on(story, "plan p: a; b\nchoose p/a, p/b\nbegan p/a\nended p/a\nbegan p/b\nended p/b")
    assert [story[each].status for each in ("p/a", "p/b")] == ["checking", "pending"]
    assert "API calls" in story["p/b"].reason
    story.verify()


def test_who_uses_the_same_lanes_otherwise_is_held_back_apart() -> None:
    """Where the lane of an agent is full, a judge that may use those of its stand-in too is not held up with it."""
    own = {"agent": "first", "lanes": ("one",), "fallback": ("other",), "judge_lanes": ("one", "other")}
    story = Story(settings(types={"spec": own}, lanes={"one": LanePolicy(max_concurrent=1)}))
    go_on(story, "plan p: a; b; c\nchoose p/a")
    forest = story.forest
    forest.loops["p/c"] = forest.loops["p/c"]._replace(judge_only=True)
    forest.reindex()
    waits = Waits(forest, story.now)
    assert [first_closed(forest, forest.loops[each], story.now) is None for each in ("p/b", "p/c")] == [False, True]
    assert [waits.first_closed(forest.loops[each]) is None for each in ("p/b", "p/c")] == [False, True]
    picked = pick(forest, story.now)
    assert picked is not None
    assert picked.id == "p/c"
