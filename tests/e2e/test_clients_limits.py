"""Limits, wrong keys and normal traffic, as the real clients report them: what they cost, and whom they hold up."""

from __future__ import annotations

import stat
import time
from collections import Counter
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from tests.e2e.nights import MARKS, Night, night
from tests.standin import answers as a
from tests.standin.asked import Asked
from tests.standin.author import author, work_of
from tests.standin.desk import KEY
from tests.standin.server import Chosen

pytestmark = MARKS
LEAVES = ["demo/a", "demo/b", "demo/c", "demo/d"]
NAMES = "a b c d"
REST_SECS = 4
USED_UP_SECS = 15


def together(answer: Chosen) -> Chosen:
    """Answer so, once all leaves have asked: none of them may be held up by the answer to another."""
    barrier, met = Barrier(len(LEAVES)), set[str]()

    def chosen(asked: Asked) -> a.Answer:
        if asked.loop not in met:
            met.add(asked.loop)
            barrier.wait(200)
        return answer(asked)

    return chosen


def limited(tries: int, answer: a.Answer) -> Chosen:
    """Answer so to the last try of each client; one that is told when to come again is told to come soon before."""
    seen = Counter[str]()

    def chosen(asked: Asked) -> a.Answer:
        seen[asked.loop] += 1
        return answer if seen[asked.loop] >= tries or isinstance(answer, a.BrokenOff) else a.rate_limit(1)

    return chosen


def all_landed(repo: Night) -> None:
    """See that every leaf is complete, and that what it wrote is on the branch of the plan."""
    assert repo.statuses() == dict.fromkeys(("demo", *LEAVES), "complete")
    assert {each: repo.on_branch("demo", work_of(each)) for each in LEAVES} == {each: each for each in LEAVES}


def cost_nothing(repo: Night) -> None:
    """See that no loop lost an iteration, a failure or its place to a limit."""
    for loop in repo.loops().values():
        assert (loop["iteration"], loop["failures"], loop["status"]) == (1, 0, "complete"), loop["id"]
    assert not repo.events("broke", "refused", "set_aside")


def rested(repo: Night) -> int:
    """See that nothing was started on a lane while it rested; return when the rest was over."""
    rests = repo.events("lane_rested")
    assert {each["data"]["hits"] for each in rests} == {1}
    begun, over = rests[0]["at"], max(each["data"]["until"] for each in rests)
    assert not [each["loop"] for each in repo.events("lease_granted") if begun < each["at"] < over]
    return int(over)


def ramped(repo: Night, over: int) -> None:
    """See that after the rest the lane begins with one loop, and that each good end doubles how many there may be."""
    live = ends = most = 0
    for each in repo.events("lease_granted", "work_ended"):
        if each["at"] >= over and ends < 3:
            live += 1 if each["event"] == "lease_granted" else -1
            ends += each["event"] == "work_ended"
            most = max(most, live)
            assert live <= 2**ends, (each, live)
    assert most > 1, "it never grew"


@pytest.mark.parametrize(
    ("client", "tries", "storm"),
    [
        ("claude", 2, a.rate_limit(REST_SECS)),
        ("codex", 2, a.BrokenOff("rate_limit", f"Rate limit reached. Please try again in {REST_SECS}s.")),
        ("opencode", 6, a.rate_limit(REST_SECS)),
        ("gemini", 2, a.rate_limit(REST_SECS)),
    ],
    ids=["claude", "codex", "opencode", "gemini"],
)
def test_a_storm_in_the_middle(tmp_path: Path, client: str, tries: int, storm: a.Answer) -> None:
    """All loops of a lane are limited at once: it rests as long as it is told, ramps up, and nothing is lost."""
    with night(tmp_path, client) as repo:
        repo.leaves(client, NAMES)
        lift = repo.standin.answer(together(limited(tries, storm)))
        process = repo.begin("start", "plan.md")
        repo.standin.until(tries * len(LEAVES))  # each client has tried as often as it does
        lift()
        process.ended(0)
        all_landed(repo)
        cost_nothing(repo)
        ramped(repo, rested(repo))
        assert repo.granted() == dict.fromkeys(LEAVES, 2)


