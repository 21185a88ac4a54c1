"""Names of generations: readable, short enough for any file system, and never shared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopr.core.naming import MAX_NAME_BYTES, generation_name

SEGMENT = st.from_regex(r"[a-z0-9][a-z0-9-]{0,62}", fullmatch=True)
IDS = st.lists(SEGMENT, min_size=1, max_size=8).map("/".join)


def test_a_name_is_the_id_with_dots() -> None:
    """A short id can be read in the name of its branch and folder."""
    assert generation_name("oauth/tokens/store", 1) == "oauth.tokens.store.g1"


@given(IDS, IDS, st.integers(1, 9999), st.integers(1, 9999))
def test_a_name_is_short_and_nobody_elses(one: str, other: str, first: int, second: int) -> None:
    """Every name is a valid ref of at most 200 bytes that ends in its generation; two loops never share one."""
    name = generation_name(one, first)
    assert len(name.encode()) <= MAX_NAME_BYTES
    assert name.endswith(f".g{first}")
    assert ".." not in name
    assert (name == generation_name(other, second)) == ((one, first) == (other, second))


def test_long_ids_that_begin_alike_have_names_of_their_own() -> None:
    """Where ids are cut, the hash tells them apart."""
    long = "/".join(["a" * 63] * 5)
    assert generation_name(long + "/b", 1) != generation_name(long + "/c", 1)
    assert len(generation_name(long + "/b", 1)) == MAX_NAME_BYTES
