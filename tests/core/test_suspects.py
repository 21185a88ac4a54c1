"""Of several that were at work when something was harmed none is to blame, and they are kept apart for a while."""

from __future__ import annotations

import pytest

from loopr.core import observations as o
from loopr.core.shared import moved_key
from tests.core.stories import Story, go_on, tell

THREE = "plan p: a; b; c; d\nchoose p/a, p/b, p/c, p/d\nharm p/a: p/b p/c"


def test_no_two_of_them_are_at_work_at_once() -> None:
    """Whoever was at work goes on; of those that try again one is at work at a time, and others are free to go."""
    story = tell(f"{THREE}\nended p/a: refused no\nended p/d: refused no\nchoose p/d")
    assert "p/b until one ends without harm" in story.gates("p/a")["apart"]
    go_on(story, "lost p/b\nlost p/c\nchoose p/b")
    assert set(story.gates("p/a")) == set(story.gates("p/c")) == {"apart"}
    story.verify()


@pytest.mark.parametrize(
    ("end", "goes_on"),
    [
        ("", "p/b p/c"),
        (": refused no", "p/a p/b p/c"),
        (": timeout long", "p/b p/c"),
        (": infra died", "p/b"),
        (": blocked harm", "p/b"),
    ],
)
def test_an_end_without_harm_clears_all_of_them(end: str, goes_on: str) -> None:
    """An attempt that was granted since, has worked and has harmed nothing lets them run side by side again."""
    story = tell(f"{THREE}\nlost p/a\nlost p/b\nlost p/c\nchoose p/a\nbegan p/a\nended p/a{end}")
    assert sorted(story.choose()) == goes_on.split()
    story.verify()


@pytest.mark.parametrize("name", ["p/a", "p/b", "p/c", "p/d"])
def test_an_attempt_from_before_clears_nobody(name: str) -> None:
    """Whoever was at work when it happened may have done it, the last one granted too: its end tells nothing."""
    story = tell(f"{THREE} p/d\nbegan {name}\nended {name}")
    assert len(story.forest.shared.suspects) == 1


def test_an_attempt_between_two_harms_clears_neither() -> None:
    """Who was granted after one harm and was at work at the next is free of suspicion only of both."""
    story = tell(f"{THREE}\nlost p/a\nlost p/b\nlost p/c\nchoose p/a")
    story.now += 1
    go_on(story, "harm p/a: p/d\nbegan p/a\nended p/a: refused no")
    assert [each.loops for each in story.forest.shared.suspects] == [("p/a", "p/b", "p/c"), ("p/a", "p/d")]
    story.verify()


def test_one_that_was_alone_is_kept_apart_from_nobody() -> None:
    """One alone is to blame, so there is nothing to find out."""
    story = tell("plan p: a; b\nchoose p/a, p/b\nharm p/a")
    assert story.forest.shared.suspects == ()


def test_what_is_told_twice_counts_once() -> None:
    """An engine that takes over may tell again of what the one before it has told."""
    story = tell(THREE)
    assert story.see(o.HarmSeen(story.now, ("refs/heads/main",), ("p/a", "p/b"))) == []


def test_a_wider_harm_takes_the_place_of_a_narrower_one() -> None:
    """Whoever is kept apart anyway is not remembered twice, so that harm without end takes no room without end."""
    story = tell(THREE)
    story.now += 1
    go_on(story, "harm p/a: p/b p/c p/d")
    assert [each.loops for each in story.forest.shared.suspects] == [("p/a", "p/b", "p/c", "p/d")]
    story.verify()


def moved(story: Story, *, explained: bool) -> None:
    """Let the base branch move while a loop is at work."""
    story.now += 1
    story.see(o.BranchMoveSeen(story.now, ".", "main", "b0", "b1", ("p/a",), explained))


def test_a_move_is_remembered_until_it_is_answered() -> None:
    """One that a checkout explains is told until the next beginning; any other until the plan comes home over it."""
    story, key = tell("plan p: a\nchoose p/a"), moved_key(".", "main")
    moved(story, explained=True)
    assert story.forest.shared.moved[key].explained
    go_on(story, "engine begins")
    assert story.forest.shared.moved == {}
    moved(story, explained=False)
    go_on(story, "engine begins")
    assert story.forest.shared.moved[key].new == "b1"
    story.verify()
    story.see(o.CameHome("p", "main", "c0"))
    assert story.forest.shared.moved == {}
