"""What is left to an engine is told by every view while none runs, and by none where nothing would go on."""

from __future__ import annotations

import json

import pytest

from loopr.world.lock import EngineLock
from tests.ui.scenes import COMMANDS, Desk, flat

WORDS = "no engine runs: `loopr run` goes on"
VIEWS = ("tree", "status", "why p/a")
APPROVED = COMMANDS.replace("run: make spec", "run: make spec, approve: true")


def says(shop: Desk) -> dict[str, bool]:
    """Say which views tell it."""
    return {view: any(WORDS in line for line in shop.lines(*view.split())) for view in VIEWS}


@pytest.fixture
def judged(shop: Desk) -> Desk:
    """Give a loop that waits for a person, and nothing else."""
    shop.write("loopr.yml", APPROVED)
    shop.start(flat(["a"]))
    shop.choose()
    shop.run("p/a")
    shop.end("p/a")
    shop.judge("p/a")
    return shop


def test_what_is_started_for_an_engine(shop: Desk) -> None:
    """A plan that was started for an engine waits for one, as every view says."""
    shop.start(flat(["a"]))
    assert set(says(shop).values()) == {True}
    assert WORDS in shop("status", "--json").document["warnings"]


def test_what_waits_for_a_person_is_left_to_nobody(judged: Desk) -> None:
    """A loop that waits for a person is not left to an engine; after the word it is, and the answer says so."""
    assert set(says(judged).values()) == {False}
    answer = judged("approve", "p/a")
    assert answer.err == f"{WORDS}\n"
    assert set(says(judged).values()) == {True}


def test_programs_are_told(judged: Desk) -> None:
    """The document of an answer has it too, and null where nothing goes on."""
    assert judged("pause", "p/a", "--json").document["unattended"] is None
    assert json.loads(judged("approve", "p/a", "--json").out)["unattended"] == WORDS


def test_an_engine_that_runs_is_enough(shop: Desk) -> None:
    """Where an engine serves the workspace nothing is said."""
    shop.start(flat(["a"]))
    with EngineLock.acquire(shop.folder / ".git/loopr/engine.lock", "engine"):
        assert set(says(shop).values()) == {False}
