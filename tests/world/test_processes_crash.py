"""What is kept when the engine, the launcher or a supervisor is killed, alone or together."""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loopr.world.launcher import proc, traces, words
from loopr.world.processes import attempts, link
from tests.world.attempting import PATIENCE_SECS, QUICK_MS, Yard, alive, murder, wait_gone

QUIET = "sleep 1000 >/dev/null 2>&1 </dev/null"
FOR_EVER = "while :; do sleep 1000; done"
DYING = """\
import os, sys
sys.path.append(sys.argv[1])
from loopr.world.launcher import claim
from loopr.world.launcher.__main__ import main

real = {where}

def strike():
    try:
        os.close(os.open(sys.argv[2] + "/struck", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), 9)

def dying(*given, **named):
    {death}

{where} = dying
main()
"""
DEATHS = {
    "claim._claim": "strike(); return real(*given, **named)",
    "claim._program": "strike(); return real(*given, **named)",
    "os.posix_spawn": "strike(); return real(*given, **named)",
    "claim.os.posix_spawn": "pid = real(*given, **named); strike(); return pid",
}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """Give a workspace, and see that nothing is left of it."""
    yard = Yard(tmp_path)
    yield yard
    yard.close()


class Work:
    """An attempt that waits in the middle, until it is let go."""

    def __init__(self, yard: Yard, name: str = "x", end: str = "exit 7", **given: object) -> None:
        """Start it and wait until it is in the middle."""
        self.yard, self.name = yard, name
        self.middle, self.gate = yard.bell(f"{name}.middle"), yard.bell(f"{name}.gate")
        script = f"echo ran >> {name}.ran; echo one; echo > {self.middle}; read _ < {self.gate}; echo two; {end}"
        yard.start(name, script, **given)
        self.middle.wait()
        self.pid = yard.pid(name)
        while yard.written(name, "stdout.log") != "one\n":
            yard.attempts.poll(0)

    @property
    def supervisor(self) -> int:
        """Who watches it."""
        pid = self.yard.claim(self.name)["supervisor"]
        assert isinstance(pid, int)
        return pid

    def finish(self) -> None:
        """Let it go."""
        self.gate.ring()

    def ran_once(self) -> bool:
        """Tell whether it ran, and only once."""
        return (self.yard.tree / f"{self.name}.ran").read_text() == "ran\n"


def adopt(yard: Yard, *names: str) -> dict[str, str]:
    """Be a new engine that takes up attempts."""
    yard.connect()
    return dict(yard.attempts.adopt({name: yard.folder(name) for name in names}))


# -- the supervisor


def test_a_dead_supervisor_costs_nothing(yard: Yard) -> None:
    """The launcher inherits the command of a killed supervisor: its output goes on and its real code is known."""
    work = Work(yard)
    murder(work.supervisor)
    work.finish()
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.code) == ("exited", 7)
    assert yard.written("x", "stdout.log") == "one\ntwo\n"
    assert work.ran_once()


def test_supervisors_may_die_again_and_again(yard: Yard) -> None:
    """Whoever takes over may be killed as well."""
    work = Work(yard, end="kill -SEGV $$")
    for _ in range(4):
        before = work.supervisor
        murder(before)
        while work.supervisor == before:
            yard.attempts.poll(0)
    work.finish()
    assert yard.outcome("x").signal == signal.SIGSEGV
    assert work.ran_once()


def test_a_command_that_ends_together_with_its_supervisor_has_its_code(yard: Yard) -> None:
    """A command that kills its supervisor, says something and ends at once is told with its code and its last words."""
    works = [Work(yard, f"x{number}", end="kill -9 $PPID; echo last; exit 5") for number in range(20)]
    for work in works:
        work.finish()
    yard.wait(lambda: len(yard.ended) == len(works))
    assert {(outcome.reason, outcome.code) for outcome in yard.ended.values()} == {("exited", 5)}
    assert {yard.written(work.name, "stdout.log") for work in works} == {"one\ntwo\nlast\n"}


