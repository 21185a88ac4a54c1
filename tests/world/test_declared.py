"""What a declared loop's artifact is taken to say is what reading its text gives."""

from __future__ import annotations

import pytest

from loopr.core.entries import Entry
from loopr.core.policy import Policy
from loopr.core.rendering import declared_artifact
from loopr.world.artifacts import parse_artifact

LEAF = Entry("store", "Store: it", "Body\n\n## Tasks\n\nnone yet", files=("src/**",), budget=Policy().budget)
CASES = {
    "nested": (
        "spec",
        Entry("tokens", "Tokens", "Some body", children=(LEAF, Entry("more", "More", needs=("store",)))),
    ),
    "implied": ("phase", Entry("store", "Store", "Make the store.\n\n- not an outline")),
    "leaf": ("code", Entry("code", "Code")),
}


@pytest.mark.parametrize("case", CASES)
def test_a_declared_artifact_need_not_be_read_back(case: str) -> None:
    """Title, project, entries and whether it declares are the same by construction and by reading."""
    type_name, entry = CASES[case]
    text, made = declared_artifact(entry, type_name, Policy().types, project="api")
    read = parse_artifact(text.encode(), "x.md", type_name=type_name, types=Policy().types, fallback_id=entry.id)
    assert (made.id, made.title, made.project, made.entries, made.declares) == (
        (read.id, read.title, read.project, read.entries, read.declares)
    )
