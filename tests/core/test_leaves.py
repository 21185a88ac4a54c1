"""Loops that just do the work: which they are, how they are judged, and what becomes of their children."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loopr.core.entries import Entry, decode_entry, encode_entry, identity
from loopr.core.model import decode_loop
from loopr.core.policy import Policy, TypePolicy, decode_policy, encode_policy
from loopr.core.rendering import declared_artifact
from tests.core.stories import go_on, settings, tell
from tests.core.test_outline import TYPES, read, refusals

DONE = "began p/a\nended p/a\njudged-as-leaf p/a\nlanded p/a"

# --- which they are ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "is_leaf"),
    [
        ("a run make", True),
        ("a run make leaf false", False),
        ("a run make leaf true", True),
        ("a agent ada", False),
        ("a agent ada leaf true", True),
        ("a agent ada leaf false", False),
        ("a", False),
        ("a (b run make)", False),
    ],
)
def test_who_may_just_do_the_work(said: str, is_leaf: bool) -> None:
    """A command of an entry's own makes it a leaf, an agent of its own where it says so; one with children is none."""
    story = tell(f"plan p: {said}")
    assert story.forest.is_leaf(story["p/a"]) is is_leaf
    assert not story.forest.is_leaf(story["p"])


def test_a_row_from_before_is_read_by_the_same_rule() -> None:
    """A loop that was declared before there were leaves is one by its command alone."""
    story = tell("plan p: a run make")
    old = {"id": "p/a", "type": "spec", "parent": "p", "command": True}
    assert story.forest.is_leaf(decode_loop(old.items()))


def test_leaf_is_identity_only_where_it_makes_a_difference() -> None:
    """What an entry is by itself leaves its identity as it was before; the other thing is other work."""
    ran, asked = Entry("a", "A", run="make"), Entry("a", "A", agent="ada")
    assert identity(ran) == identity(replace(ran, leaf=True)) != identity(replace(ran, leaf=False))
    assert identity(asked) == identity(replace(asked, leaf=False)) != identity(replace(asked, leaf=True))
    assert decode_entry(encode_entry(replace(ran, leaf=False))) == replace(ran, leaf=False)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"leaf": True}, "it has neither (add one of them, or take out `leaf`; `phases: []` in a file of yours"),
        ({"run": "x", "agent": "y"}, "`agent` beside `run` would never be used"),
        ({"phases": [{"id": "b", "check": "x"}]}, "`check` would never be used: the phase gets a code by itself"),
        ({"phases": [{"id": "b", "tasks": [{"id": "c", "run": "x", "leaf": False}]}]}, "a code has no children"),
        ({"run": "x", "leaf": 3}, "leaf: must be true or false"),
    ],
)
def test_what_nobody_would_read_is_refused(entry: dict[str, Any], words: str) -> None:
    """Each key of an entry that says who works and who judges is read by somebody, or refused with its place."""
    assert words in refusals({"specs": [{"id": "a", **entry}]})


def test_a_check_is_read_wherever_something_works() -> None:
    """A check beside a command or an agent, or in a type that has one, or of a pull worker's loop, is no mistake."""
    for own in ({"run": "x"}, {"agent": "x"}):
        assert read({"specs": [{"id": "a", "phases": [{"id": "b", "check": "y", **own}]}]}).entries
    works = TYPES | {"phase": replace(TYPES["phase"], has_command=True)}
    assert read({"specs": [{"id": "a", "phases": [{"id": "b", "check": "y"}]}]}, types=works).entries
    assert read({"specs": [{"id": "a", "check": "y"}]}).entries


# --- an explicit empty outline ----------------------------------------------------------------------------------------


def test_an_explicit_empty_outline_has_no_implied_child() -> None:
    """`tasks: []` says that nothing is below; a key without a list, or none at all, still implies a `code`."""
    assert read({"title": "A", "tasks": []}, type_name="phase", depth=2).entries == ()
    assert read({"title": "A", "tasks": []}, type_name="phase", depth=2).empty
    for fields in ({"title": "A", "tasks": None}, {"title": "A"}):
        (only,) = read(fields, type_name="phase", depth=2).entries
        assert only.implied


def test_an_entry_that_says_nothing_is_below() -> None:
    """An empty list in an entry is kept, whoever wrote it; beside a command it is none."""
    (entry,) = read({"id": "p", "phases": [{"id": "a", "tasks": []}]}, type_name="spec", depth=1).entries
    assert entry.empty
    assert decode_entry(encode_entry(entry)).empty
    text, artifact = declared_artifact(entry, "phase", TYPES)
    assert "\ntasks: []\n" in text
    assert (artifact.empty, artifact.entries) == (True, ())
    above = Entry("s", "S", children=(entry,))
    assert "    tasks: []\n" in declared_artifact(above, "spec", TYPES)[0]
    said = {"id": "p", "phases": [{"id": "a", "run": "x", "tasks": []}, {"id": "b", "tasks": None}, {"id": "c"}]}
    assert not any(each.empty for each in read(said, type_name="spec", depth=1).entries)
    said = {"id": "p", "phases": [{"id": "a", "tasks": []}]}
    (entry,) = read(said, type_name="spec", depth=1, written_by_loop=True).entries
    assert entry.empty


