"""The journal among several processes, some of which die: all of an append or nothing, and no trace of readers."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from loopr.world.journal import Change, Draft, Journal

ROOT = Path(__file__).resolve().parents[2]
EVENT = Draft(1_000, "happened", 1, None, "engine", "{}")

PROGRAM = """
import sys
from pathlib import Path
from loopr.world.journal import *

def event(name="happened"):
    return Draft(1_000, name, 1, None, "engine", "{}")

def say(word):
    print(word, flush=True)

path = Path(sys.argv[1])
"""

STOPS_HALF_WAY = """
def changes():
    for key in range(20_000):
        yield Change("loops", f"{key:05}", "x" * 500)

def spent():
    say("half way")
    sys.stdin.read()
    yield from ()

journal = Journal.open(path)
journal.append([event()] * 5_000, changes(), spent(), after=journal.last_seq())
say("done")
"""

APPENDS_FOR_EVER = """
journal = Journal.open(path)
seq = 0
while True:
    seq = journal.append([event()] * 3, [Change("loops", f"{seq + n:07}", "x" * 300) for n in (1, 2, 3)], after=seq)
    say(seq)
"""

APPENDS_AND_WAITS = """
journal = Journal.open(path)
journal.append([event()], [Change("loops", "1", "new")], after=1)
say("appended")
sys.stdin.read()
"""


@contextmanager
def running(program: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a program on a journal, and kill it at the end if it is still there."""
    command = [sys.executable, "-c", PROGRAM + program, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    """Wait for the next line of a program."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def let_go(process: subprocess.Popen[str]) -> None:
    """Let a program that waits for its input go on."""
    assert process.stdin is not None
    process.stdin.close()


def slain(process: subprocess.Popen[str]) -> None:
    """Kill a program without a chance to tidy up."""
    process.kill()
    assert process.wait() == -signal.SIGKILL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a journal with one event and one row."""
    with Journal.open(tmp_path / "state" / "loopr.db", create=True) as journal:
        journal.append([EVENT], [Change("loops", "1", "old")], after=0)
    return journal.path


def folder(path: Path) -> dict[str, str]:
    """Return every file beside the journal with a digest of its content."""
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in path.parent.iterdir()}


def read_all(path: Path) -> tuple[int, int]:
    """Read the journal as a showing verb does; return the last seq and the number of rows."""
    with Journal.open(path, readonly=True) as journal, journal.snapshot() as seq:
        assert len(list(journal.since(0))) == seq
        return seq, len(journal.rows("loops"))


def test_killed_in_the_middle_of_an_append(path: Path) -> None:
    """Nothing of a half-done append is seen, neither while it runs, nor after SIGKILL, nor by the next writer."""
    with running(STOPS_HALF_WAY, path) as process:
        assert said(process) == "half way"
        assert path.with_name("loopr.db-wal").stat().st_size > 4_000_000  # it did reach the disk
        assert read_all(path) == (1, 1)
        slain(process)
    assert read_all(path) == (1, 1)
    with Journal.open(path) as journal:
        assert journal.integrity() == []
        assert journal.append([EVENT], after=1) == 2
    assert read_all(path) == (2, 1)


def test_an_append_is_seen_whole(path: Path) -> None:
    """A reader in another process sees none of an append before its commit, and all of it after."""
    with running(STOPS_HALF_WAY, path) as process, Journal.open(path, readonly=True) as reader:
        assert said(process) == "half way"
        assert not reader.changed_since(1)
        let_go(process)
        assert said(process) == "done"
        assert reader.changed_since(1)
        with reader.snapshot() as seq:
            assert (seq, len(reader.rows("loops"))) == (5_001, 20_001)


@pytest.mark.parametrize("appends", [1, 7, 40])
def test_killed_at_any_moment(path: Path, appends: int) -> None:
    """After SIGKILL at an arbitrary moment all that was reported is there, and events and rows agree."""
    path.unlink()
    Journal.open(path, create=True).close()
    with running(APPENDS_FOR_EVER, path) as process:
        for _ in range(appends):
            reported = int(said(process))
        slain(process)
        assert process.stdout is not None
        rest = process.stdout.read().split()
        reported = int(rest[-1]) if rest else reported
    for _ in range(2):
        seq, rows = read_all(path)
        assert seq >= reported
        assert seq % 3 == 0
        assert rows == seq
        with Journal.open(path) as journal:
            assert journal.integrity() == []


def test_readers_leave_no_trace(path: Path) -> None:
    """Reading a journal that nobody has open changes nothing in its folder; a closed writer leaves one file."""
    before = folder(path)
    assert list(before) == ["loopr.db"]
    mtime_ns = path.stat().st_mtime_ns
    assert read_all(path) == (1, 1)
    assert folder(path) == before
    assert path.stat().st_mtime_ns == mtime_ns


