"""Whose word a file is that came while loops were at work: what it may do by itself, and what waits for a person."""

from __future__ import annotations

import pytest

from loopr.core import events as e
from loopr.core import observations as o
from loopr.core import offer_events as f
from loopr.core.model import Status
from loopr.core.settled import Standing, standing
from loopr.errors import UserError
from tests.core.outlines import digest_of, outline
from tests.core.stories import go_on, settings, tell

BY_HAND = settings(commands="code")
"""A workspace in which a person writes all but the code."""


def events(story: object, kind: type[e.LoopEvent]) -> list[str]:
    """List the loops that events of a kind were about."""
    return [event.loop for event, _ in story.log if type(event) is kind]  # type: ignore[attr-defined]


# --- (a) what is complete -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    ["a; b; c", "a; x; b", "a; b; c (k; l)", "a; b # a word more"],
    ids=["behind", "between", "with children", "only text"],
)
def test_what_only_adds_counts_at_once(said: str) -> None:
    """Children that are added to a complete outline are declared, and those that are there stay as they are."""
    story = tell(f"plan p: a; b\nslip p: {said}")
    assert story["p"].artifact == digest_of(said)
    assert not story["p"].offers.offered
    assert [event.during for event, _ in story.log if isinstance(event, e.ArtifactAccepted)][-1] == ("q/x",)
    assert events(story, e.Undeclared) == events(story, e.InputChanged) == []


@pytest.mark.parametrize(
    "said",
    ["a", "b; a", "a title Other; b", "a body more; b", "a needs b; b", "serial: a; b", "a (k); b", "a run x; b", ""],
)
def test_what_changes_is_offered(said: str) -> None:
    """An outline that takes away or changes a child that is there changes nothing until a person has had a word."""
    story = tell(f"plan p: a; b\nslip p: {said}")
    if said:
        assert story["p"].offers.offered == digest_of(said)
    assert (story["p"].artifact, story["p/a"].status) == (digest_of("a; b"), Status.PENDING)
    assert events(story, e.Undeclared) == []


def test_a_key_of_a_person_waits() -> None:
    """A child that says what only a person may say is declared, and never starts by its type's command instead."""
    story = tell("plan p: a\nslip p: a; b run x; c (k budget 5); d\nchoose p/a, p/d")
    assert {each for each, loop in story.forest.loops.items() if loop.on_offer} == {"p/b", "p/c"}
    go_on(story, "approve-file p: a; b run x; c (k budget 5); d\nsettle\nchoose p/c/k, p/b")
    assert not any(loop.on_offer for loop in story.forest.loops.values())
    story.verify()


def test_a_priority_is_a_persons() -> None:
    """A file with a loop's trust puts nothing ahead: a new child with a priority waits, a changed one is offered."""
    story = tell("plan p: a\nslip p: a; b priority 9; c (k priority 9)")
    assert {each for each, loop in story.forest.loops.items() if loop.on_offer} == {"p/b", "p/c"}
    story = tell("plan p: a; b\nslip p: a priority 9; b")
    assert (story["p"].offers.offered, story["p/a"].priority) == (digest_of("a priority 9; b"), None)
    go_on(story, "approve-file p: a priority 9; b")
    assert story["p/a"].priority == 9
    story.verify()


def test_a_type_that_is_trusted() -> None:
    """With `trust_outline` a loop's own outline may say all, and so may a file with a loop's trust."""
    story = tell("plan p: a\nslip p: a; b run x", settings(types={"plan": {"trust_outline": True}}))
    assert not story["p/b"].on_offer


def test_a_no_takes_back_what_was_added() -> None:
    """Once a person says no to a file, the text from before counts, and what came with the file is declared no more."""
    story = tell("plan p: a\nslip p: a; b run x; c\nreject-file p: a")
    assert (story["p"].artifact, story["p"].offers.rejected) == (digest_of("a"), (digest_of("a; b run x; c"),))
    assert [story[each].status for each in ("p/b", "p/c")] == [Status.INVALIDATED] * 2
    before = len(story.log)
    go_on(story, "slip p: a; b run x; c\ndrop p: a; b run x; c")
    assert len(story.log) == before, "it is forgotten for good"


def test_every_no_is_remembered() -> None:
    """Of several files that a person has rejected none is offered again, in whatever order they come back."""
    story = tell("plan p: a")
    texts = [f"a; b run {each}" for each in "xyz"]
    for text in texts:
        go_on(story, f"slip p: {text}\nreject-file p: a")
    assert story["p"].offers.rejected == tuple(map(digest_of, texts))
    for text in (*texts, *reversed(texts)):
        go_on(story, f"ignores slip p: {text}\nignores drop p: {text}")
    go_on(story, "slip p: a; b run w")
    assert story["p"].offers.offered == digest_of("a; b run w")
    go_on(story, "slip p: a # nothing waits any more")
    assert story["p"].offers.rejected == tuple(map(digest_of, texts))


