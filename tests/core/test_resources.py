"""Named resources of the machine: who may have one, since when and until when, and what no settings offer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loopr.core import observations as o
from loopr.core.codec import decode, encode
from loopr.core.declaring import outline_problems
from loopr.core.entries import Artifact, Entry, decode_entry, encode_entry, identity
from loopr.core.events import LeaseGranted
from loopr.core.inbox import inbox
from loopr.core.marked import Position
from loopr.core.model import decode_loop
from loopr.core.policy import Policy, decode_policy, encode_policy
from loopr.core.resources import too_few
from loopr.core.scene import holds
from loopr.core.settled import Standing, is_settled, standing
from tests.core.stories import Story, go_on, outline, settings, tell

ONE = (("db", 1),)


def offering(*, wants: tuple[tuple[str, int], ...] = (), **numbers: Any) -> Policy:
    """Return settings that offer one simulator and two databases, of which every spec wants some."""
    return settings(types={"spec": {"resources": wants}}, resources={"db": 2, "simulator": 1}, **numbers)


def closed(story: Story, loop: str) -> str:
    """Return what the gate says of a loop, nothing where it is open."""
    return story.gates(loop).get("resource", "")


def test_no_more_is_granted_than_is_there() -> None:
    """A round grants as much as is offered, and who waits is told which loop holds what it wants."""
    story = tell("plan p: a; b; c; d resources none; e resources simulator=1", offering(wants=ONE))
    assert story.choose() == ["p/a", "p/b", "p/d", "p/e"]
    assert story.gates("p/c") == {"resource": "resource db: 2 of 2 held by p/a, p/b"}
    assert holds(story["p/a"]) == ONE and holds(story["p/d"]) == ()
    story.verify()


@pytest.mark.parametrize(
    ("then", "holds"),
    [
        ("", True),
        ("began p/a", True),
        ("began p/a\nended p/a", True),  # the check may need it as well
        ("began p/a\npause now p/a", True),  # its process lives until it is known to have ended
        ("began p/a\npause now p/a\ngone p/a", False),
        ("began p/a\nended p/a\njudged p/a: refused no", False),
        ("began p/a\nended p/a\njudged p/a", False),  # it lands, and that takes nothing
        ("lost p/a", False),
    ],
)
def test_it_is_held_from_the_grant_until_the_verdict(then: str, holds: bool) -> None:
    """All is held while a loop is leased, runs, is checked or its attempt ends; nothing while it waits or lands."""
    story = tell(f"plan p: a resources simulator=1; b resources simulator=1\nchoose p/a\n{then}", offering())
    assert story.forest.occupancy.held == ({"simulator": 1} if holds else {})
    assert closed(story, "p/b") == ("resource simulator: 1 of 1 held by p/a" if holds else "")
    story.verify()


def test_a_person_who_approves_holds_nothing() -> None:
    """Work that waits for a person gives back what it held."""
    policy = settings(types={"spec": {"resources": ONE, "approve": True}}, resources={"db": 1})
    story = tell("plan p: a; b\nchoose p/a\nbegan p/a\nended p/a\njudged p/a", policy)
    assert (story["p/a"].status.value, story.choose()) == ("awaiting_approval", ["p/b"])
    story.verify()


def test_the_nearest_entry_says_it() -> None:
    """What an entry says holds for all below it, in place of what types say; a nearer one takes its place."""
    policy = settings(types={"phase": {"resources": ONE}}, resources={"db": 9, "gpu": 9})
    story = tell("plan p: a resources gpu=2 (x; y resources none); b (z)\nsettle", policy)
    wants = {each: dict(story.forest.resources_of(story[each])) for each in ("p", "p/a", "p/b")}
    assert wants == {"p": {}, "p/a": {"gpu": 2}, "p/b": {}}
    below = {each: dict(story.forest.resources_of(story[each])) for each in ("p/a/x", "p/a/y", "p/b/z")}
    assert below == {"p/a/x": {"gpu": 2}, "p/a/y": {}, "p/b/z": {"db": 1}}


def test_another_entry_above_counts_at_once() -> None:
    """Where the entry above says something else, those that wait below it wait by that."""
    story = tell("plan p: a (x; y)\nsettle", offering())
    go_on(story, "plan p: a resources simulator=1 (x; y)")
    assert story.choose() == ["p/a/x"]
    assert closed(story, "p/a/y") == "resource simulator: 1 of 1 held by p/a/x"
    story.verify()


def test_settings_that_offer_less_end_nobody() -> None:
    """Who has it keeps it; nobody else is granted any until there is room, and it goes on by itself."""
    story = tell("plan p: a; b; c\nchoose p/a, p/b\nbegan p/a\nbegan p/b", offering(wants=ONE))
    story.see(o.PolicySeen(replace(offering(wants=ONE), resources={"db": 1})))
    assert closed(story, "p/c") == "resource db: 2 of 1 held by p/a, p/b"
    assert [story[each].status.value for each in ("p/a", "p/b")] == ["running", "running"]
    go_on(story, "ended p/a: config no such program")
    assert (story.choose(), is_settled(story.forest, story.now)) == ([], False)
    go_on(story, "ended p/b: config no such program")
    assert story.choose() == ["p/c"]
    story.verify()


def test_what_is_not_offered_any_more_is_told() -> None:
    """An entry that the settings no longer offer anything for waits, settles the night, and needs a person."""
    story = tell("plan p: a resources simulator=1; b", offering())
    story.see(o.PolicySeen(replace(offering(), resources={"simulators": 1})))
    assert story.choose() == ["p/b"]
    go_on(story, "began p/b\nended p/b\njudged p/b\nlanded p/b: k")
    assert "the settings offer none" in closed(story, "p/a")
    assert 'did you mean "simulators"?' in closed(story, "p/a")
    row = next(each for each in inbox(story.forest) if each.kind == "resource")
    assert (row.about, row.command, row.stops) == (("p/a",), "loopr set resources.simulator 1", True)
    assert standing(story.forest, ["p/a"], story.now) is Standing.STUCK
    story.see(o.PolicySeen(offering()))
    assert "p/a" in story.choose()
    story.verify()


def test_an_outline_that_wants_what_is_not_there_is_refused_at_its_place() -> None:
    """A name that nobody offers, or too much of one, is named with file, line and column, nested ones too."""
    story = tell("plan p: a", offering())
    inner = Entry("x", "x", resources=(("db", 3),), resources_at=Position(9, 20))
    entry = Entry("b", "b", resources=(("databse", 1),), resources_at=Position(4, 12), children=(inner,))
    found = outline_problems(story.forest, story["p"], Artifact("p", "p", entries=(entry,), declares=True), "plan.md")
    assert [each.where for each in found] == ["plan.md:4:12", "plan.md:9:20"]
    assert "the settings offer none" in str(found[0])
    assert "3 wanted, and the settings offer 2" in str(found[1])


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("x", ""),
        ("x resources db=1,simulator=1", ""),
        ("x resources db=2", ""),
        ("x resources none", "resources.db: must be at least 1"),
        ("x resources simulator=1", "resources.db: must be at least 1"),
        ("x resources db=2 (y resources db=1)", "resources.db: must be at least 2"),
    ],
)
def test_a_loop_may_want_more_and_never_less(said: str, wrong: str) -> None:
    """An outline that a loop wrote may make its children wait for more; to lift a ceiling takes a person."""
    policy = settings(types={"phase": {"resources": ONE}, "code": {"resources": ONE}}, resources={"db": 2})
    story = tell("plan p: a", policy)
    found = list(too_few(story.forest, story["p/a"], outline(said), "specs/p/a/spec.md"))
    assert [str(each).partition(",")[0].partition(" ")[2] for each in found] == ([wrong] if wrong else [])
    trusting = settings(types={"spec": {"trust_outline": True}, "phase": {"resources": ONE}}, resources={"db": 2})
    assert list(too_few(tell("plan p: a", trusting).forest, story["p/a"], outline(said), "")) == []


def test_a_file_that_came_while_loops_ran_may_not_lift_it_either() -> None:
    """A child that would want less than its type says waits for a person's word; one that wants more does not."""
    policy = settings(types={"spec": {"resources": ONE}}, resources={"db": 9})
    story = tell("plan p: a\nslip p: a; b resources none; c resources db=2", policy)
    assert (story["p/b"].on_offer, story["p/c"].on_offer) == (True, False)


def test_all_of_it_is_remembered() -> None:
    """Events, entries, settings and rows keep the amounts, and those from before have none; identity is the same."""
    story = tell("plan p: a\nchoose p/a", offering(wants=ONE))
    granted = next(event for event, _ in story.log if isinstance(event, LeaseGranted) and event.loop == "p/a")
    assert granted.holds == ONE and decode(*encode(granted)) == granted
    entry = Entry("a", "a", resources=(("db", 1), ("x", 2)))
    assert decode_entry(encode_entry(entry)) == entry
    assert decode_entry(encode_entry(replace(entry, resources=()))).resources == ()
    assert identity(entry) == identity(replace(entry, resources=None))
    assert decode_policy(encode_policy(offering(wants=ONE))) == offering(wants=ONE)
    old = encode_policy(settings())
    del old["resources"], old["types"]["spec"]["resources"]
    assert decode_policy(old).resources == {}
    assert holds(decode_loop([("id", "p"), ("lease", [1, "engine", "default", 5, 1])])) == ()
