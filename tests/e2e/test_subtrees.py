"""Whole subtrees at once, with a real engine: a part of a plan comes home, and thirty loops are approved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

PLAN = """\
---
id: p
children:
  - {id: s, children: [{id: a}, {id: b}]}
  - {id: t, children: [{id: c}]}
---
# P
"""
TYPES = "types:\n  plan: {child: spec}\n  spec: {child: code}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository in a folder with a space and an umlaut in its name."""
    with opened(tmp_path / "mein Büro") as found:
        yield found.found()


def test_a_part_comes_home_while_attempts_live(repo: Repo) -> None:
    """A part comes home beside an attempt, the rest lands and comes home later; the base's own commits are there."""
    gate = repo.gate("later")
    run = repo.script("code", 'name=$(basename "$LOOPR_LOOP")\n[ $name = a ] || wait_at later\necho $name > $name.txt')
    repo.settings(f"{TYPES}  code: {{run: '{run}'}}\nland: {{check: test -f a.txt}}\n")
    repo.write({"plan.md": PLAN})
    engine = repo.begin("start", "plan.md")
    repo.until("landed", words="p/s/a")
    repo.until("attempt_started", 3)
    refused = repo.loopr("land", "p", "--yes", code=1)
    assert "`loopr land p --partial`" in refused.err
    told = repo.loopr("land", "p", "--partial")
    assert "what has landed of p is home" in told.out and "cut through: p/s lacks p/s/b" in told.err
    assert (repo.root / "a.txt").read_text() == "a\n" and not (repo.root / "b.txt").exists()
    repo.write({"mine": "mine\n"})
    repo.git("add", "mine")
    repo.git("commit", "--quiet", "--message=mine", "--", "mine")
    mine = repo.git("rev-parse", "main")
    gate.open()
    engine.ended(0)
    repo.loopr("land", "p", "--yes")
    assert sorted(repo.git("ls-files", "*.txt", "mine").split()) == ["a.txt", "b.txt", "c.txt", "mine"]
    assert [each["data"]["partial"] for each in repo.events("plan_came_home")] == [True, False]
    assert set(repo.granted().values()) == {1}
    assert repo.events("shared_harmed", "tip_foreign") == []
    assert {each["data"]["new"] for each in repo.events("branch_moved")} <= {mine}, "what came home was taken for harm"


def test_a_plan_goes_on_from_what_came_home(repo: Repo) -> None:
    """After a part came home while nothing ran, what is left is done from the base's tip, with the base's own files."""
    run = repo.script(
        "code", 'name=$(basename "$LOOPR_LOOP")\n[ $name = a ] || [ -f mine ] || exit 3\necho > $name.txt'
    )
    repo.settings(f"{TYPES}  code: {{run: '{run}'}}\nretry: {{max_attempts: 1}}\n")
    repo.write({"plan.md": PLAN})
    repo.loopr("start", "plan.md", code=1)
    repo.write({"mine": "mine\n"})
    repo.git("add", "mine")
    repo.git("commit", "--quiet", "--message=mine", "--", "mine")
    refused = repo.loopr("land", "p", code=1)
    assert "`loopr retry p/s/b`" in refused.err
    told = repo.loopr("land", "p", "--partial", "--yes")
    assert "goes on from main as it is now" in told.err
    repo.loopr("retry", "p", "--yes")
    repo.loopr("run")
    repo.loopr("land", "p", "--yes")
    assert sorted(repo.git("ls-files", "*.txt", "mine").split()) == ["a.txt", "b.txt", "c.txt", "mine"]


def test_one_stream_of_a_whole_plan(repo: Repo) -> None:
    """`logs -f PLAN` gives the lines of all below it until all has settled, and waits for a loop that has not begun."""
    gate = repo.gate("later")
    name = 'name=$(basename "$LOOPR_LOOP")'
    run = repo.script("code", f'{name}\necho "hello from $name"\n[ $name = d ] || wait_at later')
    repo.settings(f"{TYPES}  code: {{run: '{run}'}}\n")
    repo.write({"plan.md": PLAN.replace("{id: b}", "{id: b}, {id: d, needs: [a, b]}")})
    engine = repo.begin("start", "plan.md")
    repo.until("attempt_started", 3)
    whole, one = repo.begin("logs", "-f", "p"), repo.begin("logs", "-f", "p/s/d")
    whole.lines(3)
    one.says("p/s/d has not begun: needs ")
    gate.open()
    engine.ended(0)
    said = whole.ended(0)
    lines = [f"{path} | hello from {path[-1]}" for path in ("s/a", "s/b", "s/d", "t/c")]
    assert sorted(said.out.splitlines()) == lines
    assert one.ended(0).out == "hello from d\n"
    again = repo.loopr("logs", "p").out
    assert again == "".join(f"==> {path} <==\nhello from {path[-1]}\n" for path in ("s/a", "s/b", "s/d", "t/c"))


def test_thirty_are_approved_as_they_were_shown(repo: Repo) -> None:
    """One word lets thirty loops land but for the one that has other work by now, which is named."""
    names = [f"c{number:02}" for number in range(30)]
    children = "".join(f"  - {{id: {each}}}\n" for each in names)
    run = repo.script("code", 'echo "$LOOPR_ATTEMPT" > "$(basename "$LOOPR_LOOP").txt"')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', approve: true}}\n")
    repo.write({"plan.md": f"---\nid: p\nchildren:\n{children}---\n# P\n"})
    repo.loopr("start", "plan.md", code=4)
    shown = repo.loopr("diff", "--waiting", "p", "--json").document
    assert [each["id"] for each in shown["waiting"]] == [f"p/{each}" for each in names]
    assert all(each["files"][0]["path"] == f"{each['id'][2:]}.txt" for each in shown["waiting"])
    assert "approve takes 30 loops" in repo.loopr("approve", "p", code=2).err
    repo.loopr("iterate", "p/c07", "--feedback", "once more")
    repo.loopr("run", code=4)
    told = repo.loopr("approve", "p", "--at", str(shown["at"]))
    assert "29 of 30 loops of p approved; 1 has changed since it was shown (p/c07)" in told.err
    repo.loopr("run", code=4)
    assert [name for name, status in repo.statuses().items() if status == "awaiting_approval"] == ["p/c07"]
    assert repo.on_branch("p", "c08.txt") == "1"
    repo.loopr("approve", "p", "--yes")
    repo.loopr("run")
    assert repo.on_branch("p", "c07.txt") == "2"
