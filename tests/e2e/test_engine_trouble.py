"""Disks that are full or read-only while an engine works: it says so, loses nothing, and goes on once there is room."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.e2e.repos import Process, Repo, opened

Mount = Callable[..., Path]
PLAN = "---\nid: demo\nchildren: [{id: a}, {id: b, needs: [a]}]\n---\n# Demo\n"
FAST = "retry: {base_secs: 0.05, cap_secs: 0.1}\nscheduler: {poll_interval_secs: 0.1}\n"
STOPS_AT_A = 'test "$LOOPR_LOOP" != demo/a || { tell a; wait_at gate; }'


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Give what mounts something on a folder, where this machine lets us, until the test is over."""
    with ExitStack() as stack:

        def on(place: Path, *words: str) -> Path:
            place.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(["mount", *words, str(place)], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"nothing may be mounted here: {done.stderr.strip()}")
            stack.callback(subprocess.run, ["umount", "--lazy", str(place)], check=False)
            return place

        yield on


@pytest.fixture
def repo(tmp_path: Path, mount: Mount) -> Iterator[Repo]:
    """Give a repository that is not founded yet; what is mounted outlives its processes."""
    with opened(tmp_path) as found:
        yield found


def small(mount: Mount, place: Path, size: str = "8m") -> Path:
    """Put a small disk on a folder."""
    return mount(place, "-t", "tmpfs", "-o", f"size={size}", "tmpfs")


def fill(place: Path) -> Path:
    """Fill a disk to the last byte, and return the file that does it."""
    ballast = place / ".ballast"
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (1 << 16, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    os.write(descriptor, b"x" * size)
    finally:
        os.close(descriptor)
    with pytest.raises(OSError) as caught:
        (place / ".more").write_bytes(b"x" * 4096)
    assert caught.value.errno == errno.ENOSPC
    (place / ".more").unlink()
    return ballast


def ready(repo: Repo, script: str = STOPS_AT_A, more: str = "") -> None:
    """Found the repository, with settings and a plan of two loops, of which the first waits at the gate."""
    repo.found()
    repo.gate("gate")
    write = 'echo x > "$(basename "$LOOPR_LOOP").txt"'
    run = repo.script("code", f"{script}\n{write}")
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{more}}}\n{FAST}")
    repo.write({"plan.md": PLAN})


def all_landed(repo: Repo) -> None:
    """See that both loops have landed, at no cost, and that nothing is said to be wrong any more."""
    loops = repo.loops()
    assert {each["status"] for each in loops.values()} == {"complete"}
    assert [(each[0], each[2]) for each in repo.landed("demo")] == [("demo/a", 1), ("demo/b", 1)]
    assert {each["failures"] for each in loops.values()} == {0}
    assert repo.loopr("doctor", "--json").document["ok"] is True
    assert problems(repo) == []


def problems(repo: Repo) -> list[str]:
    """Return the places that something is wrong with, as the journal has them."""
    open_ones: dict[str, None] = {}
    for each in repo.events("problem_seen", "problem_gone"):
        place = each["data"]["place"]
        if each["event"] == "problem_seen":
            open_ones[place] = None
        else:
            open_ones.pop(place, None)
    return list(open_ones)


def refused(repo: Repo, words: str) -> None:
    """Wait until the engine knows that the machine refuses something, and see that `why` and `status` say it."""
    repo.until("host_changed", words=words)
    assert words in repo.loopr("status").out + repo.loopr("why", "demo/a").out


# --- under the worktrees --------------------------------------------------------------------------------------------


def test_no_space_for_worktrees(repo: Repo, mount: Mount) -> None:
    """A loop whose worktree does not fit on its disk waits for the machine, free, and goes on once there is room."""
    ready(repo, "")
    ballast = fill(small(mount, repo.root / "worktrees"))
    process = repo.begin("start", "plan.md")
    refused(repo, "no space")
    ballast.unlink()
    process.ended()
    all_landed(repo)


def test_no_space_for_worktrees_and_a_restart(repo: Repo, mount: Mount) -> None:
    """An engine that is killed on a full disk leaves nothing that keeps the next one from going on."""
    ready(repo, "")
    ballast = fill(small(mount, repo.root / "worktrees"))
    process = repo.begin("start", "plan.md")
    refused(repo, "no space")
    process.kill()
    ballast.unlink()
    repo.loopr("run")
    all_landed(repo)


