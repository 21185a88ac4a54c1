"""From what a person types to the loop that is meant; never a guess between several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.errors import NotFound
from loopr.ui.names import find_id
from tests.ui.scenes import Desk, flat

IDS = [
    "a/x",
    "a/x/b/x",
    "oauth",
    "oauth/tokens",
    "oauth/tokens/store",
    "oauth/tokens/store/code",
    "oauth/endpoints",
    "store",
    "pay",
    "pay/code",
]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("oauth", "oauth"),
        ("/oauth/tokens/", "oauth/tokens"),
        ("store", "store"),
        ("tokens/store", "oauth/tokens/store"),
        ("store/code", "oauth/tokens/store/code"),
        ("pay/c", "pay/code"),
        ("p", "pay"),
        ("oauth/to", "oauth/tokens"),
        ("tokens/st", None),
        ("s", "store"),
        ("oauth/e", "oauth/endpoints"),
        ("endpoints", "oauth/endpoints"),
        ("code", None),
        ("x", None),
        ("o", "oauth"),
        ("oauth/", "oauth"),
        ("ndpoints", None),
        ("endp", "oauth/endpoints"),
        ("tok", "oauth/tokens"),
        ("co", None),
        ("", None),
        ("/", None),
        ("oauth/tokens/stor/code", None),
    ],
)
def test_a_name_means_one_loop_or_none(text: str, wanted: str | None) -> None:
    """An exact id wins, then whole segments from the end, then what begins one loop, or its last segment."""
    if wanted is None:
        with pytest.raises(NotFound):
            find_id(IDS, text)
    else:
        assert find_id(IDS, text) == wanted


def test_several_matches_are_named() -> None:
    """At most five of them, with the number of the others, and what to do."""
    with pytest.raises(NotFound) as found:
        find_id([f"plan/s{n}" for n in range(9)], "plan/s")
    assert str(found.value) == (
        "'plan/s' fits 9 loops: plan/s0, plan/s1, plan/s2, plan/s3, plan/s4 and 4 more (name it with more of its path)"
    )


@pytest.mark.parametrize(("text", "near"), [("oath", "oauth"), ("tokns", "oauth/tokens"), ("oauth/token/store", None)])
def test_a_misspelt_name_gets_a_hint(text: str, near: str | None) -> None:
    """The nearest id is named, also by its last segment; without one, where to find them."""
    with pytest.raises(NotFound) as found:
        find_id(IDS, text)
    assert found.value.hint == f"did you mean {near}?" if near else found.value.hint


@given(st.lists(st.from_regex(r"[a-c]{1,2}(/[a-c]{1,2}){0,2}", fullmatch=True), unique=True, min_size=1), st.data())
def test_an_exact_id_always_means_itself(ids: list[str], data: st.DataObject) -> None:
    """However alike others are, an id that is typed in full is found; anything found is one of them."""
    wanted = data.draw(st.sampled_from(ids))
    assert find_id(ids, wanted) == wanted
    part = data.draw(st.text("abc/", max_size=4))
    try:
        assert find_id(ids, part) in ids
    except NotFound as error:
        assert error.exit_code == 3


@pytest.mark.parametrize("verb", ["tree", "ls", "show", "why", "events", "simulate"])
def test_every_verb_reads_names_alike(desk: Desk, verb: str) -> None:
    """Short names, prefixes, no match and several matches are the same for every verb that takes a loop."""
    desk.start()
    assert desk(verb, "tokens/store").code == 0
    assert desk(verb, "oauth/e").code == 0
    desk.start(flat(["store"]), "p.md")
    several, none = desk(verb, "store"), desk(verb, "endpionts")
    assert (several.code, none.code) == (3, 3)
    assert "'store' fits 2 loops: oauth/tokens/store, p/store" in several.err
    assert "did you mean oauth/endpoints?" in none.err
