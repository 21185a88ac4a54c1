"""Plain folders, for loops that work without git: made once, kept while in use, and never taken for a person's."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from loopr.errors import WorldError
from loopr.world.repo import leftovers, plain
from loopr.world.repo.ground import Ground
from loopr.world.repo.worktrees import nobody
from tests.world.repo.grounds import begin, git, ground_of, plant, take, write

NAME = "oauth.one.g1"


def collect(ground: Ground, in_use: set[str]) -> list[str]:
    """Clear away all folders that may go, and return their names."""
    listed = leftovers.leftovers(ground, in_use)
    return [each.name for each in leftovers.clear_away(ground, listed, in_use) if each.kind == "folder"]


def test_a_plain_folder_is_made_once_and_goes_when_its_loop_is_over(tmp_path: Path) -> None:
    """A second attempt finds what the first left; the folder goes, files and all, only when its loop is over."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    folder = plain.ensure_plain(ground.worktrees, NAME)
    write(folder, {"deep/left.txt": "x\n"})
    (folder / "link").symlink_to(root / "a.txt")
    assert plain.ensure_plain(ground.worktrees, NAME) == folder
    assert (folder / "deep" / "left.txt").exists()
    assert collect(ground, {NAME}) == []
    assert git(root, "worktree", "list").count("\n") == 0
    assert collect(ground, set()) == [NAME]
    assert not folder.exists()
    assert not (ground.worktrees / ".gone").exists()
    assert (root / "a.txt").exists()


def test_an_empty_folder_goes_and_a_persons_stays(tmp_path: Path) -> None:
    """What has nothing in it may go; what loopr did not mark stays, and so does a link, wherever it leads."""
    ground = ground_of(plant(tmp_path / "repo"))
    write(ground.worktrees, {"mine/x.txt": "x\n"})
    (ground.worktrees / "empty").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (ground.worktrees / "link").symlink_to(tmp_path / "elsewhere")
    assert collect(ground, set()) == ["empty"]
    assert (ground.worktrees / "mine" / "x.txt").exists()
    assert (tmp_path / "elsewhere").is_dir()
    assert plain.remove_plain(ground.worktrees, ("mine", "link", "../elsewhere", ".pool", "none/../mine")) == set()
    assert (ground.worktrees / "mine" / "x.txt").exists()
    assert (ground.worktrees / "link").is_symlink()
    assert (tmp_path / "elsewhere").is_dir()


def test_a_plain_folder_in_which_somebody_lives_is_kept(tmp_path: Path) -> None:
    """A live process in a plain folder is a reason to keep it, and is named."""
    worktrees = tmp_path / "worktrees"
    assert list(plain.plain_folders(worktrees, set(), nobody)) == []
    plain.ensure_plain(worktrees, NAME)
    (kept,) = plain.plain_folders(worktrees, set(), lambda _: "process 7 lives in it")
    assert (kept.may_go, kept.why) == (False, "process 7 lives in it")


def test_a_worktree_in_the_place_of_a_plain_folder_is_told(tmp_path: Path) -> None:
    """A type that was switched to `worktree: false` does not take the worktree of a loop for a plain folder."""
    ground = ground_of(plant(tmp_path / "repo"))
    begin(ground)
    take(ground, NAME)
    with pytest.raises(WorldError, match="in the way"):
        plain.ensure_plain(ground.worktrees, NAME)


def test_what_a_crash_has_left_out_of_sight_is_cleared(tmp_path: Path) -> None:
    """A folder that was moved out of sight and not yet removed goes at the next beginning, and nothing else does."""
    ground = ground_of(plant(tmp_path / "repo"))
    plain.clear_going(ground.worktrees)
    folder = plain.ensure_plain(ground.worktrees, NAME)
    write(ground.worktrees, {".gone/abc/old.g1/.loopr/plain": "", ".gone/abc/old.g1/x.txt": "x\n"})
    plain.clear_going(ground.worktrees)
    assert [each.name for each in ground.worktrees.iterdir()] == [folder.name]


@pytest.mark.parametrize("moment", ["held", "not held yet"])
def test_two_that_take_folders_away_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """One that is done clears nothing which another is about to move out of sight: both go."""
    worktrees = tmp_path / "worktrees"
    for name in ("one.g1", "two.g1"):
        plain.ensure_plain(worktrees, name)
    others, make, lock = list[set[str]](), tempfile.mkdtemp, fcntl.flock

    def other() -> None:
        if not others:
            others.append(set())
            others[0] |= plain.remove_plain(worktrees, ["two.g1"])

    def made(dir: Path) -> str:
        place = make(dir=dir)
        if moment == "not held yet":
            other()
        return place

    def held(descriptor: int, how: int) -> None:
        lock(descriptor, how)
        if moment == "held":
            other()

    monkeypatch.setattr(tempfile, "mkdtemp", made)
    monkeypatch.setattr(fcntl, "flock", held)
    assert plain.remove_plain(worktrees, ["one.g1"]) == {"one.g1"}
    assert others == [{"two.g1"}]
    assert list(worktrees.iterdir()) == []


def test_nothing_is_made_for_folders_that_are_gone(tmp_path: Path) -> None:
    """An engine that ends just then has nothing to leave behind: the folder of worktrees is not touched."""
    os.utime(tmp_path, ns=(1, 1))
    assert plain.remove_plain(tmp_path, ["one.g1", "two.g1"]) == set()
    assert tmp_path.stat().st_mtime_ns == 1


def test_what_a_link_leads_to_is_not_cleared(tmp_path: Path) -> None:
    """Where a loop has put a link in the place of what is out of sight, nothing that lies where it leads goes."""
    worktrees = tmp_path / "worktrees"
    write(tmp_path / "elsewhere", {"mine/x.txt": "x\n"})
    worktrees.mkdir()
    (worktrees / ".gone").symlink_to(tmp_path / "elsewhere")
    plain.clear_going(worktrees)
    assert (tmp_path / "elsewhere/mine/x.txt").exists()
    (worktrees / ".gone").symlink_to(tmp_path / "elsewhere")
    plain.ensure_plain(worktrees, "one.g1")
    assert plain.remove_plain(worktrees, ["one.g1"]) == {"one.g1"}
    assert [each.name for each in (tmp_path / "elsewhere").iterdir()] == ["mine"]
    assert list(worktrees.iterdir()) == []


def test_an_engine_that_ends_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What clears outlives its engine, and leaves nothing: neither a folder nor the place of all of them."""
    worktrees = tmp_path / "worktrees"
    write(worktrees, {".gone/abc/old.g1/.loopr/plain": ""})
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(shutil, "rmtree", lambda *given, **named: os._exit(0))
        plain.clear_going(worktrees)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert list(worktrees.iterdir()) == []
