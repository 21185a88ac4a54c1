"""What an attempt has written, as a person reads it: while it is written, and afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loopr.core import wishes
from loopr.core.model import Failure
from loopr.ui import logs
from loopr.ui.cli import logs as verb
from loopr.wiring import Workspace
from loopr.world.launcher.log import Log
from loopr.world.launcher.proc import boot_id, start_time
from loopr.world.launcher.words import OUTCOME, RUN, Outcome, Run
from loopr.world.runs import Refusal, Runs
from loopr.world.veil import Veil
from tests.ui.calls import program
from tests.ui.scenes import Desk, flat

HEAD, TAIL = 20, 12


@pytest.fixture
def runs(shop: Desk) -> Runs:
    """Give the run folders of a workspace in which one loop runs."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    shop.run("p/a")
    return Runs(Workspace(shop.folder).place.state)


def wrote(runs: Runs, name: str, attempt: int, out: str | bytes = "", err: str = "", *, step: str = "") -> Path:
    """Make the folder of a run with its output, as the launcher leaves it; no output leaves no file."""
    folder = runs.ensure(name, attempt)
    folder = runs.ensure(name, attempt, step) if step else folder
    for file, text in (("stdout.log", out), ("stderr.log", err)):
        if text:
            (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def ended(folder: Path, code: int = 0, reason: str = "exited") -> None:
    """Let a run end."""
    (folder / OUTCOME).write_text(json.dumps(Outcome(reason, code)._asdict()))  # type: ignore[arg-type]


def claimed(folder: Path, pid: int = 0, start: int = 0, boot: str = "") -> None:
    """Put the claim of a run there."""
    run = Run("x", boot or boot_id(), 0, pid, start, pid, start, 0, 0, (), "", "", "", 0, 0, 0, 0, HEAD, TAIL)
    (folder / RUN).write_text(json.dumps(run._asdict()))


# --- what is printed ------------------------------------------------------------------------------------------------


def test_output_then_errors(shop: Desk, runs: Runs) -> None:
    """Standard output comes first and bare, standard error below a heading of its own."""
    wrote(runs, "p.a.g1", 1, "one\ntwo", "oh\n")
    assert shop.lines("logs", "a") == ["one", "two", "==> stderr <==", "oh"]
    assert shop.lines("logs", "a", "--stderr") == ["oh"]


def test_without_errors_there_is_no_heading(shop: Desk, runs: Runs) -> None:
    """Output alone is printed as it is."""
    wrote(runs, "p.a.g1", 1, "one\ntwo")
    assert shop("logs", "a").out == "one\ntwo"


def test_the_latest_attempt_or_another(shop: Desk, runs: Runs) -> None:
    """Without a number the latest attempt is meant; attempt and iteration name an earlier one."""
    wrote(runs, "p.a.g1", 1, "first\n")
    shop.end("p/a", Failure.REFUSED, "no")
    shop.choose()
    wrote(runs, "p.a.g1", 2, "second\n")
    assert shop.lines("logs", "a") == ["second"]
    assert shop.lines("logs", "a", "--attempt", "1") == ["first"]
    assert shop.lines("logs", "a", "--iteration", "1") == ["first"]
    assert shop.lines("logs", "a", "--iteration", "2") == ["second"]


def test_checks_and_reviews(shop: Desk, runs: Runs) -> None:
    """A judge's output is printed apart from the command's; several of a kind have their names above them."""
    wrote(runs, "p.a.g1", 1, "work\n")
    old = wrote(runs, "p.a.g1", 1, "no\n", "E1\n", step="check.k1")
    os.utime(old, (1, 1))
    assert shop.lines("logs", "a", "--check") == ["no", "==> check.k1 stderr <==", "E1"]
    wrote(runs, "p.a.g1", 1, "yes\n", step="check.k0")
    said = shop.lines("logs", "a", "--check")
    assert said == ["==> check.k1 stdout <==", "no", "==> check.k1 stderr <==", "E1", "==> check.k0 stdout <==", "yes"]
    answer = shop("logs", "a", "--review")
    assert (answer.code, "try 1 of p/a has no review yet" in answer.err) == (3, True)


def test_the_last_lines(shop: Desk, runs: Runs) -> None:
    """--tail cuts each stream to its last lines; none is a good number too."""
    wrote(runs, "p.a.g1", 1, "1\n2\n3\nend", "a\nb\n")
    assert shop.lines("logs", "a", "--tail", "2") == ["3", "end", "==> stderr <==", "a", "b"]
    assert shop("logs", "a", "--tail", "0").out == ""


def test_none_yet_is_said(shop: Desk, runs: Runs) -> None:
    """A loop without output, an attempt that wrote nothing, and a number that never was each have their words."""
    answer = shop("logs", "b")
    assert (answer.code, answer.out) == (3, "")
    assert "p/b has no output yet: it is starting" in answer.err
    folder = wrote(runs, "p.a.g1", 1)
    answer = shop("logs", "a")
    assert (answer.code, answer.out, answer.err) == (0, "", "try 1 has written nothing yet\n")
    ended(folder)
    assert shop("logs", "a").err == "try 1 has written nothing\n"
    answer = shop("logs", "a", "--attempt", "7")
    assert (answer.code, "there is of 1" in answer.err) == (3, True)
    answer = shop("logs", "a", "--iteration", "9")
    assert (answer.code, "p/a has no try that came after 8 refusals" in answer.err) == (3, True)
    assert "`loopr show p/a` lists its tries" in answer.err


def test_a_try_is_named_where_a_refusal_was_counted(shop: Desk, runs: Runs) -> None:
    """A number that no iteration has, and a try has, is answered with that try."""
    shop.end("p/a", Failure.CONFIG, "no make")
    shop.wish(wishes.renew, "p/a", "ada")
    shop.choose()
    shop.run("p/a")
    answer = shop("logs", "a", "--iteration", "2")
    assert (answer.code, "`loopr logs --try 2 p/a` prints its try 2" in answer.err) == (3, True)


NO = "the check said no: exit 1: E1"


def test_a_check_that_said_no_is_named(shop: Desk, runs: Runs) -> None:
    """Where a judge has refused a try, the command that prints its output is told, for each try."""
    ended(wrote(runs, "p.a.g1", 1))
    runs.note_refusal("p.a.g1", 1, Refusal(1, NO, NO))
    assert "check" not in shop("logs", "a").err  # its output is no more, or never was
    wrote(runs, "p.a.g1", 1, "E1\n", step="check.k1")
    said = "try 1 has written nothing\nits check said no: `loopr logs --check p/a`\n"
    assert shop("logs", "a").err == said
    assert shop("logs", "a", "--check").err == ""
    shop.end("p/a", Failure.REFUSED, NO)
    shop.choose()
    ended(wrote(runs, "p.a.g1", 2, "work\n"))
    assert shop("logs", "a") == (0, "work\n", "")
    told = shop("logs", "a", "--try", "1").err
    assert "its check said no: `loopr logs --check --try 1 p/a`" in told


def test_the_last_check_is_named_where_a_try_has_none(shop: Desk, runs: Runs) -> None:
    """A try that is over will have no check any more; the last one that had one is named."""
    wrote(runs, "p.a.g1", 1, "E1\n", step="check.k1")
    shop.end("p/a", Failure.REFUSED, NO)
    shop.choose()
    shop.run("p/a")
    ended(wrote(runs, "p.a.g1", 2, "work\n"))
    last = "`loopr logs --check --try 1 p/a` prints the check of try 1"
    told = shop("logs", "a", "--check").err
    assert "try 2 of p/a has no check yet\n" in told and last in told
    shop.end("p/a", Failure.CONFIG, "no make")
    told = shop("logs", "a", "--check").err
    assert "try 2 of p/a has no check\n" in told and last in told
    assert "`loopr logs p/a` shows what" in shop("logs", "a", "--review").err


def test_a_review_that_has_parked_is_named(shop: Desk, runs: Runs) -> None:
    """A judge that has parked the loop is named too; each of several reviews is printed."""
    ended(wrote(runs, "p.a.g1", 1, "work\n"))
    shop.end("p/a", Failure.CONFIG, "the review 2 of 3 said no: exit 127: no such tool")
    assert shop("logs", "a") == (0, "work\n", "")
    wrote(runs, "p.a.g1", 1, "no such tool\n", step="review2.k1")
    assert shop("logs", "a") == (0, "work\n", "its review said no: `loopr logs --review p/a`\n")
    assert shop("logs", "a", "--review").out == "no such tool\n"


def test_the_work_before_is_named(shop: Desk, runs: Runs) -> None:
    """While work that is done anew has no output, that of the work before is shown and said to be."""
    folder = wrote(runs, "p.a.g1", 1, "old\n")
    ended(folder)
    shop.end("p/a", Failure.CONFIG, "no make")
    shop.wish(wishes.renew, "p/a", "ada")
    answer = shop("logs", "a")
    assert answer.out == "old\n"
    assert "this is try 1, of the work before p/a was to be done anew" in answer.err
    assert "no try of it has any output" in answer.err
    assert "generation" not in answer.err
    shop.choose()
    wrote(runs, "p.a.g2", 2, "new\n")
    assert shop("logs", "a").out == "new\n"
    told = shop("logs", "a", "--try", "1").err
    assert told == "this is try 1, of the work before p/a was to be done anew\n"


def test_bytes_stay_bytes(shop: Desk, runs: Runs) -> None:
    """Output that is not UTF-8 goes to a pipe byte for byte."""
    raw = b"\xff\xfe\x00caf\xe9\x1b[2J\r\n"
    wrote(runs, "p.a.g1", 1, raw)
    assert program(shop.folder, "logs", "a").stdout == raw


def test_as_json(shop: Desk, runs: Runs) -> None:
    """As JSON each run has its output as text, and how it ended; and with -f each line is a document."""
    ended(wrote(runs, "p.a.g1", 1, b"\xff\n", "oh\n"), code=3)
    body = shop("logs", "a", "--json").document
    assert (body["id"], body["attempt"], body["generation"]) == ("p/a", 1, 1)
    (row,) = body["outputs"]
    assert (row["step"], row["ended"], row["reason"], row["exit"]) == ("run", True, "exited", 3)
    assert (row["stdout"], row["stderr"]) == ("�\n", "oh\n")
    assert shop("logs", "a", "-f", "--json", "--attempt", "1").code == 2
    lines = [json.loads(line) for line in shop.lines("logs", "a", "-f", "--json")]
    assert [(each["id"], each["stream"], each["text"]) for each in lines] == [
        ("p/a", "stdout", "�"),
        ("p/a", "stderr", "oh"),
    ]


# --- how it lies on disk --------------------------------------------------------------------------------------------


def fed(folder: Path, sizes: list[int]) -> Iterator[Log]:
    """Write numbered bytes through the launcher's own log, giving it after each piece."""
    log, at = Log(str(folder / "stdout.log"), HEAD, TAIL), 0
    reader, writer = os.pipe2(os.O_NONBLOCK)
    try:
        for size in sizes:
            os.write(writer, bytes(numbered(at, size)))
            at += size
            while log.take(reader):
                pass
            yield log
        log.finish()
        yield log
    finally:
        os.close(reader)
        os.close(writer)


def numbered(at: int, size: int) -> bytes:
    """Return the bytes of a stream from a place on."""
    return bytes(33 + each % 90 for each in range(at, at + size))


@pytest.mark.parametrize("sizes", [[5], [20], [25], [30, 9], [15, 17, 1], [20, 12], [32, 12, 1], [70, 60, 3], [200]])
def test_head_and_tail_while_written_and_after(tmp_path: Path, sizes: list[int]) -> None:
    """At every moment the output is what was written but for one cut, and the mark says how much is missing."""
    claimed(tmp_path)
    total = 0
    for log in fed(tmp_path, sizes):
        total = log.total
        said = b"".join(logs.Stream(tmp_path, "stdout.log").read())
        head, mark, tail = said.partition(b"\n[loopr: ")
        assert head == numbered(0, len(head))
        if not mark:
            assert len(head) == total
            continue
        cut, _, tail = tail.partition(b" bytes were cut here]\n")
        assert int(cut) == total - len(head) - len(tail)
        assert tail == numbered(total - len(tail), len(tail))
    assert total == sum(sizes)


@pytest.mark.parametrize("reads", [1, 2, 3])
def test_a_follower_gets_each_byte_once(tmp_path: Path, reads: int) -> None:
    """Who reads along gets everything in order, once, also across the moment in which the log is put in order."""
    claimed(tmp_path)
    stream, said = logs.Stream(tmp_path, "stdout.log"), b""
    for number, _ in enumerate(fed(tmp_path, [7, 9, 10, 5, 11, 4, 6])):
        if number % reads == 0:
            said += b"".join(stream.read())
    said += b"".join(stream.read())
    head, mark, rest = said.partition(b"\n[loopr: ")
    if not mark:
        assert said == numbered(0, 52)
    else:
        cut, _, tail = rest.partition(b" bytes were cut here]\n")
        assert head + numbered(len(head), int(cut)) + tail == numbered(0, 52)


# --- following ------------------------------------------------------------------------------------------------------


def paced(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object]) -> list[float]:
    """Let something happen at each pause of a follower, in place of time; one too many is a failure."""
    left, pauses = list(steps), []

    def sleep(secs: float) -> None:
        pauses.append(secs)
        left.pop(0)()

    monkeypatch.setattr(verb.time, "sleep", sleep)
    return pauses


