"""The journal as people and programs read it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from loopr.core.codec import EVENTS
from loopr.ui import listening
from loopr.ui.listening import Wanted, happening
from loopr.ui.steering import fulfil
from loopr.ui.story import _PHRASES, sentence
from loopr.ui.vocabulary import Wish
from loopr.wiring import Workspace
from tests.ui.calls import this_tree
from tests.ui.scenes import Desk, flat


def test_one_event_a_line(desk: Desk) -> None:
    """Each event has its number, its instant, the loop it is about, and a sentence."""
    desk.start()
    assert desk.lines("events", "--after", "6") == [
        "     7  12:00:00  oauth/tokens: declared by its parent's artifact",
        "     8  12:00:00  oauth/endpoints: declared by its parent's artifact",
        "     9  12:00:00  oauth/tokens: done: it needs no work of its own",
        "    10  12:00:00  oauth/tokens/store: declared by its parent's artifact",
        "    11  12:00:00  oauth/tokens/refresh: declared by its parent's artifact",
        "    12  12:00:00  oauth/tokens/store: done: it needs no work of its own",
        "    13  12:00:00  oauth/tokens/store/code: declared by its parent's artifact",
    ]


def test_json_lines(desk: Desk) -> None:
    """As JSON each line is a document of its own with exactly the same keys, numbered without a gap."""
    desk.start()
    rows = [json.loads(line) for line in desk.lines("events", "--json")]
    assert {tuple(row) for row in rows} == {("seq", "at", "event", "loop", "actor", "data")}
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["actor"] for row in rows} == {"ada"}
    assert {row["event"] for row in rows} <= set(EVENTS)


def test_what_is_asked_for(desk: Desk) -> None:
    """Events of one loop, of some kinds, after a number, or the last so many; together all of them hold."""
    desk.start()

    def numbers(*options: str) -> list[int]:
        return [int(line.split()[0]) for line in desk.lines("events", *options)]

    assert numbers("store") == [10, 12]
    assert numbers("--type", "settled") == [9, 12]
    assert numbers("--type", "settled", "--type", "declared", "--after", "11") == [12, 13]
    assert numbers("-n", "2") == [12, 13]
    assert numbers("store", "--type", "declared", "-n", "1") == [10]
    assert numbers("--after", "13") == []


def test_before_anything_is_planned(desk: Desk) -> None:
    """A workspace without a journal has no events, which is no failure."""
    assert desk("events")[:2] == (0, "")
    assert desk("events", "--json")[:2] == (0, "")


def test_a_misspelt_event(desk: Desk) -> None:
    """A kind of event that does not exist is refused, not answered with nothing."""
    desk.start()
    answer = desk("events", "--type", "landde")
    assert answer.code == 2
    assert answer.err == "loopr: there is no event 'landde'\n  hint: did you mean landed?\n"
    assert "events.md" in desk("events", "--type", "xyz").err


def test_every_event_has_a_sentence() -> None:
    """No event is told by its bare name, and none shows a place in its sentence that was not filled."""
    for name in EVENTS:
        told = sentence(name, {})
        assert name in _PHRASES
        assert not re.search(r"[{}]", told)


# --- following ------------------------------------------------------------------------------------------------------

NEVER_SECS = 10_000


@contextmanager
def following(desk: Desk, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Follow the journal in another process."""
    command = [sys.executable, "-m", "loopr", "events", "-f", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=desk.folder, env=this_tree(), stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def take(process: subprocess.Popen[str], number: int) -> list[dict[str, object]]:
    """Read so many events, however long they take to come."""
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(number)]


def numbers(rows: list[dict[str, object]]) -> list[object]:
    """Return the numbers of events."""
    return [row["seq"] for row in rows]


def pause(desk: Desk, name: str) -> None:
    """Pause a loop, without the streams of this process: threads share those."""
    fulfil(Workspace(desk.folder), Wish("pause", (name,)))


def test_what_happens_next_is_printed(desk: Desk) -> None:
    """A follower prints what there is and then what comes, and Ctrl-C ends it behind a whole line, without a word."""
    desk.start()
    with following(desk, "--json", "--after", "11") as process:
        assert numbers(take(process, 2)) == [12, 13]
        desk("pause", "tokens")
        (held,) = take(process, 1)
        assert (held["seq"], held["event"], held["loop"]) == (14, "held", "oauth/tokens")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert (process.returncode, out, err.strip()) == (130, "", "")


def test_only_what_is_asked_for_is_followed(desk: Desk) -> None:
    """Kinds and a loop are heeded by a follower, and `-n` says with how many of the past it begins."""
    desk.start()
    with following(desk, "--json", "-n", "1", "tokens", "--type", "declared", "--type", "held") as process:
        assert numbers(take(process, 1)) == [7]
        desk("pause", "endpoints")
        desk("pause", "tokens")
        assert [(row["event"], row["loop"]) for row in take(process, 1)] == [("held", "oauth/tokens")]


def test_a_reader_that_is_gone_ends_it(desk: Desk) -> None:
    """A follower whose reader has gone ends by itself, though nothing happens any more."""
    desk.start()
    with following(desk) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait() == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_following_before_anything_is_planned(desk: Desk) -> None:
    """A follower may come before the journal does, and sees its first event."""
    with following(desk, "--json") as process:
        desk.start()
        assert numbers(take(process, 13)) == list(range(1, 14))


def test_a_follower_is_woken(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower is woken by what is written, not by its clock; what was written before it slept wakes it too."""
    monkeypatch.setattr(listening, "TICK_SECS", NEVER_SECS)
    desk.start()
    news = happening(Workspace(desk.folder), Wanted(after=13), None)
    try:
        for _ in range(3):
            thread = Thread(target=pause, args=(desk, "tokens"))
            thread.start()
            assert [row["event"] for row in next(news)] == ["held"]
            thread.join()
            desk("resume", "tokens")
            assert [row["event"] for row in next(news)] == ["lifted"]
    finally:
        news.close()


def test_no_gap_and_no_repeat(desk: Desk) -> None:
    """Whoever is cut off again and again, and comes back with the last number it saw, has seen each event once."""
    names = [f"s{number}" for number in range(12)]
    desk.start(flat(names))
    begun, seen = len(desk.lines("events")), []
    writers = [Thread(target=pause, args=(desk, name)) for name in names]
    for writer in writers:
        writer.start()
    while len(seen) < begun + len(names):
        with following(desk, "--json", "--after", str(len(seen))) as process:
            seen += take(process, min(5, begun + len(names) - len(seen)))
            process.send_signal(signal.SIGKILL)
    for writer in writers:
        writer.join()
    assert numbers(seen) == list(range(1, begun + len(names) + 1))
    assert [json.dumps(row) for row in seen] == desk.lines("events", "--json")
