"""The tree as files: what a scan finds, and where an artifact may lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from loopr.core.policy import default_types
from loopr.errors import PlanError
from loopr.world.artifacts import artifact_path, scan

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


def test_the_folder_itself_is_no_link(tmp_path: Path) -> None:
    """Where a link stands for the whole folder it is named, and nothing is written through it."""
    drop(tmp_path, "real/oauth/plan.md")
    specs = tmp_path / "specs"
    specs.symlink_to("real")
    found, odd = scan(specs, TYPES)
    assert (found, [each.where for each in odd]) == ((), [str(specs)])
    with pytest.raises(PlanError, match="symbolic link") as caught:
        artifact_path(specs, "oauth", "plan")
    assert caught.value.hint


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
