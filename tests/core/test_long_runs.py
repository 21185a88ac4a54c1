"""What only long runs have met: words that must be refused whole, orders that a replay must keep, waits for oneself."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from loopr.core import observations as o
from loopr.core.declaring import outline_problems
from loopr.core.entries import Artifact, Entry
from loopr.core.events import SetAside
from loopr.core.gates import closed_gates
from loopr.core.grouping import Waits
from loopr.core.marked import Position
from loopr.core.policy import Budget
from loopr.core.turn import think
from loopr.errors import UserError
from loopr.hands import FileHands
from loopr.world.artifacts import digest
from tests.core.outlines import digest_of, outline
from tests.core.stories import Story, go_on, settings, tell

# --- circles of needs by path -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a needs p/b; b needs p/a", {"p/a", "p/b"}),
        ("a needs p/b; b needs a", {"p/a", "p/b"}),
        ("a needs p/a", {"p/a"}),
        ("a needs p/b; b needs p/c; c needs p/a; d", {"p/a", "p/b", "p/c"}),
        ("d (x needs p/d/y; y needs p/d/x)", {"p/d/x", "p/d/y"}),
    ],
)
def test_siblings_that_name_each_other_by_path_in_a_circle_are_refused(text: str, names: set[str]) -> None:
    """A full id of a sibling is a need as its short one: a circle is refused, with the place of one of its members."""
    story = tell("plan p: z")
    entries = tuple(replace(each, position=Position(7 + at, 3)) for at, each in enumerate(outline(text).entries))
    inner = tuple(
        replace(each, children=tuple(replace(below, position=Position(20, 5)) for below in each.children))
        for each in entries
    )
    found = outline_problems(story.forest, story["p"], Artifact("", "P", entries=inner, declares=True), "plan.md")
    assert len(found) == 1
    drawn = found[0].message.removeprefix("needs form a cycle: ")
    assert {each for each in names if each in drawn} == names, drawn
    assert str(found[0].where) in {"plan.md:7:3", "plan.md:8:3", "plan.md:9:3", "plan.md:20:5"}
    go_on(story, f"drop p: {text}\np has artifact {story['p'].artifact}")
    assert set(story.forest.loops) == {"p", "p/z"}


def test_siblings_that_name_each_other_by_path_without_a_circle_count() -> None:
    """A chain of paths is no circle."""
    tell("plan p: a needs p/b; b needs p/c; c\nchoose p/c")


# --- the order of what ends together ----------------------------------------------------------------------------------


def test_budgets_that_end_together_are_told_by_id() -> None:
    """Several loops run out of time in one turn: a replayed engine, which met them in another order, tells the same."""
    story = Story(settings(types={"spec": {"budget": Budget(secs=60)}}))
    go_on(story, "plan p: a; b; c\nchoose p/a, p/b, p/c\nbegan p/c\nbegan p/a\nbegan p/b\nwait 60s")
    forests = [copy.deepcopy(story.forest), story.replayed(), story.rebuilt()]
    told = [[each.loop for each in think(forest, (), story.now) if isinstance(each, SetAside)] for forest in forests]
    assert told == [["p/a", "p/b", "p/c"]] * 3


# --- what is refused decides nothing ----------------------------------------------------------------------------------


def test_a_start_that_is_refused_has_decided_nothing() -> None:
    """A plan's file that was rejected is started, and cannot be taken now: no part of it is decided before that."""
    story = tell("plan p: a; b\nslip p: a\nreject-file p: a; b\nchoose p/a, p/b\ncancel p")
    before, log = story.forest.all_rows(), len(story.log)
    story.forest.loops["p"] = story["p"]._replace(status=type(story["p"].status).CANCELLED)
    rows = story.forest.all_rows()
    artifact = replace(outline("a", "Another title"), budget=Budget(tokens=9))
    with pytest.raises(UserError, match="cannot take a file for p: it is cancelled"):
        story.see(o.PlanOffered("p", artifact, digest_of("a"), "p.md", "main", "b0"))
    assert (rows, log) == (story.forest.all_rows(), len(story.log))
    assert before != rows


def test_a_no_that_cannot_be_carried_out_has_decided_nothing() -> None:
    """What counted before an offered file needs a loop that is gone by now: the word is refused as a whole."""
    story = tell("plan q: x\nplan p: a needs q/x\nslip p: a needs q/x; b run y")
    go_on(story, "plan q: other")
    before = story.forest.all_rows()
    go_on(story, "refuses reject-file p: a needs q/x")
    assert before == story.forest.all_rows()


# --- nobody waits for oneself -----------------------------------------------------------------------------------------


def test_no_gate_tells_a_loop_to_wait_for_itself() -> None:
    """While its own attempt is told to stop, a loop is not told that it measures its own cost; others are."""
    story = tell("plan p: a; b\nchoose p/a\nbegan p/a\npause now p/a\nresume p/a", settings(budget=Budget(tokens=1000)))
    loop = story["p/a"]
    assert loop.ending is not None
    told = [each.gate for each in closed_gates(story.forest, loop, story.now)]
    assert told == ["stopping"]
    assert "p/a, the first" in story.gates("p/b")["budget"]
    waits = Waits(story.forest, story.now)
    assert [each.gate for each in waits.closed(story["p/b"])] == ["budget"]
    assert [each.gate for each in waits.closed(loop)] == ["stopping"]


# --- rejected files ---------------------------------------------------------------------------------------------------


def test_a_rejected_file_gives_way_to_a_declared_artifact(tmp_path: Path) -> None:
    """A file that a person has rejected keeps loopr from writing nothing; any other file stays."""
    policy = settings("")
    hands = FileHands(tmp_path, tmp_path / "specs", tmp_path / "state", policy)
    story = tell("plan p: a (x)", policy)
    place = tmp_path / "specs/p/a/spec.md"
    place.parent.mkdir(parents=True)
    place.write_text("# Mine\n")
    entry = Entry("a", "A", children=(Entry("x", "X"),))
    assert isinstance(hands.write_declared(story["p/a"], entry), o.FileSeen)
    assert place.read_text() == "# Mine\n"
    loop = story["p/a"]
    rejected = loop._replace(offers=loop.offers.refuse(digest(place.read_bytes())))
    written = hands.write_declared(rejected, entry)
    assert isinstance(written, o.DeclaredWritten)
    assert digest(place.read_bytes()) == written.digest
    assert hands.archive.find(digest(b"# Mine\n")) == b"# Mine\n"
