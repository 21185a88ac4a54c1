"""The engine lock between real processes: one holder, which death frees, and a body that is never believed alone."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loopr.errors import EngineHeld, SettingsError
from loopr.world.lock import EngineLock, holder

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from pathlib import Path
from loopr.world.lock import EngineLock
path, kind = Path(sys.argv[1]), sys.argv[2]

def say(word):
    print(word, flush=True)
"""

HOLDS = """
with EngineLock.acquire(path, kind):
    say("held")
    sys.stdin.read()
say("released")
sys.stdin.close()
"""


@contextmanager
def running(path: Path, kind: str, program: str = HOLDS) -> Iterator[subprocess.Popen[str]]:
    """Run a program with the lock's path, and kill it at the end if it is still there."""
    command = [sys.executable, "-c", PROGRAM + program, str(path), kind]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    """Wait for the next line of a program."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def let_go(process: subprocess.Popen[str]) -> None:
    """Let a program go on."""
    assert process.stdin is not None
    process.stdin.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a lock file that is not there yet."""
    return tmp_path / "engine.lock"


def test_free_held_and_free_again(path: Path) -> None:
    """The lock has a holder from acquire to release, and the file stays."""
    assert holder(path) is None
    assert not path.exists()
    with EngineLock.acquire(path, "engine") as lock:
        found = holder(path)
        assert found is not None
        assert (found["kind"], found["pid"], found["host"]) == ("engine", os.getpid(), socket.gethostname())
        assert lock.kind == "engine"
    assert holder(path) is None
    assert path.exists()
    lock.release()


@pytest.mark.parametrize("kind", ["engine", "turn"])
def test_an_engine_is_not_waited_for(path: Path, kind: str) -> None:
    """Whoever finds an engine is told at once which one, with exit code 6."""
    with running(path, "engine") as process:
        assert said(process) == "held"
        with pytest.raises(EngineHeld, match=rf"pid {process.pid} on {socket.gethostname()}, since \d{{4}}-") as caught:
            EngineLock.acquire(path, kind, wait_turn_secs=3_600)  # type: ignore[arg-type]
        assert caught.value.exit_code == 6
        assert caught.value.hint


def test_death_frees_the_lock(path: Path) -> None:
    """After SIGKILL of its holder the lock is free, whatever its body still says."""
    with running(path, "engine") as process:
        assert said(process) == "held"
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert json.loads(path.read_text())["pid"] == process.pid
    assert holder(path) is None
    EngineLock.acquire(path, "engine", wait_turn_secs=0).release()


def test_a_turn_is_waited_for(path: Path) -> None:
    """Whoever finds a turn gets the lock when it ends, and has not got it before."""
    with running(path, "turn") as process:
        assert said(process) == "held"
        found = holder(path)
        assert found is not None
        assert (found["kind"], found["pid"]) == ("turn", process.pid)
        taken: list[EngineLock] = []
        waiting = threading.Thread(target=lambda: taken.append(EngineLock.acquire(path, "engine")))
        waiting.start()
        waiting.join(0.1)
        assert not taken
        let_go(process)
        waiting.join()
    now = holder(path)
    assert now is not None
    assert (now["kind"], now["pid"]) == ("engine", os.getpid())
    taken[0].release()


def test_a_turn_that_dies_is_not_waited_for(path: Path) -> None:
    """A turn that is killed frees whoever waits for it."""
    with running(path, "turn") as process:
        assert said(process) == "held"
        threading.Timer(0.05, process.kill).start()
        EngineLock.acquire(path, "turn").release()


def test_a_turn_that_takes_too_long(path: Path) -> None:
    """After the longest wait the one who waits is told who is in the way, and that it is no engine."""
    with running(path, "turn") as process:
        assert said(process) == "held"
        with pytest.raises(EngineHeld, match=rf"another command .* 0\.05 s: pid {process.pid}"):
            EngineLock.acquire(path, "engine", wait_turn_secs=0.05)


@pytest.mark.parametrize("left_by", ["dead", "before this boot"])
def test_an_old_body_of_an_engine_does_not_refuse(path: Path, left_by: str) -> None:
    """A body that a dead engine left is not taken for that of a holder who has not yet written its own."""
    with running(path, "engine") as dead:
        assert said(dead) == "held"
        dead.kill()
        dead.wait()
    old = path.read_text()
    with EngineLock.acquire(path, "turn"):
        own = path.read_text()
        if left_by != "dead":
            old = json.dumps(json.loads(own) | {"kind": "engine", "boot_id": "another"})
        path.write_text(old)
        threading.Timer(0.05, path.write_text, [own]).start()
        with pytest.raises(EngineHeld, match=rf"another command .* pid {os.getpid()} "):
            EngineLock.acquire(path, "turn", wait_turn_secs=0)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"kind": "engine"}', b"\xff\xfe"])