def test_what_an_empty_entry_would_pass_over_is_refused() -> None:
    """A check of its own, or one of its type, would never be asked."""
    said = {"id": "p", "phases": [{"id": "a", "tasks": [], "check": "make"}]}
    assert "`check` would never be used" in "".join(refusals(said, type_name="spec", depth=1))


@pytest.mark.parametrize("key", ["tasks", "codes", "phases", "children"])
def test_the_last_type_takes_an_empty_outline_too(key: str) -> None:
    """Each name of an empty outline is read by the last type; what says more is refused."""
    assert read({"title": "A", key: []}, type_name="code", depth=3).entries == ()
    assert "has no children" in "".join(refusals({"title": "A", key: ["b"]}, type_name="code", depth=3))


def test_a_person_completes_any_loop_as_a_leaf() -> None:
    """A file that says nothing is below completes a loop with nothing to declare; a plan must have something."""
    story = tell("plan p: a; b\ndrop p/a: nothing", settings(""))
    assert (story["p/a"].status, story.forest.tree.done("p/a")) == ("complete", True)
    assert story.forest.tree.children("p/a") == []
    story = tell("plan p: a; b (c)\nsettle\ndrop p: nothing", settings(""))
    assert "must declare its spec children" in story.forest.shared.problems["specs/p"]


def test_children_below_a_leaf_are_declared_by_its_file() -> None:
    """Children that are added to a leaf's file are declared, and the leaf is not done again."""
    story = tell(f"plan p: a run make\nchoose p/a\n{DONE}\ndrop p/a: b; c")
    assert (story["p/a"].status, story["p/a"].generation) == ("complete", 1)
    assert story.forest.tree.children("p/a") == ["p/a/b", "p/a/c"]
    assert not story.forest.is_leaf(story["p/a"])


def test_an_entry_that_gets_a_command_for_its_children_has_them_no_more() -> None:
    """Children of an entry go with their outline where a command that just does the work takes its place."""
    story = tell("plan p: a (b; c)\nsettle\nplan p: a run make")
    assert story.forest.tree.children("p/a") == []
    assert story.forest.is_leaf(story["p/a"])
    go_on(story, f"choose p/a\n{DONE}")
    assert story.forest.tree.done("p")
    story = tell("plan p: a (b; c)\nsettle\nplan p: a run make leaf false")
    assert story.forest.tree.children("p/a") == ["p/a/b", "p/a/c"]


# --- how they are judged ----------------------------------------------------------------------------------------------

LAST = TypePolicy("code", None, judged=True, reviewed=True, approve=True, judge_lanes=("j",), max_iterations=7)


@pytest.mark.parametrize(
    ("own", "judged"),
    [
        ({}, LAST),
        ({"said": ("approve", "max_iterations"), "max_iterations": 3}, replace(LAST, approve=False, max_iterations=3)),
        ({"judged": True, "said": ("check",)}, LAST),
        ({"said": ("check",)}, replace(LAST, judged=False)),
        ({"reviewed": True}, replace(LAST, judge_lanes=())),
        ({"judge_lanes": ("k",)}, replace(LAST, judge_lanes=("k",))),
    ],
)
def test_what_a_type_does_not_say_is_the_last_ones(own: dict[str, Any], judged: TypePolicy) -> None:
    """Check, review, approval and iterations of a leaf are its own type's where that says so, each by itself."""
    found = TypePolicy("phase", "code", **own).judged_like(LAST)
    for key in ("child", "judged", "reviewed", "approve", "judge_lanes", "max_iterations"):
        assert getattr(found, key) == getattr(judged, key), key


def test_what_was_said_is_remembered_with_the_policy() -> None:
    """A policy comes back from the journal with what was said; one from before says nothing."""
    policy = Policy(types={"a": TypePolicy("a", "b", said=("approve",)), "b": LAST})
    plain = encode_policy(policy)
    assert decode_policy(plain) == policy
    del plain["types"]["a"]["said"]
    assert decode_policy(plain).type_of("a").said == ()


def test_a_leaf_waits_for_the_approval_of_the_last_type_unless_it_hands_over() -> None:
    """Where only the last type asks a person, a leaf is asked about; one that declares children is not."""
    policy = settings(types={"code": {"approve": True}})
    story = tell("plan p: a run make\nchoose p/a\nbegan p/a\nended p/a\njudged-as-leaf p/a", policy)
    assert story["p/a"].status == "awaiting_approval"
    story = tell("plan p: a run make\nchoose p/a\nbegan p/a\nended p/a\njudged p/a\nlanded p/a: b", policy)
    assert (story["p/a"].status, story.forest.tree.children("p/a")) == ("complete", ["p/a/b"])


def test_a_leaf_counts_against_its_own_type() -> None:
    """Of a type with one slot, one leaf is at work."""
    story = tell("plan p: a run make; b run make\nchoose p/a", settings(per_type={"spec": 1, "code": 9}))
    assert "spec" in story.gates("p/b")["type"]


def test_a_leaf_may_try_as_often_as_the_last_type() -> None:
    """The number of iterations is the last type's, where its own says none."""
    policy = settings(types={"code": {"max_iterations": 2}, "spec": {"max_iterations": 1}})
    story = tell("plan p: a run make\nchoose p/a\nbegan p/a\nended p/a: refused no", policy)
    assert story["p/a"].status == "pending"
    go_on(story, "choose p/a\nbegan p/a\nended p/a: refused no")
    assert story["p/a"].status == "failed"
