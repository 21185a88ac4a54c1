"""Engines that wait for what does not come by itself, and are told to end at a random instant.

A scene brings an engine into its wait; a cure takes away afterwards what kept it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event
from typing import NamedTuple

import pytest

from tests.e2e.repos import LOOPR, Ended, Process, Repo

GRACE_SECS, MARGIN_SECS = 1.0, 2.0
NOMINAL_SECS = 0.15  # what `loopr --version` takes where nothing else runs
FILES = 20_000
NAMES = ("a", "b", "c")
WAYS = ("SIGTERM", "Ctrl-C twice", "stop --now")
WORK = """
case $LOOPR_LOOP in
demo/a | demo/c) tell "$LOOPR_LOOP"; wait_at go ;;
demo/b) trap "$TRAP" TERM; tell "$LOOPR_LOOP"; wait_at hold ;;
esac
{more}
echo "$LOOPR_LOOP" > "$(basename "$LOOPR_LOOP")"
"""
Cure = Callable[[], object]


class Setting(NamedTuple):
    """Where a scene is played: its repository, its dice, and what is taken back at its end."""

    repo: Repo
    dice: random.Random
    stack: ExitStack


class Stopped(NamedTuple):
    """What came of telling an engine to end at once."""

    secs: float
    control_secs: float
    said: Ended
    verb: Ended | None

    @property
    def allowed_secs(self) -> float:
        """How long it may take: the promise, on a machine as slow as the control says."""
        return (GRACE_SECS + MARGIN_SECS) * max(1.0, self.control_secs / NOMINAL_SECS)


def found(at: Setting, more: str = "", settings: str = "", hooks: str = "") -> None:
    """Found the repository, with a plan of three loops: two wait at `go`, and one at `hold`."""
    repo = at.repo
    repo.found()
    for gate in ("go", "hold", "late"):
        repo.gate(gate)
    run = repo.script("code", WORK.format(more=more).replace("$TRAP", at.dice.choice(["", "-"])))
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: 'exec {run}', check: 'true'}}\n"
        f"concurrency: {{max_loops: 3}}\ntimeouts: {{grace_secs: {GRACE_SECS:g}}}\n"
        f"retry: {{base_secs: 0.05, cap_secs: 0.2}}\n{settings}{hooks}"
    )
    children = ", ".join(f"{{id: {each}}}" for each in NAMES)
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})


def begun(at: Setting) -> Process:
    """Start the engine, and wait until all commands work."""
    process = at.repo.begin("start", "plan.md")
    assert sorted(at.repo.heard(3)) == [f"demo/{each}" for each in NAMES]
    return process


# --- scenes ---------------------------------------------------------------------------------------------------------


def checkout(at: Setting) -> tuple[Process, Cure]:
    """Let a loop land while a person has the plan's branch checked out."""
    found(at)
    process, mine = begun(at), at.repo.root.parent / "mine"
    at.repo.git("worktree", "add", "--quiet", str(mine), "loopr/demo")
    at.repo.gates["go"].open()
    at.repo.until("work_ended", 2)
    return process, lambda: at.repo.git("worktree", "remove", "--force", str(mine))


def lock(at: Setting) -> tuple[Process, Cure]:
    """Let a loop land while another git holds the plan's branch."""
    found(at)
    process, file = begun(at), at.repo.root / ".git/refs/heads/loopr/demo.lock"
    file.touch()
    at.repo.gates["go"].open()
    at.repo.until("work_ended", 2)
    return process, lambda: file.unlink(missing_ok=True)


def full_disk(at: Setting) -> tuple[Process, Cure]:
    """Fill the disk that the journal is on."""
    place = at.repo.root / ".git"
    mounted(at, place)
    found(at)
    process = begun(at)
    ballast = filled(place)
    at.repo.gates["go"].open()
    return process, ballast.unlink


def objects(at: Setting) -> tuple[Process, Cure]:
    """Damage the commit that everything begins at."""
    found(at)
    process = begun(at)
    tip = at.repo.git("rev-parse", "loopr/demo")
    file = at.repo.root / ".git/objects" / tip[:2] / tip[2:]
    kept = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(b"")
    at.repo.gates["go"].open()
    return process, lambda: file.write_bytes(kept)


def supervisor(at: Setting) -> tuple[Process, Cure]:
    """Let a command stop whoever watches it."""
    once = 'if test ! -e "$DESK/stopped" && test $LOOPR_LOOP = demo/a; then touch "$DESK/stopped"; '
    found(at, once + 'kill -STOP "$PPID"; tell stopped; wait_at late; fi')
    process = begun(at)
    at.repo.gates["go"].open()
    assert at.repo.heard() == ["stopped"]
    at.stack.callback(wake, at.repo.state)
    return process, at.repo.gates["late"].open


def launcher(at: Setting) -> tuple[Process, Cure]:
    """Stop the launcher."""
    found(at)
    process = begun(at)
    os.kill(next(watchers(at.repo.state))[1], signal.SIGSTOP)
    at.stack.callback(wake, at.repo.state)
    return process, lambda: wake(at.repo.state)


