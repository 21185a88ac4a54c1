"""The launcher hears its own engine and no other process, and what somebody has stopped goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from loopr.world.launcher import proc, traces, words
from loopr.world.processes import attempts, link
from loopr.world.processes.link import Link
from tests.world.attempting import PATIENCE_SECS, QUICK_MS, Yard, alive, murder, wait_gone

TOP = Path(__file__).resolve().parents[2]
INTRUDER = TOP / "tests" / "world" / "intruder.py"
NOBODY = 65534
FOR_EVER = "while :; do sleep 1000; done"
BEFORE = "4bdb75c"
OLD_ENGINE = """\
import os, sys
from pathlib import Path
from loopr.world.processes import Attempts, AttemptSpec
root = Path(sys.argv[1])
attempts = Attempts.open(root / "state")
for name in ("live", "done"):
    (root / "runs" / name).mkdir(parents=True)
    marks = {"LOOPR_WORKSPACE": str(root), "LOOPR_LEASE": name + "#1"}
    attempts.submit(AttemptSpec(name, root / "runs" / name, ("sh", "-c", sys.argv[2]), root / "tree",
                                {"PATH": os.environ["PATH"], **marks}, Path(os.devnull)))
began = set()
while len(began) < 2:
    began |= {event.id for event in attempts.poll(60)}
print(attempts.launcher, flush=True)
os._exit(0)
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """Give a workspace, and see that nothing is left of it."""
    yard = Yard(tmp_path)
    yield yard
    yard.close()


# -- nobody else is heard


def test_a_command_finds_nothing_of_the_launcher(yard: Yard) -> None:
    """A command is given three files; there is no name by which it could speak to the launcher."""
    outcome = yard.run("x", sys.executable, "-I", str(INTRUDER), str(yard.root))
    said = yard.written("x", "stdout.log").splitlines()
    assert outcome.code == 0, yard.written("x", "stderr.log")
    assert said[-1] == "done"
    assert "sees a watcher" in said
    assert [line for line in said if line.startswith(("given", "name"))] == []


def python_for(user: dict[str, Any]) -> str:
    """Return a Python that a user may run."""
    for python in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError):
            asked = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(asked, **user, capture_output=True, check=False).returncode == 0:
                return python
    pytest.skip("no Python here that a user without privileges may run")


def test_a_user_without_privileges_reaches_nothing_of_the_launcher() -> None:
    """Neither descriptors nor memory of launcher, supervisors and engine are open to a command of the same user."""
    who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    python = python_for(who)
    with tempfile.TemporaryDirectory(prefix="loopr-nobody-") as folder:
        Path(folder).chmod(0o777)
        made = [python, str(TOP / "tests/world/unprivileged.py"), f"{folder}/yard"]
        done = subprocess.run(
            [*made, python, "-I", str(INTRUDER), folder],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(TOP), "PYTHONDONTWRITEBYTECODE": "1"},
            **who,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECS,
        )
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sees a watcher" in said
    assert [line for line in said if line not in ("sees a watcher", "done")] == []


