"""What a command gets, and how its end is told."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopr.errors import WorldError
from loopr.world.processes import Attempts, Began, Ended
from tests.world.attempting import PATIENCE_SECS, Yard, alive, wait_gone


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """Give a workspace, and see that nothing is left of it."""
    yard = Yard(tmp_path)
    yield yard
    yard.close()


def program(path: Path, text: str, mode: int = 0o755) -> str:
    """Write a program."""
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_an_exit_code_is_told(yard: Yard) -> None:
    """The code that a command ends with is the code of its outcome, and what it said is in its logs."""
    outcome = yard.sh("echo out; echo err >&2; exit 3")
    assert (outcome.reason, outcome.code, outcome.signal) == ("exited", 3, None)
    assert (yard.written("x", "stdout.log"), yard.written("x", "stderr.log")) == ("out\n", "err\n")
    assert (outcome.stdout_bytes, outcome.stderr_bytes, outcome.strays) == (4, 4, 0)


def test_a_death_by_signal_is_told(yard: Yard) -> None:
    """A command that dies by a signal of its own has no code."""
    outcome = yard.sh("kill -SEGV $$")
    assert (outcome.reason, outcome.code, outcome.signal) == ("signalled", None, 11)


def test_it_begins_before_it_ends(yard: Yard) -> None:
    """Began comes once and before Ended, with the pid that the command has."""
    yard.sh("echo $$")
    assert [type(event) for event in yard.news] == [Began, Ended]
    assert yard.written("x", "stdout.log").strip() == str(yard.pid("x"))


def test_one_that_never_stops_talking_begins_too(yard: Yard) -> None:
    """Began is told although there is output at every moment."""
    yard.start("x", "exec yes", head_bytes=1000, tail_bytes=1000)
    assert yard.pid("x")
    yard.attempts.kill("x")
    assert yard.outcome("x").reason == "killed"


def test_time_and_memory_are_measured(yard: Yard) -> None:
    """What a command used is told, its children included."""
    outcome = yard.run("x", "sh", "-c", "python3 -c 'x = bytearray(60 << 20); sum(range(2000000))'; true")
    assert outcome.user_ms > 10
    assert outcome.max_rss_kb > 60 << 10
    assert outcome.wall_ms >= outcome.user_ms // os.cpu_count()  # type: ignore[operator]
    assert outcome.started_at == yard.began["x"].at_ms


def test_a_command_gets_its_environment_and_no_other(yard: Yard) -> None:
    """The environment is exactly the one that was given, names that are not UTF-8 included."""
    odd = os.fsdecode(b"caf\xe9")
    outcome = yard.run("x", "env", "-0", env={"ONE": "1", "ODD": odd, "PATH": os.environ["PATH"]})
    assert outcome.code == 0
    assert sorted(yard.written("x", "stdout.log").split("\0"))[1:] == [
        f"ODD={odd}",
        "ONE=1",
        f"PATH={os.environ['PATH']}",
    ]


def test_a_command_gets_its_folder_and_its_arguments(yard: Yard) -> None:
    """It works where it was told to, and its arguments arrive as they are."""
    folder = yard.tree / "wörk tree"
    folder.mkdir()
    yard.run("x", "sh", "-c", 'pwd; printf "<%s>" "$@"', "sh", "", "a b", "$HOME", "\n", cwd=folder)
    assert yard.written("x", "stdout.log") == f"{folder}\n<><a b><$HOME><\n>"


def test_a_command_has_a_session_of_its_own_and_nothing_else_open(yard: Yard) -> None:
    """No descriptor but three reaches a command, and no signal is ignored or blocked in it."""
    yard.sh("ls /proc/self/fd | sort -n | tr '\\n' ' '; echo; cut -d ' ' -f 6 /proc/$$/stat")
    numbers, session = yard.written("x", "stdout.log").splitlines()
    assert numbers.split() == ["0", "1", "2", "3"]  # the last is of the folder that is listed
    assert int(session) == yard.pid("x")
    yard.run("y", "cat", "/proc/self/status")
    status = dict(line.split(":\t", 1) for line in yard.written("y", "stdout.log").splitlines())
    known = (1 << 31) - 1  # glibc keeps two above to itself
    assert (int(status["SigIgn"], 16) & known, int(status["SigBlk"], 16)) == (0, 0)


def test_standard_input_is_the_file(yard: Yard) -> None:
    """A prompt of 5 MB arrives whole, followed by end of file."""
    prompt = yard.root / "prompt.md"
    prompt.write_bytes(b"0123456789abcde\n" * (5 << 16))
    yard.run("x", "wc", "-c", stdin=prompt)
    assert yard.written("x", "stdout.log").strip() == str(5 << 20)


@pytest.mark.parametrize("script", ["exec <&-; exit 5", "exit 5", "head -c 3 >/dev/null; exit 5"])
def test_standard_input_may_be_left_alone(yard: Yard, script: str) -> None:
    """A command that closes its input, or does not read it, ends as it would otherwise."""
    prompt = yard.root / "prompt.md"
    prompt.write_bytes(b"x" * (5 << 20))
    assert yard.sh(script, stdin=prompt).code == 5


def test_outputs_may_be_closed(yard: Yard) -> None:
    """A command that closes its outputs is waited for all the same."""
    outcome = yard.sh("exec >&- 2>&-; sleep 0.05; exit 6")
    assert (outcome.code, outcome.stdout_bytes) == (6, 0)


def test_an_output_may_be_opened_again(yard: Yard) -> None:
    """What is written to /dev/stderr by name neither cuts the log nor fails."""
    assert yard.sh("echo one >&2; echo two >/dev/stderr; echo three >&2").code == 0
    assert yard.written("x", "stderr.log") == "one\ntwo\nthree\n"


def test_output_need_not_be_text(yard: Yard) -> None:
    """Bytes that are no UTF-8 are kept as they are, and shown as far as they can be."""
    yard.sh(r"printf '\377\376\000caf\351\n'")
    assert (yard.folder("x") / "stdout.log").read_bytes() == b"\xff\xfe\0caf\xe9\n"


def test_the_last_lines_are_shown_clean(yard: Yard) -> None:
    """Progress is the last line that says something, without what only a terminal understands."""
    bell, go = yard.bell("bell"), yard.bell("go")
    yard.start("x", rf"printf 'first\n10%%\r\033[32mcaf\351 90%%\033[0m\n\n'; echo > {bell}; read _ < {go}")
    yard.pid("x")
    bell.wait()
    yard.attempts.poll(0)
    while not yard.attempts.tail("x"):
        yard.attempts.poll(0)
    assert yard.attempts.tail("x", 2) == ["first", "caf\ufffd 90%"]
    go.ring()
    yard.outcome("x")
    assert yard.attempts.tail("x") == []


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["no-such-program"], 127, "not on the PATH"),
        (["./no-such-program"], 127, "does not exist"),
        ([""], 127, "an empty command"),
        (["./plain"], 126, "not executable"),
        (["plain"], 126, "not executable"),
        (["./folder"], 126, "not executable"),
        (["./no-first-line"], 126, "not a program"),
        (["./strange-first-line"], 127, "first line"),
        (["sh", "nul\0"], 126, "null"),
    ],
)
def test_a_program_that_cannot_be_run_has_the_code_of_a_shell(
    yard: Yard, argv: list[str], code: int, says: str
) -> None:
    """Missing is 127, not executable is 126, and the message says which and why."""
    program(yard.tree / "plain", "#!/bin/sh\n", 0o644)
    program(yard.tree / "no-first-line", "true\n")
    program(yard.tree / "strange-first-line", "#!/no/such/interpreter\n")
    (yard.tree / "folder").mkdir()
    outcome = yard.run("x", *argv, env={"PATH": f"{yard.tree}:{os.environ['PATH']}"})
    assert (outcome.reason, outcome.code) == ("exited", code)
    assert says in outcome.message
    assert "x" not in yard.began


def test_the_path_of_the_attempt_counts(yard: Yard) -> None:
    """A program is looked for on the attempt's PATH, whatever the engine's is."""
    (yard.tree / "bin").mkdir()
    program(yard.tree / "bin" / "mine", "#!/bin/sh\nexit 9\n")
    assert yard.run("x", "mine", env={"PATH": f"{yard.tree / 'bin'}"}).code == 9


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"cwd": Path("/no/such/folder")}, "ENOENT"),
        ({"stdin": Path("/no/such/file")}, "ENOENT"),
        ({"folder": Path("/no")}, "ENOENT"),
    ],
)
def test_what_could_not_be_prepared_never_ran(yard: Yard, given: dict[str, Path], cause: str) -> None:
    """A missing folder or input is not_started, with the errno's name, and is not claimed: it may be tried again."""
    outcome = yard.run("x", "true", **given)
    assert (outcome.reason, outcome.code, outcome.cause) == ("not_started", None, cause)
    assert not yard.written("x", "run.json")
    assert yard.run("x2", "true").code == 0


