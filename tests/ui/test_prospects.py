"""How far convoys and parents have come, the longest way still to go, and what is stranded."""

from __future__ import annotations

from typing import Any

import pytest

from loopr.core import wishes
from loopr.core.model import Failure
from tests.ui.calls import loopr
from tests.ui.scenes import COMMANDS, Desk, flat

CHAIN = """\
---
id: p
specs:
  - {id: a}
  - {id: b, needs: [a]}
  - {id: c, needs: [b]}
  - {id: d}
---
# P
"""


@pytest.fixture
def chain(shop: Desk) -> Desk:
    """Give a plan with three specs in a row and one beside them, which a convoy has two of."""
    shop.write("loopr.yml", COMMANDS.replace("run: make spec", "run: make spec, approve: true"))
    shop.start(CHAIN)
    shop.wish(wishes.form_convoy, "c", ("p/b", "p/d"))
    return shop


def progress(desk: Desk, *words: str) -> dict[str, Any]:
    """Return how far something has come."""
    body = desk(*words, "--json").document
    found: dict[str, Any] = body.get("progress") or body["convoys"][0]["progress"]
    return found


def convoy(desk: Desk) -> dict[str, Any]:
    """Return how far the convoy has come."""
    (row,) = desk("status", "--json").document["plans"]
    assert row | {"id": "p"} == row
    found: dict[str, Any] = loopr("convoy", "list", "-C", desk.folder, "--json").document["convoys"][0]["progress"]
    return found


def test_the_longest_way(chain: Desk) -> None:
    """The way goes over what is needed, also where that is no member, and leaves out what is complete."""
    assert progress(chain, "show", "p")["way"] == ["p/a", "p/b", "p/c"]
    assert convoy(chain)["way"] == ["p/a", "p/b"]
    chain.choose()
    chain.land("p/d")
    assert convoy(chain) | {"total": 2, "at_work": 0, "waits": 2} == convoy(chain)


def test_counts(chain: Desk) -> None:
    """What is complete, at work, waiting and failed adds up to the whole."""
    chain.choose()
    chain.run("p/a")
    chain.run("p/d")
    chain.end("p/d", Failure.CONFIG, "no make")
    found = progress(chain, "show", "p")
    keys = ("total", "complete", "at_work", "waits", "failed", "stranded")
    assert [found[each] for each in keys] == [5, 1, 1, 2, 1, False]
    lines = chain.lines("show", "p")
    assert "ahead    the longest way: 3 loops" in lines


def test_stranded(chain: Desk) -> None:
    """A convoy is stranded once nothing that it waits for goes on by itself: what it needs counts, members or not."""
    chain.choose()
    chain.run("p/d")
    chain.end("p/d", Failure.CONFIG, "no make")
    assert not convoy(chain)["stranded"]  # p/a is at work, which p/b needs
    chain.run("p/a")
    chain.end("p/a", Failure.CONFIG, "no make")
    assert convoy(chain)["stranded"]
    words = "0 of 2 done: 1 waiting, 1 failed; the longest way: 2 loops; stuck: nothing of it goes on by itself"
    said = " ".join(loopr("convoy", "show", "-C", chain.folder, "@c").out.split("\n\n")[0].split())
    assert words in said
    assert "stands  p is stuck" in chain.lines("status")
    chain("reset", "p/a")
    assert not convoy(chain)["stranded"]


def test_what_is_cancelled_waits_for_nothing(chain: Desk) -> None:
    """A cancelled loop is counted as that, at the top and below; where nothing else is left there is no way to tell."""
    chain("cancel", "p/b", "p/d")
    found = convoy(chain)
    assert [found[each] for each in ("total", "complete", "waits", "cancelled", "way")] == [2, 0, 0, 2, []]
    (said, *_) = loopr("convoy", "show", "-C", chain.folder, "@c").out.split("\n\n")
    words = "0 of 2 done: 2 cancelled; stuck: nothing of it goes on by itself"
    assert words in " ".join(said.split())
    parent = progress(chain, "show", "p")
    assert sum(parent[each] for each in ("complete", "at_work", "waits", "failed", "cancelled")) == parent["total"]
    assert (parent["cancelled"], parent["way"]) == (2, ["p/a"])
    chain("cancel", "p/a", "p/c")
    assert not any("0 loops" in each for each in chain.lines("show", "p"))


