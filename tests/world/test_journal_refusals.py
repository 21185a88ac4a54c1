"""What the journal says when the file cannot be used: what is wrong, where, and what to do."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from loopr.errors import LooprError, SettingsError, UserError, WorldError
from loopr.world.journal import Change, Draft, Journal

EVENT = Draft(1_000, "happened", 1, None, "engine", "{}")


def advised(error: LooprError) -> bool:
    """Tell whether the error says what to do."""
    assert isinstance(error, (UserError, WorldError))
    return bool(error.hint)


def made(path: Path, rows: int = 1) -> Path:
    """Make a journal with one event and some rows."""
    with Journal.open(path, create=True) as journal:
        journal.append([EVENT], [Change("loops", f"{key:05}", "x" * 500) for key in range(rows)], after=0)
    return path


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Make a folder that any user may reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


@contextmanager
def plain_user() -> Iterator[None]:
    """Be somebody whom permissions concern, also where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 2 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_locked_for_longer_than_we_wait(tmp_path: Path) -> None:
    """A writer who never ends is named as such after the busy time, and the journal works again once it is gone."""
    path = made(tmp_path / "loopr.db")
    with Journal.open(path, busy_ms=20) as journal:
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(WorldError, match=r"locked for more than 0\.02 s") as caught:
            journal.append([EVENT], after=1)
        assert advised(caught.value)
        assert journal.last_seq() == 1
        other.close()
        assert journal.append([EVENT], after=1) == 2


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    """Reading goes on while somebody holds the write lock, also for one who comes then."""
    path = made(tmp_path / "loopr.db")
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with Journal.open(path, readonly=True, busy_ms=0) as journal:
        assert journal.last_seq() == 1
    other.close()


@pytest.mark.parametrize("readonly", [True, False])
def test_not_a_database(tmp_path: Path, readonly: bool) -> None:
    """A file of something else is refused and left as it is."""
    path = tmp_path / "loopr.db"
    path.write_bytes(random.Random(1).randbytes(20_000))
    before = path.read_bytes()
    with pytest.raises(SettingsError, match="damaged") as caught:
        Journal.open(path, readonly=readonly)
    assert advised(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("create", [True, False])
def test_a_database_of_another_program(tmp_path: Path, readonly: bool, create: bool) -> None:
    """A database that is not ours is refused, and gets no tables from us."""
    path = tmp_path / "loopr.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE theirs (a)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(SettingsError, match="not a journal of loopr"):
        Journal.open(path, create=create, readonly=readonly)
    assert path.read_bytes() == before


def test_a_page_that_was_overwritten(tmp_path: Path) -> None:
    """Damage inside the file is an error where it is read, and a line of the check; it is never an empty answer."""
    path = made(tmp_path / "loopr.db", rows=2_000)
    with path.open("r+b") as file:
        size = path.stat().st_size
        for offset in range(4096 * 12, size, 4096):
            file.seek(offset)
            file.write(b"\xa5" * 4096)
    with Journal.open(path, readonly=True) as journal:
        with pytest.raises(SettingsError, match="damaged"):
            journal.rows("loops")
        assert journal.integrity()


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    """A file that lost its end is damaged, not shorter."""
    path = made(tmp_path / "loopr.db", rows=2_000)
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)
    with pytest.raises(SettingsError, match="damaged"), Journal.open(path, readonly=True) as journal:
        journal.rows("loops")


def test_missing_events_are_found(tmp_path: Path) -> None:
    """The check of a file that SQLite finds sound still sees that events were taken out."""
    path = made(tmp_path / "loopr.db")
    with Journal.open(path) as journal:
        journal.append([EVENT, EVENT], after=1)
        assert journal.integrity() == []
        other = apsw.Connection(str(path))
        other.execute("DELETE FROM events WHERE seq = 2")
        other.close()
        assert journal.integrity() == ["2 events are numbered 1 to 3: some are missing"]


def test_reading_only_cannot_write(tmp_path: Path) -> None:
    """A journal that was opened for reading refuses to append, with an ordinary error."""
    path = made(tmp_path / "loopr.db")
    with Journal.open(path, readonly=True) as journal:
        with pytest.raises(SettingsError, match="cannot be written"):
            journal.append([EVENT], after=1)
        assert journal.last_seq() == 1


