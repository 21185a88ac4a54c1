"""Durations and rates: what a person may write, and what is drawn from it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.durations import (
    ALL,
    Spread,
    constant,
    draw,
    happens,
    read_durations,
    read_rate,
    read_spread,
    read_type_durations,
)
from loopr.errors import PlanError, UserError

spans = st.integers(0, 10**9)
draws = st.integers(0, ALL - 1)


@pytest.mark.parametrize(
    ("text", "spread"),
    [
        ("90s", constant(90_000)),
        ("90", constant(90_000)),
        ("1m30s", constant(90_000)),
        ("1.5m", constant(90_000)),
        ("250ms", constant(250)),
        ("0.0005s", constant(1)),
        ("2d", constant(172_800_000)),
        ("0", constant(0)),
        (" 30s .. 1m ", Spread(30_000, 60_000)),
        ("~60s", Spread(60_000, 60_000, tail=True)),
    ],
)
def test_a_duration_is_read(text: str, spread: Spread) -> None:
    """Every form of a duration means what it says."""
    assert read_spread(text) == spread


@pytest.mark.parametrize(
    "text", ["", "s", "-5s", "5 weeks", "1e3", "60s..30s", "~", "~1s..2s", "٣s", "9999d", "1s..", "\x1b[2J"]
)
def test_what_is_no_duration_is_refused_in_one_line(text: str) -> None:
    """A wrong duration is refused with what may be written instead, and never sent raw to a terminal."""
    with pytest.raises(UserError) as caught:
        read_spread(text)
    assert "90s" in caught.value.hint
    assert str(caught.value).isprintable()


@given(spans, spans, draws)
def test_a_draw_stays_between_its_ends(one: int, other: int, drawn: int) -> None:
    """An even spread reaches both ends and never leaves them."""
    spread = Spread(min(one, other), max(one, other))
    assert spread.low <= spread.ms(drawn) <= spread.high
    assert (spread.ms(0), spread.ms(ALL - 1)) == (spread.low, spread.high)


@given(spans, draws, draws)
def test_a_tail_is_longer_the_rarer_the_draw(mean: int, one: int, other: int) -> None:
    """A spread with a tail falls with the draw, and is never negative."""
    spread = Spread(mean, mean, tail=True)
    assert spread.ms(max(one, other)) <= spread.ms(min(one, other))
    assert spread.ms(ALL - 1) >= 0


def test_a_tail_has_its_mean() -> None:
    """Over an even comb of draws a spread with a tail comes to its mean."""
    spread, teeth = Spread(60_000, 60_000, tail=True), 1 << 14
    mean = sum(spread.ms(ALL // teeth * tooth + ALL // teeth // 2) for tooth in range(teeth)) / teeth
    assert mean == pytest.approx(60_000, rel=0.001)
    assert spread.ms(ALL // 1000) > 6 * 60_000


@given(st.integers(0, 20))
def test_a_rate_is_the_part_of_draws_in_which_it_happens(tenths: int) -> None:
    """Something happens in exactly its part of all draws: never at 0, always at 1."""
    rate = Fraction(min(tenths, 10), 10)
    assert happens(rate, 0) == (rate > 0)
    assert happens(rate, ALL - 1) == (rate == 1)
    assert sum(happens(rate, ALL // 1000 * each + ALL // 2000) for each in range(1000)) == 100 * min(tenths, 10)


def test_a_draw_depends_on_everything_it_is_about() -> None:
    """Seed, loop, attempt and question each give another number, and the same four always the same one."""
    questions = [(0, "a", 1, "x"), (1, "a", 1, "x"), (0, "b", 1, "x"), (0, "a", 2, "x"), (0, "a", 1, "y")]
    assert len({draw(*each) for each in questions}) == len(questions)
    assert draw(0, "oauth/tokens", 1, "attempt") == 7_303_653_563_215_615_159


@pytest.mark.parametrize(("text", "rate"), [("0", 0), ("1", 1), ("0.1", Fraction(1, 10)), ("10%", Fraction(1, 10))])
def test_a_rate_is_read(text: str, rate: Fraction) -> None:
    """A rate is a part of one, or percents."""
    assert read_rate(text, "failures") == rate


@pytest.mark.parametrize("text", ["", "2", "101%", "-1", "1/2", "often"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    """A wrong rate names its option."""
    with pytest.raises(UserError, match="failures: "):
        read_rate(text, "failures")


def test_durations_of_types_are_read() -> None:
    """A bare duration is for all types, and later words win."""
    found = read_type_durations(["5m", "code=30s..90s"], ["plan", "code"])
    assert found == {"plan": constant(300_000), "code": Spread(30_000, 90_000)}


def test_an_unknown_type_names_the_nearest() -> None:
    """A misspelt type is refused with the one that was meant."""
    with pytest.raises(UserError) as caught:
        read_type_durations(["cod=5m"], ["plan", "code"])
    assert 'did you mean "code"?' in str(caught.value)


WANTED = {"oauth/tokens": constant(300_000), "oauth": Spread(1000, 2000)}


@pytest.mark.parametrize(
    "text",
    [
        "oauth/tokens,5m\noauth,1s..2s\n",
        '\ufeffloop,duration\r\n\r\n# mine\r\noauth/tokens , 5m\r\n"oauth","1s..2s"',
        '{"oauth/tokens": "5m", "oauth": "1s..2s"}',
        ' {"oauth/tokens": 300, "oauth": "1s..2s"} ',
    ],
)
def test_a_file_of_durations_is_read(text: str) -> None:
    """Lines and JSON say the same, with a heading, comments, quotes, a BOM or CRLF."""
    assert read_durations(text, "times.csv") == WANTED


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("a,1m\na,2m\n", ["times:2:1"]),
        ("a\n../x,5\nb,soon\n", ["times:1:1", "times:2:1", "times:3:1"]),
        ("a,1,2", ["times:1:1"]),
        ('{"a": 1,\n "b": tomorrow}', ["times:2:7"]),
        ('{"a": 1,\n "b": [2], "C": 1}', ["times:2:2", "times:2:12"]),
        ('{"a": true, "b": NaN, "a": 2}', ["times:1:2", "times:1:13"]),
        ("[" * 3, ["times:1:1"]),
        ('{"a":' * 100_000, ["times:1:1"]),
    ],
)
def test_a_wrong_file_is_refused_with_every_place(text: str, places: list[str]) -> None:
    """All that is wrong in a file of durations is said at once, each with its line and what to do."""
    with pytest.raises(PlanError) as caught:
        read_durations(text, "times")
    assert [problem.where for problem in caught.value.problems] == places
    assert all(problem.hint and str(problem).isprintable() for problem in caught.value.problems)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """No file of durations, whatever is in it, ends in anything but durations or a `PlanError`."""
    try:
        found = read_durations(text, "times")
    except PlanError as error:
        assert error.problems
    else:
        assert all(spread.low <= spread.high for spread in found.values())
