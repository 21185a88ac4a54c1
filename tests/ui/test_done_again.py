"""Complete loops that are to be done again, and not begun yet: they are no work that is over, in any view."""

from __future__ import annotations

import json
import re

import pytest

from loopr.core.redoing import ask_redo
from tests.ui.acting import acting
from tests.ui.calls import Answer
from tests.ui.scenes import Desk

SUMS = "3 of 3 done · 2 to do again"
ALONE = "no engine runs here, so nothing goes on by itself: `loopr run`"
SETTINGS = "version: 1\ntypes: {plan: {child: code}, code: {run: make code}}\n"
WHY = "to be done again: other data"


def again(desk: Desk, *loops: str) -> None:
    """Ask for loops to be done again."""
    for each in loops:
        desk.wish(lambda forest, name: ask_redo(forest, forest.loops[name], "other data"), each)


def done(desk: Desk, plan: str, *names: str) -> None:
    """Start a plan, and let all of it land."""
    entries = "".join(f"  - {{id: {each}}}\n" for each in names)
    desk.start(f"---\nid: {plan}\ncodes:\n{entries}---\n", f"{plan}.md")
    while granted := desk.choose():
        for each in granted:
            desk.land(each)


def tree(desk: Desk) -> list[str]:
    """Draw the tree, without what is said of artifacts, which no engine has written here."""
    return [line for line in desk.lines("tree") if "is gone since" not in line and "differ" not in line]


@pytest.fixture
def asked(shop: Desk) -> Desk:
    """Give a plan of three loops that are complete, two of which are to be done again."""
    shop.write("loopr.yml", SETTINGS)
    done(shop, "p", "a", "b", "c")
    again(shop, "p/a", "p/b")
    return shop


def notes(answer: Answer) -> list[str]:
    """Return the lines beside the data."""
    return answer.err.splitlines()


def test_it_is_waited_for(asked: Desk) -> None:
    """`wait` treats it as open: with an engine at work it waits, without one it ends with exit 4."""
    answer = asked("wait", "p")
    assert (answer.code, answer.out) == (4, "p  plan  3 of 3 done  2 to do again\n")
    assert notes(answer) == [SUMS, "next: `loopr run` goes on", ALONE]
    assert asked("wait", "p/a", "--json").document["standing"] == "waiting"
    assert asked("wait", "p/c").code == 0
    with acting(asked.folder):
        assert asked("wait", "p", "--timeout", "10ms").code == 75
    asked("pause", "p/a", "p/b")
    answer = asked("wait", "p")
    assert (answer.code, "paused  p/a: `loopr resume p/a`" in notes(answer)) == (4, True)


def test_it_is_found_by_what_is_said_of_it(asked: Desk) -> None:
    """A list has such loops by the word that a tree has for them, and as what waits for its turn."""
    asked("pause", "p/b")
    for word, found in (
        ("stale", ["p/a", "p/b"]),
        ("ready", ["p/a"]),
        ("paused", ["p/b"]),
        ("waiting", []),
        ("open", ["p"]),
        ("done", ["p/c"]),
        ("complete", ["p", "p/a", "p/b", "p/c"]),
    ):
        listed = asked("ls", "--status", word, "--json").document["loops"]
        assert [each["id"] for each in listed] == found, word
    ready = [each["id"] for each in asked("ls", "--ready", "--json").document["loops"]]
    assert ready == [each["id"] for each in asked("next", "--json").document["grants"]] == ["p/a"]


def test_it_is_told(asked: Desk) -> None:
    """The tree, the sums of it, and whatever else tells of the plan say how many are to do again."""
    assert tree(asked) == [
        "p     plan  3 of 3 done  2 to do again",
        f"├─ a  code  stale        {WHY}",
        f"├─ b  code  stale        {WHY}",
        "└─ c  code  done",
        "no engine runs: `loopr run` goes on",
        SUMS,
    ]
    assert asked.lines("tree", "p/a")[-1] == "1 of 1 done · 1 to do again"
    assert asked.lines("status")[1] == f"loops   {SUMS}"
    assert "subtree  3 below, all done, 2 to do again" in asked.lines("show", "p")
    said = asked.lines("why", "p")
    assert said[:4] == [
        "p (plan): 3 of 3 done",
        "  status    it is done, and 2 below it are to do again",
        "  stale     p/a: `loopr why p/a`",
        "  stale     p/b: `loopr why p/b`",
    ]


def test_it_is_drawn_where_not_all_is(shop: Desk) -> None:
    """In a tree that is folded, what is to be done again is drawn, and all else that is done is not."""
    shop.write("loopr.yml", SETTINGS)
    for plan in ("p", "q"):
        done(shop, plan, *(f"s{number:02}" for number in range(31)))
    assert [line.split()[0] for line in tree(shop)] == ["p", "q", "62"]
    again(shop, "p/s07")
    assert re.search(f"s07  code  stale  +{WHY}", "\n".join(tree(shop)))


def test_sums_tell_it_apart(asked: Desk) -> None:
    """Loops that are ready for the first time are counted apart from those that are to be done again."""
    asked.start("---\nid: q\ncodes: [{id: x}, {id: y, needs: [x]}]\n---\n", "q.md")
    sums = "3 of 5 done · 2 to do again · 1 waiting · 1 ready"
    assert asked.lines("tree")[-1] == sums
    assert asked.lines("status")[1] == f"loops   {sums}"
    body = json.loads(asked("status", "--json").out)
    assert body["ready"] == 3
