"""The list of loops: one a line, in tree order, narrowed down by what a person asks for."""

from __future__ import annotations

import pytest

from loopr.core import wishes
from tests.ui.scenes import OAUTH, Desk, flat
from tests.ui.terminals import on_terminal

IDS = [
    "oauth",
    "oauth/tokens",
    "oauth/tokens/store",
    "oauth/tokens/store/code",
    "oauth/tokens/refresh",
    "oauth/endpoints",
]


def ids(desk: Desk, *options: str) -> list[str]:
    """Return the ids in a list."""
    return [line.split()[0] for line in desk.lines("ls", *options)]


def test_every_loop_has_a_line(desk: Desk) -> None:
    """The list is the tree from above, with full ids, types and states."""
    desk.start()
    assert ids(desk) == IDS
    assert desk.lines("ls", "endpoints") == ["oauth/endpoints  spec  waiting  needs tokens (0 of 2 done)"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("--status", "pending"), IDS[3:]),
        (("--status", "pending", "--status", "complete"), IDS),
        (("--status", "waiting"), IDS[3:]),
        (("--status", "pending,complete"), IDS),
        (("--status", "0 of 2 done, done", "--type", "phase,plan"), [IDS[0], IDS[2]]),
        (("--type", "spec,plan", "--project", "default,default"), [IDS[0], IDS[1], IDS[5]]),
        (("--status", "open"), IDS[:3]),
        (("--status", "0 of 2 done", "--type", "phase"), [IDS[2]]),
        (("--status", "done"), []),
        (("--type", "spec"), [IDS[1], IDS[5]]),
        (("--type", "spec", "--status", "pending"), [IDS[5]]),
        (("--project", "default"), IDS),
        (("tokens",), IDS[1:5]),
        (("--ready",), []),
    ],
)
def test_a_list_is_narrowed_down(desk: Desk, options: tuple[str, ...], wanted: list[str]) -> None:
    """Filters of one kind add up, filters of several kinds all have to hold."""
    desk.start()
    assert ids(desk, *options) == wanted


def test_ready_is_what_next_would_start(shop: Desk) -> None:
    """A loop is listed as ready exactly if no gate of it is closed."""
    shop.start()
    shop.start(flat(["a", "b"]), "p.md")
    shop.wish(wishes.pause, "p/b", "ada", "")
    ready = ids(shop, "--ready")
    assert ready == ["oauth/tokens/store", "p/a"]
    assert sorted(ready) == sorted(each["id"] for each in shop("next", "--json").document["grants"])


def test_undeclared_loops_are_listed_on_demand(desk: Desk) -> None:
    """A loop that is no longer declared is in no list, unless that status is asked for."""
    desk.start()
    desk.start(OAUTH.replace("  - id: endpoints\n    needs: [tokens]\n", ""))
    assert "oauth/endpoints" not in ids(desk)
    assert ids(desk, "--status", "invalidated") == ["oauth/endpoints"]


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("--type", "sepc"),
        ("--project", "default,nobody's"),
        ("--status", "wating"),
        ("--status", "parked,wating"),
    ],
)
def test_a_filter_that_can_match_nothing_is_refused(desk: Desk, option: str, word: str) -> None:
    """A misspelt type, project or status is an error that lists the known ones, and not an empty list."""
    desk.start()
    answer = desk("ls", option, word)
    assert (answer.code, answer.out) == (2, "")
    assert {"--type": "phase", "--project": "default", "--status": "pending"}[option] in answer.err


def test_an_empty_list_says_so(desk: Desk) -> None:
    """Nothing to list is no failure: no data, and a note."""
    empty = desk("ls")
    assert (empty.code, empty.out) == (0, "")
    assert "nothing is planned here yet" in empty.err
    desk.start()
    assert "no loop is like that" in desk("ls", "--status", "parked").err


def test_a_long_id_leaves_room_for_the_rest(desk: Desk) -> None:
    """On a terminal no line is broader than it; a row with a long id stands out, its last words are below it."""
    long = "an-unknown-country-in-tax-gives-a-clear-error"
    desk.start(f"---\nid: shop-things-to-do\nspecs: [{{id: {long}}}, {{id: b, needs: [{long}]}}]\n---\n")
    said = on_terminal(desk.folder, "ls", TERM="dumb", NO_COLOR="1").decode()
    lines = said.replace("\r\n", "\n").splitlines()
    assert max(map(len, lines)) <= 80, lines
    (at,) = (place for place, line in enumerate(lines) if long in line)
    assert lines[at + 1].startswith("    ")
    assert lines[at + 2].startswith("shop-things-to-do/b   ") and f"needs {long[:10]}" in lines[at + 2]
