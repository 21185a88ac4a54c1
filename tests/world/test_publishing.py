"""How a file gets to its place: as a whole or not at all, and safe from a power cut."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from loopr.errors import WorldError
from loopr.world import publishing as publishing_module
from loopr.world.publishing import publish, publishing, put_back


def files_below(root: Path) -> list[str]:
    """List every file of a folder, hidden ones too."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def open_files() -> int:
    """Count what this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_publish_makes_the_folders(tmp_path: Path) -> None:
    """Bytes are put at their place with all its folders, and nothing beside them."""
    path = tmp_path / "specs/oauth/tokens/spec.md"
    publish(path, "# Käse\n".encode())
    assert path.read_bytes() == "# Käse\n".encode()
    assert files_below(tmp_path) == ["specs/oauth/tokens/spec.md"]


def test_publish_leaves_an_equal_file_alone(tmp_path: Path) -> None:
    """Publishing what is there already touches nothing; another text replaces the file as a whole."""
    path = tmp_path / "plan.md"
    publish(path, b"one")
    before = path.stat()
    publish(path, b"one")
    assert path.stat() == before
    publish(path, b"two")
    assert (path.read_text(), path.stat().st_ino != before.st_ino) == ("two", True)


def test_publish_keeps_the_mode(tmp_path: Path) -> None:
    """A file keeps the permissions it had; a new one gets those of any new file."""
    path, plain = tmp_path / "plan.md", tmp_path / "plain"
    publish(path, b"one")
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    publish(path, b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_publish_never_writes_through_a_link(tmp_path: Path) -> None:
    """A link where the artifact belongs is replaced; what it points to stays as it was."""
    outside, path = tmp_path / "outside", tmp_path / "plan.md"
    outside.write_text("mine")
    path.symlink_to(outside)
    publish(path, b"mine")
    assert (outside.read_text(), path.is_symlink(), path.read_text()) == ("mine", False, "mine")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks Linux which file is meant")
def test_publish_syncs_before_it_renames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes are on disk before the name is, and the name before publish returns, new folders included."""
    told: list[str] = []
    real_sync, real_replace = os.fsync, os.rename

    def sync(file: int) -> None:
        told.append(f"sync {Path(f'/proc/self/fd/{file}').readlink().name.partition('.md')[0]}")
        real_sync(file)

    def replace(one: os.PathLike[str], other: os.PathLike[str]) -> None:
        told.append("rename")
        real_replace(one, other)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    publish(tmp_path / "a" / "b" / "plan.md", b"text")
    assert told == ["sync .plan", "rename", "sync b", "sync a", f"sync {tmp_path.name}"]