def test_a_command_that_never_lets_its_supervisor_speak_ends_all_the_same(yard: Yard) -> None:
    """One that kills its supervisor before anything else ends with its code, or as lost, and runs once."""
    for number in range(30):
        yard.start(f"x{number}", f"kill -9 $PPID; echo ran >> x{number}.ran; exit 5")
    yard.wait(lambda: len(yard.ended) == 30)
    assert {(outcome.reason, outcome.code) for outcome in yard.ended.values()} <= {("exited", 5), ("lost", None)}
    assert {(yard.tree / f"x{number}.ran").read_text() for number in range(30)} == {"ran\n"}


def test_clocks_go_on_under_another_supervisor(yard: Yard) -> None:
    """The wall clock counts from the start of the attempt, whoever watches it; also a wish is heard."""
    Work(yard, "wall", wall_ms=1_500)
    work = Work(yard, "wish")
    for name in ("wall", "wish"):
        murder(yard.claim(name)["supervisor"])
    yard.attempts.kill("wish", "enough")
    assert (yard.outcome("wish").reason, yard.ended["wish"].message) == ("killed", "enough")
    assert yard.outcome("wall").reason == "wall"
    assert work.ran_once()


def test_strays_of_a_dead_supervisor_are_found(yard: Yard) -> None:
    """What left every trace behind but its parent is ended with the attempt that it came from."""
    bell, hold = yard.bell("stray"), yard.bell("hold")
    stray = f"cd / && env -i setsid sh -c 'echo $$ > {bell}; exec {QUIET}'"
    work = Work(yard, end=f"({stray}) & read _ < {hold}")
    murder(work.supervisor)
    work.finish()
    left = int(bell.wait())
    hold.ring()
    assert yard.outcome("x").strays >= 1
    assert not alive(left)


def test_an_idle_supervisor_may_die(yard: Yard) -> None:
    """A kept supervisor that was killed is not given the next attempt, or not for long."""
    yard.sh("exit 0")
    os.kill(yard.claim("x")["supervisor"], signal.SIGKILL)
    assert yard.run("y", "sh", "-c", "exit 3").code == 3


