"""Work that is older than what it needs: named, asked about, and done again, but never twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = """\
---
id: book
parts:
  - {id: clean, run: ./clean}
  - {id: page, needs: [clean], run: ./page}
  - {id: cover, needs: [clean], run: ./cover}
  - {id: index, needs: [page, cover], run: ./index}
---
"""
SCRIPTS = {
    "clean": "tr a-z A-Z < $DESK/data > clean.txt",
    "page": "head -n 1 clean.txt > page.txt",
    "cover": "tail -n 1 clean.txt > cover.txt",
    "index": "cat page.txt cover.txt > index.txt",
}
SETTINGS = "types:\n  plan: {{child: part}}\n  part: {{check: none{more}}}\nconcurrency: {{max_loops: 1}}\n"


def book(made: Repo, more: str = "", end: str = "") -> Repo:
    """Drive a plan in which a page and a cover are made from clean data, and an index from both."""
    plan = PLAN
    for name, line in SCRIPTS.items():
        plan = plan.replace(f"run: ./{name}}}", f"run: '{made.script(name, f'say {name}; {line}')}'}}")
    (made.desk / "data").write_text("one\ntwo\n")
    made.settings(SETTINGS.format(more=more) + end)
    made.write({"book.md": plan})
    made.loopr("start", "book.md")
    assert made.diary() == ["clean", "page", "cover", "index"]
    return made


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def fresh(repo: Repo, data: str, code: int = 0) -> str:
    """Let the data be made clean anew, and return the last words of the engine."""
    (repo.desk / "data").write_text(data)
    (repo.desk / "diary").write_text("")
    repo.loopr("retry", "--fresh", "--yes", "book/clean")
    return repo.loopr("run", code=code).err.rpartition("\nnext: ")[2]


def stale(repo: Repo) -> list[str]:
    """Name what is stale."""
    return [row["loop"] for row in repo.loopr("status", "--json").document["stale"]]


def landed(repo: Repo, name: str) -> str:
    """Return a file as the plan's branch has it."""
    return repo.git("show", f"loopr/book:{name}")


def test_what_needs_new_work_is_named_and_done_again_by_a_word(empty: Repo) -> None:
    """Told by every view, asked about by `land`, done again by `retry --stale` as far as something new lands."""
    repo = book(empty)
    asked = repo.loopr("retry", "--fresh", "book/clean", code=2).err
    assert "3 loops depend on that" in asked
    stale_then = "if this lands something, book/cover, book/page become stale"
    assert f"{stale_then}, and then `loopr retry --stale book` does those again" in asked
    assert fresh(repo, "ONE\ntwo\nthree\n") == "`loopr retry --stale book`, or `loopr land book`\n"
    assert repo.diary() == ["clean"]
    assert stale(repo) == ["book/page", "book/cover"]
    assert "part  stale  book/clean landed since" in repo.loopr("tree").out
    assert [line.split()[0] for line in repo.loopr("ls", "--status", "stale").out.splitlines()] == stale(repo)
    words = "2 loops of book are stale; `loopr retry --stale book` does them again"
    assert words in repo.loopr("tree").out
    assert "stale: book/clean landed since" in repo.loopr("why", "page").out
    assert "stale: book/clean landed since" in repo.loopr("show", "page").out
    assert "stale" not in repo.loopr("why", "index").out
    assert "book/page, book/cover: older than what it rests on; `loopr retry --stale book`" in repo.loopr("status").out
    assert f"{words}: book/page, book/cover" in repo.loopr("land", "book", code=2).err
    assert f"{words}: book/page, book/cover" in repo.loopr("land", "-n", "book").err
    seqs = len(repo.events())
    again = repo.loopr("start", "book.md").err
    assert "book: nothing to do: it is done" in again
    assert words in again
    assert len(repo.events()) == seqs
    refused = repo.loopr("retry", "--stale", code=2).err
    assert "retry --stale does 2 stale loops again: book/page, book/cover" in refused
    done = repo.loopr("retry", "--stale", "--yes", "book")
    assert "book/page   to be done again" in done.out
    assert {row["status"] for row in repo.loopr("ls", "--json").document["loops"]} == {"complete"}
    assert "next: `loopr retry --stale book`" not in repo.loopr("run").err
    assert repo.diary() == ["clean", "page", "cover", "index"]
    assert landed(repo, "index.txt") == "ONE\nTHREE"
    assert stale(repo) == []
    assert "book: nothing of it is stale" in repo.loopr("retry", "--stale").err
    repo.loopr("land", "--yes", "book")


def test_what_lands_nothing_leaves_all_as_it_is(empty: Repo) -> None:
    """Work that is made anew and comes to the same is no news to anybody."""
    repo = book(empty)
    fresh(repo, "one\ntwo\n")
    assert repo.diary() == ["clean"]
    assert stale(repo) == []
    assert "stale" not in repo.loopr("tree").out


def test_what_comes_to_the_same_ends_it(empty: Repo) -> None:
    """Of two that are done again one lands nothing; the index is done again for the other, once."""
    repo = book(empty, ", stale: redo")
    fresh(repo, "one\ntwo\nthree\n")
    assert repo.diary() == ["clean", "page", "cover", "index"]
    assert landed(repo, "index.txt") == "ONE\nTHREE"
    assert stale(repo) == []
    fresh(repo, "one\nand\nthree\n")
    assert repo.diary() == ["clean"]  # once between two starts of the plan
    assert stale(repo) == ["book/page", "book/cover"]
    (repo.desk / "diary").write_text("")
    repo.loopr("start", "book.md")
    assert repo.diary() == ["page", "cover"]
    assert stale(repo) == []
    assert repo.loopr("doctor", code=None).out.count("differs from its events") == 0


def test_a_plan_that_comes_home_by_itself_waits_while_something_is_stale(empty: Repo) -> None:
    """`land.mode: auto` leaves a plan with stale loops to a person; once they are done again it comes home."""
    repo = book(empty, end="land: {mode: auto}\n")
    home = repo.git("rev-parse", "main")
    assert repo.git("show", "main:index.txt") == "ONE\nTWO"
    fresh(repo, "one\ntwo\nthree\n")
    assert repo.git("rev-parse", "main") == home
    repo.loopr("retry", "--stale", "--yes")
    repo.loopr("run")
    assert repo.git("show", "main:index.txt") == "ONE\nTHREE"


def test_what_fails_in_its_redoing_leaves_the_old_work(empty: Repo) -> None:
    """The loop is parked and says that the old work stands, and its files are those of before."""
    repo = book(empty, ", stale: redo")
    repo.script("page", "say page; exit 78")
    fresh(repo, "three\ntwo\n", code=1)
    assert repo.diary() == ["clean", "page", "cover"]
    assert "the old work stands" in " ".join(repo.loopr("why", "page").out.split())
    assert landed(repo, "page.txt") == "ONE"
    part = repo.loopr("land", "book", "--partial", "--dry-run").err
    assert ("with older work: book/page" in part, "cut through" in part) == (True, False)
