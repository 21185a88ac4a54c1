"""A task that goes by the times of files, as make does, does not take an old product for a new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

RULES = "z/index: a/pages\n\tcp a/pages z/index\nb/feed: z/index\n\tcp z/index b/feed\n"
PLAN = """---
id: demo
tasks:
  - {id: pages, run: echo new > a/pages}
  - {id: index, run: make z/index, needs: [pages]}
  - {id: other, run: echo x > other; sleep 0.2, needs: [pages]}
  - {id: feed, run: make b/feed, needs: [index]}
---
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with sources and products, in the order in which git writes them."""
    with opened(tmp_path) as found:
        yield found.found({"a/pages": "old\n", "z/index": "old\n", "b/feed": "old\n", "Makefile": RULES})


@pytest.mark.parametrize("pool", [0, 4])
def test_what_has_landed_is_newer(repo: Repo, pool: int) -> None:
    """Each product is made again after its source has landed, in a worktree that is new or of the pool."""
    repo.settings("types: {plan: {child: code}, code: {check: none}}\n", worktrees=f", pool: {pool}")
    repo.write({"plan.md": PLAN})
    repo.loopr("start", "plan.md")
    assert {repo.on_branch("demo", each) for each in ("a/pages", "z/index", "b/feed")} == {"new"}
