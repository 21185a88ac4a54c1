"""Ids, titles and paths: whatever a file says, what comes out is safe."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopr.core.slugs import id_problem, nearest, one_line, pattern_problem, slug

ANY_TEXT = st.text(st.characters(), max_size=200)  # surrogates too
REFUSED = [
    "",
    "../x",
    "a/b",
    ".",
    "..",
    "-x",
    "CON",
    "nul",
    "aux",
    "com1",
    "Lpt9",
    "😀",
    "x" * 300,
    "x" * 64,
    "A",
    "a b",
]


@pytest.mark.parametrize("text", REFUSED)
def test_an_id_that_could_do_harm_is_refused(text: str) -> None:
    """An id that could leave its folder, or that some disk cannot hold, is refused, and its slug is accepted."""
    assert id_problem(text)
    assert id_problem(slug(text)) is None


@pytest.mark.parametrize("text", ["a", "0", "a-b", "a--b", "x" * 63, "console", "com", "com10"])
def test_an_ordinary_id_is_accepted(text: str) -> None:
    """Lower-case letters, digits and hyphens up to 63 characters are an id."""
    assert id_problem(text) is None


@given(ANY_TEXT)
@example("con")
@example("COM1")
@example("-" * 100)
@example("ß" * 63)
@example("\ud800")
def test_a_slug_is_always_an_id(text: str) -> None:
    """Every text has a slug, the slug is an id, and the slug of a slug is itself."""
    assert id_problem(slug(text)) is None
    assert slug(slug(text)) == slug(text)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Add OAuth", "add-oauth"),
        ("Token storage!", "token-storage"),
        ("  Café  au lait ", "cafe-au-lait"),
        ("v1.2", "v1-2"),
        ("Größe der Tür", "grosse-der-tur"),
        ("Façade", "facade"),
        ("nai\u0308ve", "naive"),
    ],
)
def test_an_ordinary_title_needs_no_hash(title: str, expected: str) -> None:
    """Case, spaces, punctuation and accents go without leaving a trace."""
    assert slug(title) == expected


@pytest.mark.parametrize(("one", "other"), [("日本", "中国"), ("go 😀", "go 🚀"), ("x" * 70, "x" * 71)])
def test_odd_titles_stay_apart(one: str, other: str) -> None:
    """Titles that differ only in what an id cannot hold get different ids."""
    assert slug(one) != slug(other)


@given(ANY_TEXT)
@example("\x1b\x1b[31m[31mred")
@example("a\u202eb\u2066c")
@example("\x1b]0;title\x07x")
@example("a\r\nb\u2028c\x85d")
def test_a_title_is_one_safe_line(text: str) -> None:
    """No control, escape or direction-changing character and no line break survives in a title."""
    line = one_line(text)
    assert not any(unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"} for each in line)
    assert not set(line) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert one_line(line) == line


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b]0;owned\x07red",
        "\x1b]8;;http://x\x1b\\red\x1b]8;;\x1b\\",
        "\x9b31mred",
        "\x1bPq#0\x1b\\red",
    ],
)
def test_a_terminal_escape_goes_as_a_whole(text: str) -> None:
    """Nothing of a colour, a window title or a link is left behind as text."""
    assert one_line(text) == "red"


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=60))
@example("../x")
@example("a/../../b")
@example("a\\..\\b")
@example("C:/x")
def test_a_pattern_stays_inside(pattern: str) -> None:
    """A path pattern that is accepted is relative and never climbs."""
    if pattern_problem(pattern) is None:
        assert not pattern.startswith(("/", "\\", "~"))
        assert ".." not in pattern.replace("\\", "/").split("/")


def test_the_nearest_word() -> None:
    """A slip of one letter finds its word, nonsense finds none."""
    assert nearest("need", ["needs", "files"]) == "needs"
    assert nearest("zzzz", ["needs", "files"]) is None