MISUNDERSTOOD = [
    b"",
    b"no JSON",
    b"[]",
    b"[" * 100_000,
    b"{}",
    b'{"do":"dance"}',
    b'{"do":["run"]}',
    b'{"do":"run"}',
    b'{"do":"run","id":"x"}',
    b'{"do":"run","id":"x","folder":"FOLDER"}',
    b'{"do":"run","id":1,"folder":"FOLDER"}\t{}',
    b'{"do":"run","id":"x","folder":null}\t{}',
    b'{"do":"adopt","id":"x"}',
    b'{"do":"adopt","id":[],"folder":"FOLDER"}',
    b'{"do":"kill"}',
    b'{"do":"kill","id":[]}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("line", MISUNDERSTOOD, ids=[str(number) for number in range(len(MISUNDERSTOOD))])
def test_what_is_not_understood_leaves_nothing_behind(yard: Yard, line: bytes) -> None:
    """A message without sense is answered; it leaves no attempt, and the launcher ends with whoever said it."""
    line = line.replace(b"FOLDER", os.fsencode(yard.root))
    launcher = Link.make(yard.state)
    launcher.wire.send(line + b"\n")
    said: list[words.Message] = []
    while not said:
        assert launcher.wire.wait(int(PATIENCE_SECS * 1000))
        said += [words.parts_of(each)[0] for each in launcher.wire.lines()]
        assert not launcher.wire.closed
    assert [each["did"] for each in said] == ["not_understood"]
    launcher.wire.close()
    wait_gone(launcher.pid)


def test_an_order_that_nobody_can_read_is_given_up(yard: Yard) -> None:
    """An order whose second part is none takes no supervisor with it for good, and ends as one that never ran."""
    launcher = Link.make(yard.state)
    folder = json.dumps(str(yard.root)).encode()
    launcher.wire.send(b'{"do":"run","id":"x","folder":%s}\t{"id":"x"}\n' % folder)
    assert launcher.wire.wait(int(PATIENCE_SECS * 1000))
    (line,) = launcher.wire.lines()
    said, outcome = words.parts_of(line)
    assert (said["did"], words.decode(outcome)["reason"]) == ("done", "not_started")
    launcher.wire.close()
    wait_gone(launcher.pid)
    assert "KeyError" in (yard.state / "launcher.log").read_text()
    (yard.state / "launcher.log").unlink()


# -- engines come and go


def test_a_launcher_ends_with_its_last_attempt(yard: Yard) -> None:
    """The launcher of an engine that is gone ends after what it had in hand; the next engine has one of its own."""
    gate = yard.bell("gate")
    yard.start("x", f"read _ < {gate}; exit 7")
    yard.pid("x")
    first = yard.launcher()
    yard.connect()
    assert yard.launcher() == 0
    assert yard.attempts.adopt({"x": yard.folder("x")}) == {"x": "alive"}
    assert yard.launcher() == 0  # it takes none to wait for what lives
    assert yard.run("y", "true").code == 0
    assert yard.launcher() not in (0, first)
    assert alive(first)
    gate.ring()
    assert yard.outcome("x").code == 7
    wait_gone(first)


def test_orders_of_an_engine_that_is_gone_begin_nothing(yard: Yard) -> None:
    """What a stopped launcher had not begun when the next engine came never begins, however late it goes on."""
    yard.sh("exit 0")
    launcher = yard.launcher()
    start = proc.start_time(launcher)
    os.kill(launcher, signal.SIGSTOP)
    yard.start("late", "echo ran > late.ran")
    yard.connect()
    assert yard.attempts.adopt({"late": yard.folder("late")}) == {"late": "unclaimed"}
    proc.send(launcher, start, signal.SIGCONT)
    wait_gone(launcher)
    assert not (yard.tree / "late.ran").exists()
    assert not yard.written("late", "run.json")
    assert yard.run("late", "sh", "-c", "echo again > late.ran").code == 0
    assert (yard.tree / "late.ran").read_text() == "again\n"


def test_an_attempt_of_before_is_ended_in_order_by_the_next_engine(yard: Yard) -> None:
    """The next engine ends what lives: asked first, then killed with its strays, and the outcome says why."""
    bell = yard.bell("bell")
    yard.start(
        "x", f"trap 'echo bye; exit 7' TERM; (trap '' TERM; {FOR_EVER}) & echo > {bell}; {FOR_EVER}", grace_ms=QUICK_MS
    )
    bell.wait()
    yard.pid("x")
    supervisor = yard.began["x"].supervisor
    yard.connect()
    assert yard.attempts.adopt({"x": yard.folder("x")}, {"x": supervisor}) == {"x": "alive"}
    yard.attempts.kill("x", "told to stop")
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.code, outcome.message) == ("killed", 7, "told to stop")
    assert outcome.strays >= 1
    assert yard.written("x", "stdout.log") == "bye\n"
    assert yard.marked() == {}


def test_a_supervisor_that_dies_between_two_engines_costs_nothing(yard: Yard) -> None:
    """Where the launcher of before lives, it goes on with the attempt of a killed supervisor, and its code is known."""
    gate = yard.bell("gate")
    yard.start("x", f"read _ < {gate}; exit 7")
    yard.pid("x")
    pid, start, _ = words.read_supervisor(yard.began["x"].supervisor)
    told = yard.began["x"].supervisor
    yard.connect()
    proc.send(pid, start, signal.SIGKILL)
    assert yard.attempts.adopt({"x": yard.folder("x")}, {"x": told}) == {"x": "alive"}
    gate.ring()
    assert (yard.outcome("x").reason, yard.ended["x"].code) == ("exited", 7)


@contextmanager
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Have a process that has nothing to do with anything."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("told", [True, False], ids=["journal", "claim"])
def test_a_claim_that_names_a_stranger_ends_no_stranger(yard: Yard, told: bool) -> None:
    """Whom a rewritten claim names is neither waited for nor signalled; the attempt itself is found and ended."""
    bell = yard.bell("bell")
    yard.start("x", f"echo > {bell}; {FOR_EVER}", grace_ms=QUICK_MS)
    bell.wait()
    pid = yard.pid("x")
    supervisor = yard.began["x"].supervisor
    if not told:
        yard.wait(lambda: yard.claim("x")["pid"] == pid)
    with stranger() as other:
        claim = yard.claim("x") | {"supervisor": other.pid, "supervisor_start": proc.start_time(other.pid)}
        claim |= {"launcher": other.pid, "launcher_start": proc.start_time(other.pid), "pid": pid}
        (yard.folder("x") / "run.json").write_text(json.dumps(claim | {"pid_start": proc.start_time(pid)}))
        yard.connect()
        assert yard.attempts.adopt({"x": yard.folder("x")}, {"x": supervisor} if told else {}) == {"x": "alive"}
        yard.attempts.kill("x", "told to stop")
        assert (yard.outcome("x").reason, yard.ended["x"].message) == ("killed", "told to stop")
        assert not alive(pid)
        assert other.poll() is None


