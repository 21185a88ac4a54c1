"""Agents as types and entries name them: from a preset to a command, and from what its client writes to what follows.

The clients are programs of the test's own, under the names of real ones, that write what those would.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.agents import streams_of as s
from tests.e2e.repos import Repo, opened

FAST = "retry: {base_secs: 0.05, cap_secs: 0.1}\nscheduler: {poll_interval_secs: 0.1}\n"
LEAVES = "types:\n  plan: {child: code}\n"
CLAUDE = LEAVES + "  code: {agent: claude}\n" + FAST


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a founded repository whose search path begins with a folder of the test's own."""
    with opened(tmp_path) as found:
        (tmp_path / "bin").mkdir()
        found.env["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{found.env['PATH']}"
        yield found.found()


def client(repo: Repo, name: str, script: str) -> None:
    """Put a client on the search path: a script for the shell, with the words of `SHELL`."""
    path = repo.desk.parent / "bin" / name
    path.write_text(f'#!/bin/sh\n. "$DESK/shell"\n{script}\n')
    path.chmod(0o755)


def says(repo: Repo, name: str, raw: bytes) -> str:
    """Leave a stream on the desk, and return the words that write it."""
    (repo.desk / name).write_bytes(raw)
    return f'cat "$DESK/{name}"'


def plan(repo: Repo, *children: str) -> None:
    """Write a plan with some code loops."""
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{', '.join(children)}]\n---\n# Demo\n"})


def words(*said: Any) -> bytes:
    """Return a stream of Claude Code that says something and ends well."""
    blocks = [{"type": "text", "text": each} for each in said]
    message = {"id": "m", "usage": {"input_tokens": 7, "output_tokens": 1}, "content": blocks}
    return s.lines({"type": "assistant", "message": message}, s.claude_result())


def test_a_type_with_an_agent_works(repo: Repo) -> None:
    """`agent: claude` is all it takes: its command, the prompt, its environment, its lane, its usage and its cost."""
    repo.settings(CLAUDE)
    plan(repo, "{id: a, title: Make a thing}")
    client(
        repo,
        "claude",
        f"""
cat > prompt.txt; echo "$*" > arguments.txt; echo x > "$TMPDIR/x"
echo "$CLAUDE_CODE_MAX_RETRIES $DISABLE_AUTOUPDATER ${{TMPDIR#"$LOOPR_WORKTREE"}}" > environment.txt
{says(repo, "done", words("I have looked.", "It is done."))}""",
    )
    repo.loopr("start", "plan.md")
    assert repo.statuses() == {"demo": "complete", "demo/a": "complete"}
    assert "Make a thing" in repo.on_branch("demo", "prompt.txt")
    assert repo.on_branch("demo", "arguments.txt").startswith("-p --output-format stream-json --verbose")
    assert repo.on_branch("demo", "environment.txt") == "1 1 /.loopr/tmp"
    (lease,) = [each for each in repo.events("lease_granted") if each["loop"] == "demo/a"]
    assert lease["data"]["lane"] == "claude"
    spent = repo.loopr("show", "demo/a", "--json").document["loop"]["usage"]
    assert (spent["tokens"], spent["usd"], spent["estimated"]) == (460, 0.00564, False)
    kept = json.loads(next(repo.state.glob("runs/demo.a.g1/1/usage.json")).read_text())
    assert (kept["session"], kept["measured"], kept["cached_input_tokens"]) == ("s-1", True, 300)
    assert repo.loopr("logs", "demo/a").out == "I have looked.\nIt is done.\n"
    assert repo.loopr("logs", "demo/a", "--raw").out.encode() == words("I have looked.", "It is done.")


def test_an_account_that_is_of_no_use_parks_its_lane_once(repo: Repo) -> None:
    """Whoever is not logged in is told once what to do; no loop pays for it, and other lanes go on."""
    other = repo.script("other", "true")
    repo.settings(LEAVES + "  code: {agent: claude}\nlanes: {claude: {max_concurrent: 1}}\n" + FAST)
    plan(repo, *(f"{{id: {each}}}" for each in "abc"), f"{{id: d, agent: codex}}, {{id: e, run: '{other}'}}")
    client(repo, "claude", f"{says(repo, 'out', s.claude_error('authentication_failed', 401))}; exit 1")
    client(repo, "codex", f"{says(repo, 'well', s.recorded('codex')['text'])}")
    ended = repo.loopr("start", "plan.md", code=None)
    (parked,) = repo.events("lane_parked")
    assert parked["data"]["lane"] == "claude"
    assert "log in" in parked["data"]["reason"]
    assert "loopr reset lane:claude" in ended.out + ended.err + repo.loopr("tree").out
    found = repo.loops()
    assert {(found[f"demo/{each}"]["iteration"], found[f"demo/{each}"]["failures"]) for each in "abc"} == {(1, 0)}
    assert found["demo/d"]["status"] == "complete"
    assert sum(repo.granted()[f"demo/{each}"] for each in "abc") == 1
    client(repo, "claude", says(repo, "in", words("now")))
    repo.loopr("reset", "lane:claude")
    repo.loopr("run")
    assert set(repo.statuses().values()) == {"complete"}


