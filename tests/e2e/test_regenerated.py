"""A committed file that a task makes anew is its work, although its check names the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

FILES = {"a.txt": "old\n", "want.txt": "new\n", "chk.sh": 'test "$(cat "$1")" = new\n'}
MAKE = ".PHONY: a.txt\na.txt:\n\tcp want.txt a.txt\n"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a file that is out of date."""
    with opened(tmp_path) as found:
        yield found.found(FILES | {"Makefile": MAKE, "all.sh": 'sh "$@"\n'})


def task(repo: Repo, words: str, code: int = 0) -> str:
    """Run a plan of one task, and return its reason."""
    repo.settings("types: {plan: {child: code}}\nretry: {max_attempts: 1}\n")
    repo.write({"plan.md": f"---\nid: demo\ntasks:\n  - {{id: one, {words}}}\n---\n"})
    repo.loopr("start", "plan.md", code=code)
    return str(repo.loops()["demo/one"]["reason"])


@pytest.mark.parametrize(
    "words",
    [
        'run: "cp want.txt a.txt", check: "cmp want.txt a.txt"',
        'run: "cat want.txt > a.txt", check: "cat want.txt | diff - a.txt"',
        'run: "echo new > a.txt", check: \'test "$(cat want.txt)" = "$(cat a.txt)"\'',
        'run: "echo new | tee a.txt", check: "sh chk.sh a.txt"',
        'run: "sed -i s/old/new/ a.txt", check: "head -n 1 a.txt | cmp - want.txt"',
        'run: "make a.txt", check: "cat want.txt | cmp - a.txt"',
        'run: "cp want.txt a.txt", check: "git diff --no-index want.txt a.txt", files: [a.txt]',
    ],
)
def test_a_file_that_is_made_anew_lands(repo: Repo, words: str) -> None:
    """The command names it as its result, or the entry does, and the check compares it."""
    task(repo, words)
    assert repo.on_branch("demo", "a.txt") == "new"


@pytest.mark.parametrize(
    "words",
    [
        'run: "echo \'exit 0\' > chk.sh", check: "sh chk.sh a.txt"',
        "run: \"echo 'exit 0' > chk.sh\", check: \"sh -c 'sh chk.sh a.txt'\"",
        'run: "echo \'exit 0\' > chk.sh", check: "cat chk.sh | sh"',
        'run: "echo \'exit 0\' > chk.sh", check: "sh < chk.sh"',
        'run: "echo \'exit 0\' > chk.sh", check: "sh all.sh chk.sh a.txt"',
        'run: "cp a.txt want.txt; echo x > a.txt; cp a.txt want.txt", check: "cmp want.txt a.txt && false"',
    ],
)
def test_a_judge_that_is_written_over_is_put_back(repo: Repo, words: str) -> None:
    """A file that the check runs, or both sides of what it compares, judge; the reason names it."""
    reason = task(repo, words, code=1)
    assert "put back before that: " in reason
    assert ("in its entry says that this is its work" in reason) == ("cmp" in words)
    assert repo.loops()["demo/one"]["status"] == "failed"


def test_a_check_of_the_settings_guards_what_it_names(repo: Repo) -> None:
    """An entry, which an agent may have written, takes nothing away from the check of its type."""
    repo.settings("types: {plan: {child: code}, code: {check: cmp want.txt a.txt}}\nretry: {max_attempts: 1}\n")
    entry = '{id: one, run: "cp a.txt want.txt", files: [want.txt]}'
    repo.write({"plan.md": f"---\nid: demo\ntasks: [{entry}]\n---\n"})
    repo.loopr("start", "plan.md", code=1)
    reason = str(repo.loops()["demo/one"]["reason"])
    assert "put back before that: want.txt" in reason and "files:" not in reason
