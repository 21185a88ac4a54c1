"""The journal as people and programs read it."""

from __future__ import annotations

import json
import re

from loopr.core.codec import EVENTS
from loopr.ui.story import _PHRASES, sentence
from tests.ui.scenes import Desk


def test_one_event_a_line(desk: Desk) -> None:
    """Each event has its number, its instant, the loop it is about, and a sentence."""
    desk.start()
    assert desk.lines("events", "--after", "4") == [
        "     5  2026-01-01T12:00:00.000Z  oauth/tokens: declared by its parent's artifact",
        "     6  2026-01-01T12:00:00.000Z  oauth/endpoints: declared by its parent's artifact",
        "     7  2026-01-01T12:00:00.000Z  oauth/tokens: complete by declaration",
        "     8  2026-01-01T12:00:00.000Z  oauth/tokens/store: declared by its parent's artifact",
        "     9  2026-01-01T12:00:00.000Z  oauth/tokens/refresh: declared by its parent's artifact",
        "    10  2026-01-01T12:00:00.000Z  oauth/tokens/store: complete by declaration",
        "    11  2026-01-01T12:00:00.000Z  oauth/tokens/store/code: declared by its parent's artifact",
    ]


def test_json_lines(desk: Desk) -> None:
    """As JSON each line is a document of its own with exactly the same keys, numbered without a gap."""
    desk.start()
    rows = [json.loads(line) for line in desk.lines("events", "--json")]
    assert {tuple(row) for row in rows} == {("seq", "at", "event", "loop", "actor", "data")}
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["actor"] for row in rows} == {"ada"}
    assert {row["event"] for row in rows} <= set(EVENTS)


def test_what_is_asked_for(desk: Desk) -> None:
    """Events of one loop, of some kinds, after a number, or the last so many; together all of them hold."""
    desk.start()

    def numbers(*options: str) -> list[int]:
        return [int(line.split()[0]) for line in desk.lines("events", *options)]

    assert numbers("store") == [8, 10]
    assert numbers("--type", "settled") == [7, 10]
    assert numbers("--type", "settled", "--type", "declared", "--after", "9") == [10, 11]
    assert numbers("-n", "2") == [10, 11]
    assert numbers("store", "--type", "declared", "-n", "1") == [8]
    assert numbers("--after", "11") == []


def test_before_anything_is_planned(desk: Desk) -> None:
    """A workspace without a journal has no events, which is no failure."""
    assert desk("events")[:2] == (0, "")
    assert desk("events", "--json")[:2] == (0, "")


def test_a_misspelt_event(desk: Desk) -> None:
    """A kind of event that does not exist is refused, not answered with nothing."""
    desk.start()
    answer = desk("events", "--type", "landde")
    assert answer.code == 2
    assert "'landde'" in answer.err


def test_every_event_has_a_sentence() -> None:
    """No event is told by its bare name, and none shows a place in its sentence that was not filled."""
    for name in EVENTS:
        told = sentence(name, {})
        assert name in _PHRASES
        assert not re.search(r"[{}]", told)