def hanging_git(at: Setting) -> tuple[Process, Cure]:
    """Let the git that makes the first worktree wait for ever for a filter of the person's."""
    found(at)
    smudge = at.repo.script("smudge", "trap '' TERM; wait_at late; cat")
    at.repo.git("config", "filter.slow.smudge", smudge)
    at.repo.write({".gitattributes": "slow filter=slow\n", "slow": "slow\n"})
    at.repo.git("add", ".gitattributes", "slow")
    at.repo.git("commit", "--quiet", "--message=slow")
    process = at.repo.begin("start", "plan.md")
    at.repo.until("lease_granted")
    return process, at.repo.gates["late"].open


def large(at: Setting) -> tuple[Process, Cure]:
    """Let the first worktree of a large repository be made."""
    found(at)
    files = "".join(f"M 644 inline d{each // 500}/f{each}\ndata 2\nx\n\n" for each in range(FILES))
    text = f"commit refs/heads/many\ncommitter A <a@b> 1 +0000\ndata 4\nmany\nfrom refs/heads/main\n{files}\n"
    command = ["git", "-C", str(at.repo.root), "fast-import", "--quiet"]
    subprocess.run(command, input=text.encode(), check=True, env=at.repo.env)
    at.repo.git("reset", "--quiet", "--hard", "many")
    process = at.repo.begin("start", "plan.md")
    at.repo.until("lease_granted")
    return process, lambda: None


def post_run(at: Setting) -> tuple[Process, Cure]:
    """Let what runs after a command wait for ever, and ignore that it is asked to end."""
    script = at.repo.desk / "post.sh"
    found(at, hooks=f"hooks: {{post_run: 'sh {script}'}}\n")
    at.repo.script("post", "trap '' TERM; test -e \"$DESK/cured\" || { tell post; wait_at late; }")
    process = begun(at)
    at.repo.gates["go"].open()
    assert at.repo.heard(2) == ["post", "post"]
    return process, (at.repo.desk / "cured").touch


def hook(at: Setting) -> tuple[Process, Cure]:
    """Let a hook that is told of a landing wait for ever."""
    script = at.repo.desk / "told.sh"
    found(at, hooks=f"hooks: {{on_complete: 'sh {script}'}}\n")
    at.repo.script("told", "trap '' TERM; test -e \"$DESK/cured\" || { tell told; wait_at late; }")
    process = begun(at)
    at.repo.gates["go"].open()
    assert at.repo.heard() == ["told"]

    def cure() -> None:
        (at.repo.desk / "cured").touch()
        at.repo.gates["late"].open()

    return process, cure


SCENES: dict[str, Callable[[Setting], tuple[Process, Cure]]] = {
    each.__name__: each
    for each in (checkout, lock, full_disk, objects, supervisor, launcher, hanging_git, large, post_run, hook)
}


# --- stopping -------------------------------------------------------------------------------------------------------


def stop(at: Setting, process: Process, way: str) -> Stopped:
    """Tell an engine at a random instant to end at once, and measure how long that takes."""
    Event().wait(at.dice.uniform(0, 1.5))
    before = control()
    began, verb = time.monotonic(), None
    if way == "SIGTERM":
        process.signal(signal.SIGTERM)
    elif way == "Ctrl-C twice":
        process.signal(signal.SIGINT)
        Event().wait(at.dice.uniform(0, 0.3))
        while is_pending(process.pid, signal.SIGINT):  # the system makes one of two
            Event().wait(0.01)
        began = time.monotonic()
        process.signal(signal.SIGINT)
    else:
        verb = at.repo.loopr("stop", "--now", code=None)
    process.process.wait(60)
    secs = time.monotonic() - began
    return Stopped(secs, max(before, control()), process.ended(None), verb)


def is_pending(pid: int, number: int) -> bool:
    """Say whether a signal was sent to a process that has not been given it yet."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, mask = line.partition(":")
            if name == "ShdPnd":
                return bool(int(mask, 16) >> (number - 1) & 1)
    return False


def watchers(state: Path) -> Iterator[tuple[int, int]]:
    """Give the supervisor and the launcher of every run that was claimed."""
    for each in (state / "runs").glob("*/*/run.json"):
        claim = json.loads(each.read_bytes())
        yield claim["supervisor"], claim["launcher"]


def wake(state: Path) -> None:
    """Let everybody go on who watches commands: a test that fails leaves nobody stopped."""
    for pid in {pid for each in watchers(state) for pid in each}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def control() -> float:
    """Measure how slow this machine is at this moment."""
    began = time.monotonic()
    subprocess.run([str(LOOPR), "--version"], check=True, capture_output=True)
    return time.monotonic() - began


def mounted(at: Setting, place: Path) -> None:
    """Put a small disk on a folder, where this machine lets us."""
    place.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing may be mounted here: {done.stderr.strip()}")
    at.stack.callback(subprocess.run, ["umount", "--lazy", str(place)], check=False)


def filled(place: Path) -> Path:
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
    return ballast


def clear(folder: Path) -> None:
    """Take a scene's folder away: a hundred of them are much."""
    shutil.rmtree(folder, ignore_errors=True)