def test_a_limit_that_is_reported_with_exit_0_rests_the_lane(repo: Repo) -> None:
    """A limit costs the loop nothing, whatever the exit code: the lane rests as long as the provider asks."""
    repo.settings(CLAUDE)
    plan(repo, "{id: a}")
    retry = s.lines({"type": "system", "subtype": "api_retry", "error_status": 429, "retry_delay_ms": 1500})
    limit, well = says(repo, "limit", retry + s.claude_error("rate_limit", 429)), says(repo, "well", words("ok"))
    client(repo, "claude", f'if test -e "$DESK/been"; then {well}; else : > "$DESK/been"; {limit}; fi')
    repo.loopr("start", "plan.md")
    (rested,) = repo.events("lane_rested")
    assert (rested["data"]["lane"], rested["data"]["until"] - rested["at"] > 1000) == ("claude", True)
    loop = repo.loops()["demo/a"]
    assert (loop["status"], loop["iteration"], loop["failures"], loop["attempt"]) == ("complete", 1, 0, 2)


def test_a_clock_that_ends_a_client_which_waits_for_its_provider(repo: Repo) -> None:
    """A client that tries again by itself until it is ended has met a limit: its lane rests, its loop pays nothing."""
    repo.settings(CLAUDE.replace("agent: claude", "agent: codex, timeouts: {idle_secs: 1, grace_secs: 1}"))
    plan(repo, "{id: a}")
    again = {"type": "error", "message": "Reconnecting... 1/5 (rate limit, status: 429; try again in 1s)"}
    waits, well = says(repo, "waits", s.lines({"type": "turn.started"}, again)), s.recorded("codex")["text"]
    begin = f'if test "$LOOPR_ATTEMPT" = 1; then {waits}; tail -f /dev/null; fi'
    client(repo, "codex", f"{begin}; {says(repo, 'well', well)}")
    repo.loopr("start", "plan.md")
    loop = repo.loops()["demo/a"]
    assert (loop["status"], loop["iteration"], loop["failures"], loop["attempt"]) == ("complete", 1, 0, 2)
    assert [each["data"]["lane"] for each in repo.events("lane_rested")] == ["codex"]


def test_a_clock_that_ends_a_client_which_tries_what_cannot_be(repo: Repo) -> None:
    """A client whose conversation never fits, and that sums it up until it is ended, is not let try that again."""
    repo.settings(CLAUDE.replace("agent: claude", "agent: opencode, timeouts: {idle_secs: 1, grace_secs: 1}"))
    plan(repo, "{id: a}")
    client(repo, "opencode", f"{says(repo, 'long', s.recorded('opencode')['too-long-for-ever'])}; tail -f /dev/null")
    repo.loopr("start", "plan.md", code=1)
    assert [each["data"]["failure"] for each in repo.events("set_aside")] == ["config"]
    assert repo.granted() == {"demo/a": 1}


def test_what_an_agent_could_not_do_is_told_to_its_next_try(repo: Repo) -> None:
    """A refusal by the client becomes feedback in words, not a heap of events."""
    repo.settings(CLAUDE)
    plan(repo, "{id: a}")
    turns = s.claude_result(is_error=True, subtype="error_max_turns", result=None, errors=["Reached 1 turn"])
    first, second = says(repo, "first", words("Half way.").split(b"\n")[0] + b"\n" + s.lines(turns)), words("ok")
    begin = f'cat > "prompt$LOOPR_ITERATION.txt"; if test $LOOPR_ITERATION = 1; then {first}; exit 1; fi'
    client(repo, "claude", f"{begin}; {says(repo, 'second', second)}")
    repo.loopr("start", "plan.md")
    prompt = repo.on_branch("demo", "prompt2.txt")
    assert "Reached 1 turn" in prompt
    assert "Half way." in prompt
    assert '"type"' not in prompt


def test_a_stream_without_its_end_is_no_work_that_is_done(repo: Repo) -> None:
    """A client that ends with 0 in the middle of its stream is tried again, and pays for it."""
    repo.settings(CLAUDE)
    plan(repo, "{id: a}")
    half, well = says(repo, "half", words("Half way.")[:-30]), says(repo, "well", words("ok"))
    client(repo, "claude", f'if test "$LOOPR_ATTEMPT" = 1; then {half}; else {well}; fi')
    repo.loopr("start", "plan.md")
    (broke,) = repo.events("broke")
    assert (broke["data"]["failure"], repo.loops()["demo/a"]["attempt"]) == ("infra", 2)


def test_what_an_agent_says_shows_while_it_works(repo: Repo) -> None:
    """`tree` and `logs` tell what was said last, and what it has used is known before it ends."""
    gate = repo.gate("gate")
    repo.settings(CLAUDE)
    plan(repo, "{id: a}")
    begin, end = words("Reading the tests.").split(b"\n")[0] + b"\n", s.lines(s.claude_result())
    client(repo, "claude", f"{says(repo, 'begin', begin)}; tell began; wait_at gate; {says(repo, 'end', end)}")
    engine = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("usage_seen")
    assert "Reading the tests." in repo.loopr("tree").out
    assert repo.loopr("logs", "demo/a").out == "Reading the tests.\n"
    assert repo.loops()["demo/a"]["usage"]["tokens"] == 8
    gate.open()
    engine.ended()
    assert repo.loops()["demo/a"]["usage"]["tokens"] == 460