def test_a_command_fills_its_disk(repo: Repo, mount: Mount) -> None:
    """A command that fills its disk is refused with what it said, waits for room with its work kept, and goes on."""
    small(mount, repo.root / "worktrees", "4m")
    ready(repo, 'if test "$LOOPR_LOOP" = demo/a && test $LOOPR_ITERATION = 1; then cat /dev/zero > big; fi; rm -f big')
    process = repo.begin("start", "plan.md")
    refused(repo, "no space")
    (repo.root / "worktrees/demo.a.g1/big").unlink()
    process.ended()
    assert {each["status"] for each in repo.loops().values()} == {"complete"}
    assert [(each[0], each[2]) for each in repo.landed("demo")] == [("demo/a", 2), ("demo/b", 1)]
    assert "big" not in repo.git("ls-tree", "--name-only", "loopr/demo").splitlines()


# --- under the state folder -----------------------------------------------------------------------------------------


def on_small_state(repo: Repo, mount: Mount) -> Process:
    """Start the plan with the git directory, and so the state in it, on a small disk; the first loop waits."""
    small(mount, repo.root / ".git", "16m")
    ready(repo)
    process = repo.begin("start", "plan.md")
    repo.heard()
    return process


def test_no_space_for_the_journal(repo: Repo, mount: Mount) -> None:
    """While the journal's disk is full the engine says so and forgets nothing, and it goes on once there is room."""
    process = on_small_state(repo, mount)
    ballast = fill(repo.root / ".git")
    process.says("cannot go on: ")
    repo.gates["gate"].open()
    repo.loopr("wait", "--timeout", "2", "demo", code=75)
    assert not process.has_ended
    ballast.unlink()
    process.ended()
    all_landed(repo)
    assert repo.granted()["demo/b"] == 1


def test_no_space_for_the_journal_and_a_restart(repo: Repo, mount: Mount) -> None:
    """A command that ends while the journal's disk is full, and the engine is gone by then, is taken in by the next."""
    process = on_small_state(repo, mount)
    ballast = fill(repo.root / ".git")
    process.kill()
    repo.gates["gate"].open()
    end = repo.loopr("run", code=None)
    assert end.code not in (0, 70) and ("full" in end.err or "space" in end.err), end
    ballast.unlink()
    repo.loopr("run")
    all_landed(repo)


def test_reading_on_a_full_disk(repo: Repo, mount: Mount) -> None:
    """Every verb that only shows works while the journal's disk is full, and status says that it is."""
    process = on_small_state(repo, mount)
    ballast = fill(repo.root / ".git")
    for words in (["tree"], ["ls"], ["status"], ["why", "demo/b"], ["events"], ["logs", "demo/a"], ["doctor"]):
        repo.loopr(*words, code=None if words == ["doctor"] else 0)
    assert "warning: no space is left on the disk of" in repo.loopr("status").out
    ballast.unlink()
    assert repo.loopr("status", "--json").document["warnings"] == []
    repo.gates["gate"].open()
    process.ended()
    all_landed(repo)


def test_stop_on_a_full_disk(repo: Repo, mount: Mount) -> None:
    """A stop that nobody can write down ends the engine and its commands, and costs nothing."""
    process = on_small_state(repo, mount)
    ballast = fill(repo.root / ".git")
    end = repo.loopr("stop", "--now", code=None)
    assert end.code in (0, 78), end
    process.signal(signal.SIGTERM)
    said = process.ended(None)
    assert said.code in (4, 143), said
    ballast.unlink()
    repo.gates["gate"].open()
    repo.loopr("run")
    all_landed(repo)


def test_an_interrupt_on_a_full_disk(repo: Repo, mount: Mount) -> None:
    """The first Ctrl-C on a full disk is still a stop: the live attempt ends, with its landing once there is room."""
    process = on_small_state(repo, mount)
    ballast = fill(repo.root / ".git")
    process.signal(signal.SIGINT)
    repo.loopr("wait", "--timeout", "1", "demo", code=75)
    assert not process.has_ended, process.said
    ballast.unlink()
    repo.gates["gate"].open()
    process.ended(130)
    assert repo.statuses()["demo/a"] == "complete"


# --- under the artifacts --------------------------------------------------------------------------------------------