@pytest.mark.parametrize("point", list(DEATHS))
def test_a_supervisor_that_dies_as_it_begins_costs_nothing(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Killed before its claim, or between that and the moment at which it knows the pid, its command runs once."""
    monkeypatch.setattr(link, "BOOT", DYING.format(where=point, death=DEATHS[point]))
    gate = yard.bell("gate")
    yard.start("x", f"echo ran >> x.ran; read _ < {gate}; exit 5")
    yard.pid("x")
    gate.ring()
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.code, outcome.strays) == ("exited", 5, 0)
    assert (yard.tree / "x.ran").read_text() == "ran\n"
    assert (yard.state / "struck").exists()


# -- the engine


def test_an_engine_that_vanishes_changes_nothing(yard: Yard) -> None:
    """The next engine adopts what lives, and reads what ended meanwhile."""
    live, done = Work(yard, "live"), Work(yard, "done", end="exit 4")
    yard.attempts.close()
    done.finish()
    wait_gone(done.pid)
    with_outcome = yard.folder("done") / "outcome.json"
    while not with_outcome.exists():
        assert alive(live.pid)
    assert adopt(yard, "live", "done", "never") == {"live": "alive", "done": "ended", "never": "unclaimed"}
    assert yard.attempts.live == {"live", "done"}  # the end of one is not reported yet
    live.finish()
    assert yard.outcome("live").code == 7
    assert yard.outcome("done").code == 4
    assert live.ran_once()


def test_adopting_again_is_no_news(yard: Yard) -> None:
    """An attempt that is known lives on, and ends once."""
    work = Work(yard)
    assert yard.attempts.adopt({"x": yard.folder("x")}) == {"x": "alive"}
    work.finish()
    assert yard.outcome("x").code == 7


def test_an_adopted_attempt_hears_wishes(yard: Yard) -> None:
    """Whoever adopted an attempt can end it."""
    Work(yard)
    yard.attempts.close()
    adopt(yard, "x")
    yard.attempts.kill("x", "after all")
    assert (yard.outcome("x").reason, yard.ended["x"].message) == ("killed", "after all")


# -- the launcher


def test_a_dead_launcher_costs_nothing(yard: Yard) -> None:
    """Attempts go on without their launcher, with their real codes, and new ones get a new launcher."""
    work = Work(yard)
    launcher = yard.launcher()
    murder(launcher)
    assert yard.run("y", "sh", "-c", "exit 5").code == 5
    assert yard.launcher() not in (0, launcher)
    work.finish()
    assert (yard.outcome("x").reason, yard.ended["x"].code) == ("exited", 7)
    assert work.ran_once()
    wait_gone(work.supervisor)


def test_orders_that_died_with_the_launcher_are_given_again(yard: Yard) -> None:
    """What was submitted and never claimed runs under the next launcher, once."""
    yard.sh("exit 0")
    launcher = yard.launcher()
    os.kill(launcher, signal.SIGSTOP)
    for number in range(30):
        yard.start(f"y{number}", f"echo ran >> y{number}.ran; exit {number}")
    murder(launcher)
    yard.wait(lambda: len(yard.ended) == 31)
    for number in range(30):
        assert yard.ended[f"y{number}"].code == number
        assert (yard.tree / f"y{number}.ran").read_text() == "ran\n"


def test_an_attempt_without_a_launcher_hears_wishes(yard: Yard) -> None:
    """An attempt whose launcher is dead is ended by a word in its folder."""
    Work(yard)
    murder(yard.launcher())
    yard.attempts.kill("x", "the launcher is gone")
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.message) == ("killed", "the launcher is gone")


def test_a_signal_ends_what_a_supervisor_has_in_hand(yard: Yard) -> None:
    """TERM ends the attempt in order, also without a word why; it means nothing for the next one."""
    yard.sh("exit 0")
    os.kill(yard.claim("x")["supervisor"], signal.SIGTERM)
    work = Work(yard, "y")
    os.kill(work.supervisor, signal.SIGTERM)
    assert (yard.outcome("y").reason, yard.ended["y"].signal) == ("killed", signal.SIGTERM)
    assert yard.run("z", "sh", "-c", "exit 5").code == 5


def test_a_launcher_that_is_told_to_end_lets_its_attempts_end(yard: Yard) -> None:
    """TERM retires a launcher: its attempts go on under it, new ones get another."""
    work = Work(yard)
    launcher = yard.launcher()
    os.kill(launcher, signal.SIGTERM)
    assert yard.run("y", "sh", "-c", "exit 5").code == 5
    assert yard.launcher() != launcher
    work.finish()
    assert yard.outcome("x").code == 7
    wait_gone(launcher)


def test_a_launcher_that_does_not_listen_holds_up_nobody(yard: Yard) -> None:
    """What a launcher does not take now is kept for it, and the next order does not wait."""
    yard.sh("exit 0")
    os.kill(yard.launcher(), signal.SIGSTOP)
    many, env = 200, {"PATH": os.environ["PATH"], "LARGE": "x" * 10_000}
    for number in range(many):
        yard.start(f"y{number}", f"exit {number % 100}", env=env)
    os.kill(yard.launcher(), signal.SIGCONT)
    yard.wait(lambda: len(yard.ended) == many + 1)
    assert all(yard.ended[f"y{number}"].code == number % 100 for number in range(many))


class NoLauncher:
    """An order that was given to a launcher that died of it, where no other can be started."""

    def __init__(self, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have nothing listen, and nothing be able to."""
        monkeypatch.setattr(attempts, "RETRY_SECS", QUICK_MS / 3000)
        self.yard = yard
        yard.connect()
        yard.sh("exit 0")
        launcher = yard.launcher()
        os.kill(launcher, signal.SIGSTOP)
        yard.start("y", "echo ran >> y.ran")
        self.obstacle = yard.state / "launcher.log"
        self.obstacle.unlink()
        self.obstacle.mkdir()
        murder(launcher)
        self.poll = select.poll()
        self.poll.register(yard.attempts.fileno(), select.POLLIN)

    def look(self) -> None:
        """Do what an engine with a selector does."""
        assert self.poll.poll(PATIENCE_SECS * 1000)
        self.yard.note(self.yard.attempts.poll())


def test_without_a_launcher_the_next_try_comes_by_itself(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no launcher can be started nothing is lost, and the selector wakes the engine for the next try."""
    engine = NoLauncher(yard, monkeypatch)
    for _ in range(2):
        engine.look()
        assert yard.attempts.live == {"y"}
        assert not engine.poll.poll(0)
    engine.obstacle.rmdir()
    while "y" not in yard.ended:
        engine.look()
    assert yard.ended["y"].code == 0
    assert (yard.tree / "y.ran").read_text() == "ran\n"


def test_without_a_launcher_for_long_an_order_is_given_up(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt that could not be given to anybody ends as not started, with what is in the way."""
    engine = NoLauncher(yard, monkeypatch)
    while "y" not in yard.ended:
        engine.look()
    engine.obstacle.rmdir()
    assert yard.ended["y"].reason == "not_started"
    assert "launcher.log cannot be written" in yard.ended["y"].message
    assert not (yard.tree / "y.ran").exists()


# -- more than one


def test_a_command_without_anybody_is_adopted(yard: Yard) -> None:
    """With launcher and supervisor dead the command is watched to its end; how it ended nobody can know."""
    work = Work(yard)
    launcher, supervisor = yard.launcher(), work.supervisor
    yard.attempts.close()
    murder(launcher)
    murder(supervisor)
    assert adopt(yard, "x") == {"x": "alive"}
    while work.supervisor == supervisor:
        yard.attempts.poll(0)
    work.finish()
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.code, outcome.signal) == ("lost", None, None)
    assert yard.written("x", "stdout.log") == "one\ntwo\n"
    assert work.ran_once()


def test_a_command_that_nobody_has_a_pid_of_is_ended(yard: Yard) -> None:
    """With launcher and supervisor dead before the claim had a pid, the command is found by its traces and ended."""
    work = Work(yard)
    launcher, supervisor = yard.launcher(), work.supervisor
    yard.attempts.close()
    murder(launcher)
    murder(supervisor)
    claim = yard.claim("x") | {"pid": 0, "pid_start": 0, "started_ms": 0}  # of long ago: nothing is still on its way
    (yard.folder("x") / "run.json").write_text(json.dumps(claim))
    assert adopt(yard, "x") == {"x": "vanished"}
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.strays) == ("lost", 1)
    assert not alive(work.pid)
    assert yard.written("x", "stdout.log") == "one\n"
    assert work.ran_once()


