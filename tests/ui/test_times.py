"""Instants and durations as people write and read them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.observations import Noticed
from loopr.errors import UserError
from loopr.ui.times import localized, read_duration, read_instant, say_clock, say_duration, say_tokens
from loopr.ui.views import instant
from loopr.wiring import Workspace
from loopr.world.lock import EngineLock, holder
from tests.ui.scenes import NOON, Desk


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-01T12:00:00Z", NOON),
        ("2026-01-01T12:00:00.250Z", NOON + 250),
        ("2026-01-01T13:00:00+01:00", NOON),
        ("2026-01-01 12:00", NOON),
        ("2026-01-01", NOON - 12 * 3_600_000),
        ("+90m", NOON + 90 * 60_000),
        ("-1h30m", NOON - 90 * 60_000),
        ("+0s", NOON),
        ("-5", NOON - 5000),
        ("+250ms", NOON + 250),
    ],
)
def test_an_instant_is_read(text: str, wanted: int) -> None:
    """RFC 3339 with or without a zone (then the local one), or a duration from now."""
    assert read_instant(text, NOON) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "yesterday",
        "12:00",
        "+",
        "+x",
        "++1h",
        "+1s..2s",
        "~5s",
        "2026-13-01",
        "1969-12-31",
        "9999-12-31T23:59:59Z",
        "+99999h",
        "٣",
    ],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    """Anything else is refused with an example, and never crashes."""
    with pytest.raises(UserError) as found:
        read_instant(text, NOON)
    assert found.value.hint


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text whatever leads to another error than a usage error."""
    try:
        assert read_instant(text, NOON) >= 0
    except UserError as error:
        assert error.exit_code == 2


@given(st.integers(1, 253_000_000_000_000))
def test_an_instant_survives_being_written(at: int) -> None:
    """What JSON says of an instant, `--at` reads back to the millisecond."""
    text = instant(at)
    assert text is not None
    if "1971" <= text[:4] < "9999":
        assert read_instant(text, NOON) == at


@pytest.mark.parametrize(("text", "ms"), [("90s", 90_000), ("1h30m", 5_400_000), ("250ms", 250), ("0s", 0)])
def test_a_duration_is_read(text: str, ms: int) -> None:
    """Numbers with their units, one after the other."""
    assert read_duration(text) == ms


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0 s"),
        (999, "0 s"),
        (41_000, "41 s"),
        (60_000, "1 min"),
        (200_000, "3 min 20 s"),
        (3_600_000, "1 h"),
        (7_500_000, "2 h 5 min"),
        (349_200_000, "4 d 1 h"),
    ],
)
def test_a_duration_is_said(ms: int, words: str) -> None:
    """At most two units, the smaller one only if it says something."""
    assert say_duration(ms) == words


def test_a_clock_is_said() -> None:
    """A time of today stands without its date, one of another day with it, of another year with that too."""
    assert say_clock(NOON, NOON) == "12:00:00"
    assert say_clock(NOON, NOON + 86_400_000) == "Jan 1 12:00"
    assert say_clock(NOON - 86_400_000, NOON) == "Dec 31 2025 12:00"
    assert localized("waits until 2026-01-01T12:00:00.250Z: so be it", NOON) == "waits until 12:00:00: so be it"


@pytest.fixture
def abroad(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let it be five hours before UTC here."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("abroad")
def test_a_clock_is_local() -> None:
    """The day and the time are those of where a person is."""
    assert say_clock(NOON, NOON) == "07:00:00"
    assert say_clock(NOON - 8 * 3_600_000, NOON) == "Dec 31 2025 23:00"


def test_what_only_looks_like_an_instant_stays() -> None:
    """A text that quotes no real instant is printed as it is."""
    for text in ("'2026-99-99T00:00:00Z' is no instant", "9999-12-31T23:59:59Z is out of range"):
        assert localized(text, NOON) == text


@pytest.mark.usefixtures("abroad")
def test_an_engine_at_work_is_told_in_local_time(desk: Desk) -> None:
    """People read here since when an engine runs, with the date; documents say it in UTC."""
    desk.start("---\nid: p\nspecs: [{id: a}]\n---\n# P\n")
    lock = Workspace(desk.folder).place.lock
    with EngineLock.acquire(lock, "engine"):
        found = holder(lock)
        assert found is not None
        since = found["since"]
        here = f", since {say_clock(since, NOON)}"
        assert f", since {say_clock(since, int(time.time() * 1000))}" in desk("run").err
        document = desk("run", "--json").document["error"]["message"]
        assert f", since {str(instant(since))[:19]}" in document
        assert here in " ".join(desk("start", "--no-run", desk.folder / "plan.md").err.split())
        told = " ".join(desk("doctor").out.split())  # a long pid wraps the line; it tells of now
        assert re.search(rf", since (\w+ \d+ )?{here[-5:]}", told), told
        checks = desk("doctor", "--json").document["checks"]
        assert any(f", since {instant(since)}" in each["text"] for each in checks)


@pytest.mark.usefixtures("abroad")
def test_a_lock_of_another_git_is_told_in_local_time(desk: Desk) -> None:
    """Since when a lock file is there is remembered in UTC, and told as it is here."""
    words = "is held by another git (there since 2026-01-01T11:00:00Z): loopr waits for it"
    desk.start("---\nid: p\nspecs: [{id: a}]\n---\n# P\n")
    desk.see(Noticed("x.lock", words))
    assert "(there since 06:00:00)" in desk("status").out
    assert words in desk("status", "--json").document["problems"][0]["text"]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [(0, "0"), (950, "950"), (1000, "1k"), (12_345, "12.3k"), (999_499, "999k"), (999_500, "1M"), (3_400_000, "3.4M")],
)
def test_tokens_are_said(tokens: int, words: str) -> None:
    """Three digits at most, and never a thousand thousands."""
    assert say_tokens(tokens) == words


def test_a_bad_time_is_a_usage_error(desk: Desk) -> None:
    """Every reading verb refuses an instant that is none, and says how one is written."""
    for verb in ("tree", "ls", "status", "next"):
        answer = desk(verb, "--at", "soon")
        assert (answer.code, answer.out) == (2, "")
        assert "+90m" in answer.err
