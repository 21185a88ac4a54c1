"""A name before a command in front matter: what the refusal says to write is read as that command."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core.entries import Artifact
from loopr.core.policy import TypePolicy
from loopr.errors import PlanError
from loopr.world.artifacts import parse_artifact

TYPES = {"plan": TypePolicy("plan", "task"), "task": TypePolicy("task")}


def read(entry: str) -> Artifact:
    """Read a plan with one entry."""
    text = f"---\nid: p\ntasks:\n  - {entry}\n---\n# P\n"
    return parse_artifact(text.encode(), "p.md", type_name="plan", types=TYPES, fallback_id="p")


def escaped(text: str) -> str:
    """Write a text with each sign as YAML may spell it."""
    return '"' + "".join(f"\\U{ord(each):08x}" for each in text) + '"'


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40))
def test_the_hint_is_a_command_as_it_was_written(words: str) -> None:
    """Whatever signs a command has, the entry in the hint is read as an id and that command."""
    command = f"make x{words}".strip()
    with pytest.raises(PlanError) as caught:
        read(f"lint: {escaped(command)}")
    (problem,) = caught.value.problems
    found = re.match(r"write `- (?P<entry>.*)`$", problem.hint)
    assert found, problem.hint
    (entry,) = read(found["entry"]).entries
    assert (entry.id, entry.run) == ("lint", command)


def test_a_command_too_long_for_a_hint() -> None:
    """The hint has dots for it, and stays a line that can be read."""
    with pytest.raises(PlanError, match=r"write `- \{id: lint, run: \.\.\.\}`"):
        read(f"lint: make {'x' * 500}")
