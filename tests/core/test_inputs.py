"""Which loops work from files that are others, and what comes of it where their plan takes over a base with these."""

from __future__ import annotations

import pytest

from loopr.core import moving
from loopr.core import observations as o
from loopr.core.codec import decode
from loopr.core.entries import Artifact, Entry
from loopr.core.inputs import differing, has_inputs
from loopr.core.model import decode_loop
from loopr.core.plan_events import PlanMoved, PlanMoving
from loopr.core.plan_observations import PlanStands
from loopr.core.redo_events import RedoAsked
from loopr.core.taking import taken
from loopr.core.tips import read_tip
from loopr.core.workspace_events import PlanBound
from tests.core.stories import Story, go_on, settings, tell


def planned(*entries: Entry, inputs: tuple[str, ...] = ()) -> Story:
    """Plan specs, which a command writes unless they declare phases."""
    story = Story(settings(types={"phase": {"inputs": inputs}}))
    artifact = Artifact("p", "P", entries=entries, declares=True)
    story.see(o.PlanOffered("p", artifact, "d", "plan.md", "main", "ba5e"))
    go_on(story, "settle")
    return story


def others(story: Story, *paths: str) -> dict[str, tuple[str, ...]]:
    """Say who names which of some paths."""
    return {each.loop: each.paths for each in differing(story.forest, "p", paths).others}


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (("data/f001.csv",), ("data/f001.csv",)),
        (("./data//f001.csv",), ("data/f001.csv",)),
        (("data",), ("data/f001.csv", "data/sub/ü x.csv")),
        (("data/**",), ("data/f001.csv", "data/sub/ü x.csv")),
        (("data/*.csv",), ("data/f001.csv",)),
        (("**/*.csv",), ("data/f001.csv", "data/sub/ü x.csv")),
        (("data/sub/ü x.csv", "data/s*/*"), ("data/sub/ü x.csv",)),
        (("dat?/f001.csv", "data.txt"), ("data/f001.csv", "data.txt")),
        (("src/**", "datum"), ()),
    ],
)
def test_patterns(patterns: tuple[str, ...], found: tuple[str, ...]) -> None:
    """A pattern stands for the files that it does in `files`: a folder is all below it, `*` stays within a part."""
    story = planned(Entry("a", "a", inputs=patterns))
    expected = {"p/a": found} if found else {}
    assert others(story, "data/f001.csv", "data.txt", "data/sub/ü x.csv", "other") == expected


def test_inputs_of_who_does_no_work_hold_for_all_below() -> None:
    """Those of an entry with children, and of a type, hold for the loops that work; the parent itself is not named."""
    spec = Entry("a", "a", inputs=("data/**",), children=(Entry("x", "x"), Entry("y", "y", inputs=("y.txt",))))
    story = planned(spec, Entry("b", "b", inputs=("b.txt",)), inputs=("tool",))
    assert others(story, "data/1") == {"p/a/x": ("data/1",), "p/a/y": ("data/1",)}
    assert others(story, "tool", "y.txt") == {"p/a/x": ("tool",), "p/a/y": ("y.txt", "tool")}
    assert differing(story.forest, "p", ()).total == 3
    go_on(story, "choose p/a/x, p/a/y, p/b\nfinish p/b: k")
    assert "p/b/k" not in others(story, "b.txt")
    assert others(story, "b.txt") == {"p/b": ("b.txt",)}
    assert (has_inputs(story.forest, "p"), has_inputs(tell("plan p: a").forest, "p")) == (True, False)


def test_who_is_complete_is_asked_and_who_is_at_work_later() -> None:
    """One that works when its plan takes the base is done again once it has landed, one that waits is not."""
    story = tell(
        "plan p: a; b; c\nchoose p/a, p/b, p/c\nfinish p/a\nbegan p/b\nended p/b\nbegan p/c\nended p/c: refused no"
    )
    go_on(story, "takes p 10ad: p/a x is another since ba5e; p/b x is another since ba5e; p/c x is another since ba5e")
    assert story.forest.shared.plans["p"].base_commit == "10ad"
    asked = [event for event, _ in story.log if isinstance(event, RedoAsked)]
    assert [(each.loop, each.cause, each.cascades) for each in asked] == [("p/a", "x is another since ba5e", True)]
    go_on(story, "judged p/b\nlanded p/b")
    asked = [event for event, _ in story.log if isinstance(event, RedoAsked)]
    assert [each.loop for each in asked] == ["p/a", "p/b"]
    assert story["p/c"].outdated == ""
    assert sorted(story.choose()) == ["p/a", "p/b", "p/c"]
    assert [story[each].generation for each in ("p/a", "p/b", "p/c")] == [2, 2, 1]
    story.verify()


def test_a_later_attempt_begins_at_the_new_base() -> None:
    """Whoever is refused after the plan has taken a base works from it with the next attempt."""
    story = tell("plan p: a\nchoose p/a\nbegan p/a\ntakes p 10ad: p/a x\nended p/a: refused no\nwait 5m")
    assert story["p/a"].outdated == "x"
    go_on(story, "choose p/a")
    assert story["p/a"].outdated == ""
    go_on(story, "finish p/a")
    assert not [event for event, _ in story.log if isinstance(event, RedoAsked)]


def test_a_move_that_another_process_ends_asks_all_the_same() -> None:
    """What is announced with a move is decided once it is made, whoever makes it; and one at a time."""
    story = tell("plan p: a\nchoose p/a\nfinish p/a")
    story.wish(moving.begin(story.forest, "p", "ba5e"))
    story.see(PlanStands("p", "ba5e"))
    into = taken("10ad", "ba5e0000000", differing(story.forest, "p", ()))._replace(others=("p/a x is another",))
    story.wish(moving.move(story.forest, "p", "2222", "updated", old="ba5e", taken=into))
    story.verify()
    told = story.see(PlanStands("p", "2222"))
    assert [type(each) for each in told] == [PlanMoved, PlanBound, RedoAsked]
    assert story.forest.shared.plans["p"].base_commit == "10ad"
    with pytest.raises(moving.TipMoved):
        story.wish(moving.move(story.forest, "p", "3333", "updated", old="ba5e"))
    story.verify()


def test_reasons() -> None:
    """A reason names the first of the files, and since when they are others."""
    story = planned(Entry("a", "a", inputs=("data/**",)), Entry("b", "b", inputs=("data/1",)))
    found = differing(story.forest, "p", ["data/1", "data/2", "data/3", "data/4", "data/5"])
    first, second = taken("10ad", "ba5eba5eba5e", found).others
    assert first == "p/a data/1, data/2, data/3 and 2 more are others since ba5eba5"
    assert second == "p/b data/1 is another since ba5eba5"


def test_a_move_of_an_older_journal_is_read() -> None:
    """A row and an event from before a move said what it takes over are read as moves that take over nothing."""
    moving = read_tip(["a", ["a", "n", "adopted", "", ""]]).moving
    assert moving is not None
    assert (moving.base, moving.others) == ("", ())
    event = decode("plan_moving", 1, '{"plan": "p", "old": "a", "new": "n", "why": "adopted"}')
    assert event == PlanMoving("p", "a", "n", "adopted")
    assert decode_loop([("id", "p/a"), ("status", "complete")]).inputs == ()