def test_an_orphan_is_ended_by_its_clocks_and_by_a_wish(yard: Yard) -> None:
    """What is adopted without its supervisor can still be ended, with all that belongs to it."""
    Work(yard, "wall", wall_ms=1_500)
    Work(yard, "wish")
    supervisors = [yard.claim(name)["supervisor"] for name in ("wall", "wish")]
    murder(yard.launcher())
    for supervisor in supervisors:
        murder(supervisor)
    yard.attempts.kill("wish", "enough")
    assert (yard.outcome("wish").reason, yard.ended["wish"].message) == ("killed", "enough")
    assert yard.outcome("wall").reason == "wall"


STRAYS = {
    "marked": "setsid sh -c 'echo $$ > {bell}; exec {quiet}'",
    "in the session": "env -i sh -c 'echo $$ > {bell}; exec {quiet}'",
    "with the output": "cd / && env -i setsid sh -c 'echo $$ > {bell}; exec sleep 1000'",
    "in the folder": "env -i setsid sh -c 'echo $$ > {bell}; exec {quiet}'",
    "with a file": "touch open; env -i setsid sh -c 'exec 3< open; cd /; echo $$ > {bell}; exec {quiet}'",
    "below another": "setsid sh -c 'cd /; env -i setsid sh -c \"echo \\$\\$ > {bell}; exec {quiet}\"; :'",
}


@pytest.mark.parametrize("trace", STRAYS)
def test_what_everybody_left_behind_is_found(yard: Yard, trace: str) -> None:
    """With launcher, supervisor and command dead, what is left of the attempt is ended before its outcome is told."""
    bell = yard.bell("stray")
    script = f"{STRAYS[trace].format(bell=bell, quiet=QUIET)} & {FOR_EVER}"
    yard.start("x", script, grace_ms=QUICK_MS)
    stray = int(bell.wait())
    pid = yard.pid("x")
    launcher, supervisor = yard.launcher(), yard.claim("x")["supervisor"]
    yard.attempts.close()
    for each in (launcher, supervisor, pid):
        murder(each)
    assert alive(stray)
    assert adopt(yard, "x") == {"x": "vanished"}
    outcome = yard.outcome("x")
    assert outcome.reason == "lost"
    assert outcome.strays >= 1
    assert not alive(stray)


