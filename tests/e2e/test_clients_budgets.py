"""What the real clients say they have used, added up and held against a budget."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.nights import MARKS, Night, night
from tests.e2e.repos import outline
from tests.standin.author import LOOPS, TREE

pytestmark = MARKS
ONE_REQUEST = 1_050
MOST_OF_A_LOOP = 2 * ONE_REQUEST  # an edit, and a last word: Claude Code and codex; aider asks once
WHOLE = 2 * ONE_REQUEST + 8 * MOST_OF_A_LOOP


def mixed(repo: Night, tokens: int) -> None:
    """Set a repository up for a plan that three clients share, and that may use so many tokens."""
    agents = {"spec": "aider", "phase": "claude", "code": "codex"}
    types = "".join(f"  {each}: {{agent: {agent}}}\n" for each, agent in agents.items())
    repo.settings(f"agents: {{codex: {{provider: standin}}}}\ntypes:\n{types}")
    allow(repo, tokens)


def allow(repo: Night, tokens: int) -> None:
    """Say in the plan how many tokens it may use."""
    repo.write({"plan.md": outline("specs", list(TREE["demo"]), "Demo", budget=f"{{tokens: {tokens}}}")})


def used(repo: Night) -> int:
    """Return the tokens that all loops have used together."""
    return sum(each["usage"]["tokens"] or 0 for each in repo.loops().values())


def test_a_budget_stops_a_plan_of_mixed_clients(tmp_path: Path) -> None:
    """Work stops within one loop's cost of the budget, with exit 5; a higher one goes on where it stopped."""
    with night(tmp_path, "claude", "codex", "aider") as repo:
        budget = 9_000
        mixed(repo, budget)
        repo.loopr("start", "plan.md", code=5)
        stopped_at = used(repo)
        assert budget <= stopped_at < budget + MOST_OF_A_LOOP
        done = [each for each, status in repo.statuses().items() if status == "complete"]
        allow(repo, 100_000)
        repo.loopr("start", "plan.md")
        repo.is_landed()
        assert repo.granted() == dict.fromkeys(LOOPS[1:], 1)
        assert len(done) < len(LOOPS)
        assert used(repo) == WHOLE