def test_a_killed_engine_leaves_an_agent_to_the_next(repo: Repo) -> None:
    """An agent that ends while no engine lives is read by the one that comes after, by what it wrote."""
    gate = repo.gate("gate")
    repo.settings(CLAUDE)
    plan(repo, "{id: a}")
    turns = s.claude_result(is_error=True, subtype="error_max_turns", errors=["Reached 1 turn"], result=None)
    late, well = says(repo, "late", s.lines(turns)), says(repo, "well", words("ok"))
    client(repo, "claude", f"if test $LOOPR_ITERATION = 1; then tell began; wait_at gate; {late}; else {well}; fi")
    engine = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("attempt_started")
    engine.signal(signal.SIGKILL)
    engine.ended(-signal.SIGKILL)
    gate.open()
    repo.loopr("run")
    assert [each["data"]["reason"] for each in repo.events("refused")] == ["claude: Reached 1 turn"]
    assert repo.loops()["demo/a"]["attempt"] == 2


def test_an_hour_is_that_of_the_end_and_not_of_the_reading(repo: Repo) -> None:
    """An engine that reads long after its end how an agent was limited does not wait for that hour of the next day."""
    gate = repo.gate("gate")
    repo.settings(CLAUDE)
    plan(repo, "{id: a}")
    over = datetime.now(UTC) - timedelta(minutes=25)
    limit = s.claude_error("rate_limit", 429, result=f"limit reached, resets {over:%I:%M%p} (UTC)")
    told, well = says(repo, "told", limit), says(repo, "well", words("ok"))
    client(repo, "claude", f"if test $LOOPR_ATTEMPT = 1; then tell began; wait_at gate; {told}; else {well}; fi")
    engine = repo.begin("start", "plan.md")
    repo.heard()
    repo.until("attempt_started")
    engine.kill()
    gate.open()
    outcome = repo.state / "runs/demo.a.g1/1/outcome.json"
    while not outcome.exists():
        Event().wait(0.02)
    said = json.loads(outcome.read_text())
    outcome.write_text(json.dumps({**said, "started_at": said["started_at"] - 20 * 60_000}))
    repo.loopr("run")
    assert repo.loops()["demo/a"]["status"] == "complete"
    (rested,) = repo.events("lane_rested")
    assert rested["data"]["until"] - rested["at"] == 2_000


def test_a_file_of_the_workspace_takes_the_place_of_a_shipped_preset(repo: Repo) -> None:
    """A preset of one's own wins, one may begin with another, and each has the lane that it says."""
    repo.settings(LEAVES + "  code: {agent: claude}\nagents: {big: {extends: claude, model: huge}}\n" + FAST)
    repo.write({"agents/claude.yml": 'run: [own, "{prompt_file}", "{options}"]\noptions: {model: [--m, "{model}"]}\n'
                                     "lane: mine\n"})  # fmt: skip
    plan(repo, "{id: a}, {id: b, agent: big, needs: [a]}")
    client(repo, "own", 'test -s "$1"; echo "$@" > "$(basename "$LOOPR_LOOP").txt"')
    repo.loopr("start", "plan.md")
    assert repo.on_branch("demo", "a.txt").split()[1:] == []
    assert repo.on_branch("demo", "b.txt").split()[1:] == ["--m", "huge"]
    assert {each["data"]["lane"] for each in repo.events("lease_granted")} == {"mine"}


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"loopr.yml": "types: {code: {agent: cluade}}\n"},
         "loopr.yml:1:16 types.code.agent: cluade names no preset (did you mean claude? there are aider, claude,"),
        ({"loopr.yml": "types: {code: {agent: mine}}\n", "agents/mine.yml": "run: [x]\nreeder: claude\n"},
         "agents/mine.yml:2:1 agents.mine.reeder: is not a known key (did you mean agents.mine.reader?)"),
        ({"plan.md": "---\nid: demo\nspecs:\n  - id: a\n    agent: nobody\n---\n# Demo\n"},
         "plan.md:4:5 agent: nobody names no preset (there are aider, claude, codex, gemini, opencode; a command of"),
        ({"plan.md": "---\nid: demo\nspecs:\n  - id: a\n    agent: claud\n---\n# Demo\n"},
         "plan.md:4:5 agent: claud names no preset (did you mean claude? there are aider, claude, codex,"),
    ],
)  # fmt: skip
def test_an_agent_that_there_is_not_is_refused(repo: Repo, files: dict[str, str], told: str) -> None:
    """Whoever names no preset, or writes a wrong one, is told where, and which there are, before anything starts."""
    repo.write({"plan.md": "---\nid: demo\nspecs: [{id: a}]\n---\n# Demo\n", **files})
    ended = repo.loopr("start", "plan.md", code=78)
    assert told in ended.err
    if "plan.md" not in files:
        assert told in repo.loopr("config", "check", code=78).out