def test_a_wish_in_a_folder_is_none_without_a_signal(yard: Yard) -> None:
    """A command that writes a wish into the folder of another ends nothing by that."""
    gate = yard.bell("gate")
    yard.start("x", f"read _ < {gate}; exit 7")
    yard.pid("x")
    yard.run("y", "sh", "-c", f"echo no > {yard.folder('x')}/kill")
    gate.ring()
    assert (yard.outcome("x").reason, yard.ended["x"].code) == ("exited", 7)


OBSTACLES = {
    "directory": lambda path: path.mkdir(),
    "pipe": os.mkfifo,
    "link": lambda path: path.symlink_to(path.parent.parent.parent / "mine"),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_a_wish_is_granted_whatever_lies_in_its_place(yard: Yard, obstacle: str) -> None:
    """The signal ends an attempt, though its reason finds no room; nothing there is followed, and nobody waits."""
    mine = yard.root / "mine"
    mine.write_text("mine")
    yard.start("x", FOR_EVER, grace_ms=QUICK_MS)
    yard.pid("x")
    yard.connect()
    assert yard.attempts.adopt({"x": yard.folder("x")}) == {"x": "alive"}
    OBSTACLES[obstacle](yard.folder("x") / "kill")
    yard.attempts.kill("x", "told to stop")
    assert yard.outcome("x").reason == "killed"
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("name", ["outcome.json", "outcome.json.$PPID", "run.json"])
def test_a_pipe_where_a_file_belongs_holds_up_nobody(yard: Yard, name: str) -> None:
    """A command that puts a pipe into its own run folder ends all the same, for this engine and for the next."""
    yard.start("x", f"cd {yard.folder('x')}; rm -f {name}; mkfifo {name}; sleep 0.2; exit 5")
    yard.pid("x")
    assert (yard.outcome("x").reason, yard.ended["x"].code) == ("exited", 5)
    yard.connect()
    yard.attempts.adopt({"x": yard.folder("x")})
    assert yard.outcome("x").reason in ("exited", "lost")


def old_loopr(folder: Path) -> Path:
    """Unpack loopr as it was when its launcher had a name."""
    packed = subprocess.run(["git", "archive", BEFORE, "loopr"], cwd=TOP, capture_output=True, check=False)
    if packed.returncode != 0:
        pytest.skip(f"{BEFORE} is not in this checkout")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_attempts_of_an_older_loopr_are_adopted(yard: Yard, tmp_path: Path) -> None:
    """What a launcher with a name has in hand is followed and ended as any other, and the name goes."""
    old, gate = old_loopr(tmp_path / "old"), yard.bell("gate")
    script = f"[ $LOOPR_LEASE = live#1 ] && {{ {FOR_EVER}; }}; read _ < {gate}; exit 5"
    env = {**os.environ, "PYTHONPATH": str(old)}
    made = subprocess.run(
        [sys.executable, "-c", OLD_ENGINE, str(yard.root), script],
        env=env,
        cwd=old,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (yard.state / "launcher.sock").is_socket()
    yard.connect()
    assert not (yard.state / "launcher.sock").exists()
    folders = {name: yard.folder(name) for name in ("live", "done")}
    assert yard.attempts.adopt(folders) == {"live": "alive", "done": "alive"}
    yard.attempts.kill("live", "told to stop")
    gate.ring()
    assert (yard.outcome("live").reason, yard.ended["live"].message) == ("killed", "told to stop")
    assert yard.outcome("done").code == 5
    wait_gone(int(made.stdout))


# -- what is stopped goes on


def test_a_launcher_that_is_stopped_as_it_begins_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has left the process which its engine knows, and is stopped before it says hello, is let go on."""
    stops = "m._take_line = lambda take=m._take_line: (os.kill(os.getpid(), signal.SIGSTOP), take())[1]"
    begins = link.BOOT.replace("from loopr.world.launcher.__main__ import main; main()", "")
    boot = f"{begins}import os, signal; import loopr.world.launcher.__main__ as m; {stops}; m.main()"
    monkeypatch.setattr(link, "BOOT", boot)
    monkeypatch.setattr(link, "STARTS", 1)
    made = Link.make(tmp_path)
    assert proc.is_alive(made.pid, made.start)
    made.wire.close()


def test_a_stopped_supervisor_goes_on(yard: Yard) -> None:
    """A command that stops its supervisor ends by its clock all the same."""
    outcome = yard.sh(f"kill -STOP $PPID; {FOR_EVER}", wall_ms=QUICK_MS)
    assert outcome.reason == "wall"


def test_a_command_that_is_stopped_as_it_begins_goes_on(yard: Yard) -> None:
    """A fork that is stopped before it becomes a command holds up its supervisor, and is let go on."""
    yard.sh("exit 0")
    supervisor, stopped, over = yard.claim("x")["supervisor"], 0, threading.Event()

    def stop() -> None:
        nonlocal stopped
        while not over.is_set():
            for child, start in traces.newborn(supervisor):
                proc.send(child, start, signal.SIGSTOP)
                stopped += 1

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        for number in range(1_000):
            if stopped >= 3:
                break
            assert yard.run(f"x{number}", "sh", "-c", "exit 5", wall_ms=3_000).reason in ("exited", "wall")
    finally:
        over.set()
        stopper.join()


def test_a_supervisor_that_is_stopped_again_and_again_goes_with_its_crew(yard: Yard) -> None:
    """A command that never lets its supervisor go on is ended with all that it has started, and it is told why."""
    stop = "setsid sleep 1000 & while :; do kill -STOP $PPID; done"
    outcome = yard.sh(f"trap '' TERM; {stop}", grace_ms=60_000)
    assert outcome.reason == "killed"
    assert outcome.signal in (signal.SIGKILL, None)  # None: another one saw its end before the launcher did
    assert outcome.message == "its supervisor was stopped again and again"
    assert yard.marked() == {}


def test_a_stopped_supervisor_hears_a_wish_of_the_next_engine(yard: Yard) -> None:
    """With its launcher dead and its supervisor stopped, an attempt is ended by the next engine."""
    bell = yard.bell("bell")
    yard.start("x", f"echo > {bell}; {FOR_EVER}", grace_ms=QUICK_MS)
    bell.wait()
    yard.pid("x")
    told = yard.began["x"].supervisor
    murder(yard.launcher())
    pid, start, _ = words.read_supervisor(told)
    proc.send(pid, start, signal.SIGSTOP)
    yard.connect()
    assert yard.attempts.adopt({"x": yard.folder("x")}, {"x": told}) == {"x": "alive"}
    yard.attempts.kill("x", "told to stop")
    assert yard.outcome("x").reason == "killed"


@pytest.mark.parametrize("dead", [True, False], ids=["launcher dead", "launcher stopped"])
def test_what_is_stopped_is_woken_by_the_next_engine(yard: Yard, dead: bool) -> None:
    """A supervisor that was stopped under a launcher that cannot help goes on once an engine waits for it."""
    work, launcher = yard.bell("work"), 0
    yard.start("x", f"read _ < {work}; exit 7")
    yard.pid("x")
    told, launcher = yard.began["x"].supervisor, yard.launcher()
    start = proc.start_time(launcher)
    proc.send(launcher, start, signal.SIGKILL if dead else signal.SIGSTOP)
    pid, supervisor_start, _ = words.read_supervisor(told)
    proc.send(pid, supervisor_start, signal.SIGSTOP)
    yard.connect()
    assert yard.attempts.adopt({"x": yard.folder("x")}, {"x": told}) == {"x": "alive"}
    work.ring()
    assert yard.outcome("x").code == 7
    wait_gone(launcher)


def test_a_stopped_launcher_goes_on(yard: Yard) -> None:
    """An engine wakes a launcher that somebody has stopped; nothing else would tell that an attempt has ended."""
    gate = yard.bell("gate")
    yard.start("x", f"read _ < {gate}; exit 7")
    yard.pid("x")
    launcher = yard.launcher()
    os.kill(launcher, signal.SIGSTOP)
    gate.ring()
    assert yard.outcome("x").code == 7
    assert yard.launcher() == launcher


def test_a_launcher_that_is_stopped_again_and_again_is_replaced(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never comes to anything has to go, and its attempts go on without it."""
    monkeypatch.setattr(attempts, "LOOK_SECS", 0.02)
    gate = yard.bell("gate")
    yard.start("x", f"read _ < {gate}; exit 7")
    yard.pid("x")
    launcher = yard.launcher()
    start, woken = proc.start_time(launcher), 0
    while proc.is_alive(launcher, start):
        proc.send(launcher, start, signal.SIGSTOP)
        yard.note(yard.attempts.poll(1))
        woken += 1
    assert woken > 1
    gate.ring()
    assert yard.outcome("x").code == 7
