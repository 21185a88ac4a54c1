"""What a person says of files that came while loops were at work, and what goes on until then."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from tests.e2e.repos import LOOPR, PATIENCE_SECS, Process, Repo, opened

SPEC = "---\nphases: [{id: p}]\n---\n# By hand\n"
FEWER = "---\nphases: [{id: o}]\n---\n# Not by hand\n"
PLAN = "---\nid: demo\nspecs: [{id: s}, {id: busy, phases: [{id: q, tasks: [{id: c}]}]}]\n---\n# Demo\n"
READS = 'cat "$LOOPR_INPUT" >> "$DESK/read"; say "$LOOPR_LOOP"'
CODE = f"case $LOOPR_LOOP in */busy/*) tell busy; wait_at busy ;; *) {READS} ;; esac"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a loop that works until the gate `busy` opens, and a spec that a person has written."""
    with opened(tmp_path) as found:
        repo = found.found()
        repo.settings(f"types:\n  code: {{run: '{repo.script('code', CODE)}'}}\n")
        repo.write({"plan.md": PLAN})
        repo.gate("busy")
        yield repo


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_an_edit_that_is_offered(repo: Repo, verb: str) -> None:
    """No start is proposed, `land` names it and asks, and a word says what it has come to."""
    repo.script("code", f"{CODE}; echo x > $(basename $(dirname $LOOPR_LOOP))")
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: busy, phases: [{id: q}, {id: r}]}]\n---\n"})
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: busy, phases: [{id: q}, {id: s}]}]\n---\n"})
    repo.loopr("start", "--no-run", "plan.md")
    warned = "plan.md has changed: start it again"
    body = repo.loopr("status", "--json").document
    assert ([each["loop"] for each in body["offered"]], body["warnings"]) == (["demo"], [])
    repo.gates["busy"].open()
    process.ended()
    told = "specs/demo/plan.md is offered: it changed while demo/busy/q/code"
    assert told in repo.loopr("land", "--dry-run", "demo").err
    assert told in repo.loopr("land", "demo", code=2).err
    said = repo.loopr(verb, "demo", "--file").out.splitlines()
    came = "demo: 2 new (1 written out in the plan), 2 gone" if verb == "approve" else ""
    assert [each for each in said if each.startswith("demo: ")] == [came] * bool(came), said
    assert ("  demo/busy/r is gone" in "\n".join(said)) == (verb == "approve")
    assert warned not in repo.loopr("status").out
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: busy, phases: [{id: q}]}]\n---\n"})
    assert warned in repo.loopr("status").out
    assert "is offered" not in repo.loopr("land", "--dry-run", "demo", code=None).err


def offered(repo: Repo) -> Process:
    """Work until a file that takes a phase away is offered for the complete spec."""
    repo.drop("demo/s/spec.md", SPEC)
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("landed", words="demo/s/p/code")
    repo.drop("demo/s/spec.md", FEWER)
    repo.until("artifact_offered", words="demo/s")
    return process


def typed(repo: Repo, answer: str, *words: str) -> str:
    """Type a command at a terminal, answer what it asks, and return what was on the screen."""
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    with subprocess.Popen(
        [str(LOOPR), *words], cwd=repo.root, env=repo.env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        said = b""
        with suppress(OSError):  # that is how a terminal ends
            while part := os.read(ours, 4096):
                said += part
        process.wait(60)
    os.close(ours)
    return said.decode(errors="replace")


@pytest.mark.parametrize(("answer", "taken"), [("y\n", True), ("\n", False)])
def test_a_terminal_is_asked(repo: Repo, answer: str, taken: bool) -> None:
    """`run` on a terminal shows what a file would change and asks; no is the default."""
    process = offered(repo)
    repo.gates["busy"].open()
    process.ended()
    said = typed(repo, answer, "run")
    assert "-phases: [{id: p}]" in said
    assert "Is it yours" in said
    assert ("demo/s/o/code" in repo.statuses()) is taken
    assert bool(repo.events("undeclared")) is taken


def test_what_is_read_until_then(repo: Repo) -> None:
    """Loops that begin while a file is offered for their parent read the text that counted before."""
    repo.drop("demo/s/spec.md", SPEC)
    tasks = "[{id: a}, {id: b, needs: [demo/busy]}]"
    repo.drop("demo/s/p/phase.md", f"---\ntasks: {tasks}\n---\n# The words that count\n")
    process = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("landed", words="demo/s/p/a")
    repo.drop("demo/s/p/phase.md", "---\ntasks: [{id: a}, {id: b, body: Evil.}]\n---\n# Other words\n")
    repo.until("artifact_offered", words="demo/s/p")
    repo.gates["busy"].open()
    process.ended()
    assert repo.granted()["demo/s/p/b"] == 1
    assert repo.note("read").count("# The words that count") == 2
    assert "Other words" not in repo.note("read")


def test_a_plan_comes_home_after_the_word(repo: Repo) -> None:
    """With `land.mode: auto` a plan below which a file is offered waits for the word on it."""
    run = repo.script("code", f"{CODE}; echo x > x")
    repo.settings(f"types:\n  code: {{run: '{run}'}}\nland: {{mode: auto}}\n")
    process = offered(repo)
    repo.gates["busy"].open()
    process.ended()
    assert repo.events("plan_came_home") == []
    repo.loopr("reject", "demo/s", "--file")
    repo.loopr("run")
    assert repo.git("show", "main:x") == "x"


def test_an_edit_after_a_crash(repo: Repo) -> None:
    """What a person edits once an engine was killed and its loops have ended is theirs, whatever was offered before."""
    process = offered(repo)
    process.kill()
    repo.gates["busy"].open()
    ends = time.monotonic() + PATIENCE_SECS
    while not list((repo.state / "runs").glob("demo.busy.q.c.g1/*/outcome.json")):
        assert time.monotonic() < ends
        Event().wait(0.02)
    repo.drop("demo/s/spec.md", "---\nphases: [{id: mine}]\n---\n# By hand again\n")
    repo.loopr("run")
    assert {"demo/s/mine/code"} <= repo.statuses().keys()
    assert repo.loopr("status", "--json").document["offered"] == []
