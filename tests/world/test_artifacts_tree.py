"""The tree as files: what a scan finds, where an artifact may lie, and how it gets there."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from loopr.core.policy import default_types
from loopr.errors import PlanError, WorldError
from loopr.world.artifacts import artifact_path, digest, publish, put_back, scan

TYPES = default_types()
HOSTILE = st.text(st.sampled_from("a./\\-~:\0\n 😀A"), max_size=12) | st.lists(
    st.sampled_from(["..", ".", "", "a", "con", "~", "link", "x" * 64]), max_size=11
).map("/".join)


def drop(root: Path, *names: str) -> None:
    """Put a small file at each of these places."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")


def files_below(root: Path) -> list[str]:
    """List every file of a folder, hidden ones too."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


# --- scan ------------------------------------------------------------------------------------------------------------


def test_a_scan_finds_the_tree(tmp_path: Path) -> None:
    """Each artifact is found with the id its folders make, its type, time and size, in the order of ids."""
    drop(
        tmp_path,
        "oauth/tokens/store/code/code.md",
        "oauth/tokens/store/phase.md",
        "oauth/tokens/spec.md",
        "oauth/plan.md",
    )
    found, odd = scan(tmp_path, TYPES)
    assert [(each.loop_id, each.type) for each in found] == [
        ("oauth", "plan"),
        ("oauth/tokens", "spec"),
        ("oauth/tokens/store", "phase"),
        ("oauth/tokens/store/code", "code"),
    ]
    status = (tmp_path / "oauth/plan.md").stat()
    assert (found[0].path, found[0].mtime_ns, found[0].size) == (
        tmp_path / "oauth/plan.md",
        status.st_mtime_ns,
        status.st_size,
    )
    assert odd == ()


def test_a_scan_leaves_other_files_alone(tmp_path: Path) -> None:
    """Hidden files, drafts of editors and of loopr, and the user's own documents are no artifacts and no problem."""
    drop(tmp_path, "README.md", "plan.md", "oauth/notes.md", "oauth/.plan.md.swp", "oauth/plan.md~", "oauth/#plan.md#")
    drop(tmp_path, "oauth/.plan.md.0a1b.tmp", ".hidden/plan.md", "oauth/PLAN.md.bak", "a/b/c/d/e/f/plan.md")
    (tmp_path / "oauth/plan.md").mkdir()
    assert scan(tmp_path, TYPES).found == ()


def test_a_scan_names_what_is_odd(tmp_path: Path) -> None:
    """A folder that is no id, an artifact at the wrong level and a link are named with what to do, and not followed."""
    drop(tmp_path, "My Plan/plan.md", "con/plan.md", "oauth/spec.md", "oauth/plan.md", "elsewhere/spec.md")
    (tmp_path / "linked").symlink_to(tmp_path / "oauth")
    (tmp_path / "oauth/out").symlink_to("/")
    (tmp_path / "oauth/tokens").mkdir()
    (tmp_path / "oauth/tokens/spec.md").symlink_to(tmp_path / "elsewhere/spec.md")
    found, odd = scan(tmp_path, TYPES)
    assert [each.loop_id for each in found] == ["oauth"]
    assert sorted(Path(each.where).relative_to(tmp_path).as_posix() for each in odd) == [
        *("My Plan", "con", "elsewhere/spec.md", "linked", "oauth/out", "oauth/spec.md", "oauth/tokens/spec.md")
    ]
    assert all(each.hint for each in odd)


def test_a_scan_of_nothing(tmp_path: Path) -> None:
    """A folder that does not exist holds nothing; a file in its place is named."""
    assert scan(tmp_path / "specs", TYPES) == ((), ())
    drop(tmp_path, "file")
    assert len(scan(tmp_path / "file", TYPES).odd) == 1


# --- paths -----------------------------------------------------------------------------------------------------------


def test_where_artifacts_lie(tmp_path: Path) -> None:
    """An artifact lies in the folder that its id names, under its type's name."""
    assert artifact_path(tmp_path, "oauth/tokens", "spec") == tmp_path / "oauth/tokens/spec.md"