def test_readers_leave_no_trace_after_a_kill(path: Path) -> None:
    """What a killed writer left is read, all of it, and stays as it was to the last byte."""
    with running(APPENDS_AND_WAITS, path) as process:
        assert said(process) == "appended"
        slain(process)
    before = folder(path)
    assert set(before) == {"loopr.db", "loopr.db-wal", "loopr.db-shm"}
    for _ in range(2):
        with Journal.open(path, readonly=True) as one, Journal.open(path, readonly=True) as two:
            assert (one.last_seq(), one.row("loops", "1")) == (2, "new")
            assert two.row("loops", "1") == "new"
        assert folder(path) == before
    Journal.open(path).close()
    assert list(folder(path)) == ["loopr.db"]
    assert read_all(path) == (2, 1)


def test_a_log_without_its_index_is_read(path: Path) -> None:
    """Where only the file and its log were copied or survived, nothing of the log is missed."""
    with running(APPENDS_AND_WAITS, path) as process:
        assert said(process) == "appended"
        slain(process)
    path.with_name("loopr.db-shm").unlink()
    before = folder(path)
    assert read_all(path) == (2, 1)
    after = folder(path)
    after.pop("loopr.db-shm", None)
    assert after == before


def test_readers_beside_a_live_writer(path: Path) -> None:
    """Readers see what a live writer appended and change none of its files; when it ends, one file is left."""
    with running(APPENDS_AND_WAITS, path) as process:
        assert said(process) == "appended"
        before = folder(path)
        assert read_all(path) == (2, 1)
        assert folder(path) == before
        let_go(process)
        process.wait()
    assert list(folder(path)) == ["loopr.db"]


def test_a_writer_that_ends_under_a_reader(path: Path) -> None:
    """A reader that outlives the writer goes on reading, and so does whoever comes next."""
    writer = Journal.open(path)
    writer.append([EVENT], after=1)
    with Journal.open(path, readonly=True) as reader:
        writer.close()
        assert reader.last_seq() == 2
        with Journal.open(path) as other:
            other.append([EVENT], after=2)
        assert reader.last_seq() == 3
    assert read_all(path) == (3, 1)


def test_a_writer_that_starts_under_a_reader(path: Path) -> None:
    """A reader of a journal that nobody had open sees what is written from then on, moved into the file or not."""
    with Journal.open(path, readonly=True) as reader:
        with Journal.open(path) as writer:
            writer.append([EVENT], [Change("loops", str(key), "x" * 5_000) for key in range(2_000)], after=1)
            assert reader.last_seq() == 2
        assert len(reader.rows("loops")) == 2_000
        with reader.snapshot(), Journal.open(path) as writer:
            writer.append([EVENT], [Change("loops", str(key), "y" * 5_000) for key in range(2_000)], after=2)
            assert {body[0] for _, body in reader.rows("loops")} == {"x"}
    assert list(folder(path)) == ["loopr.db"]


MAKES = """
sys.stdin.read()
with Journal.open(path, create=True) as journal:
    say(journal.last_seq())
"""


def test_many_make_the_same_journal(tmp_path: Path) -> None:
    """Processes that make the journal at the same moment all get it, and it is made once."""
    path = tmp_path / "new" / "loopr.db"
    with running(MAKES, path) as a, running(MAKES, path) as b, running(MAKES, path) as c, running(MAKES, path) as d:
        for process in (a, b, c, d):
            let_go(process)
        assert [said(process) for process in (a, b, c, d)] == ["0"] * 4
        assert [process.wait() for process in (a, b, c, d)] == [0] * 4
    with Journal.open(path) as journal:
        assert journal.integrity() == []


def test_a_maker_waits_for_another(tmp_path: Path) -> None:
    """Who wants to make a journal while somebody else is at it waits for them instead of failing."""
    path = tmp_path / "loopr.db"
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with running(MAKES, path) as process:
        let_go(process)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        other.close()
        assert said(process) == "0"


COMPETES = """
sys.stdin.read()
from loopr.errors import Moved
journal = Journal.open(path)
kept = 0
while kept < 50:
    seq = journal.last_seq()
    try:
        journal.append([event(sys.argv[1])], [Change("loops", "n", str(seq + 1))], after=seq)
        kept += 1
    except Moved:
        pass
say(kept)
"""


def test_many_append_to_the_same_journal(path: Path) -> None:
    """Of processes that append as fast as they can none loses an event, and the row is that of the last event."""
    with running(COMPETES, path) as a, running(COMPETES, path) as b, running(COMPETES, path) as c:
        for process in (a, b, c):
            let_go(process)
        assert [said(process) for process in (a, b, c)] == ["50"] * 3
    with Journal.open(path) as journal:
        assert journal.last_seq() == 151
        assert journal.row("loops", "n") == "151"
        assert journal.integrity() == []
