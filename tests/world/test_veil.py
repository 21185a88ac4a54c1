"""Keys in what a command has printed: which values are keys, and what is left of a text that has some."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.world.veil import HIDDEN, Veil, names_key

KEY = "sk-0123456789"
NAMES = """
OPENAI_API_KEY github_token MY_SECRET PGPASSWORD CREDENTIALS KEYS GH_PAT API_KEY_V2 APIKEY MYTOKEN AUTH
SMTP_PASS TOKEN2 X_AUTH_Y AWS_SECRET_ACCESS_KEY KEY1
"""
OTHERS = "PATH_OF_IT KEYBOARD PATH AUTHOR GIT_AUTHOR_NAME PASSENGER COMPAT MONKEYS_ARE TOKENIZER"


@pytest.mark.parametrize("name", NAMES.split())
def test_a_variable_tells_by_its_name_that_it_holds_a_key(name: str) -> None:
    """Its value is hidden wherever it stands, in text and in bytes."""
    veil = Veil({name: KEY})
    assert veil.over(f"a{KEY}b {KEY}") == "a***b ***"
    assert veil.over_bytes(f"ä{KEY}".encode()) == "ä***".encode()


@pytest.mark.parametrize("name", OTHERS.split())
def test_other_names_tell_of_no_key(name: str) -> None:
    """A name in which such a word is only a part of another is no key's."""
    assert not names_key(name)
    assert Veil({name: KEY}).over(f"it is {KEY}") == f"it is {KEY}"


@pytest.mark.parametrize("value", ["/etc/my/key", "~/my/key/file", "short", "production", "20000000"])
def test_what_is_no_key_stays(value: str) -> None:
    """Paths, short values, plain words and numbers are not hidden."""
    assert Veil({"A_KEY": value}).over(f"it is {value}") == f"it is {value}"


def test_the_password_in_an_address_is_hidden() -> None:
    """It is hidden in the address and alone, also as it is without its escapes; a short one in the address only."""
    veil = Veil({"DATABASE_URL": "postgres://me:p%40ss-w0rd@db/x", "CACHE": "redis://:abc@h"})
    said = veil.over("postgres://me:p%40ss-w0rd@db/x, with p@ss-w0rd and redis://:abc@h abc")
    assert said == "postgres://me:***@db/x, with *** and redis://:***@h abc"


def test_a_key_in_base64_is_hidden() -> None:
    """The usual way to send a key hides nothing."""
    coded = base64.b64encode(KEY.encode()).decode()
    assert KEY not in Veil({"A_KEY": KEY}).over(coded)
    assert coded[:16] not in Veil({"A_KEY": KEY}).over(f"Basic {coded}")


def test_what_everybody_may_read_stays() -> None:
    """A value that the base commit has already is nobody's leak; it is asked for only where it was printed."""
    asked: list[str] = []

    def is_public(key: str) -> bool:
        asked.append(key)
        return key == "postgres-123"

    veil = Veil({"DB_PASSWORD": "postgres-123", "A_KEY": KEY, "B_KEY": "never-printed"}, is_public=is_public)
    assert veil.over(f"postgres-123 {KEY}") == "postgres-123 ***"
    assert veil.over_bytes(b"postgres-123") == b"postgres-123"
    assert sorted(asked) == ["postgres-123", KEY]


def test_each_line_of_a_key_is_hidden() -> None:
    """A key of several lines is hidden where one of them stands alone too; the longer one goes first."""
    veil = Veil({"A_KEY": "first line\nsecond line", "B_KEY": "second line and more"})
    assert veil.over("x first line y\nsecond line and more") == "x *** y\n***"


@given(st.integers(0, len(KEY)), st.sampled_from(["", "…"]), st.text(max_size=5))
def test_the_beginning_of_a_key_is_none_at_the_end_of_a_text(cut: int, mark: str, before: str) -> None:
    """Where a text was cut within a key, no more than seven characters of it are left."""
    text = Veil({"A_KEY": KEY}).over(f"{before} {KEY[:cut]}{mark}")
    assert text == f"{before} {KEY[:cut] if cut < 8 else HIDDEN}{mark}"