def test_a_body_that_cannot_be_read(path: Path, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a body that makes sense there is still a holder; as likely as not an engine, so nobody waits for it."""
    monkeypatch.setattr("loopr.world.lock.BODY_SECS", 0.03)
    with EngineLock.acquire(path, "engine"):
        path.write_bytes(body)
        found = holder(path)
        assert found is not None
        assert (found["kind"], found["pid"]) in {("engine", os.getpid()), ("engine", 0)}  # as far as the system says
        with pytest.raises(EngineHeld, match=rf"engine runs .*: (pid {os.getpid()} on|it has not said who)"):
            EngineLock.acquire(path, "engine", wait_turn_secs=0)


def test_a_body_that_stays_old(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that seems to be of a dead process (it may count processes apart from us) is believed in the end."""
    monkeypatch.setattr("loopr.world.lock.BODY_SECS", 0.03)
    with EngineLock.acquire(path, "engine"):
        path.write_text(path.read_text().replace(f'"pid": {os.getpid()}', '"pid": 4194305'))
        with pytest.raises(EngineHeld, match="an engine runs .* pid 4194305"):
            EngineLock.acquire(path, "engine")


def test_a_body_alone_holds_nothing(path: Path) -> None:
    """A body that names a live process, without a lock, is no holder."""
    with EngineLock.acquire(path, "engine"):
        body = path.read_bytes()
    path.write_bytes(body)
    assert holder(path) is None
    EngineLock.acquire(path, "engine", wait_turn_secs=0).release()


def test_asking_does_not_disturb(path: Path) -> None:
    """Whoever only asks who holds the lock, at that very moment, is neither an engine nor a turn to who wants it."""
    EngineLock.acquire(path, "engine").release()
    asker = os.open(path, os.O_RDONLY)
    fcntl.flock(asker, fcntl.LOCK_SH)
    assert holder(path) is None
    threading.Timer(0.05, os.close, [asker]).start()
    EngineLock.acquire(path, "engine", wait_turn_secs=0).release()


COUNTS = """
counter = path.with_name("counter")
sys.stdin.read()
for _ in range(15):
    with EngineLock.acquire(path, "turn"):
        seen = int(counter.read_text())
        counter.write_text("")
        counter.write_text(str(seen + 1))
say("counted")
"""


def test_one_at_a_time(path: Path) -> None:
    """Of several processes that take turns at a file none ever meets another in the middle."""
    path.with_name("counter").write_text("0")
    with running(path, "turn", COUNTS) as a, running(path, "turn", COUNTS) as b, running(path, "turn", COUNTS) as c:
        for process in (a, b, c):
            let_go(process)
        assert [said(process) for process in (a, b, c)] == ["counted"] * 3
    assert path.with_name("counter").read_text() == "45"


def test_commands_that_an_engine_started_do_not_keep_its_lock(path: Path) -> None:
    """What an engine started, with all descriptors handed on, outlives it without the lock."""
    starts = """
import subprocess
lock = EngineLock.acquire(path, kind)
child = subprocess.Popen(["sleep", "60"], close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
say(child.pid)
sys.stdin.read()
"""
    with running(path, "engine", starts) as process:
        child = int(said(process))
        try:
            process.kill()
            process.wait()
            os.kill(child, 0)
            assert holder(path) is None
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_forked_copy_does_not_keep_a_released_lock(path: Path) -> None:
    """A process that was forked while the lock was held has no part in it once it is released."""
    forks = """
import os
lock = EngineLock.acquire(path, kind)
if os.fork():
    lock.release()
    say("released")
    os.wait()
else:
    sys.stdin.read()
"""
    with running(path, "turn", forks) as process:
        assert said(process) == "released"
        assert holder(path) is None
        let_go(process)
        assert process.wait() == 0


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A lock that cannot be made says where and why."""
    with pytest.raises(SettingsError, match="No such file") as caught:
        EngineLock.acquire(tmp_path / "gone" / "engine.lock", "engine")
    assert "gone" in str(caught.value)
    assert holder(tmp_path / "gone" / "engine.lock") is None
