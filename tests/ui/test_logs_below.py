"""What all loops below one have written, and what they write."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from loopr.core.model import Failure
from loopr.ui import following
from loopr.ui.cli import below
from loopr.wiring import Workspace
from loopr.world.runs import Refusal, Runs
from tests.ui.scenes import Desk, flat
from tests.ui.test_logs import append, ended, wrote


@pytest.fixture
def runs(shop: Desk) -> Runs:
    """Give the run folders of a workspace in which two loops of three run."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    for each in ("p/a", "p/b"):
        shop.run(each)
    return Runs(Workspace(shop.folder).place.state)


def paced(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object]) -> None:
    """Let something happen at each pause of a follower, in place of time; one too many is a failure."""
    left = list(steps)
    monkeypatch.setattr(below, "TICK_SECS", 0.0)
    monkeypatch.setattr(following.time, "sleep", lambda secs: left.pop(0)())


def test_the_last_lines_of_each(shop: Desk, runs: Runs) -> None:
    """`logs PLAN` prints the last lines of each loop that has any, under its path below the plan."""
    wrote(runs, "p.a.g1", 1, "".join(f"{number}\n" for number in range(30)), "oh")
    assert shop.lines("logs", "p") == ["==> a <==", *map(str, range(20, 30)), "oh"]
    wrote(runs, "p.b.g1", 1, "hello")
    assert shop.lines("logs", "p", "--tail", "1") == ["==> a <==", "29", "oh", "==> b <==", "hello"]
    found = shop("logs", "p", "--json").document["below"]
    assert [(each["id"], each["outputs"][0]["stderr"]) for each in found] == [("p/a", "oh"), ("p/b", "")]


def test_nobody_below_has_written(shop: Desk, runs: Runs) -> None:
    """Where there is no output at all that is said as of one loop."""
    answer = shop("logs", "p")
    assert (answer.code, "p has no output yet" in answer.err) == (3, True)


def test_judges_below_that_said_no(shop: Desk, runs: Runs) -> None:
    """`logs PLAN` names the judges that said no below it: one by its loop, several at once."""
    for name in ("a", "b"):
        ended(wrote(runs, f"p.{name}.g1", 1))
    none = "no try below p has written anything\n"
    assert shop("logs", "p") == (0, "", none)
    for name, then in (("a", "the check of p/a said no: `loopr logs --check p/a`"), ("b", ALL)):
        wrote(runs, f"p.{name}.g1", 1, "E1\n", step="check.k1")
        runs.note_refusal(f"p.{name}.g1", 1, Refusal(1, "the check said no: exit 1", ""))
        assert shop("logs", "p") == (0, "", f"{none}{then}\n")
    assert shop("logs", "p", "--check") == (0, "==> a <==\nE1\n==> b <==\nE1\n", "")


ALL = "the check of 2 loops said no: `loopr logs --check p`"


def test_one_stream_of_all(shop: Desk, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """-f gives whole lines, each with its loop, of all that live though no engine does, and reads each to its end."""
    one, two = wrote(runs, "p.a.g1", 1, "one\nha"), wrote(runs, "p.b.g1", 1)
    paced(
        monkeypatch,
        lambda: (append(one / "stdout.log", "lf\n"), append(two / "stderr.log", "oh\n")),
        lambda: (append(two / "stdout.log", "last"), ended(two, 4)),
        lambda: ended(one),
    )
    answer = shop("logs", "-f", "p")
    assert answer.out.splitlines() == ["a | one", "a | half", "b | oh", "b | last"]
    assert "p/b: try 1 has ended: exit 4\np/a: try 1 has ended: exit 0\n" in answer.err
    assert answer.err.endswith("no engine runs here, so nothing goes on by itself: `loopr run`\n")


def test_only_the_tail_of_what_was_there(shop: Desk, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """--tail begins with the last lines of what is there, and all that comes follows; as JSON a document a line."""
    one = wrote(runs, "p.a.g1", 1, "1\n2\n3\n")
    shop.end("p/b", Failure.CONFIG, "no make")
    paced(monkeypatch, lambda: append(one / "stdout.log", "4\n5\n"), lambda: ended(one))
    lines = [json.loads(line) for line in shop.lines("logs", "-f", "p", "--tail", "1", "--json")]
    assert [each["text"] for each in lines] == ["3", "4", "5"]
    assert lines[0] == {"id": "p/a", "attempt": 1, "stream": "stdout", "text": "3"}


def test_one_loop_as_documents(shop: Desk, runs: Runs) -> None:
    """-f --json of one loop whose attempt is over gives what it has written, a document a line, and ends."""
    ended(wrote(runs, "p.a.g1", 1, "1\n2\n", "oh"))
    shop.end("p/a", Failure.CONFIG, "no make")
    lines = [json.loads(line) for line in shop.lines("logs", "-f", "a", "--json")]
    assert [(each["stream"], each["text"]) for each in lines] == [("stdout", "1"), ("stdout", "2"), ("stderr", "oh")]


def test_an_attempt_that_begins_meanwhile(shop: Desk, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that begins and ends between two looks is heard all the same."""
    one = wrote(runs, "p.a.g1", 1)

    def short() -> None:
        shop.end("p/b", Failure.INFRA, "no make")
        shop("retry", "p/b")
        assert shop.choose() == ["p/b"]
        shop.run("p/b")
        ended(wrote(runs, "p.b.g1", 2, "hello\n"))
        shop.end("p/b", Failure.CONFIG, "no make")

    paced(monkeypatch, short, lambda: ended(one))
    assert shop("logs", "-f", "p").out == "b | hello\n"


def test_nothing_is_at_work(shop: Desk) -> None:
    """Where nothing goes on it ends at once, and says what would go on."""
    shop.start(flat(["a", "b"]))
    answer = shop("logs", "-f", "p")
    assert (answer.code, answer.out) == (0, "")
    assert "no engine runs here" in answer.err


def test_a_loop_that_has_not_begun(shop: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """-f says what a loop waits for; where nobody runs it, that is told with the command."""
    shop.start("---\nid: p\nspecs: [{id: a}, {id: b, needs: [a]}]\n---\n")
    answer = shop("logs", "-f", "p/b")
    assert answer.code == 3
    first, second, third = answer.err.splitlines()
    assert first.startswith("p/b has not begun: needs ")
    assert second == "loopr: p/b has no output yet, and no engine runs here that would begin it"
    assert third == "  hint: `loopr run` goes on"
