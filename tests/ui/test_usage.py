"""What was used, with what was measured and what was estimated side by side."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from loopr.core import observations as o
from loopr.core.model import Failure, Usage
from loopr.wiring import Workspace
from loopr.world.journal import USAGE_KEYS
from tests.ui.scenes import COMMANDS, Desk, flat

DAY = 86_400_000
PRICED = COMMANDS.replace("run: make spec", "run: make spec, lane: hal") + "lanes: {hal: {usd_per_mtok: 10}}\n"


def used(shop: Desk, loop: str, *usage: int | None, rough: bool = False) -> None:
    """Let a leased loop make an attempt that uses tokens, money and time, and that is refused."""
    tokens, micro_usd, ms = usage
    shop.run(loop)
    shop.see(o.AttemptUsed(loop, shop.loop(loop).attempt, Usage(tokens, micro_usd, ms or 0, rough)))
    shop.end(loop, Failure.REFUSED, "no")


@pytest.fixture
def spender(shop: Desk) -> Desk:
    """Give a workspace in which attempts on two days have used something, reported or not."""
    shop.write("loopr.yml", PRICED)
    shop.start(flat(["a", "b", "c"]))
    shop.choose()
    used(shop, "p/a", 1000, 500_000, 60_000, rough=True)
    used(shop, "p/b", None, None, 10_000)
    shop.clock.at += DAY
    used(shop, "p/c", 250, 250_000, 30_000)
    return shop


def test_a_table(spender: Desk) -> None:
    """Measured and estimated have columns of their own, and several lines a sum below them."""
    assert spender.lines("usage", "--by", "loop") == [
        "loop    measured  tokens  money  estimated  est. tokens  est. money        time",
        "p/a                                      1           1k       $0.50       1 min",
        "p/b            1       0                                                   10 s",
        "p/c            1     250  $0.25                                            30 s",
        "in all         2     250  $0.25          1           1k       $0.50  1 min 40 s",
    ]


def test_as_json(spender: Desk) -> None:
    """As JSON each group has both sides, whose attempts and time come to the whole; nothing is added across them."""
    body = spender("usage", "--json").document
    assert (body["by"], body["since"]) == ("project", None)
    (row,) = body["rows"]
    assert row == {
        "key": "default",
        "attempts": 3,
        "measured": {"attempts": 2, "tokens": 250, "usd": 0.25, "seconds": 40.0},
        "estimated": {"attempts": 1, "tokens": 1000, "usd": 0.5, "seconds": 60.0},
        "seconds": 100.0,
    }
    assert body["total"] == {key: value for key, value in row.items() if key != "key"}


def test_money_that_nobody_knows_is_not_zero(shop: Desk) -> None:
    """Without a report and without a price there is no money, rather than none spent."""
    shop.start(flat(["a"]))
    shop.choose()
    used(shop, "p/a", 1000, None, 1000)
    body = shop("usage", "--json").document
    assert body["total"]["measured"]["usd"] is None
    assert "$" not in shop("usage").out


@pytest.mark.parametrize(
    ("since", "loops"),
    [("1h", ["p/c"]), ("2d", ["p/a", "p/b", "p/c"]), ("-1h", ["p/c"]), ("2026-01-02", ["p/c"]), ("+1h", [])],
)
def test_since(spender: Desk, since: str, loops: list[str]) -> None:
    """Only attempts that ended since an instant, or in the last while, count."""
    rows = spender("usage", "--by", "loop", "--since", since, "--json").document["rows"]
    assert [row["key"] for row in rows] == loops


def test_at_an_earlier_instant(spender: Desk) -> None:
    """--at leaves out what came later, and days are counted back from there."""
    answer = spender("usage", "--by", "loop", "--at", "2026-01-01T13:00:00Z", "--since", "2h", "--json")
    assert [row["key"] for row in answer.document["rows"]] == ["p/a", "p/b"]


def test_a_time_that_is_none(spender: Desk) -> None:
    """What is no time is refused with both ways to write one."""
    answer = spender("usage", "--since", "yesterday")
    assert (answer.code, "7d" in answer.err) == (2, True)


@pytest.mark.parametrize("by", USAGE_KEYS)
def test_each_key_groups_as_the_lines_do(spender: Desk, by: str) -> None:
    """Whatever is grouped by, each side of a group is the sum of the attempts that belong there."""
    with Workspace(spender.folder).journal() as journal:
        lines = journal.spent_since(0)
    wanted: Counter[tuple[str, str, str]] = Counter()
    for each in lines:
        key = f"{datetime.fromtimestamp(each.at / 1000, UTC):%Y-%m-%d}" if by == "day" else getattr(each, by)
        side = "estimated" if each.estimated else "measured"
        wanted.update({(key, side, "attempts"): 1, (key, side, "tokens"): each.tokens or 0})
    rows = spender("usage", "--by", by, "--json").document["rows"]
    found = {
        (row["key"], side, what): row[side][what]
        for row in rows
        for side in ("measured", "estimated")
        for what in ("attempts", "tokens")
        if row[side]["attempts"]
    }
    assert found == dict(wanted)
    assert [row["key"] for row in rows] == sorted(row["key"] for row in rows)


def test_before_anything_has_ended(desk: Desk) -> None:
    """Without a single attempt there is an answer all the same."""
    assert desk("usage") == (0, "", "no try has ended yet\n")
    assert desk("usage", "--json").document["rows"] == []
