"""Convoys: named sets of loops that land when all of them are done."""

from __future__ import annotations

from loopr.core.workspace_events import ConvoyLanded
from tests.core.stories import Story, tell


def landed(story: Story, name: str = "c") -> int | None:
    """Return when a convoy landed."""
    return story.forest.shared.convoys[name].landed_at


BOTH_RUN = "plan p: a; b\nconvoy c: p/a, p/b\nchoose p/a, p/b"


def test_a_convoy_lands_when_all_members_are_done() -> None:
    """A convoy lands in the round in which the last of its members is done, everything below them included."""
    story = tell(f"{BOTH_RUN}\nfinish p/a: x\ndrop p/a/x: k\ndrop p/a/x/k: # done\nchoose nobody")
    assert landed(story) is None
    story = tell(f"{BOTH_RUN}\nfinish p/a: x\nfinish p/b: y\nchoose p/a/x, p/b/y")
    assert landed(story) is None
    story = tell(
        f"{BOTH_RUN}\ndrop p/a: x\ndrop p/b: y\ndrop p/a/x: k\ndrop p/b/y: k\ndrop p/a/x/k: #\ndrop p/b/y/k: #\n"
        "wait 5s\nchoose nobody"
    )
    assert landed(story) == story.now


def test_a_convoy_lands_once() -> None:
    """A convoy that has landed does not land again, whatever becomes of its members."""
    story = tell(
        "plan p: a (b (c))\nsettle\nconvoy c: p/a/b/c\ndrop p/a/b/c: # done\nchoose nobody\nwait 1h\nchoose nobody"
    )
    assert [type(event) for event, _ in story.log].count(ConvoyLanded) == 1
    assert landed(story) == story.now - 3_600_000


def test_a_convoy_without_members_never_lands() -> None:
    """An empty convoy waits for its first member."""
    story = tell("plan p: a\nconvoy c\nchoose p/a\nwait 1d\nchoose nobody")
    assert landed(story) is None


def test_members_may_be_added_until_it_lands() -> None:
    """Adding counts each member once; adding nothing new leads to nothing; a landed convoy takes no more."""
    story = tell("""
        plan p: a (b (c; d))
        settle
        convoy c: p/a/b/c
        ignores convoy c: p/a/b/c
        convoy c: p/a/b/c, p/a/b/d
        drop p/a/b/c: # done
        drop p/a/b/d: # done
        choose nobody
        refuses convoy c: p
    """)
    assert story.forest.shared.convoys["c"].members == ("p/a/b/c", "p/a/b/d")


def test_members_must_exist() -> None:
    """A convoy of a loop that does not exist is refused."""
    tell("plan p: a\nrefuses convoy c: p/a, p/z")


def test_a_member_that_is_no_longer_declared_holds_its_convoy_up() -> None:
    """A convoy does not land while a member is gone."""
    story = tell(
        "plan p: a (b (c; d))\nsettle\nconvoy c: p/a/b/c, p/a/b/d\ndrop p/a/b/c: # done\nplan p: a (b (c))\nsettle\n"
        "choose nobody"
    )
    assert landed(story) is None


def test_a_whole_plan_is_a_member_like_any_other() -> None:
    """A plan as a member is done when everything below it is."""
    story = tell("plan p: a (b (c))\nsettle\nconvoy c: p\nchoose p/a/b/c")
    assert landed(story) is None
    story = tell("plan p: a (b (c))\nsettle\nconvoy c: p\ndrop p/a/b/c: # done\nchoose nobody")
    assert landed(story) == story.now