def test_arguments_that_are_too_long_are_told(yard: Yard) -> None:
    """A command line that the kernel refuses is not_started, and says so."""
    outcome = yard.run("x", "true", "y" * (3 << 20))
    assert (outcome.reason, outcome.cause) == ("not_started", "E2BIG")


def test_an_attempt_is_submitted_once(yard: Yard) -> None:
    """Submitting an attempt that lives is no news; nor does it run again where it has been claimed."""
    bell = yard.bell("go")
    spec = yard.spec("x", "sh", "-c", f"echo ran >> {yard.tree / 'ran'}; read _ < {bell}")
    for _ in range(3):
        yard.attempts.submit(spec)
    yard.pid("x")
    yard.attempts.submit(spec)
    bell.ring()
    assert yard.outcome("x").code == 0
    yard.ended.clear()
    yard.attempts.submit(spec)
    assert yard.outcome("x").code == 0
    assert (yard.tree / "ran").read_text() == "ran\n"


def test_many_at_once(yard: Yard) -> None:
    """Two hundred attempts at once each end with their own code, on a handful of kept supervisors."""
    for number in range(200):
        yard.start(f"x{number}", f"exit {number % 100}")
    yard.wait(lambda: len(yard.ended) == 200)
    assert {name: outcome.code for name, outcome in yard.ended.items()} == {f"x{n}": n % 100 for n in range(200)}


