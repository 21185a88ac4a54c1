"""How events are written and read: nothing is lost, old payloads are lifted, and a moved clock takes all along."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from loopr.core import (
    codec,
    events,
    judge_events,
    offer_events,
    plan_events,
    redo_events,
    workspace_events,
    worktree_events,
)
from loopr.core import observations as o
from loopr.core.codec import EVENTS, NAMES, UPCASTERS, VERSIONS, decode, encode, subject
from loopr.core.events import Event, LoopEvent
from loopr.core.model import Failure, Loop, Status, Terms, Usage, decode_loop, encode_loop
from loopr.core.policy import Budget, Policy, decode_policy, encode_policy
from loopr.errors import Impossible
from tests.core.stories import START, Story, go_on, settings, tell
from tests.core.worlds import policies

TEXTS = st.text(max_size=5)
NUMBERS = st.integers(-(2**53), 2**53)
BUDGETS = st.builds(Budget, st.none() | NUMBERS, st.none() | NUMBERS, st.none() | NUMBERS)
TERMS = st.builds(
    Terms, TEXTS, st.integers(0, 9), TEXTS, st.tuples(TEXTS), st.booleans(), TEXTS, TEXTS, st.booleans(),
    st.lists(TEXTS, max_size=2).map(tuple), BUDGETS, TEXTS, st.booleans(), st.booleans(), st.none() | NUMBERS,
    st.lists(TEXTS, max_size=2).map(tuple), st.none() | st.booleans(),
    st.none() | st.lists(st.tuples(TEXTS, NUMBERS), max_size=2).map(tuple),
)  # fmt: skip
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXTS,
    "str | None": st.none() | TEXTS,
    "int": NUMBERS,
    "int | None": st.none() | NUMBERS,
    "bool": st.booleans(),
    "Terms": TERMS,
    "Status": st.sampled_from(Status),
    "Failure": st.sampled_from(Failure),
    "Usage": st.builds(Usage, st.none() | NUMBERS, st.none() | NUMBERS, NUMBERS),
    "tuple[str, ...]": st.lists(TEXTS, max_size=3).map(tuple),
    "Amounts": st.lists(st.tuples(TEXTS, NUMBERS), max_size=2).map(tuple),
    "Mapping[str, Any]": st.dictionaries(TEXTS, NUMBERS, max_size=2),
}


@pytest.mark.parametrize("cls", EVENTS.values(), ids=lambda cls: cls.__name__)
def test_every_event_comes_back_as_it_was(cls: type[Event]) -> None:
    """Encoding and decoding an event of any kind gives an equal event with values of the same types."""

    @hypothesis_settings(max_examples=10)
    @given(st.fixed_dictionaries({each.name: VALUES[str(each.type)] for each in fields(cls)}))
    def comes_back(values: dict[str, Any]) -> None:
        """Write one down and read it."""
        event = cls(**values)
        name, version, payload = encode(event)
        again = decode(name, version, payload)
        assert again == event
        for each in fields(cls):
            assert type(getattr(again, each.name)) is type(getattr(event, each.name))

    comes_back()


def test_all_events_are_known() -> None:
    """Every event of all modules has a name of its own in the journal, and no abstract one has."""
    found = {
        each
        for module in (events, judge_events, offer_events, plan_events, redo_events, workspace_events, worktree_events)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Event) and each not in (Event, LoopEvent)
    }
    assert set(EVENTS.values()) == found
    assert {NAMES[cls]: cls for cls in found} == dict(EVENTS)
    assert all(name == name.lower() and " " not in name for name in EVENTS)
    assert "lease_granted" in EVENTS


def test_payloads_are_plain_and_compact() -> None:
    """A payload is one line of JSON with the names of the fields."""
    name, version, payload = encode(events.Held("p/a", "ada", "lunch"))
    assert (name, version, payload) == ("held", 1, '{"loop":"p/a","by":"ada","reason":"lunch"}')


def test_an_event_knows_its_loop() -> None:
    """An event about one loop names it, any other names none."""
    assert subject(events.Held("p/a", "ada", "")) == "p/a"
    assert subject(workspace_events.EngineEnded()) is None


def test_old_payloads_are_lifted_step_by_step() -> None:
    """A payload of an older version passes every upcaster between it and the present one, in order."""

    def second(values: dict[str, Any]) -> dict[str, Any]:
        """Version 2 called the person `who`."""
        return {"who": values.pop("person"), **values}

    def third(values: dict[str, Any]) -> dict[str, Any]:
        """Version 3 calls the person `by` and asks for a reason."""
        return {"by": values.pop("who"), "reason": "", **values}

    lifted = {("held", 1): second, ("held", 2): third}
    old = json.dumps({"loop": "p/a", "person": "ada"})
    assert decode("held", 1, old, lifted) == events.Held("p/a", "ada", "")
    newer = json.dumps({"loop": "p/a", "who": "bob", "reason": "x"})
    with pytest.raises(TypeError):
        decode("held", 1, newer)
    assert decode("held", 3, '{"loop":"p/a","by":"bob","reason":"x"}', lifted).by == "bob"  # type: ignore[attr-defined]


def test_upcasters_lead_to_the_present_version() -> None:
    """For every event that has changed there is an upcaster from each earlier version, and none for others."""
    wanted = {(name, version) for name, present in VERSIONS.items() for version in range(1, present)}
    assert set(UPCASTERS) == wanted
    assert set(VERSIONS) <= set(EVENTS)


def test_an_unknown_event_is_named() -> None:
    """An event of a later version is refused by name, rather than skipped."""
    with pytest.raises(Impossible, match="quantum_leap"):
        decode("quantum_leap", 1, "{}")


def test_a_field_that_was_added_later_has_its_default() -> None:
    """A payload without a field that has a default reads as that default."""
    event = decode("artifact_accepted", 1, '{"loop":"p/a","digest":"d"}')
    assert event == events.ArtifactAccepted("p/a", "d", "person", (), theirs=False)


@given(policies())
def test_a_policy_comes_back_as_it_was(policy: Policy) -> None:
    """A policy that went through the journal is equal, fractions, types and the order of projects included."""
    again = decode_policy(json.loads(json.dumps(encode_policy(policy))))
    assert again == policy
    assert list(again.projects) == list(policy.projects)
    assert list(again.types) == list(policy.types)


def test_a_policy_of_another_version_is_read_as_far_as_it_is_known() -> None:
    """Keys of a later version are ignored, and missing ones have their default."""
    plain = encode_policy(settings(max_loops=7))
    plain["warp"] = 9
    plain["retry"]["warp"] = 9
    del plain["batch_size"]
    assert decode_policy(plain) == settings(max_loops=7)


def test_a_loop_in_any_state_comes_back_as_it_was() -> None:
    """The row of a loop, whatever it has been through, reads back equal, and leaves out what has its default."""
    story = Story(settings(types={"spec": {"approve": True}}))
    go_on(
        story,
        """
        plan p: a needs b budget 5; b serial; c; d (k)
        settle
        choose p/d/k, p/b, p/c
        began p/b
        used p/b 5 tokens 3s
        pause now p/b: lunch
        take ada: nobody
        began p/c
        ended p/c
        judged p/c
        ended p/d/k: infra died
        """,
    )
    loops = list(story.forest.loops.values())
    assert json.loads(json.dumps([encode_loop(loop) for loop in loops]), object_pairs_hook=decode_loop) == loops
    assert encode_loop(Loop("", "", "", None, 0, 0, "")) == {}


def test_every_kind_of_field_is_tested_here() -> None:
    """A new kind of field in an event needs a line in this test, or it would go through the journal unseen."""
    kinds = {str(each.type) for cls in EVENTS.values() for each in fields(cls)}
    assert kinds <= set(VALUES)


def test_names_come_from_the_words() -> None:
    """A class name becomes the event's name in the journal, word by word."""

    @dataclass(frozen=True)
    class TwoWordsHere(Event):
        """Something."""

    assert codec._snake(TwoWordsHere.__name__) == "two_words_here"