def test_what_a_person_moves_is_not_stranded(shop: Desk) -> None:
    """A plan that goes on once a person writes a file, or says yes, is told by that; what is below says so too."""
    shop.write("loopr.yml", COMMANDS.replace("spec: {child: phase, run: make spec}", "spec: {child: phase}"))
    shop.start(flat("a"))
    (row,) = shop("status", "--json").document["plans"]
    assert not row["stranded"]
    assert any(line.split()[:1] == ["waiting"] and "p/a: a person must" in line for line in shop.lines("why", "p"))


def test_what_waits_for_a_yes_is_not_stranded(shop: Desk) -> None:
    """A plan of which all that is left waits for approval is not stranded, and says what it waits for."""
    shop.write("loopr.yml", COMMANDS.replace("make spec}", "make spec, approve: true}"))
    shop.start(flat([*"abcdefg"]))
    assert "  waiting   p/a: `loopr why p/a`" in shop.lines("why", "p")
    assert "            and 2 more: `loopr tree p`" in shop.lines("why", "p")
    for name in shop.choose():
        shop.run(name)
        shop.end(name)
        shop.judge(name)
    assert not shop("status", "--json").document["plans"][0]["stranded"]
    assert "  approval  p/b: `loopr approve p/b` or `loopr reject p/b`" in shop.lines("why", "p")


def test_ready_loops_are_counted(chain: Desk) -> None:
    """`status` counts the loops that no gate holds back, as `ls --ready` lists them."""
    assert chain("status", "--json").document["ready"] == 2 == len(chain.lines("ls", "--ready"))
    assert any(line.split() == ["ready", "2"] for line in chain.lines("status"))


def test_one_of_many_alike_stands_for_all(shop: Desk) -> None:
    """The longest way is found over a loop with needs too, where siblings without any come before it."""
    shop.start(CHAIN.replace("{id: d}", "{id: d}\n  - {id: e}\n  - {id: f, needs: [c, e]}"))
    assert progress(shop, "show", "p")["way"][-4:] == ["p/a", "p/b", "p/c", "p/f"]


def test_a_plan_needs_no_convoy(chain: Desk) -> None:
    """The status tells of every plan, without being asked, what a convoy of all its loops would."""
    (row,) = chain("status", "--json").document["plans"]
    chain.wish(wishes.form_convoy, "all", ("p",))
    convoys = loopr("convoy", "list", "-C", chain.folder, "--json").document["convoys"]
    (same,) = [each["progress"] for each in convoys if each["name"] == "@all"]
    assert row == {"id": "p"} | same
    assert row["total"] == 5 and row["way"]


def test_what_is_not_declared_any_more_is_told(shop: Desk) -> None:
    """A convoy whose other members are done says that it lacks what nobody declares, and so does one without others."""
    shop.start(flat("ab"))
    shop.wish(wishes.form_convoy, "one", ("p/b",))
    shop.wish(wishes.form_convoy, "two", ("p/a", "p/b"))
    shop.start(flat("a"))
    lacks = "1 not declared any more, so it does not land"
    answer = loopr("convoy", "list", "-C", shop.folder)
    assert answer.out.splitlines()[0] == f"@one  0 of 1 done (0 of 0 loops): {lacks}"
    shop.choose()
    shop.run("p/a")
    shop.land("p/a")
    answer = loopr("convoy", "show", "@two", "-C", shop.folder)
    assert answer.out.splitlines()[0] == f"@two  1 of 2 done (1 of 1 loop): {lacks}"
