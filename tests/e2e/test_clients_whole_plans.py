"""The real clients drive a whole plan to landed commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.nights import MARKS, night
from tests.standin.author import LOOPS, work_of
from tests.standin.desk import KEY

pytestmark = MARKS


@pytest.mark.parametrize("client", ["claude", "codex", "opencode", "gemini", "aider"])
def test_a_whole_plan(tmp_path: Path, client: str) -> None:
    """A real client writes one plan, two specs, four phases and four changes, each in its first try; no key stays."""
    with night(tmp_path, client) as repo:
        repo.plan(client)
        repo.loopr("start", "plan.md")
        repo.is_landed()
        assert repo.granted() == dict.fromkeys(LOOPS, 1)
        assert repo.left_behind() == []
        assert repo.holding(KEY) == []
        assert any("stdout.log" in each for each in repo.holding(work_of(LOOPS[-1]))), "what was done is in a log"
