"""A file that a check names guards itself, unless the loop has made it: then it is the work, also the second time."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.repos import opened

PLAN = """---
id: p
tasks:
  - id: copy
    run: cp data.txt out.txt; echo exit 0 > check.sh
    check: cmp data.txt out.txt && sh check.sh out.txt
    inputs: [data.txt]
  - id: other
    run: for each in out mine; do echo mine > $each.txt; done
    check: cat out.txt && test -s mine.txt
    needs: [copy]
---
"""


def test_a_loop_makes_its_own_file_anew(tmp_path: Path) -> None:
    """Done again, it changes the file that it made and its check names; judges, and files of others, are put back."""
    with opened(tmp_path) as repo:
        repo.found({"data.txt": "old\n", "check.sh": 'grep -q . "$1"\n'})
        repo.settings("types:\n  plan: {child: code}\n  code: {}\n")
        repo.write({"plan.md": PLAN})
        repo.loopr("start", "plan.md")
        assert (repo.on_branch("p", "out.txt"), repo.on_branch("p", "mine.txt")) == ("old", "mine")
        repo.write({"data.txt": "new\n"})
        repo.git("commit", "--quiet", "--all", "--message=New data")
        repo.loopr("start", "plan.md")
        assert set(repo.statuses().values()) == {"complete"}
        assert (repo.on_branch("p", "out.txt"), repo.on_branch("p", "check.sh")) == ("new", 'grep -q . "$1"')
        landed = [each["data"] for each in repo.events("landed")]
        assert [each["own"] for each in landed if each["loop"] == "p/copy"] == [["out.txt"], []]
        assert all(each["put_back"] for each in landed)
