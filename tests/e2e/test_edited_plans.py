"""What `start` says of an edited plan while an engine is at work: the same as without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = """\
---
id: demo
budget: {usd: 1}
specs:
  - id: s
    tasks:
      - {id: a}
      - {id: b}
      - {id: c}
---
# Demo
"""
EDITED = PLAN.replace("usd: 1", "usd: 10").replace("{id: b}", "{id: b, body: Other.}").replace("{id: c}", "{id: d}")
TOLD = [
    "demo: 1 new, 1 gone, 1 reworded; budget 1 -> 10 USD",
    "  demo/s/c is gone, demo/s/d is new; `id: c` in its entry keeps its work",
    "  reworded: demo/s/b",
]
OTHER = "---\nid: other\nspecs: [{id: s, tasks: [{id: a, run: RUN}]}]\n---\n# Other\n"
LADDER = "types:\n  plan: {child: spec}\n  spec: {child: task}\n  task: {check: none}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository in which tasks wait for a person, and one of another plan for a gate."""
    with opened(tmp_path) as found:
        repo = found.found()
        run = repo.script("code", "tell here; wait_at gate")
        repo.settings(LADDER)
        repo.gate("gate")
        repo.write({"plan.md": PLAN, "other.md": OTHER.replace("RUN", repr(run))})
        yield repo


@pytest.mark.parametrize("words", [["--no-run"], ["--no-run", "--json"], []])
@pytest.mark.parametrize("engine", [False, True])
def test_the_same_words_with_and_without_an_engine(repo: Repo, engine: bool, words: list[str]) -> None:
    """Loops below a spec that the engine writes are counted too: `start` waits for what the engine decides."""
    repo.loopr("start", "--no-run", "plan.md", "other.md")
    repo.write({"plan.md": EDITED})
    if engine:
        stays = repo.begin("run", "--stay")
        repo.heard()
    if not words:
        repo.gates["gate"].open()
    said = repo.loopr("start", *words, "plan.md", code=None)
    if "--json" in words:
        (row,) = said.document["plans"]
        assert (row["declared"], row["gone"], row["reworded"]) == (["demo/s/d"], ["demo/s/c"], ["demo/s/b"])
        assert row["behind"] is False
    else:
        lines = said.err.splitlines()
        assert [each for each in lines if each in TOLD] == TOLD, said.err
    if engine:
        repo.gates["gate"].open()
        repo.loopr("stop")
        stays.ended(None)


HALVES = """\
---
id: halves
specs:
  - {id: one, tasks: [{id: a, run: "echo ONE > a.txt"}]}
  - id: two
    needs: [one]
    tasks: [TWO]
---
# Halves
"""


def test_what_counts_later_is_told_at_once(repo: Repo) -> None:
    """Below a spec that an edit makes wait, what will be new, again and gone is counted before it is taken up."""
    old = '{id: b, run: "echo b > b.txt"}, {id: c, run: "echo c > c.txt"}'
    new = '{id: c, run: "echo cc > c.txt"}, {id: d, run: "echo d > d.txt"}'
    repo.write({"halves.md": HALVES.replace("TWO", old)})
    repo.loopr("start", "halves.md")
    repo.write({"halves.md": HALVES.replace("TWO", new).replace("ONE", "more")})
    for words in (["--dry-run"], ["--yes"]):
        told = repo.loopr("start", *words, "halves.md").err
        assert "halves: 1 new, 2 to do again, 1 gone\n" in told, words
        assert "  to do again: halves/one/a, halves/two/c\n" in told, words
        assert "  halves/two takes up its part once what it waits for is done\n" in told, words
    assert set(repo.loops()) == {f"halves{each}" for each in ("", "/one", "/one/a", "/two", "/two/c", "/two/d")}
