"""A workspace that an earlier loopr has left, in the middle of its work: it goes on as if nothing had been."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.e2e.repos import Repo, opened

WORKSPACE = Path(__file__).with_name("from_before") / "workspace.tgz"
WAITING = ("old/design/one", "old/design/two", "old/given/waits")


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Unpack the workspace; its paths are others than they were."""
    with tarfile.open(WORKSPACE) as packed:
        packed.extractall(tmp_path, filter="tar")
    with opened(tmp_path) as found:
        yield found


def test_its_state_is_read_as_it_was(repo: Repo) -> None:
    """Every loop stands where it stood, and nothing in the journal is in doubt."""
    states = repo.statuses()
    assert {each for each, status in states.items() if status == "awaiting_approval"} == set(WAITING)
    assert states["old/given/fails"] == "failed"
    assert states["old/given/parks"] == "parked"
    assert states["old/given/after"] == "pending"
    assert sum(status == "complete" for status in states.values()) == 8
    said = repo.loopr("doctor", code=None).out
    assert "ok     replay" in said


def test_its_work_goes_on(repo: Repo) -> None:
    """What waited is approved and lands, what it set free runs, what had landed stays as it was, and comes home."""
    done, before = repo.git("rev-parse", "loopr/done"), repo.granted()
    repo.loopr("run", code=1)
    repo.loopr("approve", *WAITING)
    repo.loopr("run", code=1)
    assert repo.statuses()["old/given/after"] == "awaiting_approval"
    repo.loopr("approve", "old/given/after")
    repo.loopr("resume", "old/given/fails")
    repo.loopr("reset", "old/given/parks")
    repo.loopr("run", code=1)
    states = repo.statuses()
    assert {each for each, status in states.items() if status != "complete"} == {"old/given/fails", "old/given/parks"}
    assert repo.git("rev-parse", "loopr/done") == done
    again = repo.granted() - before
    assert set(again) <= {"old/given/after", "old/given/parks"}
    landed = [each[0] for each in repo.landed("old")]
    assert sorted(landed) == sorted(set(landed))
    repo.loopr("land", "done", "--yes")
    assert repo.git("ls-tree", "--name-only", "main", "a", "b") == "a\nb"
    assert "ok     replay" in repo.loopr("doctor", code=None).out


def test_it_is_kept_to_its_owner(repo: Repo) -> None:
    """The first engine that comes keeps others out of the state folder, and begins to keep copies."""
    repo.loopr("run", code=1)
    assert repo.state.stat().st_mode & 0o077 == 0
    assert (repo.state / "copies/1.db").is_file()


def as_version(repo: Repo, number: int) -> None:
    """Take the last step of the journal's form back, and say that it has this version."""
    journal = apsw.Connection(str(repo.state / "loopr.db"))
    journal.pragma("journal_mode", "delete")
    journal.execute("UPDATE records SET key = 'hold/workspace' WHERE key = 'hold/workspace:'")
    journal.execute(
        "UPDATE events SET version = 1, data = json_set(data, '$.scope', 'workspace') WHERE loop IS NULL"
        " AND event = 'scope_held'"
    )
    journal.pragma("user_version", number)
    journal.close()


def test_verbs_that_read_read_an_older_journal(repo: Repo) -> None:
    """They show the same of a journal of version 1, and write nothing; whoever writes brings it up to date."""
    repo.loopr("pause", "--all")
    reading = (
        *(("tree",), ("status",), ("ls",), ("next",), ("events", "--json"), ("usage",)),
        *(("why", "old/given/after"), ("show", "old/given/fails"), ("doctor",)),
    )
    at = ("--at", "2040-01-01T00:00:00Z")

    def said(verb: tuple[str, ...]) -> str:
        return repo.loopr(*verb, *(at if verb[0] not in ("events", "doctor", "usage") else ()), code=None).out

    before = {verb: said(verb) for verb in reading if verb != ("doctor",)}
    as_version(repo, 1)
    kept = (repo.state / "loopr.db").read_bytes()
    assert {verb: said(verb) for verb in before} == {
        verb: text.replace('"workspace:"', '"workspace"')
        for verb, text in before.items()  # events are as they were
    }
    assert "ok     replay" in said(("doctor",))
    assert "paused" in said(("tree",))
    assert (repo.state / "loopr.db").read_bytes() == kept
    repo.loopr("resume", "--all")
    assert "paused by" not in said(("status",))


def test_a_journal_of_a_later_version_is_refused(repo: Repo) -> None:
    """It is neither read nor written."""
    as_version(repo, 99)
    for verb in ("tree", "status", "ls", "next", "events"):
        assert "a newer loopr wrote it" in repo.loopr(verb, code=78).err


def test_what_a_phase_handed_over_is_not_done_again(tmp_path: Path) -> None:
    """Phases with a command of their own keep what is complete; one that had to hand over just does its work now."""
    with tarfile.open(WORKSPACE.with_name("leaves.tgz")) as packed:
        packed.extractall(tmp_path, filter="tar")
    with opened(tmp_path) as repo:
        before = repo.statuses()
        assert (before["old/s/handed"], before["old/s/silent"]) == ("complete", "failed")
        granted = repo.granted()
        repo.loopr("start", "old.md", code=1)
        assert (repo.statuses(), repo.granted()) == (before, granted)
        repo.loopr("retry", "old/s/silent")
        repo.loopr("run")
        assert set(repo.statuses().values()) == {"complete"}
        assert repo.granted() - granted == {"old/s/silent": 1}
        assert repo.loops()["old/s/handed"]["generation"] == 1
        assert "\ntasks: []\n" in (repo.root / "specs/old/s/silent/phase.md").read_text()
        assert "ok     replay" in repo.loopr("doctor", code=None).out
