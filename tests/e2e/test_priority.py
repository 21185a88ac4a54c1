"""Which loop goes first, by the priorities that plans and their entries have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = """\
---
id: book
priority: 2
pages:
  - {id: cover, priority: -5}
  - {id: index}
  - {id: errata, priority: 100}
---
"""
NOTE = "---\nid: note\npages: [{id: card}]\n---\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository in which one loop works at a time, and says its name."""
    with opened(tmp_path) as found:
        made = found.found()
        run = made.script("page", "say $LOOPR_LOOP")
        made.settings(f"types:\n  plan: {{child: page}}\n  page: {{run: '{run}'}}\nconcurrency: {{max_loops: 1}}\n")
        yield made


def test_the_order_is_that_of_the_priorities(repo: Repo) -> None:
    """Entries go in the order that `why` explains; where one says no priority its plan's counts."""
    repo.write({"book.md": PLAN, "note.md": NOTE})
    repo.loopr("start", "--no-run", "note.md", "book.md")
    words = repo.loopr("why", "book/errata").out
    assert " + priority 100; the highest goes first" in words
    assert "it may wait for ever" not in words
    assert " + priority 2; the highest goes first" in repo.loopr("why", "book/index").out
    assert "it may wait for ever" in " ".join(repo.loopr("why", "book/cover").out.split())
    assert "priority" not in repo.loopr("why", "note/card").out
    score = repo.loopr("why", "book/cover", "--json").document["score"]
    assert (score["priority"], score["total"]) == (-5, sum(score[key] for key in ("base", "age", "depth")) - 5)
    repo.loopr("run")
    assert repo.diary() == ["book/errata", "book/index", "note/card", "book/cover"]


def test_another_priority_makes_no_other_work(repo: Repo) -> None:
    """A plan whose priorities have changed is reordered, and nothing of it is done again."""
    repo.write({"book.md": PLAN})
    repo.loopr("start", "book.md")
    done = repo.diary()
    repo.write({"book.md": PLAN.replace("priority: -5", "priority: 50").replace("priority: 2\n", "")})
    repo.loopr("start", "book.md")
    assert repo.diary() == done
    assert repo.loopr("why", "book/cover", "--json").document["score"]["priority"] == 50


def test_a_wrong_priority_is_told_with_its_place(repo: Repo) -> None:
    """What is no whole number in range is refused, with line and column, and nothing is stored."""
    repo.write({"book.md": PLAN.replace("100", "1001")})
    refused = repo.loopr("start", "book.md", code=2)
    assert "book.md:7:28 priority: must be a whole number from -1000 to 1000" in refused.err
    assert repo.statuses() == {}
