"""What a request is told that cannot be fulfilled."""

from __future__ import annotations

import errno

import pytest

from loopr.ui.refusals import refusal


@pytest.mark.parametrize(
    ("number", "hint"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "mount it writable"), (errno.EMFILE, "ulimit -n")],
)
def test_what_the_system_refuses_has_a_way_on(number: int, hint: str) -> None:
    """An error of the operating system that nobody foresaw has its place, and says what to do where that is known."""
    said = refusal(OSError(number, "no", "there"))
    assert (said.lines, said.exit_code) == (("there: no",), 78)
    assert hint in said.hint