# --- (b), (c) what is not -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["", "choose p/a", "choose p/a\nbegan p/a", "choose p/a\nbegan p/a\nended p/a"])
def test_a_command_is_not_passed_over(state: str) -> None:
    """No file completes a loop that has a command, whatever its state; the loop goes on."""
    story = tell(f"plan p: a\n{state}")
    before = story["p/a"]
    go_on(story, "slip p/a: k")
    assert story["p/a"]._replace(offers=before.offers, updated=before.updated) == before
    assert story["p/a"].offers.offered == digest_of("k")


@pytest.mark.parametrize("key", ["judged", "reviewed", "approve"])
def test_a_judge_is_not_passed_over(key: str) -> None:
    """No file completes a loop whose type has a check, a review or an approval."""
    story = tell("plan p: a\nslip p/a: k", settings(commands="code", types={"spec": {key: True}}))
    assert (story["p/a"].status, story["p/a"].offers.offered) == (Status.PENDING, digest_of("k"))


def test_whatever_else_is_completed() -> None:
    """A file completes a loop without a command whatever gates are closed, and the event names who ran."""
    story = tell("plan p: a needs b; b\npause p/a\nslip p/a: k", BY_HAND)
    assert story["p/a"].status is Status.COMPLETE
    assert [event.during for event, _ in story.log if isinstance(event, e.ArtifactAccepted)] == [(), ("q/x",)]


def test_a_leaf_whose_file_has_an_outline() -> None:
    """An outline in the file of a loop that can have no children declares none, whoever wrote it."""
    by_hand = settings(commands="spec")
    story = tell("plan p: a\ndrop p/a: k\ndrop p/a/k: c\nsettle\nslip p/a/k/c: x; y", by_hand)
    assert story["p/a/k/c"].status is Status.COMPLETE
    assert not story.forest.tree.children("p/a/k/c")


def test_a_candidate_is_not_replaced() -> None:
    """A file beside a loop that waits for approval is offered; both words are asked for, one after the other."""
    story = tell(
        "plan p: a\nchoose p/a\nbegan p/a\nended p/a\njudged p/a\nslip p/a: k\nrefuses approve p/a\nrefuses reject p/a",
        settings(types={"spec": {"approve": True}}),
    )
    assert (story["p/a"].artifact, story["p/a"].offers.offered) == ("", digest_of("k"))
    go_on(story, "approve-file p/a: k\np/a is awaiting_approval\napprove p/a\np/a is landing")


def test_a_word_where_only_a_file_waits() -> None:
    """`approve` without more means the file where nothing else waits for a word; without a file it is refused."""
    story = tell("plan p: a\nslip p/a: k\napprove-file p/a: k\np/a is complete")
    with pytest.raises(UserError, match="no file is offered"):
        go_on(story, "approve-file p/a: k")


# --- never written over ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["malformed p/a: no", "slip p/a: z # changed"])
def test_no_declaration_completes_beside_a_foreign_file(line: str) -> None:
    """A loop at whose place a foreign file lies does not complete by declaration: it waits, and says for what."""
    story = tell("plan p: a (k)")
    go_on(story, line)
    assert "artifact" in story.gates("p/a")
    assert story.forest.settled_now() == []
    assert standing(story.forest, ["p"], story.now) is Standing.WAITING
    go_on(story, "gone-file p/a\nsettle\np/a is complete")
    story.verify()


def test_a_persons_file_that_counted_is_kept() -> None:
    """Where an entry changes whose artifact a person wrote, that file is not written over."""
    story = tell("plan p: a (k)\ndrop p/a: mine\nplan p: a (k; l)")
    assert "is not loopr's" in story.gates("p/a")["artifact"]
    assert story.forest.settled_now() == []
    go_on(story, "gone-file p/a\nsettle\np/a is complete")


def test_a_loop_that_hands_over() -> None:
    """What a loop hands over is published, and the offered file that gave way is named."""
    story = tell("plan p: a\nslip p/a: k\nchoose p/a\nbegan p/a\nended p/a\njudged p/a")
    story.see(o.LandingDone("p/a", 1, "c0ffee", "d", outline("z"), gave_way=digest_of("k")))
    assert events(story, f.OfferReplaced) == ["p/a"]
    assert not story["p/a"].offers.offered


# --- before it may count --------------------------------------------------------------------------------------------


def test_a_file_that_comes_before_its_loop() -> None:
    """A file that came while loops were at work has their trust also once it may count, and nothing is at work."""
    story = tell("plan p: a")
    story.see(o.FileKept("specs/p/a/later", digest_of("k run x"), ("q/x",)))
    go_on(story, "plan p: a; later")
    story.see(o.FileSeen("p/later", digest_of("k run x"), outline("k run x"), "specs/p/a/later"))
    assert story["p/later"].offers.during == ("q/x",)
    assert story["p/later"].status is Status.PENDING


def test_offered_files_of_complete_loops_change_no_exit_code() -> None:
    """A plan that is done is done, whatever file waits for a word; a child on offer keeps it waiting."""
    story = tell("plan p: a\ndrop p/a: k\nslip p/a: z\ndrop p/a/k: m\ndrop p/a/k/m: n")
    assert story["p/a"].offers.offered
    done = standing(story.forest, ["p"], story.now)
    go_on(story, "slip p: a; b run x")
    assert (done, standing(story.forest, ["p"], story.now)) == (Standing.DONE, Standing.WAITING)
