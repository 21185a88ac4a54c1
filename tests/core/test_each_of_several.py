"""Of several each one counts: tables over all needs, all events of attempts, all kinds of trouble, all states.

A jump that ends a loop too early passes every story in which there is one of a thing.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from typing import Any

import pytest

from loopr.core import events as e
from loopr.core.lifecycle import LIFECYCLE, evolve
from loopr.core.model import Failure, Loop, Status, Usage
from loopr.core.policy import Budget
from loopr.core.workspace_events import LaneRested, LaneWorked
from loopr.errors import Impossible
from tests.core.stories import Story, go_on, settings, tell

# --- needs ------------------------------------------------------------------------------------------------------------

NEEDS = ("a", "b", "c")


@pytest.mark.parametrize("done", list(product((False, True), repeat=3)))
@pytest.mark.parametrize("order", ["a,b,c", "c,a,b", "b,c,a"])
def test_every_need_counts(done: tuple[bool, ...], order: str) -> None:
    """A loop that needs three others waits for whichever is not done, wherever it stands in the list."""
    story = Story(settings(""))
    go_on(story, f"plan p: d needs {order}; a; b; c")
    for name, is_done in zip(NEEDS, done, strict=True):
        if is_done:
            go_on(story, f"dispatch p/{name}\ntake ada: p/{name}\nended p/{name}\njudged p/{name}\nlanded p/{name}")
    missing = [name for name in order.split(",") if not done[NEEDS.index(name)]]
    found = story.gates("p/d").get("needs", "")
    assert found.startswith(f"needs {missing[0]}" if missing else ""), found
    assert bool(found) == bool(missing)
    offered = story.take("bob", 9)
    assert ("p/d" in offered) == (not missing)
    assert [each for each in offered if each != "p/d"] == [f"p/{each}" for each in NEEDS if each in missing]


# --- attempts ---------------------------------------------------------------------------------------------------------

OF_ATTEMPTS = [
    cls
    for cls in LIFECYCLE
    if "attempt" in {each.name for each in fields(cls)} and cls not in (e.LeaseGranted, e.AttemptGone, e.UsageSeen)
]
VALUES: dict[str, Any] = {
    "str": "x",
    "int": 1,
    "int | None": None,
    "bool": False,
    "tuple[str, ...]": (),
    "Failure": Failure.INFRA,
    "Usage": Usage(1),
}


def leased(status: Status) -> Loop:
    """Return a loop whose present attempt is its third, in some state."""
    story = tell("plan p: a\nchoose p/a\nlost p/a\nchoose p/a\nlost p/a\nchoose p/a")
    return story["p/a"]._replace(status=status)


@pytest.mark.parametrize("cls", OF_ATTEMPTS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("attempt", [None, 0, 2, 4])
def test_an_event_of_an_attempt_names_the_present_one(cls: type[e.LoopEvent], attempt: int | None) -> None:
    """Whatever says which attempt it is about is refused with none, an older or a later one: by what it is."""
    rule = LIFECYCLE[cls]
    loop = leased(sorted(rule.froms)[0] if len(rule.froms) < len(Status) else Status.RUNNING)
    said = {each.name: VALUES.get(str(each.type)) for each in fields(cls)} | {"loop": loop.id, "attempt": attempt}
    if "to" in said:
        said["to"] = sorted(rule.tos or (Status.PENDING,))[0]
    with pytest.raises(Impossible, match="but the lease is #3"):
        evolve(loop, cls(**said), 1)
    assert evolve(loop, cls(**said | {"attempt": 3}), 1).id == loop.id


@pytest.mark.parametrize("attempt", [None, 1, 3])
def test_what_ends_an_attempt_that_was_told_to_stop_names_it(attempt: int | None) -> None:
    """The end of an attempt that is ending, and what it has used, must quote that one."""
    loop = tell("plan p: a\nchoose p/a\nlost p/a\nchoose p/a\nbegan p/a\npause now p/a")["p/a"]
    assert loop.ending is not None
    for event in (e.AttemptGone(loop.id, attempt), e.UsageSeen(loop.id, attempt, Usage(1))):  # type: ignore[arg-type]
        with pytest.raises(Impossible, match="but the lease is #2"):
            evolve(loop, event, 1)


# --- a budget that is reached at some trouble -------------------------------------------------------------------------

STAGES = {
    "ended": "began p/a\nended p/a: {}",
    "judged": "began p/a\nended p/a\njudged p/a: {}",
    "landed": "began p/a\nended p/a\njudged p/a\nlands p/a: b0 c1\nlanded p/a: {}",
}


@pytest.mark.parametrize(("stage", "kind"), list(product(STAGES, ("refused", "conflict", "infra", "timeout"))))
def test_a_budget_that_is_reached_at_any_trouble_is_the_only_end(stage: str, kind: str) -> None:
    """Whatever an attempt ends with, a loop that has nothing left to spend is set aside for that, and told no more."""
    story = Story(settings(types={"spec": {"budget": Budget(tokens=10)}}))
    go_on(story, "plan p: a\nchoose p/a")
    lines = STAGES[stage].format(f"{kind} no").splitlines()
    go_on(story, "\n".join(lines[:-1]))
    spent = story["p/a"].spent._replace(cost=10_000)
    story.forest.loops["p/a"] = story["p/a"]._replace(spent=spent)
    before = len(story.log)
    go_on(story, lines[-1])
    told = [type(event) for event, _ in story.log[before:] if isinstance(event, e.LoopEvent)]
    assert told == [e.SetAside], told
    assert (story["p/a"].status, story["p/a"].conflicts, story["p/a"].failures) == (Status.PARKED, 0, 0)
    assert "its last try: no" in story["p/a"].reason


# --- an entry that says what it said ----------------------------------------------------------------------------------

STATES = {
    Status.PENDING: "",
    Status.LEASED: "choose p/a",
    Status.RUNNING: "choose p/a\nbegan p/a",
    Status.CHECKING: "choose p/a\nbegan p/a\nended p/a",
    Status.AWAITING: "choose p/a\nbegan p/a\nended p/a\njudged p/a",
    Status.LANDING: "choose p/a\nbegan p/a\nended p/a\njudged p/a\napprove p/a",
    Status.COMPLETE: "choose p/a\nfinish-approved",
    Status.PARKED: "choose p/a\nbegan p/a\nended p/a: config x",
    Status.FAILED: "choose p/a\nbegan p/a\nended p/a\njudged p/a\nreject p/a: no",
    Status.CANCELLED: "cancel p/a",
}


@pytest.mark.parametrize("status", STATES)
def test_an_entry_that_says_what_it_said_is_no_news(status: Status) -> None:
    """The plan's file comes again, with another comment: no event is about a child, whatever state it is in."""
    story = Story(settings(types={"spec": {"approve": True}}))
    go_on(story, "plan p: a needs b; b\npause p/b")
    story.forest.loops["p/b"] = story["p/b"]._replace(status=Status.COMPLETE)
    story.forest.reindex()
    text = STATES[status].replace("finish-approved", "began p/a\nended p/a\njudged p/a\napprove p/a\nlanded p/a")
    go_on(story, text)
    assert story["p/a"].status is status
    before = len(story.log)
    go_on(story, "plan p: a needs b; b # again\ndrop p: a needs b; b # and again")
    about = {event.loop for event, _ in story.log[before:] if isinstance(event, e.LoopEvent)}
    assert about == {"p"}


# --- the last grant before a rest -------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", ["p/a", "p/b", "p/c"])
@pytest.mark.parametrize("first", ["p/a", "p/b", "p/c"])
def test_all_that_were_granted_before_a_rest_are_from_before_it(first: str, late: str) -> None:
    """Of three that are at work when a rest begins none adds a hit or ends the row, the last one granted neither."""
    if first == late:
        return
    story = Story(settings())
    go_on(story, "plan p: a; b; c\nchoose p/a, p/b, p/c\nbegan p/a\nbegan p/b\nbegan p/c")
    go_on(story, f"ended {first}: limited x\nended {late}: limited x")
    assert [event.hits for event, _ in story.log if isinstance(event, LaneRested)] == [1]
    (third,) = {"p/a", "p/b", "p/c"} - {first, late}
    go_on(story, f"ended {third}: refused no")
    assert not any(isinstance(event, LaneWorked) for event, _ in story.log)
    go_on(story, f"wait 2s\ndispatch {third}\nchoose {third}\nbegan {third}\nended {third}: limited x")
    assert [event.hits for event, _ in story.log if isinstance(event, LaneRested)] == [1, 2]
