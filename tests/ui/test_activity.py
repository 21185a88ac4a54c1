"""The line of activity beside a loop at work begins with its news."""

from __future__ import annotations

import pytest

from loopr.core.model import Loop
from loopr.ui.preparing import NO_SETUPS

TREE = "/some/ledger/worktrees/kit.one.g1"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"Edit: {TREE}/src/a.py", "Edit: src/a.py"),
        (f"Bash: cat '{TREE}/a b' {TREE}/c", "Bash: cat 'a b' c"),
        ("Edit: /some/ledger/src/a.py", "Edit: /some/ledger/src/a.py"),
        ('{"type": "assistant", "message"', ""),
        ('{"name": "a"}', '{"name": "a"}'),
    ],
)
def test_files_are_named_as_in_the_worktree(said: str, shown: str) -> None:
    """The folder of a worktree is the same in every line, and cuts off all else at 80 columns."""
    loop = Loop("kit/one", "code", "One", "kit", place=0, depth=1, project="")
    assert loop.name == "kit.one.g1"
    assert NO_SETUPS.tail(loop, lambda _: said) == shown
