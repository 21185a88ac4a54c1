"""The journal as one process sees it: events, rows, usage, versions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopr.core.shared import WORKSPACE
from loopr.core.wishes import resume
from loopr.engine import Journalled, Mind, compare, recall
from loopr.errors import Impossible, Moved, NotFound, SettingsError
from loopr.world.journal import (
    MIGRATIONS,
    SQLITE_NEEDED,
    Change,
    Draft,
    Journal,
    Record,
    Spent,
    Usage,
    sqlite_is_sound,
    sqlite_version,
)

DAY_MS = 86_400_000


def draft(event: str, loop: str | None = "1", at: int = 1_000) -> Draft:
    """Make an event that only its name, loop and instant tell apart."""
    return Draft(at, event, 1, loop, "engine", '{"why":"tested"}')


def spent(seq: int, at: int, **parts: Any) -> Spent:
    """Make a line of usage."""
    line = Spent(seq, at, "1-1", "1", "shop", "code", "anthropic", 100, 2_000, 30_000, 100, False)
    return line._replace(**parts)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Open a journal that is new."""
    with Journal.open(tmp_path / "loopr.db", create=True) as opened:
        yield opened


def test_events_come_back_as_they_went_in(journal: Journal) -> None:
    """Events are numbered from 1 without gaps and read back in order, every field as it was."""
    assert journal.last_seq() == 0
    assert journal.append([draft("born"), draft("made ready", None)], after=0) == 2
    assert journal.append([draft("leased", at=2_000)], after=2) == 3
    assert list(journal.since(0)) == [
        Record(1, 1_000, "born", 1, "1", "engine", '{"why":"tested"}'),
        Record(2, 1_000, "made ready", 1, None, "engine", '{"why":"tested"}'),
        Record(3, 2_000, "leased", 1, "1", "engine", '{"why":"tested"}'),
    ]
    assert [record.seq for record in journal.since(1, limit=1)] == [2]
    assert list(journal.since(3)) == []


def test_long_reads_are_whole(journal: Journal) -> None:
    """Reading goes on over the end of a portion, and a limit is kept over several portions."""
    journal.append([draft("ticked") for _ in range(2_500)], after=0)
    assert [record.seq for record in journal.since(0)] == list(range(1, 2_501))
    assert [record.seq for record in journal.since(100, limit=1_500)] == list(range(101, 1_601))
    assert list(journal.since(0, limit=0)) == []


def test_append_to_a_journal_that_moved_changes_nothing(journal: Journal) -> None:
    """Whoever decided on an old state is told so, and neither event nor row of theirs is kept."""
    journal.append([draft("first")], [Change("loops", "1", "old")], after=0)
    with pytest.raises(Moved, match="at 1, not at 0"):
        journal.append([draft("second")], [Change("loops", "1", "new")], after=0)
    with pytest.raises(Moved):
        journal.append([draft("second")], after=2)
    assert journal.last_seq() == 1
    assert journal.row("loops", "1") == "old"


def test_a_failed_append_leaves_nothing(journal: Journal) -> None:
    """An error anywhere in an append takes its events back, and the journal goes on working."""

    def changes() -> Iterator[Change]:
        yield Change("loops", "1", "{}")
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        journal.append([draft("first")], changes(), after=0)
    with pytest.raises(Impossible, match="no table"):
        journal.append([draft("first")], [Change("loops", "1", "{}"), Change("events", "1", "{}")], after=0)
    assert journal.last_seq() == 0
    assert journal.rows("loops") == []
    assert journal.append([draft("first")], after=0) == 1


def test_rows_do_not_change_without_an_event(journal: Journal) -> None:
    """A row that moved without its reason is our bug, and so is usage that no event of the append ended."""
    with pytest.raises(Impossible, match="without an event"):
        journal.append([], [Change("loops", "1", "{}")], after=0)
    with pytest.raises(Impossible, match="names event 2"):
        journal.append([draft("ended")], spent=[spent(2, 1_000)], after=0)
    assert journal.append([], after=0) == 0
    assert journal.rows("loops") == []