def test_one_selector_is_enough(yard: Yard) -> None:
    """The descriptor is readable when there is news, and not when there is none."""
    yard.start("x", "exit 0")
    poll = select.poll()
    poll.register(yard.attempts.fileno(), select.POLLIN)
    while "x" not in yard.ended:
        assert poll.poll(PATIENCE_SECS * 1000)
        yard.note(yard.attempts.poll())
    assert not poll.poll(0)


def test_the_launcher_starts_late_and_ends_by_itself(yard: Yard) -> None:
    """No launcher runs before the first attempt, nor after the last one once nobody is connected."""
    assert yard.launcher() == 0
    assert not list(yard.state.iterdir())
    yard.sh("exit 0")
    launcher = yard.launcher()
    assert alive(launcher)
    yard.attempts.close()
    wait_gone(launcher)
    assert [each.name for each in yard.state.iterdir()] == ["launcher.log"]
    assert not (yard.state / "launcher.log").read_text()
    yard.connect()


def test_the_launcher_keeps_no_secret(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the engine's environment is in that of the attempts only."""
    monkeypatch.setenv("API_KEY", "secret")
    yard.sh("exit 0")
    assert b"secret" not in Path(f"/proc/{yard.launcher()}/environ").read_bytes()


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    """The state folder may lie deeper than a socket's path may be long."""
    yard = Yard(tmp_path / ("d" * 100) / ("e" * 100) / "name with spaces")
    assert yard.sh("exit 4").code == 4
    yard.close()


def test_a_launcher_that_cannot_start_is_an_error_with_its_reason(tmp_path: Path) -> None:
    """Without a state folder nothing is submitted, and the error says what is in the way."""
    attempts = Attempts.open(tmp_path / "missing")
    yard = Yard(tmp_path)
    with pytest.raises(WorldError, match="missing"):
        attempts.submit(yard.spec("x", "true"))
    assert attempts.live == frozenset()
    attempts.close()
    yard.close()
