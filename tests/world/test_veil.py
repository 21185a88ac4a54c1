"""Keys in what a command has printed: which values are keys, and what is left of a text that has some."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.world.veil import HIDDEN, Veil

KEY = "sk-0123456789"


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "github_token", "MY_SECRET", "PGPASSWORD", "CREDENTIALS", "KEYS"])
def test_a_variable_tells_by_its_name_that_it_holds_a_key(name: str) -> None:
    """Its value is hidden wherever it stands, in text and in bytes."""
    veil = Veil({name: KEY})
    assert veil.over(f"a{KEY}b {KEY}") == "a***b ***"
    assert veil.over_bytes(f"ä{KEY}".encode()) == "ä***".encode()


@pytest.mark.parametrize(
    ("name", "value"), [("PATH_OF_IT", KEY), ("KEYBOARD", KEY), ("A_KEY", "/etc/my/key"), ("A_KEY", "short")]
)
def test_what_is_no_key_stays(name: str, value: str) -> None:
    """Other variables, paths and short words are not hidden."""
    assert Veil({name: value}).over(f"it is {value}") == f"it is {value}"


def test_each_line_of_a_key_is_hidden() -> None:
    """A key of several lines is hidden where one of them stands alone too; the longer one goes first."""
    veil = Veil({"A_KEY": "first line\nsecond line", "B_KEY": "second line and more"})
    assert veil.over("x first line y\nsecond line and more") == "x *** y\n***"


@given(st.integers(0, len(KEY)), st.sampled_from(["", "…"]), st.text(max_size=5))
def test_the_beginning_of_a_key_is_none_at_the_end_of_a_text(cut: int, mark: str, before: str) -> None:
    """Where a text was cut within a key, no more than seven characters of it are left."""
    text = Veil({"A_KEY": KEY}).over(f"{before} {KEY[:cut]}{mark}")
    assert text == f"{before} {KEY[:cut] if cut < 8 else HIDDEN}{mark}"