def test_rows_are_kept_apart_by_table(journal: Journal) -> None:
    """The same key in two tables is two rows, and a deleted row is gone from its table only."""
    journal.append([draft("a")], [Change("loops", "1", "loop"), Change("entries", "1", "entry")], after=0)
    journal.append([draft("b")], [Change("loops", "1", None), Change("records", "lane/x", "{}")], after=1)
    assert journal.row("loops", "1") is None
    assert journal.row("entries", "1") == "entry"
    assert journal.rows("records") == [("lane/x", "{}")]


keys = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)
batches = st.lists(
    st.lists(st.tuples(st.sampled_from(["loops", "entries", "records"]), keys, st.none() | st.text(max_size=8))),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(batches)
def test_rows_are_what_the_last_changes_say(appends: list[list[tuple[str, str, str | None]]]) -> None:
    """After any changes in any appends, each table holds the last body of each key, in the order of the keys."""
    expected: dict[str, dict[str, str]] = {"loops": {}, "entries": {}, "records": {}}
    with tempfile.TemporaryDirectory() as folder, Journal.open(Path(folder) / "j.db", create=True) as journal:
        for seq, changes in enumerate(appends):
            journal.append([draft("changed")], [Change(*change) for change in changes], after=seq)
            for table, key, body in changes:
                expected[table].pop(key, None)
                if body is not None:
                    expected[table][key] = body
        for table, rows in expected.items():
            assert journal.rows(table) == sorted(rows.items(), key=lambda row: row[0].encode())
            assert all(journal.row(table, key) == body for key, body in rows.items())


def test_the_story_of_a_loop(journal: Journal) -> None:
    """A story has the events of one loop only, oldest first; a limit keeps the latest."""
    journal.append([draft("a", "1"), draft("b", "1-1"), draft("c", "1"), draft("d", None), draft("e", "1")], after=0)
    assert [record.event for record in journal.story("1")] == ["a", "c", "e"]
    assert [record.event for record in journal.story("1", limit=2)] == ["c", "e"]
    assert journal.story("2") == []


def test_usage_adds_up(journal: Journal) -> None:
    """Usage is summed by each key since an instant; an attempt that told no tokens has used none."""
    lines = [
        spent(1, 1_000),
        spent(2, DAY_MS, project="site", micro_usd=None, estimated=True),
        spent(3, DAY_MS + 1, tokens=None, type="plan", loop="1", lane="local"),
    ]
    journal.append([draft("ended") for _ in lines], spent=lines, after=0)
    assert journal.spent_since(DAY_MS) == lines[1:]
    assert journal.usage("project") == [
        Usage("shop", estimated=False, attempts=2, cost=100, micro_usd=4_000, ms=60_000),
        Usage("site", estimated=True, attempts=1, cost=100, micro_usd=None, ms=30_000),
    ]
    assert [(each.key, each.estimated) for each in journal.usage("type")] == [
        ("code", False),
        ("code", True),
        ("plan", False),
    ]
    assert [each.key for each in journal.usage("project", until=1_000)] == ["shop"]
    days = ["1970-01-01", "1970-01-02", "1970-01-02"]  # the second has both sides
    assert [group.key for group in journal.usage("day")] == days
    assert [(group.key, group.attempts) for group in journal.usage("type", since=DAY_MS)] == [("code", 1), ("plan", 1)]
    assert [group.key for group in journal.usage("lane")] == ["anthropic", "anthropic", "local"]
    assert [group.key for group in journal.usage("plan")] == ["1", "1"]
    assert [group.key for group in journal.usage("loop")] == ["1", "1-1", "1-1"]


def test_a_snapshot_is_one_moment(journal: Journal) -> None:
    """What another connection writes during a snapshot is seen by none of its reads, and by the next read after it."""
    journal.append([draft("a")], [Change("loops", "1", "old")], after=0)
    with Journal.open(journal.path, readonly=True) as reader:
        with reader.snapshot() as seq:
            journal.append([draft("b")], [Change("loops", "1", "new")], after=1)
            assert (seq, reader.last_seq(), reader.row("loops", "1")) == (1, 1, "old")
            assert len(list(reader.since(0))) == 1
        assert reader.changed_since(1)
        assert reader.row("loops", "1") == "new"
        assert not reader.changed_since(2)


def test_two_writers_take_turns(journal: Journal) -> None:
    """Of two who decided on the same state one wins; the other catches up by reading what it missed."""
    with Journal.open(journal.path) as other:
        journal.append([draft("mine")], after=0)
        with pytest.raises(Moved):
            other.append([draft("theirs")], after=0)
        assert [record.event for record in other.since(0)] == ["mine"]
        other.append([draft("theirs")], after=1)
    assert [record.event for record in journal.since(0)] == ["mine", "theirs"]


def test_a_missing_journal_is_not_made_by_the_way(tmp_path: Path) -> None:
    """Without `create` a missing file, or one whose making was cut off, is `NotFound`, and no file appears."""
    path = tmp_path / "state" / "loopr.db"
    for readonly in (True, False):
        with pytest.raises(NotFound):
            Journal.open(path, readonly=readonly)
    assert not path.parent.exists()
    path.parent.mkdir()
    path.touch()
    for readonly in (True, False):
        with pytest.raises(NotFound):
            Journal.open(path, readonly=readonly)
    assert [each.name for each in path.parent.iterdir()] == ["loopr.db"]
    Journal.open(path, create=True).close()
    Journal.open(path, readonly=True).close()


def test_any_folder_name_will_do(tmp_path: Path) -> None:
    """Spaces, percent signs, question marks, hashes and letters of any language in the path change nothing."""
    path = tmp_path / "a b%20?mode=ro#ü" / "loopr.db"
    with Journal.open(path, create=True) as journal:
        journal.append([draft("a")], after=0)
    with Journal.open(path, readonly=True) as journal:
        assert journal.last_seq() == 1
    assert [each.name for each in path.parent.iterdir()] == ["loopr.db"]


def test_a_relative_path_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is relative to the folder that the process is in."""
    monkeypatch.chdir(tmp_path)
    Journal.open(Path("loopr.db"), create=True).close()
    assert (tmp_path / "loopr.db").exists()


SECOND = ("ALTER TABLE events RENAME COLUMN actor TO author", "ALTER TABLE events RENAME COLUMN author TO actor")
THIRD = ("INSERT INTO records (key, body) SELECT 'moved/' || key, body FROM records", "DROP INDEX spent_by_time")


def test_an_older_file_is_brought_up_to_date(tmp_path: Path) -> None:
    """A file of version 1 goes through all later migrations in order, once, and keeps what it holds."""
    path = tmp_path / "loopr.db"
    with Journal.open(path, create=True, migrations=MIGRATIONS[:1]) as journal:
        journal.append([draft("a")], [Change("records", "lane/x", "{}")], after=0)
    later = (*MIGRATIONS[:1], SECOND, THIRD)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with Journal.open(path, readonly=True, migrations=later) as journal:
        assert journal.rows("records") == [("lane/x", "{}"), ("moved/lane/x", "{}")]
        assert [each.event for each in journal.since(0)] == [draft("a").event]
        with pytest.raises(SettingsError):
            journal.append([draft("b")], after=1)
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    with Journal.open(path, migrations=later) as journal:
        assert journal.rows("records") == [("lane/x", "{}"), ("moved/lane/x", "{}")]
        assert journal.append([draft("b")], after=1) == 2
        assert journal.integrity() == []
    with Journal.open(path, migrations=later) as journal:
        assert len(journal.rows("records")) == 2


@pytest.mark.parametrize("migrated", [False, True])
def test_whoever_reads_an_older_file_sees_it_go_on(tmp_path: Path, migrated: bool) -> None:
    """What the loopr from before writes to it is seen, and so is what one of now does, which brings it up to date."""
    path = tmp_path / "loopr.db"
    Journal.open(path, create=True, migrations=MIGRATIONS[:1]).close()
    with Journal.open(path, readonly=True) as reader:
        assert reader.last_seq() == 0
        for number in (1, 2):
            with Journal.open(path, migrations=MIGRATIONS if migrated else MIGRATIONS[:1]) as writer:
                writer.append([draft("a")], after=number - 1)
            assert reader.changed_since(number - 1)
            with reader.snapshot() as seq:
                assert seq == number == len(list(reader.since(0)))


def test_a_pause_of_everything_in_an_older_file(tmp_path: Path) -> None:
    """A pause of everything from before a plan could be called `workspace` still holds, and may be lifted."""
    path = tmp_path / "loopr.db"
    said = '{"scope":"workspace","by":"ada","reason":"night"}'
    held = Draft(1, "scope_held", 1, None, "ada", said)
    with Journal.open(path, create=True, migrations=MIGRATIONS[:1]) as journal:
        journal.append([held], [Change("records", "hold/workspace", '["ada",1,"night"]')], after=0)
    with Journal.open(path, readonly=True) as journal:
        assert list(recall(journal)[0].shared.holds) == [WORKSPACE]
        assert compare(journal) == []
    with Journal.open(path) as journal:
        assert list(recall(journal)[0].shared.holds) == [WORKSPACE]
        assert compare(journal) == []
        Mind(Journalled(journal), lambda: 2, "ada").decide(lambda forest, now: resume(forest, WORKSPACE, "ada"))
        assert not recall(journal)[0].shared.holds
        assert compare(journal) == []


def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path) -> None:
    """If any statement of any migration fails, none of them happened and the old program still opens the file."""
    path = tmp_path / "loopr.db"
    with Journal.open(path, create=True, migrations=MIGRATIONS[:1]) as journal:
        journal.append([draft("a")], [Change("records", "lane/x", "{}")], after=0)
    with pytest.raises(Impossible, match="nowhere"):
        Journal.open(path, migrations=(*MIGRATIONS[:1], THIRD, ("DELETE FROM nowhere",)))
    with Journal.open(path, migrations=MIGRATIONS[:1]) as journal:
        assert journal.rows("records") == [("lane/x", "{}")]


def test_a_newer_file_is_refused_with_both_versions(tmp_path: Path) -> None:
    """A file of a later loopr is neither read nor written, and the message has both versions."""
    path = tmp_path / "loopr.db"
    Journal.open(path, create=True, migrations=(*MIGRATIONS[:1], SECOND)).close()
    before = path.read_bytes()
    for readonly in (True, False):
        with pytest.raises(SettingsError, match=r"version 2 .* up to 1") as caught:
            Journal.open(path, readonly=readonly, migrations=MIGRATIONS[:1])
        assert caught.value.problems[0].where == str(path)
    assert path.read_bytes() == before


def test_the_library_is_recent_enough() -> None:
    """The SQLite in use has the fix for logs that were damaged while being reset."""
    assert sqlite_is_sound()
    assert tuple(map(int, sqlite_version().split("."))) >= SQLITE_NEEDED


def test_size_counts_the_log(journal: Journal) -> None:
    """The size grows with what was appended, before it is moved from the log to the file."""
    before = journal.size()
    journal.append([draft("x" * 100_000)], after=0)
    assert journal.size() >= before + 100_000


def test_usage_moves_with_the_clock(tmp_path: Path) -> None:
    """When the clock has moved, what was used before counts as long as it would have."""
    with Journal.open(tmp_path / "loopr.db", create=True) as journal:
        journal.append([draft("declared")], spent=[spent(1, 5_000)], after=0)
        journal.append([draft("clock_moved", None)], spent=[spent(2, 1_000)], after=1, moved_ms=-4_500)
        assert [each.at for each in journal.spent_since(0)] == [500, 1_000]
