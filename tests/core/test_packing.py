"""How many loops have a worktree, whose is packed for another loop, and that nobody waits for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loopr.core import observations as o
from loopr.core.owed import Land, PackWorktree, owed
from loopr.core.policy import LanePolicy, Policy
from loopr.core.settled import is_settled
from loopr.core.worktree_events import WorktreePacking
from tests.core.stories import Story, go_on, settings, tell


def bound(most: int, loops: int = 1, **numbers: Any) -> Policy:
    """Return settings under which so many loops may have a worktree, and so many work."""
    return settings(max_loops=loops, max_worktrees=most, **numbers)


def packings(story: Story) -> list[str]:
    """Play a round in which nobody is granted, and return whose worktrees are packed for it."""
    return [each.loop for each in story.round() if isinstance(each, WorktreePacking)]


@pytest.mark.parametrize(("loops", "said", "most"), [(3, None, 7), (3, 5, 5), (3, 1, 3), (0, None, None), (-1, 2, 2)])
def test_the_bound_is_never_below_what_may_work(loops: int, said: int | None, most: int | None) -> None:
    """Without a number it is four more than may work, and without a ceiling there is none."""
    assert Policy(max_loops=loops, max_worktrees=said).most_worktrees == most


def test_who_has_a_worktree_goes_before_who_has_none() -> None:
    """At the bound a loop that waits for its second try is granted, though another has the higher score."""
    story = tell(
        "plan p: a; b priority 9\npause p/b\nchoose p/a\nbegan p/a\nended p/a: refused no\nresume p/b", bound(1)
    )
    assert story.gates("p/b") == {"worktrees": "1 of 1 worktrees are taken (`worktrees.max`)"}
    assert story.choose() == ["p/a"]
    roomy = tell(
        "plan p: a; b priority 9\npause p/b\nchoose p/a\nbegan p/a\nended p/a: refused no\nresume p/b", bound(2)
    )
    assert roomy.choose() == ["p/b"]


def test_a_worktree_is_packed_before_another_is_made() -> None:
    """The one that is idle is asked for, once; who waits is granted when that is done, and the first is laid again."""
    story = tell("plan p: a; b\nchoose p/a\nbegan p/a\nended p/a: config no", bound(1))
    assert packings(story) == ["p/a"]
    assert list(owed(story.forest)) == [PackWorktree("p/a", 1)]
    assert (story.choose(), packings(story), is_settled(story.forest, story.now)) == ([], [], False)
    go_on(story, "reset p/a")
    assert story.gates("p/a") == {"worktrees": "its worktree is being packed, to be laid again"}
    go_on(story, "packed p/a\nchoose p/a")
    assert list(story.forest.housed) == ["p/a"]
    story.verify()


def test_the_longest_idle_of_those_that_need_it_least_is_first() -> None:
    """Cancelled, failed, parked, awaiting approval, held, resting, backing off: in this order."""
    lanes = {"types": {"spec": {"lanes": ("one",)}}, "lanes": {"one": LanePolicy(None)}}
    policy = bound(9, loops=9, **lanes)
    policy = replace(policy, types=policy.types | {"spec": replace(policy.types["spec"], approve=True)})
    story = tell("plan p: a; b; c; d; e; f; g; h", policy)
    go_on(story, "pause p/h\nchoose p/a, p/b, p/c, p/d, p/e, p/f, p/g")
    for name, ends in (
        ("g", "ended p/g: infra died"),
        ("e", "ended p/e: refused no\npause p/e"),
        ("d", "ended p/d\njudged p/d"),
        ("c", "ended p/c: config no\nwait 1s"),
        ("f", "ended p/f: config no"),
        ("b", "ended p/b\njudged p/b\nreject p/b: no"),
        ("a", "cancel p/a\ngone p/a"),
    ):
        go_on(story, f"began p/{name}\n{ends}")
    story.see(o.PolicySeen(replace(policy, max_worktrees=1, max_loops=1)))
    go_on(story, "resume p/h")
    found = packings(story)
    assert found == ["p/a", "p/b", "p/c", "p/f", "p/d", "p/e", "p/g"]
    story.verify()


def test_what_cannot_be_packed_counts_no_more() -> None:
    """A folder that would lose something stays, and the others go on beside it."""
    story = tell("plan p: a; b\nchoose p/a\nbegan p/a\nended p/a: config no\nchoose", bound(1))
    go_on(story, "packed p/a: it holds a socket\nchoose p/b")
    assert (story["p/a"].packed, list(story.forest.housed)) == ("kept", ["p/b"])
    story.verify()


def test_work_that_is_approved_while_it_is_packed_lands_after_that() -> None:
    """Its landing is owed once the folder is free, and not before: it is laid again."""
    policy = bound(1, types={"spec": {"approve": True}})
    story = tell("plan p: a; b\nchoose p/a\nbegan p/a\nended p/a\njudged p/a\nchoose\napprove p/a", policy)
    assert [type(each) for each in owed(story.forest)] == [PackWorktree]
    go_on(story, "packed p/a")
    assert list(owed(story.forest)) == [Land("p/a", 1)]
    assert list(story.forest.housed) == ["p/a"]
    story.verify()


def test_what_works_without_git_needs_no_room() -> None:
    """A type whose commands run in plain folders is neither bound nor counted."""
    story = tell("plan p: a; b; c\nchoose p/a, p/b", bound(1, loops=2, types={"spec": {"worktree": False}}))
    go_on(story, "began p/a\nended p/a: config no\nchoose p/c")
    assert list(story.forest.housed) == []


def test_a_late_word_of_a_packing_changes_nothing() -> None:
    """What is told of an attempt that is over, or of nothing that was asked for, is no news."""
    tell("plan p: a; b\nchoose p/a\nbegan p/a\nignores packed p/a\nended p/a: config no\nignores packed p/a", bound(1))
