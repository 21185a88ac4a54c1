"""What the guide shows of the command line is what the command line does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.transcripts import GUIDE, Command, File, normal, replay, rewritten, steps

REMEDY = "if that is meant: `python -m tests.house.transcripts` writes the guide anew; read the diff"


@pytest.mark.parametrize("name", sorted(path.name for path in GUIDE.glob("*.md")))
def test_the_guide_shows_what_happens(name: str, tmp_path: Path) -> None:
    """Every command of a guide, typed in order in a fresh repository, prints what the page says."""
    found = list(steps((GUIDE / name).read_text("utf-8")))
    assert any(isinstance(step, Command) for step in found), f"{name} has no transcript"
    for command, printed in replay(found, tmp_path):
        said = f"docs/guide/{name}:{command.line} `{command.words}` prints something else now; {REMEDY}"
        assert normal(printed) == normal(command.lines), said


PAGE = """\
Write a file:

```markdown title=notes/one.md
# One
```

```console
$ cat notes/one.md
# One
$ date -u +%Y-%m-%dT%H:%M:%S.000Z; false
2026-01-31T02:00:00.000Z
$ echo $?
1
```
"""


def test_a_page_is_read_as_it_stands() -> None:
    """Files and commands are found in order, each with its lines and its place."""
    assert list(steps(PAGE)) == [
        File("notes/one.md", 3, ["# One"]),
        Command("cat notes/one.md", 8, ["# One"]),
        Command("date -u +%Y-%m-%dT%H:%M:%S.000Z; false", 10, ["2026-01-31T02:00:00.000Z"]),
        Command("echo $?", 12, ["1"]),
    ]


def test_only_a_time_may_differ(tmp_path: Path) -> None:
    """A page whose times alone are old is true; any other difference is one."""
    (tmp_path / "true").mkdir()
    (tmp_path / "false").mkdir()
    assert rewritten(PAGE, tmp_path / "true") == PAGE
    wrong = PAGE.replace("# One\n$ date", "# Two\n# Three\n$ date")
    assert rewritten(wrong, tmp_path / "false") == PAGE


def test_pids_commits_and_seconds_do_not_count() -> None:
    """What no two runs have in common makes no difference; a status, a number of tries and an exit code do."""
    one = ["02:00:00 engine  started, pid 17 on here", "  a landed  2 tries  0 s", "main is at 0a1b2c3d4e5f (1 file)"]
    two = [
        "13:01:59 engine  started, pid 99123 on there",
        "  a landed  2 tries  3 s",
        "main is at ffffffffff00 (1 file)",
    ]
    assert normal(one) == normal(two)
    for line in (
        "02:00:00 engine  ended, pid 17 on here",
        "  a landed  3 tries  0 s",
        "main is at 0a1b2c3d4e5f (2 files)",
    ):
        assert normal([line])[0] not in normal(one)


def test_a_failure_is_shown_or_it_is_one(tmp_path: Path) -> None:
    """A command that fails breaks the page unless the page goes on to show its exit code."""
    with pytest.raises(AssertionError, match="exits with 1"):
        list(replay(list(steps(PAGE.replace("$ echo $?\n1\n", ""))), tmp_path))