def test_no_space_for_an_artifact(repo: Repo, mount: Mount) -> None:
    """An artifact that does not fit waits with its place and the reason; the commits have landed, and it follows."""
    specs = small(mount, repo.root / "specs", "256k")
    ready(repo)
    process = repo.begin("start", "plan.md")
    repo.heard()
    ballast = fill(specs)
    repo.gates["gate"].open()
    repo.until("problem_seen", words="specs/demo/a/code.md")
    assert "specs/demo/a/code.md" in repo.loopr("status").out
    ballast.unlink()
    process.ended()
    all_landed(repo)
    assert (specs / "demo/a/code.md").is_file()


def test_a_start_without_space_for_the_plan(repo: Repo, mount: Mount) -> None:
    """A start whose plan does not fit among the artifacts says so with 78, and the same start works later."""
    ready(repo, "")
    ballast = fill(small(mount, repo.root / "specs", "64k"))
    end = repo.loopr("start", "plan.md", code=78)
    assert "No space left" in end.err and "specs/demo/plan.md" in end.err
    ballast.unlink()
    repo.loopr("start", "plan.md")
    all_landed(repo)


def read_only(mount: Mount, specs: Path) -> None:
    """Make a folder read-only, for root too."""
    mount(specs, "--bind", str(specs))
    subprocess.run(["mount", "-o", "remount,ro,bind", str(specs)], check=True)


def writable(specs: Path) -> None:
    """Make the folder writable again."""
    subprocess.run(["mount", "-o", "remount,rw,bind", str(specs)], check=True)


@pytest.mark.parametrize("restart", [False, True], ids=["goes on", "restarted"])
def test_read_only_artifacts(repo: Repo, mount: Mount, restart: bool) -> None:
    """While specs/ is read-only what has landed waits to be published, says where, and follows once it may."""
    specs = repo.root / "specs"
    ready(repo)
    process = repo.begin("start", "plan.md")
    repo.heard()
    read_only(mount, specs)
    repo.gates["gate"].open()
    repo.until("problem_seen", words="Read-only")
    assert repo.statuses()["demo/a"] == "landing"
    if restart:
        process.kill()
        writable(specs)
        process = repo.begin("run")
    writable(specs)
    process.ended()
    all_landed(repo)
    assert (specs / "demo/b/code.md").is_file()


LADDER = "---\nid: demo\nchildren: [{id: a, children: [{id: x, children: [{id: p}]}]}]\n---\n# Demo\n"


def declared_while_read_only(repo: Repo, mount: Mount) -> tuple[Process, Path]:
    """Let a plan's own file change while specs/ is read-only, so that artifacts are owed which cannot be written."""
    repo.found()
    repo.gate("gate")
    run = repo.script("code", "tell $LOOPR_LOOP; wait_at gate; echo x > x")
    ladder = f"plan: {{child: spec}}, spec: {{child: phase}}, phase: {{child: code}}, code: {{run: '{run}'}}"
    repo.settings(f"types: {{{ladder}}}\n{FAST}")
    two = LADDER.replace("}]}]}]", "}]}]}, {id: b, needs: [a], children: [{id: x, children: [{id: p}]}]}]")
    repo.write({"plan.md": two})
    process = repo.begin("start", "plan.md")
    repo.heard()
    specs = repo.root / "specs"
    assert (specs / "demo/a/x/phase.md").is_file()
    mount(specs / "demo/b", "-t", "tmpfs", "-o", "size=64k", "tmpfs")
    fill(specs / "demo/b")
    repo.gates["gate"].open()
    return process, specs


def test_declared_artifacts_without_space(repo: Repo, mount: Mount) -> None:
    """A declared loop whose artifact cannot be written is named with the reason, without a busy wait, and follows."""
    process, specs = declared_while_read_only(repo, mount)
    repo.until("problem_seen", words="specs/demo/b")
    (specs / "demo/b/.ballast").unlink()
    process.ended()
    assert {each["status"] for each in repo.loops().values()} == {"complete"}
    assert problems(repo) == []


def test_no_busy_wait_without_space(repo: Repo, mount: Mount) -> None:
    """An engine that waits for room to write declared artifacts takes next to no processor meanwhile."""
    process, specs = declared_while_read_only(repo, mount)
    repo.until("landed")
    before = ticks(process.pid)
    waits = repo.begin("wait", "--timeout", "4", "demo")
    waits.ended(75)
    used = ticks(process.pid) - before
    (specs / "demo/b/.ballast").unlink()
    process.ended()
    assert used < 0.6 * os.sysconf("SC_CLK_TCK"), f"{used} ticks in 4 s"


def ticks(pid: int) -> int:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