@contextmanager
def full_disk(free: int) -> Iterator[None]:
    """Let every file of this process end after so many bytes, as on a disk that is nearly full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up(tmp_path: Path) -> None:
    """A text that does not fit leaves the old file and no draft, and says what could not be written."""
    path = tmp_path / "plan.md"
    publish(path, b"old")
    with full_disk(1000), pytest.raises(WorldError, match="cannot write .*plan.md"):
        publish(path, b"x" * 2000)
    assert path.read_text() == "old"
    assert files_below(tmp_path) == ["plan.md"]


@pytest.mark.parametrize(("place", "remedy"), [("file/plan.md", "move the file"), ("folder", "move the folder")])
def test_something_stands_in_the_way(place: str, remedy: str, tmp_path: Path) -> None:
    """A file where a folder belongs, or the other way round, is an error with its remedy and no draft left."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(WorldError) as caught:
        publish(tmp_path / place, b"text")
    assert remedy in caught.value.hint
    assert files_below(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """A folder without write permission is an error that says so."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(WorldError) as caught:
            publish(tmp_path / "plan.md", b"text")
    finally:
        tmp_path.chmod(0o700)
    assert "permission" in caught.value.hint


# --- putting back -----------------------------------------------------------------------------------------------------


def test_what_is_put_back_never_takes_a_name(tmp_path: Path) -> None:
    """A file that stands at the place stays, whatever it is; nothing is left beside it."""
    path = tmp_path / "specs/auth/plan.md"
    assert put_back(path, b"# Kept\n")
    assert path.read_bytes() == b"# Kept\n"
    path.write_text("# Newer\n")
    assert not put_back(path, b"# Kept\n")
    assert path.read_text() == "# Newer\n"
    path.unlink()
    path.symlink_to("nowhere")
    assert not put_back(path, b"# Kept\n")
    assert files_below(tmp_path) == ["specs/auth/plan.md"]


@pytest.mark.parametrize("got_so_far", ["half", "named"])
def test_a_crash_while_putting_back(tmp_path: Path, got_so_far: str) -> None:
    """Whatever one who was killed has left, the next one ends with the whole file and nothing beside it."""
    path, draft = tmp_path / "plan.md", tmp_path / ".plan.md.back"
    draft.write_bytes(b"# Ke" if got_so_far == "half" else b"# Kept\n")
    if got_so_far == "named":
        os.link(draft, path)
    assert put_back(path, b"# Kept\n") is (got_so_far == "half")
    assert path.read_bytes() == b"# Kept\n"
    assert files_below(tmp_path) == ["plan.md"]


# --- in two steps -----------------------------------------------------------------------------------------------------


def test_what_is_begun_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To begin syncs and shows nothing; what is left to do gives the file its name, and closes what was open."""
    path, synced = tmp_path / "plan.md", list[int]()
    monkeypatch.setattr(os, "fsync", synced.append)
    before = open_files()
    finish = publishing(path, b"text")
    assert (path.exists(), synced) == (False, [])
    finish()
    assert (path.read_bytes(), len(synced), open_files()) == (b"text", 2, before)


def test_to_begin_waits_for_nobody(tmp_path: Path) -> None:
    """While somebody publishes at the same place, to begin returns at once; what is left to do waits for them."""
    path = tmp_path / "plan.md"
    first, second = publishing(path, b"first"), publishing(path, b"second")
    waiting = Thread(target=second)
    waiting.start()
    first()
    waiting.join(60)
    assert path.read_bytes() == b"second"
    assert files_below(tmp_path) == ["plan.md"]


def test_a_disk_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error when the disk takes the bytes is told, and neither a draft nor an open file is left."""

    def refuse(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    before = open_files()
    finish = publishing(tmp_path / "plan.md", b"text")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(WorldError, match="cannot write .*plan.md"):
        finish()
    assert (files_below(tmp_path), open_files()) == ([], before)


# --- no person's file is written over -----------------------------------------------------------------


def known(*texts: bytes) -> Callable[[bytes], bool]:
    """Return what lets some contents give way, and no other."""
    return lambda raw: raw in texts


def test_only_what_is_known_gives_way(tmp_path: Path) -> None:
    """A file of another content stays as it is, and nothing is left beside it; one that is known is replaced."""
    path = tmp_path / "specs/auth/spec.md"
    assert publish(path, b"one", known())
    assert publish(path, b"two", known(b"one"))
    path.write_bytes(b"a person's")
    before = path.stat()
    assert not publish(path, b"three", known(b"one", b"two"))
    assert (path.read_bytes(), path.stat()) == (b"a person's", before)
    assert files_below(tmp_path) == ["specs/auth/spec.md"]


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_no_file_stays(tmp_path: Path, kind: str) -> None:
    """A link, a folder or a pipe at the place is nothing that loopr knows: it stays."""
    path = tmp_path / "spec.md"
    if kind == "link":
        path.symlink_to("elsewhere.md")
    else:
        path.mkdir() if kind == "folder" else os.mkfifo(path)
    before = path.lstat()
    assert not publish(path, b"ours", known(b""))
    assert path.lstat() == before
    assert not (tmp_path / "elsewhere.md").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["spec.md"]


@pytest.mark.parametrize("way", ["by rename", "in place", "away"])
def test_saved_between_the_look_and_the_swap(tmp_path: Path, way: str) -> None:
    """A person who saves after loopr has looked, and before it takes the place, has their text there afterwards."""
    path, saved = tmp_path / "spec.md", list[bytes]()
    path.write_bytes(b"old")

    def save(raw: bytes) -> bool:
        """Say yes to the first look, and then save, so that the look and the step after it have another file."""
        if not saved:
            saved.append(raw)
            match way:
                case "by rename":
                    (tmp_path / "new").write_bytes(b"a person's")
                    (tmp_path / "new").replace(path)
                case "in place":
                    path.write_bytes(b"a person's")
                case _:
                    path.unlink()
        return raw == b"old"

    done = publish(path, b"ours", save)
    assert saved == [b"old"]
    assert (done, path.read_bytes()) == ((True, b"ours") if way == "away" else (False, b"a person's"))
    assert files_below(tmp_path) == ["spec.md"]


def test_saves_that_never_end(tmp_path: Path) -> None:
    """Of a thousand saves beside a thousand publishings none is lost: what was saved last is there, or came later."""
    path, count = tmp_path / "spec.md", 300
    path.write_bytes(b"0")

    def save() -> None:
        for number in range(1, count + 1):
            fresh = tmp_path / "editor"
            fresh.write_bytes(b"person %d" % number)
            fresh.replace(path)

    editor = Thread(target=save)
    editor.start()
    for number in range(count):
        publish(path, b"ours %d" % number, lambda raw: raw.startswith((b"ours", b"0")))
    editor.join(60)
    assert path.read_bytes() == b"person %d" % count
    assert files_below(tmp_path) == ["spec.md"]


# --- what a killed writer has left ------------------------------------------------------------------


def leave_draft(path: Path, raw: bytes, monkeypatch: pytest.MonkeyPatch) -> str:
    """Publish up to the moment before the file takes its place; return the name of what is left."""

    def die(*_: object) -> bool:
        os._exit(0)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(publishing_module, "take_place", die)
        publish(path, raw, known())
    assert os.waitpid(child, 0)[1] == 0
    (left,) = (each.name for each in path.parent.iterdir() if each != path)
    return left


@pytest.mark.parametrize("there", [b"", b"text"], ids=["nothing there", "the text is there"])
def test_a_killed_writers_draft_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bytes) -> None:
    """The next one who publishes the same text takes away what was left of it, and no other file."""
    path = tmp_path / "plan.md"
    left = leave_draft(path, b"text", monkeypatch)
    assert (tmp_path / left).read_bytes() == b"text"
    if there:
        path.write_bytes(there)
    others = {left.replace(".plan.md.", ".plan.md.x"): b"text", ".other.md.0123456789ab.tmp": b"text"}
    others |= {".plan.md.0123456789ab.tmp": b"a person's", ".plan.md.tmp.md": b"text"}
    for name, raw in others.items():
        (tmp_path / name).write_bytes(raw)
    os.mkfifo(tmp_path / ".plan.md.ba9876543210.tmp")
    assert publish(path, b"text", known())
    assert files_below(tmp_path) == sorted([*others, "plan.md", ".plan.md.ba9876543210.tmp"])


def test_a_living_writers_draft_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft that its writer holds is not taken away under it, whichever text it has."""
    path, real, others = tmp_path / "plan.md", publishing_module.take_place, list[bool]()

    def meanwhile(fresh: Path, place: Path, may_go: Callable[[bytes], bool]) -> bool:
        if not others:
            others.append(False)
            others[0] = publish(path, b"text", known(b"text"))
        return real(fresh, place, may_go)

    monkeypatch.setattr(publishing_module, "take_place", meanwhile)
    assert publish(path, b"text", known(b"text"))
    assert (others, path.read_bytes(), files_below(tmp_path)) == ([True], b"text", ["plan.md"])
