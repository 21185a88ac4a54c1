"""What a command can do to loopr's own processes: reach none of them, and hold up none by stopping it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopr.world.launcher import proc
from tests.e2e.repos import Repo, opened

TOP = Path(__file__).parents[2]
GUIDE = TOP / "docs/guide/limits-and-budgets.md"
INTRUDER = TOP / "tests/world/intruder.py"
GRACE_SECS, SLACK_SECS = 1, 2
FOR_EVER = "while :; do sleep 1000; done"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        yield found.found()


def why_no_sandbox() -> str:
    """Say why no sandbox can be made here, nothing if one can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"bubblewrap does not run here: {done.stderr.strip()}"


NO_SANDBOX = why_no_sandbox()


def intrude(repo: Repo, wrap: str, outside: Path) -> list[str]:
    """Have one loop try all it can beside one that does its work; return what the first could do."""
    repo.write({"intruder.py": INTRUDER.read_text()})
    repo.git("add", "intruder.py")
    repo.git("commit", "--quiet", "--message=a tool")
    python = os.path.realpath(sys.executable)  # what a sandbox hides is the checkout, not the machine
    tries = f"MARK='{outside}' {python} -I intruder.py \"$LOOPR_WORKSPACE\" > said"
    run = json.dumps(["sh", "-c", f"case $LOOPR_LOOP in */a) {tries};; *) echo done > made;; esac"])
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: {run}{wrap}}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.on_branch("demo", "made") == "done"
    assert not outside.exists()
    assert not repo.events("broke", "refused", "stopped")
    return repo.on_branch("demo", "said").splitlines()


@pytest.mark.skipif(bool(NO_SANDBOX), reason=NO_SANDBOX)
@pytest.mark.parametrize("hidden", [True, False], ids=["with its tmpfs", "without its tmpfs"])
def test_the_sandbox_of_the_guide_has_no_way_to_loopr(repo: Repo, tmp_path: Path, hidden: bool) -> None:
    """In the guide's own sandbox, also without its tmpfs, a command finds nothing that would do as it says."""
    (wrap,) = re.findall(r"wrap: (\[bwrap.*?\])", GUIDE.read_text(), re.DOTALL)
    wrap = " ".join(wrap.split())
    if not hidden:
        assert "--tmpfs, /tmp, " in wrap
        wrap = wrap.replace("--tmpfs, /tmp, ", "")
    assert intrude(repo, f", wrap: {wrap}", tmp_path / "outside") == ["done"]


def test_a_command_without_a_sandbox_has_no_way_to_loopr(repo: Repo, tmp_path: Path) -> None:
    """Outside of any sandbox a command sees the processes of loopr, and finds nothing that would do as it says."""
    said = intrude(repo, "", tmp_path / "outside")
    assert said[-1] == "done"
    assert set(said) == {"done", "sees a watcher"}


def direct(repo: Repo, script: str) -> str:
    """Have a script for a command without a shell around it, so that its parent is its supervisor."""
    repo.script("code", script)
    return json.dumps(["sh", str(repo.desk / "code.sh")])


def test_a_command_that_stops_its_supervisor_ends_by_its_clock(repo: Repo) -> None:
    """The wall clock strikes all the same, its loop goes on by that class, and its sibling lands."""
    run = direct(repo, f"case $LOOPR_LOOP in */a) kill -STOP $PPID; {FOR_EVER};; *) echo done > made;; esac")
    repo.settings(
        f"types:\n  plan: {{child: code}}\n  code: {{run: {run}}}\n"
        f"timeouts: {{wall_secs: 1, grace_secs: {GRACE_SECS}}}\nretry: {{max_attempts: 2, base_secs: 0.05}}\n"
    )
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    repo.loopr("start", "plan.md", code=1)
    loops = repo.loops()
    assert (loops["demo/a"]["status"], loops["demo/b"]["status"]) == ("parked", "complete")
    assert "it ran longer than 1 s" in loops["demo/a"]["reason"]
    assert repo.granted() == {"demo/a": 2, "demo/b": 1}


def working(repo: Repo, script: str) -> tuple[int, ...]:
    """Start two loops that work until they are ended; return the pids of their commands."""
    run = direct(repo, f'tell "$$"; {script}; {FOR_EVER}')
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: {run}}}\ntimeouts: {{grace_secs: {GRACE_SECS}}}\n")
    repo.write({"plan.md": "---\nchildren: [{id: a}, {id: b}]\n---\n# Demo\n"})
    repo.begin("start", "plan.md")
    return tuple(map(int, repo.heard(2)))


def test_an_engine_whose_supervisors_are_stopped_can_be_ended(repo: Repo) -> None:
    """Told to stop, an engine ends within the grace although its commands go on stopping their supervisors."""
    pids = working(repo, "trap '' TERM; while :; do kill -STOP $PPID || :; sleep 0.5; done")
    repo.until("attempt_started", 2)
    begun = time.monotonic()
    repo.loopr("stop", "--now")
    assert time.monotonic() - begun < GRACE_SECS + 5 * SLACK_SECS  # on a busy machine
    assert all((seen := proc.stat(pid)) is None or not seen.lives for pid in pids)
    assert set(repo.statuses().values()) == {"complete", "pending"}


@pytest.mark.parametrize("struck", ["engine", "engine and launcher", "engine, its launcher stopped"])
def test_the_next_engine_ends_what_the_last_one_has_started(repo: Repo, struck: str) -> None:
    """With the engine killed, `stop --now` by the next one ends its commands in order, free of cost."""
    pids = working(repo, "trap 'say bye; exit 3' TERM")
    started = repo.until("attempt_started", 2)
    for each in started:
        pid, start, boot_id = each["data"]["supervisor"].split()
        assert (proc.start_time(int(pid)), proc.boot_id()) == (int(start), boot_id)
        seen = proc.stat(int(pid))
        launcher = seen.parent if seen is not None else 0
    (engine,) = repo._processes
    engine.kill()
    if "launcher" in struck:
        os.kill(launcher, signal.SIGSTOP if "stopped" in struck else signal.SIGKILL)
    following = repo.begin("run")
    repo.until("engine_started", 2)
    repo.loopr("stop", "--now")
    following.ended(None)
    assert all((seen := proc.stat(pid)) is None or not seen.lives for pid in pids)
    assert repo.diary() == ["bye", "bye"]
    loops = repo.loops()
    assert {each["status"] for each in loops.values()} == {"complete", "pending"}
    assert {each["failures"] for each in loops.values()} == {0}
    assert repo.granted() == {"demo/a": 1, "demo/b": 1}
