"""Whether anything goes on by itself, and how it stands if not."""

from __future__ import annotations

import pytest

from loopr.core.choose import next_wake
from loopr.core.model import Status
from loopr.core.observations import FileRefused, HostSeen
from loopr.core.policy import Budget, Policy
from loopr.core.settled import Standing, is_settled, standing
from tests.core.stories import Story, go_on, settings, tell

CHAIN = "plan p: a; b needs a; c needs b"
DONE, STUCK, WAITING, SPENT = Standing.DONE, Standing.STUCK, Standing.WAITING, Standing.SPENT


def rests(story: Story, *loops: str) -> bool:
    """Say whether nothing goes on by itself: among some loops, else anywhere."""
    return is_settled(story.forest, story.now, loops or None)


def stands(story: Story, *loops: str) -> Standing:
    """Say how some loops stand."""
    return standing(story.forest, loops, story.now)


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        (CHAIN, False),
        (f"{CHAIN}\nchoose p/a", False),
        (f"{CHAIN}\nchoose p/a\nbegan p/a\nended p/a: config broken", True),
        (f"{CHAIN}\nchoose p/a\nbegan p/a\nended p/a: infra lost", False),
        (f"{CHAIN}\nchoose p/a\nbegan p/a\nended p/a: limited 429 after=60s", False),
        (f"{CHAIN}\nchoose p/a\nbegan p/a\nended p/a: lane no such account", True),
        (f"{CHAIN}\nchoose p/a\nbegan p/a\ncancel p/a: no", False),
        (f"{CHAIN}\nchoose p/a\nbegan p/a\ncancel p/a: no\ngone p/a", True),
        (f"{CHAIN}\npause p/a", True),
        (f"{CHAIN}\npause workspace", True),
        (f"{CHAIN}\nengine drains", True),
        (f"{CHAIN}\nchoose p/a\nbegan p/a\nended p/a: infra lost\nengine drains", True),
        (f"{CHAIN}\nchoose p/a\nengine drains", False),
        ("plan p: a\nchoose p/a\nfinish p/a", True),
    ],
)
def test_what_goes_on_by_itself(text: str, settled: bool) -> None:
    """Attempts, delays, rests and what is ready go on by themselves; holds, parked lanes and a drain do not."""
    story = tell(text)
    assert rests(story) is settled
    assert rests(story, "p") is settled


@pytest.mark.parametrize(
    ("policy", "text", "settled"),
    [
        (settings("code"), "plan p: a", True),
        (settings(types={"spec": {"approve": True}}), "plan p: a\nchoose p/a\nbegan p/a\nended p/a\njudged p/a", True),
        (settings(budget=Budget(tokens=0)), "plan p: a", True),
        (settings("code"), "plan p: a (x)", False),
    ],
)
def test_what_waits_for_people_and_money(policy: Policy, text: str, settled: bool) -> None:
    """What a person must write or approve, and a budget that nothing frees, do not go on; a declared loop does."""
    story = tell(text, policy)
    assert rests(story) is settled
    assert rests(story, "p") is settled


