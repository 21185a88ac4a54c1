"""The surroundings of a person: a clock that stands still, and a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.calls import repository
from tests.ui.scenes import COMMANDS, Clock, Desk


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Give a clock that only the test moves."""
    found = Clock()
    monkeypatch.setattr("loopr.wiring.wall_clock", found)
    monkeypatch.setattr("loopr.ui.cli.frame.wall_clock", found)
    monkeypatch.setenv("USER", "ada")
    return found


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Desk:
    """Give a repository in which no type of loop has a command."""
    return Desk(repository(tmp_path / "repo"), clock)


@pytest.fixture
def shop(tmp_path: Path, clock: Clock) -> Desk:
    """Give a repository in which specs, phases and code have a command."""
    found = Desk(repository(tmp_path / "repo"), clock)
    found.write("loopr.yml", COMMANDS)
    return found