def append(path: Path, text: str) -> None:
    """Write more."""
    with path.open("a") as file:
        file.write(text)


def test_following_until_the_end(shop: Desk, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """-f prints what comes, with a heading wherever the stream changes, and ends with the attempt."""
    folder = wrote(runs, "p.a.g1", 1, "one\n")
    paced(
        monkeypatch,
        lambda: append(folder / "stdout.log", "two\n"),
        lambda: append(folder / "stderr.log", "oh"),
        lambda: (append(folder / "stdout.log", "three\n"), ended(folder, 4)),
    )
    answer = shop("logs", "-f", "a")
    assert answer.out.splitlines() == ["one", "two", "==> stderr <==", "oh", "==> stdout <==", "three"]
    assert answer.err == "try 1 has ended: exit 4\n"


def test_following_an_attempt_that_has_no_folder_yet(shop: Desk, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """-f waits for a leased loop to begin, and does not show an earlier attempt."""
    paced(monkeypatch, lambda: wrote(runs, "p.b.g1", 1, "hello\n"), lambda: ended(runs.folder("p.b.g1", 1)))
    assert shop("logs", "-f", "b").out == "hello\n"


def test_following_ends_with_the_lease(shop: Desk, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt that the journal says is over is not waited for, outcome or not."""
    wrote(runs, "p.a.g1", 1, "one\n")
    paced(monkeypatch, lambda: shop.end("p/a", Failure.INFRA, "lost"))
    answer = shop("logs", "-f", "a")
    assert (answer.out, answer.err) == ("one\n", "try 1 does not run any more\n")


@pytest.mark.parametrize("boot", ["another", ""])
def test_following_what_nobody_watches(shop: Desk, runs: Runs, boot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an engine, a run whose processes are gone, or were of an earlier boot, is not waited for."""
    pid = os.getpid() if boot else 2**22 + 1  # a number that is somebody else's by now
    claimed(wrote(runs, "p.a.g1", 1, "one\n"), pid, start_time(os.getpid()), boot)
    paced(monkeypatch)
    assert shop("logs", "-f", "a") == (0, "one\n", "try 1 does not run any more\n")


def test_the_last_words_are_not_lost(tmp_path: Path) -> None:
    """What is written just before a run ends is read, though nothing comes after it."""

    def over() -> bool:
        append(tmp_path / "stdout.log", "last\n")
        return True

    pieces = logs.follow([logs.Stream(tmp_path, "stdout.log")], over, lambda: None)
    assert list(pieces) == [("stdout.log", b"last\n")]


def test_following_a_live_process(shop: Desk, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose process lives is waited for."""
    folder = wrote(runs, "p.a.g1", 1, "one\n")
    claimed(folder, os.getpid(), start_time(os.getpid()))
    pauses = paced(monkeypatch, lambda: None, lambda: ended(folder))
    assert shop("logs", "-f", "a").code == 0
    assert len(pauses) == 2


# --- a terminal -----------------------------------------------------------------------------------------------------


class Frame:
    terminal = True
    color = True


def test_a_terminal_gets_colours_only(capsys: pytest.CaptureFixture[str]) -> None:
    """Colours pass, also cut in two; what would move the cursor or set a title is made visible."""
    sink = verb.Sink(Frame(), Veil())  # type: ignore[arg-type]
    for piece in (b"\x1b[3", b"1mred\x1b]0;title\x07\x1b[2J caf\xc3", b"\xa9\n"):
        sink.write(piece)
    sink.close()
    assert capsys.readouterr().out == "\x1b[31mred�]0;title��[2J café\n\x1b[0m"