@pytest.mark.parametrize("loops", [(), ("p",)])
def test_to_ask_takes_no_instant_away(loops: tuple[str, ...]) -> None:
    """A backoff that ends before somebody asks still wakes the engine, and the loop runs."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\nended p/a: infra died")
    ends = next_wake(story.forest, story.now)
    assert ends is not None
    before, story.now = story.now, ends
    assert not rests(story, *loops)
    assert next_wake(story.forest, before) == ends
    assert story.choose() == ["p/a"]


def test_a_backoff_that_is_over_holds_nobody() -> None:
    """A loop whose backoff has ended before anything was chosen rests like any other behind a closed gate."""
    story = tell("""
        plan p: a; b
        choose p/a p/b
        began p/a
        ended p/a: infra died
        began p/b
        ended p/b: lane no such account
    """)
    assert not rests(story)
    story.now += 60_000
    assert rests(story)
    assert rests(story, "p")


def test_a_resting_lane_under_a_hold_is_settled() -> None:
    """A gate that opens by itself moves nothing while another one stays closed."""
    story = tell("""
        plan p: a; b
        choose p/a p/b
        began p/a
        ended p/a: limited 429 after=60s
        began p/b
        ended p/b: config broken
    """)
    assert not rests(story)

    go_on(story, "pause project:default")
    assert rests(story)
    assert rests(story, "p")


def test_a_host_that_is_probed_again_is_not_settled() -> None:
    """A host that refused is looked at again at an instant, so it is waited for."""
    story = tell(CHAIN)
    story.see(HostSeen("no space", story.now + 1000))
    assert not rests(story)


def test_a_refused_declared_file_is_a_persons() -> None:
    """A declared loop whose file cannot be written waits for a person, not for ever."""
    story = tell("plan p: a (x)", settings("code"))
    place = f"specs/p/a/{story['p/a'].type}.md"
    assert not rests(story)
    story.see(FileRefused("p/a", place, "the folder is read-only"))
    assert rests(story)
    assert rests(story, "p")
    assert stands(story, "p") is WAITING


def test_some_loops_rest_while_others_run() -> None:
    """Asked of some loops, only they and what they wait for count; a ceiling that others hold will open."""
    story = tell(
        """
        plan p: a; b needs a
        plan q: c; d needs c
        choose p/a q/c
        began p/a
        began q/c
        ended q/c: config broken
        """
    )
    assert [rests(story), rests(story, "p"), rests(story, "q"), rests(story, "p", "q")] == [False, False, True, False]
    assert rests(story, "q/d")
    assert not rests(story, "p/b")
    full = tell("plan p: a\nplan q: c\nchoose p/a\nbegan p/a", settings(max_loops=1))
    assert not rests(full, "q")


def test_a_serial_sibling_is_waited_for() -> None:
    """A loop whose serial sibling waits for a person waits for that person too; while it runs, it goes on."""
    policy = settings(types={"spec": {"approve": True, "parallel": False}})
    story = tell("plan p: a; b\nchoose p/a\nbegan p/a", policy)
    assert not rests(story, "p/b")
    story = tell("plan p: a; b\nchoose p/a\nbegan p/a\nended p/a\njudged p/a", policy)
    assert rests(story, "p/b")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (CHAIN, {"p": WAITING}),
        ("plan p: a\nchoose p/a\nfinish p/a", {"p": DONE, "p/a": DONE}),
        (f"{CHAIN}\nchoose p/a\nbegan p/a\nended p/a: config broken", {"p": STUCK, "p/a": STUCK, "p/c": STUCK}),
        (f"{CHAIN}\ncancel p/a: no", {"p": STUCK, "p/a": DONE, "p/c": STUCK}),
        (f"{CHAIN}\ncancel p/c: no", {"p": WAITING, "p/c": DONE}),
        (f"{CHAIN}\npause p/a", {"p": WAITING, "p/c": WAITING}),
        ("plan p: a; b needs a\nchoose p/a\nfinish p/a: x; y\ncancel p/a/x: no", {"p/b": STUCK, "p/a": WAITING}),
        (
            "plan p: a; b\nchoose p/a p/b\nbegan p/a\nended p/a: config broken",
            {"p": STUCK, "p/a": STUCK, "p/b": WAITING},
        ),
    ],
)
def test_how_it_stands(text: str, found: dict[str, Standing]) -> None:
    """The first of stuck, spent, waiting and done counts, of what was named and of all that it waits for."""
    story = tell(text)
    assert {loop: stands(story, loop) for loop in found} == found


def test_a_child_waits_for_its_parent_not_for_its_siblings() -> None:
    """Where a parent runs again, what became of its other children is nothing to a child that waits for it."""
    story = tell("""
        plan p: a
        choose p/a
        finish p/a: x; y
        choose p/a/x p/a/y
        began p/a/x
        ended p/a/x: limited 429 after=60s
        began p/a/y
        ended p/a/y: config broken
        renew p/a
    """)
    assert (stands(story, "p/a/x"), stands(story, "p/a/y"), stands(story, "p")) == (WAITING, STUCK, STUCK)


def test_money_comes_before_people() -> None:
    """Where a budget is used up and a person is waited for too, the budget is told."""
    policy = settings(budget=Budget(tokens=0), types={"spec": {"approve": True}})
    story = tell("plan p: a; b", policy)
    assert stands(story, "p") is SPENT
    assert story["p/a"].status is Status.PENDING
