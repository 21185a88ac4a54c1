"""The verb that waits for loops and convoys, and its exit codes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from loopr.core import wishes
from loopr.core.model import Failure
from tests.ui.acting import acting
from tests.ui.calls import Answer, this_tree
from tests.ui.scenes import COMMANDS, Desk, flat
from tests.ui.terminals import Line

ALONE = "no engine runs here, so nothing goes on by itself: `loopr run`"


class Waiting:
    """A call of `wait` beside which other things are done."""

    def __init__(self, desk: Desk, *words: str) -> None:
        self.desk, self.words = desk, words
        self.answer: Answer | None = None

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Wait in a thread; in the end that must be over."""

        def wait() -> None:
            self.answer = self.desk("wait", "--timeout", "60s", *self.words)

        thread = Thread(target=wait)
        thread.start()
        try:
            yield
        finally:
            thread.join(90)
            assert not thread.is_alive()


def without_time(said: str) -> str:
    """Leave out how long it took, which no two runs have in common."""
    return re.sub(r"  \d+ s$", "", said, flags=re.MULTILINE)


def waited(desk: Desk, words: list[str], *lines: str) -> Answer:
    """Wait while an engine in another process does what is said in lines."""
    waiting = Waiting(desk, *words)
    with acting(desk.folder) as engine:
        engine("choose")
        with waiting.beside():
            engine(*lines)
    assert waiting.answer is not None
    return waiting.answer


def test_waiting_until_it_is_done(shop: Desk) -> None:
    """While an engine works in another process, the answer comes when what was named is done: exit 0."""
    shop.start(flat(["a", "b"]))
    answer = waited(shop, ["a", "p/b"], "land p/a", "land p/b")
    assert (answer.code, without_time(answer.out)) == (0, "p/a  spec  done\np/b  spec  done\n")
    assert "p/b  landed  1 try  0 s" in answer.err  # p/a may have landed before we looked
    assert "next: `loopr tree`" in answer.err


def test_waiting_for_what_cannot_go_on(shop: Desk) -> None:
    """A loop that is set aside ends the waiting for it, whatever else still runs: exit 1."""
    shop.start(flat(["a", "b"]))
    answer = waited(shop, ["p/a"], "run p/b", "run p/a", "refuse p/a")
    assert answer.code == 1
    assert "parked  p/a: no such program" in answer.err
    assert "next: `loopr why p/a`" in answer.err
    assert ALONE not in answer.err


def test_waiting_behind_what_cannot_go_on(shop: Desk) -> None:
    """A loop that needs one which is set aside, or is cancelled, is stuck as well: exit 1."""
    shop.start("---\nid: p\nspecs: [{id: a}, {id: b, needs: [a]}, {id: c, needs: [b]}]\n---\n")
    assert waited(shop, ["p/c"], "run p/a", "refuse p/a").code == 1
    shop.wish(wishes.cancel, "p/a", "ada")
    assert shop("wait", "p/c").code == 1


def test_a_cancelled_loop_is_not_done(shop: Desk) -> None:
    """Whoever waits for a loop that a person cancels has waited in vain, once its attempt has ended: exit 1."""
    shop.start(flat(["a", "b"]))
    answer = waited(shop, ["p/b"], "run p/a", "cancel p/b", "stop p/b")
    assert answer.code == 1
    assert answer.out == "p/b  spec  cancelled\n"
    assert "cancelled by ada" in answer.err  # as news, or as what was so already where the waiting began late


def test_waiting_for_a_person(desk: Desk) -> None:
    """What a person must write ends the waiting, with an engine or without: exit 4."""
    desk.start(flat(["a"]))
    answer = desk("wait", "p")
    assert (answer.code, answer.out) == (4, "p  plan  0 of 1 done\n")
    assert answer.err.splitlines() == [
        "0 of 1 done · 1 waiting",
        "waiting  p/a: a person must write its spec.md: specs/p/a/spec.md",
        "next: `loopr why p/a`",
        ALONE,
    ]


def test_waiting_for_money(shop: Desk) -> None:
    """A plan that has spent all it had ends the waiting: exit 5."""
    shop.start(flat(["a"]).replace("id: p\n", "id: p\nbudget: {tokens: 0}\n"))
    with acting(shop.folder):
        answer = shop("wait", "p")
    assert answer.code == 5
    assert "waiting  1 loop: the tokens budget of plan p is reached" in answer.err