def test_a_file_that_may_not_be_written(open_folder: Path) -> None:
    """A read-only file is read without a trace, and a writer is told at once."""
    path = made(open_folder / "loopr.db")
    path.chmod(0o444)
    with plain_user():
        with pytest.raises(SettingsError, match="cannot be written") as caught:
            Journal.open(path)
        assert advised(caught.value)
        with Journal.open(path, readonly=True) as journal:
            assert journal.last_seq() == 1
    assert [each.name for each in open_folder.iterdir()] == ["loopr.db"]


def test_a_folder_that_may_not_be_written(open_folder: Path) -> None:
    """In a read-only folder a log cannot be made: readers do without, writers are told."""
    path = made(open_folder / "loopr.db")
    path.chmod(0o666)
    open_folder.chmod(0o555)
    with plain_user():
        with pytest.raises(SettingsError, match="cannot be written") as caught:
            Journal.open(path)
        assert advised(caught.value)
        with Journal.open(path, readonly=True) as journal:
            assert journal.last_seq() == 1
        with pytest.raises(SettingsError, match="cannot be opened"):
            Journal.open(open_folder / "new.db", create=True)
        with pytest.raises(SettingsError, match="cannot be made"):
            Journal.open(open_folder / "deeper" / "new.db", create=True)
    open_folder.chmod(0o777)
    assert [each.name for each in open_folder.iterdir()] == ["loopr.db"]


def test_a_file_that_may_not_be_read(open_folder: Path) -> None:
    """A file of somebody else is an error that names it, not a missing journal."""
    path = made(open_folder / "loopr.db")
    path.chmod(0o600 if os.geteuid() == 0 else 0)
    with plain_user(), pytest.raises(SettingsError, match="cannot be opened"):
        Journal.open(path, readonly=True)


def test_a_read_only_file_system(small_disk: Path) -> None:
    """On a file system mounted read-only every read works, and a writer is told what to check."""
    path = made(small_disk / "loopr.db")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with Journal.open(path, readonly=True) as journal, journal.snapshot() as seq:
        assert seq == 1
        assert len(journal.rows("loops")) == 1
    with pytest.raises(SettingsError, match="cannot be written"):
        Journal.open(path)


def fill(folder: Path) -> Path:
    """Use up what is left of a disk."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    return ballast


def test_a_full_disk(small_disk: Path) -> None:
    """A full disk refuses the append whole, reading goes on, and after making room the same append works."""
    path = made(small_disk / "loopr.db")
    changes = [Change("loops", f"{key:05}", "y" * 500) for key in range(200)]
    with Journal.open(path) as journal:
        ballast = fill(small_disk)
        with pytest.raises(WorldError, match="disk is full; nothing was written") as caught:
            journal.append([EVENT], changes, after=1)
        assert advised(caught.value)
        assert journal.last_seq() == 1
        assert len(journal.rows("loops")) == 1
        ballast.unlink()
        assert journal.append([EVENT], changes, after=1) == 2
        assert journal.integrity() == []


def test_opening_on_a_full_disk(small_disk: Path) -> None:
    """A writer that finds no room even for the index beside the journal is told that the disk is full."""
    path = made(small_disk / "loopr.db")
    ballast = fill(small_disk)
    with pytest.raises(WorldError, match="disk is full; nothing was written") as caught, Journal.open(path) as journal:
        journal.append([EVENT], [], after=1)
    assert advised(caught.value)
    ballast.unlink()
    with Journal.open(path) as journal:
        assert journal.append([EVENT], [], after=1) == 2


def test_reading_on_a_full_disk(small_disk: Path) -> None:
    """A journal that nobody has open is read although there is no room for the files that reading usually makes."""
    path = made(small_disk / "loopr.db")
    before = path.read_bytes()
    ballast = fill(small_disk)
    for _ in range(2):
        with Journal.open(path, readonly=True) as journal:
            assert journal.last_seq() == 1
    ballast.unlink()
    with Journal.open(path, readonly=True) as journal:
        assert journal.last_seq() == 1
    assert [each.name for each in small_disk.iterdir()] == ["loopr.db"]
    assert path.read_bytes() == before


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """Without room in the file itself the append is refused whole."""
    path = made(tmp_path / "loopr.db")
    with Journal.open(path) as journal:
        journal._connection.pragma("max_page_count", journal.size() // 4096)  # as near to a full disk as all users get
        with pytest.raises(WorldError, match="full"):
            journal.append([EVENT], [Change("loops", "big", "y" * 500_000)], after=1)
        assert journal.last_seq() == 1
        assert journal.row("loops", "big") is None