# --- a clock that moved ----------------------------------------------------------------------------------------------


def test_a_moved_clock_takes_every_instant_along() -> None:
    """After the clock went back by an hour, delays, rests, leases, ages and holds last as long as before."""
    story = tell("""
        plan p: a; b; c; d; e (k (x))
        settle
        convoy c: p/e/k/x
        drop p/e/k/x: # done
        choose p/a, p/b, p/c, p/d
        ended p/a: infra died
        ended p/b: limited slow down after=60s
        began p/c
        pause p/d: lunch
        lost p/d
        take ada: nobody
    """)
    before = story.forest
    lane = before.shared.lane("default")
    left = story["p/a"].not_before - story.now, lane.rest_until - story.now
    hour = 3_600_000
    story.now -= hour
    story.see(o.ClockBehind(hour))
    lane = story.forest.shared.lane("default")
    assert (story["p/a"].not_before - story.now, lane.rest_until - story.now) == left
    lease, hold = story["p/c"].lease, story["p/d"].hold
    assert lease is not None
    assert hold is not None
    assert (lease.started_at, hold.at) == (START - hour, START - hour)
    assert story["p"].created == START - hour
    assert story.forest.shared.convoys["c"].landed_at == START - hour
    assert story.forest.shared.engine.started_at == START - hour
    assert story.gates("p/a").keys() == {"backoff", "lane"}
    story.verify()
    story.now += left[0]
    assert "backoff" not in story.gates("p/a")
    story.verify()