def test_time_is_up(shop: Desk) -> None:
    """A time limit ends the waiting while the work goes on: exit 75."""
    shop.start(flat(["a"]))
    with acting(shop.folder) as engine:
        engine("choose", "run p/a")
        answer = shop("wait", "--timeout", "200ms", "--json", "p/a")
    assert answer.code == 75
    assert (answer.document["timed_out"], answer.document["standing"]) == (True, "waiting")


def test_without_an_engine_nothing_is_waited_for(shop: Desk) -> None:
    """Where nobody works the answer comes at once and says so, unless all is done already."""
    shop.start(flat(["a"]))
    shop.choose()
    answer = shop("wait", "p/a")
    assert answer.code == 4
    assert answer.err.splitlines()[-1] == ALONE
    shop.land("p/a")
    answer = shop("wait", "p/a")
    assert (answer.code, answer.err) == (0, "1 of 1 done\nnext: `loopr tree`\n")


def test_the_document(shop: Desk) -> None:
    """With --json stdout is one document with the named loops as other verbs have them, also where all is not well."""
    shop.start(flat(["a", "b"]))
    shop.choose()
    shop.run("p/a")
    shop.end("p/a", Failure.CONFIG, "broken")
    answer = shop("wait", "--json", "p/a")
    assert answer.code == 1
    document = answer.document
    assert [each["id"] for each in document["loops"]] == ["p/a"]
    assert document["loops"] == shop("ls", "--json", "p/a").document["loops"]
    assert (document["standing"], document["timed_out"], document["schema"]) == ("stuck", False, 1)


def test_a_convoy_is_its_members(shop: Desk) -> None:
    """A convoy is waited for until all its members are done; they are reported, each once."""
    shop.start(flat(["a", "b", "c"]))
    shop.wish(wishes.form_convoy, "ship", ("p/a", "p/b"))
    answer = waited(shop, ["@ship", "p/a"], "run p/c", "land p/a", "land p/b")
    assert (answer.code, without_time(answer.out).splitlines()) == (0, ["p/a  spec  done", "p/b  spec  done"])


def test_a_convoy_without_members_never_lands(shop: Desk) -> None:
    """Waiting for a convoy that nobody has joined ends at once, and not as done: exit 4, and nothing of others."""
    shop.write("loopr.yml", COMMANDS + "projects: {bare: {}}\n")
    shop.start(flat(["a"]))
    shop.wish(wishes.form_convoy, "empty", ())
    for group in ("@empty", "project:bare"):
        assert shop("wait", group) == Answer(4, "", f"there is no loop in {group}\n")


def test_names_are_found_as_everywhere(shop: Desk) -> None:
    """A short name finds its loop; one that finds nothing, and a convoy that is none, are exit 3 with a hint."""
    shop.start(flat(["a", "b"]))
    assert shop("wait", "a").out.startswith("p/a")
    assert shop("wait", "nowhere").code == 3
    answer = shop("wait", "@nobody")
    assert (answer.code, answer.err) == (
        3,
        "loopr: there is no convoy @nobody\n  hint: `loopr convoy create`\n",
    )
    shop.wish(wishes.form_convoy, "ship", ("p/a",))
    assert "known: @ship" in shop("wait", "@nobody").err


@pytest.mark.parametrize("words", [["p/a", "--timeout", "soon"], []])
def test_what_cannot_be_read_is_refused(shop: Desk, words: list[str]) -> None:
    """A time limit that is none, and nothing to wait for, are exit 2."""
    shop.start(flat(["a"]))
    assert shop("wait", *words).code == 2


def test_on_a_terminal_there_is_a_picture(shop: Desk) -> None:
    """Where stderr is a terminal the tree is drawn there while it is waited, and stdout stays data."""
    shop.start(flat(["a", "b"]))
    line = Line(60, 12)
    command = [sys.executable, "-m", "loopr", "wait", "p/a", "p/b"]
    here = {"env": this_tree() | {"TERM": "xterm"}, "cwd": shop.folder}
    with acting(shop.folder) as engine:
        engine("choose", "run p/a")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=line.descriptor, **here) as waiting:
            try:
                while not line.lines():
                    assert waiting.poll() is None
                assert line.lines()[0].startswith("a  spec  running")
                engine("land p/a", "land p/b")
                assert without_time(waiting.communicate(timeout=60)[0].decode()) == "p/a  spec  done\np/b  spec  done\n"
            finally:
                waiting.kill()
    assert waiting.returncode == 0
    assert line.lines() == ["2 of 2 done", "next: `loopr tree`"]
    assert line.terminal.wrapped == 0
    line.close()
