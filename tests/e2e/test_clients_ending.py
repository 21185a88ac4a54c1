"""Real clients that hang, or that are not wanted any more: they end by a clock or by a word, with all they started."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from threading import Event

import pytest

from tests.e2e.nights import MARKS, Night, night
from tests.standin import answers as a

pytestmark = MARKS
IDLE_SECS = {"claude": 4, "codex": 4, "opencode": 14, "gemini": 6, "aider": 9}  # some say nothing for seconds at first
TOOL = a.Shell("tail -f /dev/null")  # runs in a session of its own, and would go on for ever


def clocks(client: str) -> str:
    """Return short clocks for silence, at first and later, long enough for a client to start."""
    secs = IDLE_SECS[client]
    return f", timeouts: {{first_byte_secs: {secs}, idle_secs: {secs}, grace_secs: 2}}"


@pytest.mark.parametrize(
    ("client", "answer"),
    [
        pytest.param("claude", a.Silence(), id="claude, no first byte"),
        pytest.param("claude", a.Stalled(), id="claude, silent stream"),
        pytest.param("codex", a.Silence(), id="codex, no first byte"),
        pytest.param("codex", a.Stalled(), id="codex, silent stream"),
        pytest.param("opencode", a.Silence(), id="opencode, no first byte"),
        pytest.param("opencode", a.Stalled(), id="opencode, silent stream"),
        pytest.param("gemini", a.Silence(), id="gemini, no first byte"),
        pytest.param("gemini", a.Stalled(), id="gemini, silent stream"),
        pytest.param("aider", a.Silence(), id="aider, which reads no stream"),
    ],
)
def test_a_provider_that_falls_silent(tmp_path: Path, client: str, answer: a.Answer) -> None:
    """A client whose provider says nothing, or nothing more, is ended by its clock as a timeout, and tried again."""
    with night(tmp_path, client) as repo:
        repo.leaves(client, "a", code=clocks(client))
        repo.standin.answer(answer, times=1)
        repo.loopr("start", "plan.md")
        broke = [each["data"]["failure"] for each in repo.events("broke")]
        assert broke == ["timeout"] * (repo.granted()["demo/a"] - 1) != []
        assert repo.statuses() == {"demo": "complete", "demo/a": "complete"}
        assert repo.standin.asked()[0].left, "the client of the first attempt still waits"
        assert repo.left_behind() == []


@pytest.mark.parametrize("client", ["claude", "codex", "opencode", "gemini"])
def test_a_provider_that_keeps_its_client_waiting(tmp_path: Path, client: str) -> None:
    """A client that is ended by its clock while it waits out a limit by itself has met a limit, and pays nothing."""
    with night(tmp_path, client) as repo:
        repo.leaves(client, "a", code=clocks(client))
        lift = repo.standin.answer(a.rate_limit(50))
        process = repo.begin("start", "plan.md")
        repo.until("lane_rested")
        lift()
        repo.loopr("reset", f"lane:{client}")
        process.ended(0)
        loop = repo.loops()["demo/a"]
        assert (loop["status"], loop["iteration"], loop["failures"], loop["attempt"]) == ("complete", 1, 0, 2)
        assert not repo.events("broke")
        assert repo.left_behind() == []


def test_what_never_fits_is_not_tried_for_ever(tmp_path: Path) -> None:
    """A client that sums up over and over what stays too long is ended by its clock, and a person is asked."""
    with night(tmp_path, "opencode") as repo:
        repo.leaves("opencode", "a", code=", timeouts: {wall_secs: 15, grace_secs: 2}")
        repo.standin.answer(lambda asked: a.TOO_LONG if asked.tools else a.Text("What was said."))
        repo.loopr("start", "plan.md", code=1)
        assert repo.granted() == {"demo/a": 1}
        assert [each["data"]["failure"] for each in repo.events("set_aside")] == ["config"]
        assert repo.left_behind() == []


@pytest.mark.parametrize("client", ["claude", "codex", "opencode", "gemini"])
def test_a_tool_that_hangs(tmp_path: Path, client: str) -> None:
    """A tool that never ends is ended with its client, although it runs in a session of its own."""
    with night(tmp_path, client) as repo:
        repo.leaves(client, "a", code=clocks(client))
        repo.standin.answer(TOOL, times=1)
        process = repo.begin("start", "plan.md")
        assert any("tail" in each for each in until_left(repo, "tail"))
        process.ended(0)
        assert [each["data"]["failure"] for each in repo.events("broke")] == ["timeout"]
        assert repo.left_behind() == []


def until_left(repo: Night, words: str) -> list[str]:
    """Wait until a process with some words in its command line runs, and return all that run."""
    ends = time.monotonic() + repo.patience_secs
    while not any(words in each for each in repo.left_behind()):
        assert time.monotonic() < ends, repo.left_behind()
        Event().wait(0.2)  # each look goes through all processes of the machine
    return repo.left_behind()


@pytest.mark.parametrize(("first", "second"), [("claude", "codex"), ("opencode", "gemini")])
def test_eight_are_cancelled(tmp_path: Path, first: str, second: str) -> None:
    """Of eight agents that are cancelled in the middle of their work no process, no lock and no file is left."""
    with night(tmp_path, first, second) as repo:
        mine, theirs = "a b c d", "e f g h"
        entries = ", ".join(f"{{id: {each}, agent: {second}}}" for each in theirs.split())
        repo.leaves(first, mine, entries=entries, more="concurrency: {max_api_calls: 8}\n")
        half = a.Edit("work/half.txt", "half\n")
        repo.standin.answer(lambda asked: TOOL if asked.follows else half)
        process = repo.begin("start", "plan.md")
        repo.standin.until(16)
        while sum("tail -f" in each for each in repo.left_behind()) < 8:
            until_left(repo, "tail")
        repo.loopr("cancel", "demo")
        process.ended(0)
        loops = {each: loop for each, loop in repo.loops().items() if each != "demo"}
        assert {each["status"] for each in loops.values()} == {"cancelled"}
        assert repo.left_behind() == []
        assert locked(repo) == []
        folders = [each for each in (repo.root / "worktrees").iterdir() if each.name != ".pool"]
        assert {repo.git("status", "--porcelain", cwd=each) for each in folders} <= {""}, "not all of it is safe"
        repo.loopr("gc", "--yes")
        assert [each.name for each in (repo.root / "worktrees").iterdir()] == [".pool"]
        assert repo.users()[0] == "?? plan.md"


def locked(repo: Night) -> list[str]:
    """Name the locks of git's that are there, and those of loopr's that somebody holds: its files stay."""
    found = []
    for path in (repo.root / ".git").rglob("*.lock"):
        if repo.state not in path.parents:
            found.append(str(path))
            continue
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found.append(str(path))
    return found
