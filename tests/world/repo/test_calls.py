"""The door to git: passing troubles pass, killed owners leave no lock, and what git says can be understood."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from loopr.core.model import Failure
from loopr.driving.outcomes import trouble_before
from loopr.errors import WorldError
from loopr.world.repo.calls import QUIET, GitFailed
from loopr.world.repo.locks import held
from loopr.world.repo.objects import descends, loose
from loopr.world.repo.refs import Move, RefRaced, is_ancestor, merge_base, move_refs, read_refs
from tests.world.repo.grounds import begin, git, ground_of, plant, write

HOLDER = """
import sys
from pathlib import Path
from loopr.world.repo.ground import open_ground
ground = open_ground(Path(sys.argv[1]), worktrees=Path(sys.argv[1]) / "worktrees")
with ground.alone() as door:
    print("held", flush=True)
    door.run("-c", f"alias.wait=!cat '{sys.argv[2]}'", "wait")
"""


def test_a_git_that_outlives_its_engine_keeps_the_lock(tmp_path: Path) -> None:
    """After kill -9 of the engine the lock is held until the git that ran under it has ended."""
    root, pipe = plant(tmp_path / "repo"), tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", HOLDER, str(root), str(pipe)]
    engine = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "."})
    assert engine.stdout is not None
    assert engine.stdout.readline() == "held\n"
    writer = os.open(pipe, os.O_WRONLY)  # returns once git's child reads
    os.kill(engine.pid, signal.SIGKILL)
    engine.wait()
    engine.stdout.close()
    file = root / ".git" / "loopr" / "git.lock"
    with file.open() as opened, pytest.raises(BlockingIOError):
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(writer)
    with held(file):
        pass


def test_what_git_has_waited_for_long_is_not_tried_again(tmp_path: Path) -> None:
    """Where git itself has waited seconds for a lock, it is not started again and again to wait once more."""
    root, trace = plant(tmp_path / "repo"), tmp_path / "trace"
    git(root, "branch", "other")
    (root / ".git" / "packed-refs.lock").touch()
    patient = replace(ground_of(root).door, settings=(*QUIET, ("core.packedRefsTimeout", "2100")))
    said = patient.ask("update-ref", "-d", "refs/heads/other", variables={"GIT_TRACE": str(trace)})
    assert "packed-refs.lock" in said.err
    assert trace.read_text().count("built-in: git update-ref") == 1


def test_a_lock_that_passes_is_waited_for(tmp_path: Path) -> None:
    """A lock file that is gone a moment later is no failure; one that stays is, and names the machine as its cause."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    lock = root / ".git" / "config.lock"
    lock.touch()
    timer = threading.Timer(0.05, lock.unlink)
    timer.start()
    ground.door.run("config", "--local", "loopr.test", "1")
    timer.join()
    lock.touch()
    with pytest.raises(GitFailed, match="File exists") as caught:
        ground.door.run("config", "--local", "loopr.test", "2")
    assert caught.value.host


@pytest.mark.parametrize("name", ["config.lock", "refs/heads/other.lock", "packed-refs.lock"])
def test_a_lock_of_another_git_is_named(name: str, tmp_path: Path) -> None:
    """Whoever is kept by a lock file is told its name, since when it is there, and the line."""
    root = plant(tmp_path / "re po")
    git(root, "branch", "other")
    git(root, "pack-refs", "--all")
    lock, door = root / ".git" / name, ground_of(root).door
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    os.utime(lock, (0, 0))
    with pytest.raises(GitFailed) as caught:
        if name == "config.lock":
            door.run("config", "--local", "loopr.test", "2")
        else:
            move_refs(door, [Move("refs/heads/other", "")])
    told = caught.value.lock
    assert told is not None
    assert told.where == str(lock)
    assert "there since 1970-01-01T00:00:00Z" in told.message
    assert f"rm '{lock}'" in told.hint
    assert trouble_before(caught.value).failure is Failure.HOST


@pytest.mark.parametrize("name", ["repo", "re po"])
def test_a_worktree_that_is_being_made_is_waited_for(name: str, tmp_path: Path) -> None:
    """While somebody else's worktree is half made git cannot read it; a moment later it can, whatever the path."""
    root = plant(tmp_path / name)
    half = root / ".git" / "worktrees" / "half"
    write(half, {"HEAD": "ref: refs/heads/other\n", "gitdir": "/nowhere/.git\n", "commondir": ""})
    door, waiting = ground_of(root).door, threading.Timer(0.05, (half / "commondir").write_text, ["../..\n"])
    waiting.start()
    assert door.ask("worktree", "list").code == 0
    waiting.join()


def test_a_moved_ref_is_a_race_and_changes_nothing(tmp_path: Path) -> None:
    """A transaction whose expectation fails leaves every ref of it where it was."""
    root = plant(tmp_path / "repo")
    ground = ground_of(root)
    tip = begin(ground)
    wrong = git(root, "commit-tree", "-m", "x", "HEAD^{tree}")
    with pytest.raises(RefRaced):
        move_refs(ground.door, [Move("refs/loopr/new", tip, ""), Move("refs/heads/loopr/oauth", wrong, wrong)])
    assert read_refs(ground.door, "refs/loopr/new", "refs/heads/loopr/oauth") == {"refs/heads/loopr/oauth": tip}
    with pytest.raises(RefRaced):
        move_refs(ground.door, [Move("refs/heads/loopr/oauth", tip, "")])


def test_a_folder_that_is_gone_is_no_reason_to_work_elsewhere(tmp_path: Path) -> None:
    """A call for a folder that does not exist fails before git is started."""
    ground = ground_of(plant(tmp_path / "repo"))
    door = ground.door
    door.work_tree.rmdir()
    with pytest.raises(WorldError, match="is gone"):
        door.run("status")


def test_ancestors_are_the_same_whether_objects_are_loose_or_packed(tmp_path: Path) -> None:
    """What is found by reading loose objects is what git says, and packed ones are asked for."""
    root = plant(tmp_path / "repo")
    for number in range(3):
        git(root, "commit", "-q", "--allow-empty", "-m", str(number))
    git(root, "checkout", "-q", "-b", "side", "HEAD~2")
    git(root, "commit", "-q", "--allow-empty", "-m", "side")
    door = ground_of(root).door
    names = [git(root, "rev-parse", name) for name in ("main~3", "main~1", "main", "side")]
    for _ in ("loose", "packed"):
        for one in names:
            for other in names:
                said = git(root, "merge-base", one, other)
                assert merge_base(door, one, other) == said
                assert is_ancestor(door, one, other) == (said == one)
        git(root, "gc", "-q", "--prune=now")
    assert not descends(door, names[0], names[2])
    assert loose(door.common, names[0], 10) is None


def test_a_large_loose_object_is_read_as_far_as_asked(tmp_path: Path) -> None:
    """The size of a loose object is known from its head, and its content is whole if that is wanted."""
    root = plant(tmp_path / "repo")
    text = "".join(f"{number}\n" for number in range(200_000))
    write(root, {"large.txt": text})
    name = git(root, "hash-object", "-w", "large.txt")
    door = ground_of(root).door
    head, whole = loose(door.common, name, 100), loose(door.common, name, 1 << 40)
    assert head is not None
    assert whole is not None
    assert (head.kind, head.size, head.content) == ("blob", len(text), text[:100].encode())
    assert whole.content == text.encode()
