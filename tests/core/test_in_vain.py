"""One loop that is limited again and again: others ask first, and a limit that is its own matter costs it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loopr.core.events import Broke
from loopr.core.model import Failure, Status
from loopr.core.policy import Policy, ProjectPolicy
from loopr.core.workspace_events import LaneRested, LaneWorked
from tests.core.stories import STEADY, Story, go_on, settings, tell

LIMIT = "began p/a\nended p/a: limited slow down"
REST = f"choose p/a\n{LIMIT}\nwait 2s"


def events(story: Story, kind: type[Any]) -> list[Any]:
    """List the events of a kind."""
    return [event for event, _ in story.log if isinstance(event, kind)]


def one_at_once(**numbers: Any) -> Policy:
    """Return settings under which one loop is at work at once, so that each round shows who is first."""
    return settings(max_loops=1, **numbers)


def test_whoever_began_a_rest_lets_others_ask_first() -> None:
    """After the rest a sibling goes first, though its place is a later one; once the lane works places count again."""
    story = Story(one_at_once())
    go_on(story, f"plan p: a; b; c\n{REST}\np/a has in_vain 1\nchoose p/b\nfinish p/b\nchoose p/a\nfinish p/a")
    go_on(story, "p/a has in_vain 0")
    story.verify()


def test_of_those_that_all_asked_in_vain_the_one_goes_first_that_did_so_less_often() -> None:
    """Where nobody is served the lane rests longer each time, and each loop has its turn to ask."""
    story = Story(one_at_once())
    go_on(story, f"plan p: a; b\n{REST}")
    for asks, rest in (("b", 4), ("a", 8), ("b", 16), ("a", 32)):
        go_on(story, f"choose p/{asks}\nbegan p/{asks}\nended p/{asks}: limited x\nwait {rest}s")
    assert [each.hits for each in events(story, LaneRested)] == [1, 2, 3, 4, 5]
    assert events(story, Broke) == []
    story.verify()


def test_a_loop_that_is_limited_for_ever_ends_alone() -> None:
    """Once the lane works for others its limits are failures of its own, with their delays: the lane rests once."""
    story = Story(one_at_once(retry=replace(STEADY, max_attempts=3)))
    go_on(
        story,
        f"""
        plan p: a; b; c; d; e
        {REST.replace(chr(10), chr(10) + "        ")}
        choose p/b
        finish p/b
        choose p/a
        began p/a
        ended p/a: limited slow down
        p/a has failures 1 in_vain 2 iteration 1
        why p/a: backoff limited, while lane default works for others: slow down
        choose p/c
        finish p/c
        wait 30s
        choose p/a
        began p/a
        ended p/a: limited slow down
        choose p/d
        finish p/d
        wait 60s
        choose p/a
        began p/a
        ended p/a: limited slow down
        p/a is parked
        choose p/e
        finish p/e
        """,
    )
    assert "max_attempts: 3 tries ended without a verdict: limited, while lane default works" in story["p/a"].reason
    assert len(events(story, LaneRested)) == 1
    assert [(each.failure, each.to) for each in events(story, Broke)] == [
        (Failure.LIMITED, Status.PENDING),
        (Failure.LIMITED, Status.PENDING),
        (Failure.LIMITED, Status.PARKED),
    ]
    story.verify()


def test_it_waits_as_long_as_it_was_told() -> None:
    """A provider that names a time means the loop: it waits that long by itself, and the lane goes on."""
    tell(
        f"plan p: a; b; c\n{REST}\nchoose p/b\nfinish p/b\nchoose p/a\nbegan p/a\n"
        "ended p/a: limited x after=600s\nchoose p/c\nfinish p/c\nwait 599s\nchoose nobody\nwait 1s\nchoose p/a",
        one_at_once(),
    )


@pytest.mark.parametrize(
    ("end", "count"),
    [
        ("ended p/a: refused no", 0),
        ("ended p/a: infra died", 0),
        ("ended p/a: timeout late", 0),
        ("ended p/a", 0),
        ("ended p/a: host full\nhost fine", 1),
        ("pause now p/a\ngone p/a\nresume p/a", 1),
    ],
)
def test_the_count_begins_anew_with_an_end_that_is_no_limit(end: str, count: int) -> None:
    """Only limits in a row count; what says nothing of the lane changes nothing."""
    tell(f"plan p: a\n{REST}\nchoose p/a\nbegan p/a\n{end}\np/a has in_vain {count}")


def test_the_count_begins_anew_after_a_lease_that_expired() -> None:
    """A worker that falls silent is no limit: what its loop meets next is a first time."""
    story = tell(f"plan p: a\n{REST}\ntake ada: p/a\nwait 10m\nchoose nobody")
    assert (story["p/a"].in_vain, story["p/a"].failures) == (0, 1)


@pytest.mark.parametrize("wish", ["retry", "reset"])
def test_a_person_lets_it_ask_anew(wish: str) -> None:
    """After `retry` and `reset` a limit rests the lane again."""
    policy = one_at_once(retry=replace(STEADY, max_attempts=1))
    story = tell(
        f"plan p: a; b\n{REST}\nchoose p/b\nfinish p/b\nchoose p/a\n{LIMIT}\np/a is parked\n{wish} p/a\n"
        f"p/a has in_vain 0\nchoose p/a\n{LIMIT}\np/a is pending",
        policy,
    )
    assert len(events(story, LaneRested)) == 2


def test_other_projects_ask_before_it_too() -> None:
    """A project that has had nothing yet goes before all others, but not with the loop that began the rest."""
    policy = one_at_once(projects={"default": ProjectPolicy(), "zoo": ProjectPolicy()})
    story = Story(policy)
    go_on(story, f"plan p: a\nplan q: b; c\nchoose p/a\n{LIMIT}\nwait 2s\nchoose q/b")
    story.verify()


def test_a_loop_alone_on_its_lane_waits_as_before() -> None:
    """Where nobody else is served nothing says that the limit is its own: it costs nothing, however often it comes."""
    story = Story(settings())
    go_on(story, "plan p: a")
    for rest in (2, 4, 8, 16, 32, 64, 64, 64):
        go_on(story, f"choose p/a\n{LIMIT}\nwait {rest}s")
    assert (story["p/a"].failures, story["p/a"].in_vain) == (0, 8)


def test_its_own_service_does_not_speak_against_it() -> None:
    """Its command was served on the lane after the rest, and then its judge is limited: the lane rests."""
    story = tell(
        f"plan p: a\n{REST}\nchoose p/a\nbegan p/a\nended p/a\njudged p/a: limited x\np/a has failures 0 in_vain 1"
    )
    assert len(events(story, LaneRested)) == 2


def test_its_own_judges_are_no_others() -> None:
    """An attempt for judges alone is served by a lane that has served nobody else, and is limited there once more."""
    story = tell(
        f"plan p: a\n{REST}\nchoose p/a\nbegan p/a\nended p/a\njudged p/a: limited x\nwait 4s\n"
        "choose p/a\nbegan p/a\nended p/a\nsays-yes p/a: check k\njudged p/a: limited x\np/a has failures 0"
    )
    assert len(events(story, LaneWorked)) == 2 and len(events(story, LaneRested)) == 3


def test_judges_that_are_limited_for_ever_let_others_ask_first() -> None:
    """An attempt for judges alone is no sign that the lane works before one of them has answered."""
    story = Story(one_at_once())
    go_on(
        story, "plan p: a; b\nchoose p/a\nbegan p/a\nended p/a\njudged p/a: limited x\nwait 2s\nchoose p/b\nfinish p/b"
    )
    go_on(story, "choose p/a\nbegan p/a\nended p/a")
    assert len(events(story, LaneWorked)) == 1
    go_on(story, "judged p/a: limited x\np/a has failures 1 judge_only True")
    assert len(events(story, LaneRested)) == 1
    story.verify()


@pytest.mark.parametrize(("answer", "hits"), [("says-yes p/a: check k", 0), ("judged p/a: refused no", 0), ("", 1)])
def test_a_lane_works_once_its_judges_have_answered(answer: str, hits: int) -> None:
    """A yes and a no of a judge both end the row of hits."""
    story = tell(
        f"plan p: a\nchoose p/a\nbegan p/a\nended p/a\njudged p/a: limited x\nwait 2s\nchoose p/a\nended p/a\n{answer}"
    )
    assert story.forest.shared.lane("default").hits == hits


def test_on_another_lane_it_asks_as_any() -> None:
    """What it met on one account says nothing of the next one: it goes there at once, and a limit rests that."""
    types: dict[str, Any] = {"spec": {"lanes": ("one", "two")}}
    story = Story(one_at_once(types=types))
    go_on(story, f"plan p: a; b\nchoose p/a\n{LIMIT}\nchoose p/a\n{LIMIT}\np/a has in_vain 1 vain_on two")
    assert [each.lane for each in events(story, LaneRested)] == ["one", "two"]


def test_who_was_at_work_before_the_rest_has_begun_none() -> None:
    """Of several that meet the same limit only the first has begun the rest; the others ask before it."""
    story = Story(settings())
    go_on(story, "plan p: a; b\nchoose p/a, p/b\nbegan p/a\nbegan p/b\nended p/a: limited x\nended p/b: limited x")
    go_on(story, "p/a has in_vain 1\np/b has in_vain 0\nwait 2s\nchoose p/b")
    story.verify()


def test_a_person_who_dispatches_it_is_obeyed() -> None:
    """`dispatch` puts it ahead of those that would ask before it."""
    tell(f"plan p: a; b\n{REST}\ndispatch p/a\nchoose p/a", one_at_once())