def test_a_moved_clock_lets_nobody_out_of_its_backoff() -> None:
    """A loop whose delay has not passed on the moved clock is not chosen."""
    story = tell("plan p: a\nchoose p/a\nended p/a: infra died\nwait 10s\nchoose nobody")
    story.now -= 60_000
    story.see(o.ClockBehind(60_000))
    assert story.choose() == []
    story.now += 19_999
    assert story.choose() == []
    story.now += 1
    assert story.choose() == ["p/a"]
    story.verify()


def test_a_moved_clock_moves_what_was_used() -> None:
    """What was used before the clock went back stops counting one window later by the new clock."""
    story = Story(settings(budget=Budget(tokens=5), window_ms=10_000))
    go_on(story, "plan p: a\nchoose p/a\nbegan p/a\nused p/a 5 tokens 1s\nended p/a: refused no\nwait 1s")
    story.now -= 3_600_000
    story.see(o.ClockBehind(3_600_000))
    story.verify()
    story.now += 8_999
    assert story.choose() == []
    story.now += 1
    assert story.choose() == ["p/a"]
    story.verify()


def test_a_moved_clock_takes_an_ending_attempt_along() -> None:
    """An attempt that was told to stop is charged for its time, and a worker's ends at its instant, by any clock."""
    story = tell("plan p: a; b\ntake ada: p/a\nchoose p/b\nbegan p/b\nwait 4s\ncancel p")
    story.now -= 1_000_000
    story.see(o.ClockBehind(1_000_000))
    go_on(story, "gone p/b")
    assert story["p/b"].spent.ms == 4_000
    story.now += 295_999
    assert story.choose() == []
    assert story.forest.occupancy.total == 1
    story.now += 1
    story.choose()
    assert story.forest.occupancy.total == 0
    assert story["p/a"].spent.ms == 300_000
    story.verify()


def test_a_moved_clock_keeps_a_workers_time() -> None:
    """A pull worker's lease lives exactly as long as it would have."""
    story = tell("plan p: a\ntake ada: p/a")
    story.now -= 1_000_000
    story.see(o.ClockBehind(1_000_000))
    story.now += 299_999
    story.choose()
    assert story["p/a"].status == "running"
    story.now += 1
    story.choose()
    assert story["p/a"].failures == 1


def test_a_homecoming_from_before_is_of_the_whole_plan() -> None:
    """A plan that came home before parts did came home as a whole."""
    home = decode("plan_came_home", 1, '{"plan": "p", "branch": "main", "commit": "c0"}')
    assert isinstance(home, workspace_events.PlanCameHome) and not home.partial


@pytest.mark.parametrize("told", ["", ',"after":3'])
def test_a_loop_that_was_gone_before_is_read(told: str) -> None:
    """An older payload, with or without a count of grants, is that of a loop that left together with its parent."""
    assert decode("undeclared", 1, f'{{"loop":"p/a"{told}}}') == events.Undeclared("p/a")
