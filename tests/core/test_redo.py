"""Work that is done again though it is complete: what it is until then, in which order, and what follows from it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from loopr.core import observations as o
from loopr.core import redo_events as r
from loopr.core.codec import decode, encode
from loopr.core.forest import Forest
from loopr.core.model import Status
from loopr.core.policy import Budget, Policy
from loopr.core.redo import NO_PAST
from loopr.core.redoing import ask_redo
from loopr.core.settled import Standing, is_settled, standing
from loopr.core.staleness import is_stale, stale_because, stale_below
from loopr.core.turn import perform, think
from tests.core.stories import Story, go_on, settings, tell

CHAIN = """
    plan p: a; b needs a; c needs b
    choose p/a
    finish p/a: x
    choose p/a/x
    finish p/a/x: y
    choose p/a/x/y
    finish p/a/x/y
    choose p/b
    finish p/b: x
    choose p/b/x
    finish p/b/x: y
    choose p/b/x/y
    finish p/b/x/y
    choose p/c
    finish p/c: x
    choose p/c/x
    finish p/c/x: y
    choose p/c/x/y
    finish p/c/x/y
"""


def done(story: Story, *names: str) -> Story:
    """Let loops be granted and land, one after another, with nothing else in between."""
    for name in names:
        go_on(story, f"choose {name}\nfinish {name}")
    return story


def two_levels(**of_code: Any) -> Policy:
    """Return a policy with plans and code alone, of which this is said."""
    policy = settings()
    types = {"plan": replace(policy.types["plan"], child="code"), "code": replace(policy.types["code"], **of_code)}
    return replace(policy, types=types)


def stale(story: Story) -> list[str]:
    """Name the stale loops, asked of each, and of the tree as a whole."""
    tree = story.forest.tree
    found = [each.id for each in tree.walk() if is_stale(tree, each)]
    assert found == [each.id for each in stale_below(tree)]
    assert set(found) >= {each.id for name in found for each in stale_below(tree, name)}
    return found


def again(story: Story, name: str, ends: str = "landed") -> None:
    """Let a granted loop end its redoing."""
    go_on(story, f"began {name}\nended {name}\njudged {name}\n{ends} {name}")


def test_it_stays_complete_until_the_lease_of_the_redoing_is_granted() -> None:
    """Whoever is asked to be done again is complete, and what it needs done; with the lease it is a new generation."""
    story = done(tell("plan p: a; b needs a", two_levels()), "p/a", "p/b")
    go_on(story, "redo p/a: other data\np/a is complete\nwhy p/a: nothing\np/a has generation 1")
    assert story.forest.tree.done("p")
    assert not story.forest.tree.at_rest("p")
    assert not is_settled(story.forest, story.now)
    story.verify()
    go_on(story, "choose p/a\np/a is leased\np/a has generation 2\np/b is complete")
    assert not story.forest.tree.done("p")
    story.verify()


def test_what_lands_something_has_those_done_again_that_rest_on_it_and_no_more() -> None:
    """With the cascade each one is asked as soon as what it needs has landed something: nothing follows otherwise."""
    story = tell("plan p: a; b needs a; c needs b; d", two_levels())
    go_on(story, "choose p/a, p/d\nfinish p/a p/d\nchoose p/b\nfinish p/b\nchoose p/c\nfinish p/c")
    go_on(story, "redo p/a: other data\nchoose p/a")
    again(story, "p/a")
    assert stale(story) == ["p/b"]
    go_on(story, "why p/b: nothing\nwhy p/c: status it is done\nchoose p/b")
    again(story, "p/b", "empty")
    go_on(story, "choose nobody\nwhy p/c: status it is done")
    assert stale(story) == []
    assert is_settled(story.forest, story.now)
    asked = [(each.loop, each.cause, each.landed) for each, _ in story.log if isinstance(each, r.RedoAsked)]
    assert asked == [("p/a", "other data", ""), ("p/b", "other data", "p/a")]
    story.verify()


def test_what_rests_on_several_is_done_again_once_and_after_all_of_them() -> None:
    """Along a long and a short way alike, the end is done once, and then nothing is stale."""
    story = tell("plan p: a; b needs a; c needs b; d needs a; z needs c,d", two_levels())
    go_on(
        story, "choose p/a\nfinish p/a\nchoose p/b, p/d\nfinish p/b p/d\nchoose p/c\nfinish p/c\nchoose p/z\nfinish p/z"
    )
    go_on(story, "redo p/a: other data\nchoose p/a")
    again(story, "p/a")
    go_on(story, "choose p/b, p/d")
    again(story, "p/d")
    go_on(story, "why p/z: needs p/b is done again first\nchoose nobody")
    again(story, "p/b")
    go_on(story, "why p/z: needs p/c is done again first\nchoose p/c")
    again(story, "p/c")
    go_on(story, "choose p/z")
    again(story, "p/z")
    go_on(story, "choose nobody")
    assert stale(story) == []
    story.verify()


def test_what_is_asked_later_goes_before_what_rests_on_it() -> None:
    """A loop whose turn has come gives it up when something is asked for that it rests on at length."""
    story = tell("plan p: a; b needs a; c needs b", two_levels())
    done(story, "p/a", "p/b", "p/c")
    go_on(story, "redo p/c: one\nwhy p/c: nothing\nredo p/a: two\nwhy p/c: needs p/a is done again first")
    story.verify()
    go_on(story, "choose p/a")
    again(story, "p/a", "empty")
    go_on(story, "choose p/c")


def test_what_failed_in_its_redoing_keeps_its_old_work() -> None:
    """The loop has failed, says that its landed work stands, and lets those go on that rest on it at length."""
    story = tell("plan p: a; b needs a; c needs b", two_levels())
    done(story, "p/a", "p/b", "p/c")
    landed = story["p/a"].landed
    go_on(story, "redo p/a: one\nredo p/c: two\nchoose p/a\nbegan p/a\nended p/a: config no such program")
    go_on(story, "p/a is parked")
    assert story["p/a"].reason == "no such program; the old work stands"
    assert story["p/a"].landed == landed
    go_on(story, "choose p/c")
    story.verify()
    go_on(story, "reset p/a\nchoose p/a")
    again(story, "p/a")
    assert stale(story) == ["p/b"]
    assert story["p/b"].past.ask is not None


def test_it_is_stale_by_the_order_of_grants_and_landings() -> None:
    """What was granted before something it needs landed anew lands stale; its judge alone makes it no younger."""
    story = tell("plan p: a; b needs a", two_levels())
    done(story, "p/a")
    go_on(story, "choose p/b\nbegan p/b\nrenew p/a\nchoose p/a")
    again(story, "p/a")
    go_on(story, "ended p/b\njudged p/b: limited slow down after=1m\np/b is pending\nwait 2m\nchoose p/b")
    lease = story["p/b"].lease
    assert lease is not None
    assert lease.judge_only
    again(story, "p/b")
    assert stale(story) == ["p/b"]
    assert stale_because(story.forest.tree, story["p/b"]) == ["p/a"]
    story.verify()


def test_staleness_reaches_below_and_above() -> None:
    """Whatever is below a loop that needs another is stale when anything below that lands; the chain is not."""
    story = tell(CHAIN)
    assert stale(story) == []
    go_on(story, "renew p/a/x/y\nchoose p/a/x/y")
    again(story, "p/a/x/y")
    assert stale(story) == ["p/b", "p/b/x", "p/b/x/y"]
    go_on(story, "redo-stale p\nchoose p/b\nwhy p/b/x: needs p/b is done again first")
    story.verify()


def test_what_a_rule_has_done_again_is_done_once_between_two_starts() -> None:
    """`stale: redo` asks by itself, once until the plan is started again; what is stale after that waits."""
    story = tell("plan p: a; b needs a", two_levels(stale="redo"))
    done(story, "p/a", "p/b")
    for grants in ("p/b", "nobody"):
        go_on(story, "renew p/a\nchoose p/a")
        again(story, "p/a")
        go_on(story, f"choose {grants}")
        if grants == "p/b":
            again(story, "p/b")
            assert stale(story) == []
    assert stale(story) == ["p/b"]
    go_on(story, "starts p\nchoose p/b")
    again(story, "p/b")
    assert stale(story) == []
    story.verify()


def test_an_engine_that_stays_does_it_once_a_day() -> None:
    """A day after the first time the rule may have things done again once more, without any start."""
    story = tell("plan p: a; b needs a", two_levels(stale="redo"))
    done(story, "p/a", "p/b")
    for grants in ("p/b", "nobody"):
        go_on(story, "renew p/a\nchoose p/a")
        again(story, "p/a")
        go_on(story, f"choose {grants}")
        if grants == "p/b":
            again(story, "p/b")
    go_on(story, "wait 23h\nignores day passes\nwait 1h\nday passes\nignores day passes\nchoose p/b")
    story.verify()


def test_what_lands_stale_is_done_again_by_the_rule() -> None:
    """A loop that was at work while what it needs landed anew is asked as soon as it has landed."""
    story = tell("plan p: a; b needs a", two_levels(stale="redo"))
    done(story, "p/a")
    go_on(story, "choose p/b\nrenew p/a\nchoose p/a")
    again(story, "p/a")
    again(story, "p/b")
    assert story["p/b"].past.ask is not None
    go_on(story, "choose p/b")
    again(story, "p/b")
    assert stale(story) == []
    go_on(story, "choose nobody")


def test_a_budget_of_its_own_is_that_of_the_generation() -> None:
    """What was spent before the redoing counts for the plan, and not for the loop."""
    story = tell("plan p: a", two_levels(budget=Budget(tokens=100)))
    go_on(story, "choose p/a\nbegan p/a\nused p/a 99 tokens 1s\nended p/a\njudged p/a\nlanded p/a")
    go_on(story, "redo p/a: one\nchoose p/a\nbegan p/a\nused p/a 99 tokens 1s\np/a is running")
    go_on(story, "used p/a 100 tokens 1s\np/a is parked")
    assert "its own budget of 100 tokens is used up: it has used 100 tokens" in story["p/a"].reason
    story.verify()


def test_a_budget_keeps_it_as_it_is() -> None:
    """Where nothing is left to spend it stays complete, says for what it waits, and goes on once there is."""
    story = tell("plan p: a; b needs a", replace(two_levels(), budget=Budget(tokens=100)))
    done(story, "p/a")
    go_on(story, "choose p/b\nbegan p/b\nused p/b 100 tokens 1s\nended p/b\njudged p/b\nlanded p/b")
    go_on(story, "redo p/a: other data\nwhy p/a: budget\nchoose nobody\np/a is complete")
    assert standing(story.forest, ["p"], story.now) is Standing.SPENT
    go_on(story, "wait 25h\nchoose p/a")
    story.verify()


def test_it_can_be_put_ahead_and_cleared() -> None:
    """What is to be done again stands in the queue: it goes ahead of it by a word, or is taken out."""
    story = tell("plan p: a; b; c", two_levels())
    go_on(story, "choose p/a, p/b, p/c\nfinish p/a p/b p/c\nrefuses dispatch p/c\nredo p/a\nredo p/b\nredo p/c")
    go_on(story, "dispatch p/c\nclear p/a\nwhy p/a: paused cleared\nchoose p/c, p/b\nresume workspace\nchoose p/a")
    story.verify()


def test_a_journal_from_before_has_nothing_stale() -> None:
    """Events without what tells the age of work lead to the rows that they led to, and nothing of them is stale."""
    story = tell("plan p: a; b needs a", two_levels())
    done(story, "p/a", "p/b")
    go_on(story, "renew p/a\nchoose p/a")
    again(story, "p/a")
    assert stale(story) == ["p/b"]
    before = Forest()
    for event, at in story.log:
        name, version, payload = encode(event)
        old = {key: value for key, value in json.loads(payload).items() if key not in ("work", "after")}
        before.apply(decode(name, version, json.dumps(old)), at)
    assert before.loops["p/a"].landed
    assert all(loop.past is NO_PAST for loop in before.loops.values())
    assert stale_below(before.tree) == []
    perform(before, ask_redo(before, before.loops["p/a"], "because", cascades=True), story.now)
    think(before, (), story.now)
    key = "p/a", before.loops["p/a"].attempt
    think(before, [o.AttemptBegan(*key), o.AttemptEnded(*key), o.Judged(*key)], story.now)
    think(before, [o.LandingDone(*key, "c0ffee", "d")], story.now)
    assert before.loops["p/b"].status is Status.LEASED


@pytest.mark.parametrize("word", ["pause", "cancel"])
def test_a_hold_keeps_it_as_it_is(word: str) -> None:
    """What is held stays complete, and asked for, until it is resumed."""
    story = tell("plan p: a", two_levels())
    done(story, "p/a")
    go_on(story, f"redo p/a: one\n{word} p/a\np/a is complete\nwhy p/a: paused\nchoose nobody\nresume p/a\nchoose p/a")
    story.verify()


def test_a_persons_file_keeps_the_wish_where_it_was_complete() -> None:
    """An edited artifact of complete work changes nothing of the wish; one in place of the redoing ends it."""
    story = tell(CHAIN)
    go_on(story, "redo p/b/x: one\ndrop p/b/x: y; z")
    assert story["p/b/x"].past.ask is not None
    go_on(story, "choose p/b/x/z, p/b/x\ndrop p/b/x: y; z; q\ngone p/b/x")
    assert story["p/b/x"].past.ask is None
    story.verify()
