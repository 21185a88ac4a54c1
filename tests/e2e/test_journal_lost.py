"""A journal that is gone, older than it was, or damaged: it is told, and never begun anew in silence."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.e2e.repos import Repo, opened

PLAN = "---\nid: demo\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"
READING = (("status",), ("tree",), ("why", "demo"), ("events",), ("logs", "demo/a"), ("doctor",))


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository in which a plan of two loops has landed, and another engine has been since."""
    with opened(tmp_path) as found:
        found.found()
        command = found.script("code", 'echo "$LOOPR_LOOP" > "$(basename "$LOOPR_LOOP")"')
        found.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{command}'}}\n")
        found.write({"plan.md": PLAN})
        found.loopr("start", "plan.md")
        found.loopr("run")
        yield found


def take_away(repo: Repo) -> None:
    """Delete the journal with all that lies beside it."""
    for each in repo.state.glob("loopr.db*"):
        each.unlink()


@pytest.mark.parametrize("how", ["missing", "empty", "with its runs"])
def test_a_journal_that_is_gone(repo: Repo, how: str) -> None:
    """Every verb says with exit 78 that it is gone and names both ways out; nothing is begun."""
    take_away(repo)
    if how == "empty":
        (repo.state / "loopr.db").touch()
    if how == "with its runs":  # the refs tell
        shutil.rmtree(repo.state / "runs")
    verbs = (*READING, ("run",), ("start", "plan.md"), ("pause", "--all"), ("lease", "take"))
    for words in verbs:
        ended = repo.loopr(*words, code=78)
        said = ended.out + ended.err
        assert "is gone" in said, words
        assert f"cp {repo.state}/copies/1.db {repo.state}/loopr.db" in said, words
        assert "loopr init --anew" in said, words
    assert not (repo.state / "loopr.db").exists() or not (repo.state / "loopr.db").stat().st_size


def test_its_copy_is_put_back(repo: Repo) -> None:
    """After the line that was named the work goes on as it was: nothing is done twice, no attempt forgotten."""
    granted = repo.granted()
    take_away(repo)
    hint = repo.loopr("status", code=78).err
    line = hint.partition("put the newest copy back: `")[2].partition("`")[0]
    assert os.system(line) == 0
    repo.loopr("run")
    assert repo.granted() == granted
    assert set(repo.statuses().values()) == {"complete"}


def test_it_is_begun_anew(repo: Repo) -> None:
    """`init --anew` keeps every ref and every file under another name, and what comes then begins at one."""
    tip, branches = repo.git("rev-parse", "loopr/demo"), repo.git("for-each-ref", "--format=%(objectname)")
    take_away(repo)
    said = repo.loopr("init", "--anew").out
    assert "was refs/heads/loopr/demo" in said
    old = repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/loopr/old").splitlines()
    assert any(each.endswith(f"/heads/loopr/demo {tip}") for each in old)
    assert Counter(repo.git("for-each-ref", "--format=%(objectname)").split()) == Counter(branches.split())
    assert list((repo.state / "old").glob("*/runs/demo.a.g1/1/outcome.json"))
    shutil.rmtree(repo.root / "specs")
    repo.loopr("start", "plan.md")
    assert repo.granted() == {"demo/a": 1, "demo/b": 1}
    assert {each[0] for each in repo.landed("demo")} == {"demo/a", "demo/b"}
    assert repo.loopr("gc", "--dry-run").out.count("  old/") == 1


def test_a_journal_that_works_is_not_put_aside_by_mistake(repo: Repo) -> None:
    """`init --anew` refuses where the journal can be read, until it is told --yes."""
    seq = repo.events()[-1]["seq"]
    assert "--yes" in repo.loopr("init", "--anew", code=78).err
    assert repo.events()[-1]["seq"] == seq
    repo.loopr("init", "--anew", "--yes")
    assert not repo.events()


def test_a_journal_from_before(repo: Repo) -> None:
    """A journal that is older than its own copy is told by `run`, `status` and `doctor`, and replaces no copy."""
    newest = (repo.state / "copies/1.db").read_bytes()
    with_less = repo.state / "older.db"
    shutil.copyfile(repo.state / "copies/1.db", with_less)
    connection = apsw.Connection(str(with_less))
    connection.execute("DELETE FROM events WHERE seq > 3")
    connection.close()
    take_away(repo)
    with_less.replace(repo.state / "loopr.db")
    assert "older than its own copy" in repo.loopr("doctor", code=78).out
    repo.loopr("run", "--once", code=None)
    assert "older than its own copy" in repo.loopr("status").out
    assert (repo.state / "copies/1.db").read_bytes() == newest


def test_three_copies_are_kept(repo: Repo) -> None:
    """Each engine that finds something new copies the journal; three copies are kept, for their owner alone."""
    for _ in range(4):
        repo.loopr("run")
    copies = sorted((repo.state / "copies").iterdir())
    assert [each.name for each in copies] == ["1.db", "2.db", "3.db"]
    assert {each.stat().st_mode & 0o777 for each in copies} == {0o600}


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        ("UPDATE loops SET body = '{' WHERE key = 'demo/a'", "the row demo/a of loops"),
        ("UPDATE loops SET body = '{\"status\": 3}' WHERE key = 'demo/a'", "the row demo/a of loops"),
        ("UPDATE records SET body = '[]' WHERE key = 'policy'", "the row policy of records"),
        ("UPDATE records SET body = 'no' WHERE key LIKE 'plan/%'", "the row plan/demo of records"),
    ],
)
def test_a_damaged_row(repo: Repo, damage: str, place: str) -> None:
    """A row that cannot be read is exit 78 with its place, and no traceback."""
    _damage(repo, damage)
    for words in (("status",), ("tree",), ("run",), ("why", "demo")):
        assert f"the journal is damaged: {place}" in repo.loopr(*words, code=78).err, words
    assert place in repo.loopr("doctor", code=78).out


def test_a_damaged_event(repo: Repo) -> None:
    """An event that cannot be read is named by `events` and `doctor`; what needs only the rows goes on."""
    _damage(repo, "UPDATE events SET data = '{' WHERE seq = 3")
    assert "event 3" in repo.loopr("events", code=78).err
    assert "event 3" in repo.loopr("doctor", code=78).out
    repo.loopr("status")


def _damage(repo: Repo, statement: str) -> None:
    """Change the journal behind everybody's back."""
    connection = apsw.Connection(str(repo.state / "loopr.db"))
    connection.execute(statement)
    assert connection.changes() == 1
    connection.close()


@pytest.mark.parametrize(
    "name",
    ["loopr.db", "loopr.db-wal", "engine.lock", "workspace", "worktrees.json", "copies/1.db", "git.lock"],
)
def test_a_pipe_in_the_place_of_a_file(repo: Repo, name: str) -> None:
    """No verb hangs where a pipe lies in the place of a file of the state folder."""
    path = repo.state / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for words in (("status",), ("doctor",), ("gc", "--dry-run"), ("run",)):
        assert repo.loopr(*words, code=None).code in (0, 78), words
