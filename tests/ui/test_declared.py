"""Loops that are declared below an entry which waits are told of, though they are none yet."""

from __future__ import annotations

import pytest

from loopr.ui.mcp.server import answer
from loopr.ui.mcp.tools import TOOLS, Seat
from tests.ui.scenes import Desk

LADDER = """\
types:
  plan: {child: spec}
  spec: {child: job}
  job: {run: make job, check: none}
"""
PLAN = """\
---
id: book
specs:
  - {id: clean, jobs: [{id: c}]}
  - {id: pages, needs: [clean], jobs: [{id: x}, {id: y}]}
  - {id: cover, jobs: [{id: y}]}
---
# Book
"""
BELOW = "declared in plan.md, below book/pages, which waits: needs clean (0 of 1 done)"
VERBS = ("why", "show", "logs", "wait", "ls", "tree", "pause", "prompt", "diff")
WAITS = f"book/pages/x is {BELOW}"


@pytest.fixture
def book(desk: Desk) -> Desk:
    """Give a plan of which one part waits for another."""
    desk.write("loopr.yml", LADDER)
    desk.start(PLAN)
    return desk


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["x", "pages/x", "book/pages/x"])
def test_a_loop_to_come_is_told_by_its_place(book: Desk, verb: str, name: str) -> None:
    """Whichever verb asks for it, it says in which file it stands, and what is awaited."""
    said = book(verb, name)
    assert (said.code, said.out) == (3, "")
    first, hint = said.err.splitlines()
    assert first == f"loopr: {WAITS}"
    assert hint == "  hint: it is a loop once book/pages is complete; `loopr why book/pages`"
    assert book(verb, name, "--json").document["error"]["message"] == WAITS


def test_several_names_are_told_one_by_one(book: Desk) -> None:
    """Each of several is told by itself, and what is nowhere declared as that."""
    lines = book("dispatch", "pages/y", "zz").err.splitlines()
    assert "below book/pages, which waits: needs clean" in lines[0]
    assert lines[1] == "there is no loop 'zz' (`loopr ls` lists the loops)"


def test_what_is_cancelled_above_is_told(book: Desk) -> None:
    """Below a cancelled entry nothing is awaited."""
    book("cancel", "pages")
    assert "below book/pages, which is cancelled" in book("why", "x").err


def test_a_loop_that_is_there_goes_before(book: Desk) -> None:
    """A name that means a loop means no other that is to come."""
    assert book("why", "y").out.startswith("book/cover/y ")


def test_agents_are_told_the_same(book: Desk) -> None:
    """Over MCP a loop to come is refused in the same words."""
    text, wrong = answer(TOOLS["why"], Seat(book.folder), {"loop": "x"})
    assert (wrong, WAITS in text) == (True, True)


def test_a_start_counts_what_comes_later(book: Desk) -> None:
    """What is not in the tree of a start yet is counted beside it; an edit counts it anew."""
    text = PLAN.replace("id: book", "id: more").replace("{id: x}, ", "{id: x}, {id: z}, ")
    path = book.write("more.md", text)
    words = "  3 more below more/pages, once that is complete"
    assert words in book("start", "--dry-run", path).err.splitlines()
    assert words in book("start", "--no-run", path).err.splitlines()
    assert "more below" not in book("start", "--no-run", path).err
    path.write_text(text.replace("{id: z}", "{id: z, title: Z}"), "utf-8")
    assert words in book("start", "--no-run", path).err.splitlines()
