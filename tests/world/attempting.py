"""What tests of attempts share: a workspace with real attempts in it, and ways to wait for what processes do."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from loopr.world.launcher import proc, traces
from loopr.world.processes import Attempts, AttemptSpec, Began, Ended, Outcome

PATIENCE_SECS = 60.0
QUICK_MS = 300


class Yard:
    """A workspace in a folder of its own, with one engine's attempts."""

    def __init__(self, root: Path) -> None:
        """Lay out the folders and start nothing."""
        self.root = root
        self.state, self.tree = root / "state", root / "tree"
        for folder in (self.state, self.tree):
            folder.mkdir(parents=True, exist_ok=True)
        self.ended: dict[str, Outcome] = {}
        self.began: dict[str, Began] = {}
        self.news: list[Began | Ended] = []
        self.attempts = Attempts.open(self.state)

    def connect(self) -> Attempts:
        """Be a new engine; the one before leaves everything running."""
        self.attempts.close()
        self.ended.clear()
        self.began.clear()
        self.attempts = Attempts.open(self.state)
        return self.attempts

    def folder(self, attempt_id: str) -> Path:
        """Return the run folder of an attempt."""
        return self.root / "runs" / attempt_id

    def spec(self, attempt_id: str, *argv: str, **given: Any) -> AttemptSpec:
        """Describe an attempt; its folder is there."""
        self.folder(attempt_id).mkdir(parents=True, exist_ok=True)
        marks = {"LOOPR_WORKSPACE": str(self.root), "LOOPR_LEASE": f"{attempt_id}#1"}
        settings: dict[str, Any] = {
            "folder": self.folder(attempt_id),
            "cwd": self.tree,
            "env": {"PATH": os.environ["PATH"], **marks},
            "stdin": Path(os.devnull),
            "grace_ms": 5_000,
        }
        return AttemptSpec(id=attempt_id, argv=argv, **{**settings, **given})

    def start(self, attempt_id: str, script: str, **given: Any) -> None:
        """Submit a shell script."""
        self.attempts.submit(self.spec(attempt_id, "sh", "-c", script, **given))

    def run(self, attempt_id: str, *argv: str, **given: Any) -> Outcome:
        """Submit a command and wait for its outcome."""
        self.attempts.submit(self.spec(attempt_id, *argv, **given))
        return self.outcome(attempt_id)

    def sh(self, script: str, **given: Any) -> Outcome:
        """Run a shell script as the attempt `x`."""
        return self.run("x", "sh", "-c", script, **given)

    def outcome(self, attempt_id: str) -> Outcome:
        """Wait for the end of an attempt."""
        self.wait(lambda: attempt_id in self.ended)
        return self.ended[attempt_id]

    def pid(self, attempt_id: str) -> int:
        """Wait for the start of an attempt."""
        self.wait(lambda: attempt_id in self.began)
        return self.began[attempt_id].pid

    def wait(self, condition: Callable[[], bool]) -> None:
        """Hear news until a condition holds."""
        while not condition():
            news = self.attempts.poll(PATIENCE_SECS)
            assert news or self.attempts.live, "nothing happens"
            self.note(news)

    def note(self, news: list[Began | Ended]) -> None:
        """Take note of news; nothing ends twice."""
        self.news += news
        for event in news:
            if isinstance(event, Began):
                self.began[event.id] = event
            else:
                assert event.id not in self.ended, event
                self.ended[event.id] = event.outcome

    def written(self, attempt_id: str, name: str) -> str:
        """Read a file of an attempt, nothing if there is none."""
        path = self.folder(attempt_id) / name
        return path.read_text("utf-8", "surrogateescape") if path.exists() else ""

    def claim(self, attempt_id: str) -> dict[str, Any]:
        """Read `run.json` of an attempt."""
        found: dict[str, Any] = json.loads(self.written(attempt_id, "run.json"))
        return found

    def bell(self, name: str) -> Bell:
        """Make something that a command can ring: `echo > NAME` in its working directory."""
        return Bell(self.tree / name)

    def marked(self) -> Mapping[proc.Stat, str]:
        """Return what lives with the mark of this workspace."""
        return traces.marked(str(self.root))

    def close(self) -> None:
        """End everything, and see that nothing is left."""
        launcher = self.launcher()
        for attempt_id in self.attempts.live:
            self.attempts.kill(attempt_id)
        self.attempts.close(drain_secs=PATIENCE_SECS)
        left = [(seen.pid, lease) for seen, lease in self.marked().items()]
        for pid, _ in left:
            os.kill(pid, signal.SIGKILL)
        assert not left
        log = self.state / "launcher.log"
        assert not log.exists() or not log.read_text()
        wait_gone(launcher)

    def launcher(self) -> int:
        """Return the launcher's pid, 0 if we know of none."""
        return self.attempts.launcher


class Bell:
    """A pipe in a file that a command rings once; waiting for it needs no sleep."""

    def __init__(self, path: Path) -> None:
        """Make it; opened for both, so that nobody waits for the other."""
        os.mkfifo(path)
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR)

    def __str__(self) -> str:
        """Return how a shell writes it."""
        return shlex.quote(str(self.path))

    def wait(self) -> str:
        """Wait until it rings; return what was said."""
        ready, _, _ = select.select([self._descriptor], [], [], PATIENCE_SECS)
        assert ready, f"{self.path.name} was never rung"
        return os.read(self._descriptor, 4096).decode().strip()

    def ring(self) -> None:
        """Let a command that reads it go on."""
        os.write(self._descriptor, b"\n")

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)


def wait_gone(pid: int) -> None:
    """Wait until a process is gone, or waits to be reaped."""
    if pid <= 0:
        return
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ready, _, _ = select.select([descriptor], [], [], PATIENCE_SECS)
    os.close(descriptor)
    assert ready, f"{pid} is still there"


def murder(pid: int) -> None:
    """Kill a process of our own and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    wait_gone(pid)


def alive(pid: int) -> bool:
    """Tell whether a process lives."""
    seen = proc.stat(pid)
    return seen is not None and seen.lives