@pytest.mark.parametrize(
    "loop_id", ["", "/", "../x", "a/../b", "a//b", "/etc", "a/", ".", "a/CON", "A", "a\0", "a/" * 9 + "a"]
)
def test_an_id_that_leads_elsewhere(loop_id: str, tmp_path: Path) -> None:
    """An id that could leave the folder, or that is too deep, has no path."""
    with pytest.raises(PlanError):
        artifact_path(tmp_path, loop_id, "plan")


@pytest.mark.parametrize("type_name", ["", "../plan", "a/b", ".", "a\0"])
def test_a_type_that_leads_elsewhere(type_name: str, tmp_path: Path) -> None:
    """A type whose name is no plain word has no path either."""
    with pytest.raises(PlanError):
        artifact_path(tmp_path, "oauth", type_name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HOSTILE, HOSTILE | st.just("plan"))
@example("link/x", "plan")
@example("a/../../x", "plan")
def test_nothing_leaves_the_folder(tmp_path: Path, loop_id: str, type_name: str) -> None:
    """Whatever id and type are asked for, the path is refused or really lies inside, links on the way included."""
    specs = tmp_path / "specs"
    (specs / "a").mkdir(parents=True, exist_ok=True)
    for link in (specs / "link", specs / "a" / "link"):
        if not link.is_symlink():
            link.symlink_to(tmp_path)
    try:
        path = artifact_path(specs, loop_id, type_name)
    except PlanError as error:
        assert str(error).isprintable()
        return
    assert path.parent.resolve().is_relative_to(specs.resolve())
    assert path.parent.resolve() == path.parent.absolute()
    assert path.name == f"{type_name}.md"


# --- publish ---------------------------------------------------------------------------------------------------------


def test_publish_makes_the_folders(tmp_path: Path) -> None:
    """A text is put at its place with all its folders, and known by the digest of its bytes."""
    path = artifact_path(tmp_path / "specs", "oauth/tokens", "spec")
    assert publish(path, "# Käse\n") == digest("# Käse\n".encode())
    assert path.read_bytes() == "# Käse\n".encode()
    assert files_below(tmp_path) == ["specs/oauth/tokens/spec.md"]
    assert [each.loop_id for each in scan(tmp_path / "specs", TYPES).found] == ["oauth/tokens"]


def test_publish_leaves_an_equal_file_alone(tmp_path: Path) -> None:
    """Publishing what is there already touches nothing; another text replaces the file as a whole."""
    path = tmp_path / "plan.md"
    first = publish(path, "one")
    before = path.stat()
    assert publish(path, "one") == first
    assert path.stat() == before
    assert publish(path, "two") != first
    assert (path.read_text(), path.stat().st_ino != before.st_ino) == ("two", True)


def test_publish_keeps_the_mode(tmp_path: Path) -> None:
    """A file keeps the permissions it had; a new one gets those of any new file."""
    path, plain = tmp_path / "plan.md", tmp_path / "plain"
    publish(path, "one")
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    publish(path, "two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_publish_never_writes_through_a_link(tmp_path: Path) -> None:
    """A link where the artifact belongs is replaced; what it points to stays as it was."""
    outside, path = tmp_path / "outside", tmp_path / "plan.md"
    outside.write_text("mine")
    path.symlink_to(outside)
    publish(path, "mine")
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
    publish(tmp_path / "a" / "b" / "plan.md", "text")
    assert told == [f"sync {tmp_path.name}", "sync a", "sync .plan", "rename", "sync b"]


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
    publish(path, "old")
    with full_disk(1000), pytest.raises(WorldError, match="cannot write .*plan.md"):
        publish(path, "x" * 2000)
    assert path.read_text() == "old"
    assert files_below(tmp_path) == ["plan.md"]


@pytest.mark.parametrize(("place", "remedy"), [("file/plan.md", "move the file"), ("folder", "move the folder")])
def test_something_stands_in_the_way(place: str, remedy: str, tmp_path: Path) -> None:
    """A file where a folder belongs, or the other way round, is an error with its remedy and no draft left."""
    drop(tmp_path, "file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(WorldError) as caught:
        publish(tmp_path / place, "text")
    assert remedy in caught.value.hint
    assert files_below(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """A folder without write permission is an error that says so."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(WorldError) as caught:
            publish(tmp_path / "plan.md", "text")
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