def test_a_usage_limit_reported_as_success_outlives_the_engine(tmp_path: Path) -> None:
    """A usage limit that ends with exit 0 is known for one, and another engine rests until the same instant."""
    with night(tmp_path, "claude") as repo:
        always_well(repo)
        repo.env["CLAUDE_CODE_OAUTH_TOKEN"] = KEY
        del repo.env["ANTHROPIC_API_KEY"]
        repo.leaves("claude", NAMES)
        told = list[int]()

        def used_up(asked: Asked) -> a.Answer:
            told.append(told[0] if told else int(time.time()) + USED_UP_SECS)
            return a.usage_limit(told[0])

        lift = repo.standin.answer(together(used_up))
        process = repo.begin("start", "plan.md")
        repo.until("limited", len(LEAVES))
        process.kill()
        lift()
        lane = repo.loopr("status", "--json").document["lanes"]["claude"]
        assert "5-hour limit" in str(lane)
        repo.loopr("run")
        all_landed(repo)
        cost_nothing(repo)
        assert rested(repo) == told[0] * 1000
        ramped(repo, told[0] * 1000)


def always_well(repo: Night) -> None:
    """Let Claude Code end with 0 whatever happens."""
    program = repo.laid_out.bin / "claude"
    real = program.readlink()
    program.unlink()
    program.write_text(f'#!/bin/sh\n"{real}" "$@"\nexit 0\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


TALK = (
    "The server answers HTTP 429 Too Many Requests: rate limit exceeded, usage limit reached, try again in 20 minutes. "
    "401 Unauthorized, invalid api key, your credit balance is too low, model not found, context window exceeded."
)


@pytest.mark.parametrize("client", ["claude", "codex", "opencode", "gemini", "aider"])
def test_normal_traffic_is_no_limit(tmp_path: Path, client: str) -> None:
    """An agent that talks of limits and keys has met none, nor has one whose client came through a 429 by itself."""

    def talks(asked: Asked) -> a.Answer:
        found = author()(asked)
        return a.Text(TALK) if isinstance(found, a.Text) else found

    with night(tmp_path, client, otherwise=talks) as repo:
        if client == "claude":
            repo.env["CLAUDE_CODE_OAUTH_TOKEN"] = KEY
            del repo.env["ANTHROPIC_API_KEY"]
        repo.leaves(client, "a b")
        if client != "aider":
            repo.standin.answer(a.rate_limit(1), times=1, when=lambda asked: asked.loop == "demo/a")
        repo.standin.answer(a.Text(TALK), when=lambda asked: asked.loop == "demo/b")
        repo.loopr("start", "plan.md")
        assert set(repo.statuses().values()) == {"complete"}
        assert repo.granted() == {"demo/a": 1, "demo/b": 1}
        assert not repo.events("lane_rested", "lane_parked")


MENDED = {
    "claude": "ANTHROPIC_API_KEY",
    "codex": "codex login",
    "opencode": "opencode auth login",
    "gemini": "GEMINI_API_KEY",
    "aider": "OPENAI_API_KEY",
}


@pytest.mark.parametrize("client", ["claude", "codex", "opencode", "gemini", "aider"])
def test_a_wrong_key_parks_the_lane_once(tmp_path: Path, client: str) -> None:
    """With a key that the provider refuses, one message says what to do, others work on, and no loop pays for it."""
    with night(tmp_path, client) as repo:
        lift = repo.standin.answer(a.UNKNOWN_KEY)
        repo.leaves(client, "a b", entries="{id: own, run: 'echo x > own'}")
        end = repo.loopr("start", "plan.md", code=1)
        assert len(repo.events("lane_parked")) == 1
        told = [line for line in end.err.splitlines() if "is not logged in" in line and " engine " not in line]
        assert [line for line in told if f"lane {client}  parked" in line] == told[:1], end.err
        assert len(told) == 2, "once when it happened, and once in what is left to do"
        loops = repo.loops()
        assert loops.pop("demo/own")["status"] == loops.pop("demo")["status"] == "complete"
        assert {(each["status"], each["iteration"], each["failures"]) for each in loops.values()} == {("pending", 1, 0)}
        lane: dict[str, Any] = repo.loopr("status", "--json").document["lanes"][client]
        assert MENDED[client] in str(lane)
        lift()
        repo.loopr("reset", f"lane:{client}")
        repo.loopr("run")
        assert set(repo.statuses().values()) == {"complete"}