def test_a_person_in_the_folder_is_left_alone(yard: Yard) -> None:
    """Who only works in the folder of an attempt, and has what a login gives, is no stray."""
    work = Work(yard)
    bell = yard.bell("person")
    login = {"PATH": os.environ["PATH"], "XDG_SESSION_ID": "3"}
    script = f"cd {yard.tree}; (setsid sh -c 'echo $$ > {bell}; exec sleep 1000') & exit"
    pid = os.posix_spawnp("sh", ["sh", "-c", script], login)
    os.waitpid(pid, 0)
    person = int(bell.wait())
    run = words.read_run(str(yard.folder("x")))
    assert run is not None
    found = traces.kin_of(run, yard.launcher())
    assert work.pid in found
    assert person not in found
    murder(person)
    work.finish()
    yard.outcome("x")


def test_a_pid_that_was_used_again_is_not_taken_for_the_command(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with the command's pid and another start time is somebody else's; nor is its launcher waited for."""
    monkeypatch.setattr(attempts, "RETRY_SECS", QUICK_MS / 3000)
    bell = yard.bell("other")
    yard.start("other", f"echo > {bell}; {FOR_EVER}", env={"PATH": os.environ["PATH"]})
    bell.wait()
    other = yard.pid("other")
    yard.sh("exit 0")
    claim = yard.claim("x")
    claim |= {"pid": other, "pid_start": 1, "supervisor": other, "supervisor_start": 1}
    (yard.folder("x") / "run.json").write_text(json.dumps(claim))
    (yard.folder("x") / "outcome.json").unlink()
    assert adopt(yard, "x") == {"x": "alive"}
    assert yard.outcome("x").reason == "lost"
    assert alive(other)
    yard.attempts.adopt({"other": yard.folder("other")})


def test_a_restart_of_the_machine_is_told(yard: Yard) -> None:
    """What was claimed under another boot id is lost by a restart, and none of its numbers means anything now."""
    yard.sh("exit 0")
    claim = yard.claim("x") | {"boot_id": "another", "supervisor": os.getpid(), "pid": os.getpid()}
    claim |= {"supervisor_start": proc.start_time(os.getpid()), "pid_start": proc.start_time(os.getpid())}
    (yard.folder("x") / "run.json").write_text(json.dumps(claim))
    (yard.folder("x") / "outcome.json").unlink()
    assert adopt(yard, "x") == {"x": "vanished"}
    outcome = yard.outcome("x")
    assert (outcome.reason, outcome.cause) == ("lost", words.REBOOTED)


@pytest.mark.parametrize(
    "rubbish", ["", "{", "[]", '{"reason": "exited", "code": "three"}', '{"reason": "happy"}', "null"]
)
def test_an_outcome_that_cannot_be_read_is_lost(yard: Yard, rubbish: str) -> None:
    """A damaged outcome is no outcome: the attempt may have run, and is not run again."""
    work = Work(yard)
    work.finish()
    yard.outcome("x")
    yard.attempts.close()
    (yard.folder("x") / "outcome.json").write_text(rubbish)
    adopt(yard, "x")
    assert yard.outcome("x").reason == "lost"
    assert work.ran_once()
    assert adopt(yard, "x") == {"x": "ended"}


def test_a_foreign_hand_in_the_output_reaches_no_other_log(yard: Yard) -> None:
    """A pipe that somebody else still holds when an attempt has ended is not used for the next one."""
    work = Work(yard)
    foreign = os.open(f"/proc/{work.pid}/fd/1", os.O_WRONLY)
    work.finish()
    yard.outcome("x")
    next_one = Work(yard, "y")
    with suppress(BrokenPipeError):
        os.write(foreign, b"not yours\n")
    os.close(foreign)
    next_one.finish()
    yard.outcome("y")
    assert yard.written("y", "stdout.log") == "one\ntwo\n"


@pytest.mark.parametrize("rubbish", ["", "{", "[]", '{"id": "x"}'])
def test_a_claim_that_cannot_be_read_is_lost(yard: Yard, rubbish: str) -> None:
    """A damaged claim counts as one."""
    yard.folder("x").mkdir(parents=True)
    (yard.folder("x") / "run.json").write_text(rubbish)
    assert adopt(yard, "x") == {"x": "vanished"}
    assert yard.outcome("x").reason == "lost"
