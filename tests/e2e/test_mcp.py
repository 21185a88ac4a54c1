"""An agent that drives a plan from start to landed commits over standard input and output, beside an engine at work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from loopr.world.account import account_name
from tests.e2e.repos import LOOPR, Repo, opened

WORK = """
begin
tell "$LOOPR_LOOP $LOOPR_ATTEMPT"
wait_at "$(basename "$LOOPR_LOOP")"
cat "$LOOPR_FEEDBACK_FILE" >> "$(basename "$LOOPR_LOOP")"
echo "try $LOOPR_ATTEMPT" | tee -a "$(basename "$LOOPR_LOOP")"
end
"""
PLAN = "---\nchildren: [{id: a}, {id: b}, {id: c, needs: [a]}]\n---\n# Demo\n"
PATIENCE_SECS = 60


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository in which code loops work until their gates open, and must be approved."""
    with opened(tmp_path) as found:
        run = found.found().script("code", WORK)
        found.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}', approve: true}}\n")
        found.write({"plan.md": PLAN})
        for name in "abc":
            found.gate(name)
        yield found


class Agent:
    """A client of the SDK, with the server as a process of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, tool: str, **given: Any) -> dict[str, Any]:
        """Call a tool, and return the document of its answer."""
        text = await self.text(tool, **given)
        found: dict[str, Any] = json.loads(text)
        assert "error" not in found, found
        return found

    async def text(self, tool: str, **given: Any) -> str:
        """Call a tool, and return its answer as it came."""
        answer = await self._client.call_tool(tool, given, read_timeout_seconds=PATIENCE_SECS)
        assert isinstance(answer.content[0], TextContent)
        return answer.content[0].text

    async def news(self, after: int) -> list[tuple[str, str | None]]:
        """Return what has happened to which loops since an event."""
        rows = [json.loads(line) for line in (await self.text("events", after=after)).splitlines()]
        assert [row["seq"] for row in rows] == list(range(after + 1, after + 1 + len(rows)))
        return [(row["event"], row["loop"]) for row in rows]


def with_agent(repo: Repo, what: Callable[[Repo, Agent], Coroutine[Any, Any, None]]) -> None:
    """Let an agent do something in a repository, with a server of its own."""

    async def main() -> None:
        server = StdioServerParameters(command=str(LOOPR), args=["mcp"], cwd=repo.root, env=repo.env)
        async with Client(server) as client:
            await what(repo, Agent(client))

    asyncio.run(main())


def test_from_start_to_landed(repo: Repo) -> None:
    """An agent enqueues a plan, watches it, holds, sends back and approves, until all of its work has landed."""
    with_agent(repo, _drive)
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.landed("demo") == [("demo/a", 2, 2), ("demo/c", 1, 1), ("demo/b", 1, 1)]
    assert "say more" in repo.on_branch("demo", "a")
    assert {each["actor"] for each in repo.events("approved", "held")} == {f"{_user(repo)} via mcp"}


def _user(repo: Repo) -> str:
    """Return who the tests run as, as loopr calls them."""
    return account_name(repo.env)


async def _drive(repo: Repo, agent: Agent) -> None:
    """Do what an agent does."""
    assert (await agent("start", plans=["plan.md"]))["plans"][0]["declared"] == ["demo", "demo/a", "demo/b", "demo/c"]
    assert (await agent("status"))["engine"]["running"] is False
    assert [each["id"] for each in (await agent("next"))["grants"]] == ["demo/a", "demo/b"]
    assert (await agent("pause", ids=["c"], reason="not yet"))["done"][0]["id"] == "demo/c"

    engine = repo.begin("run")
    assert sorted(repo.heard(2)) == ["demo/a 1", "demo/b 1"]
    status = await agent("status")
    assert (status["engine"]["pid"], status["capacity"]["occupied"]) == (engine.pid, 2)
    assert [each["gate"] for each in (await agent("why", loop="c"))["gates"]] == ["paused", "needs"]
    assert (await agent("set", key="concurrency.max_loops", value=2))["new"] == 2

    repo.gates["a"].open()
    (passed,) = repo.until("passed", 1, "demo/a")
    assert (await agent("logs", loop="a"))["outputs"][0]["stdout"] == "try 1\n"
    await agent("iterate", ids=["a"], feedback="say more")
    repo.until("passed", 2, "demo/a")
    assert ("iteration_asked", "demo/a") in await agent.news(passed["seq"])
    await agent("approve", ids=["a"])
    repo.until("landed", 1, "demo/a")

    assert (await agent("resume", ids=["c"]))["done"][0]["did"] == "resumed"
    repo.gates["c"].open()
    repo.until("passed", 1, "demo/c")
    await agent("approve", ids=["c"])
    repo.until("landed", 1, "demo/c")

    repo.gates["b"].open()
    engine.ended(4)  # it has settled: the last loop waits for a word
    assert (await agent("approve", ids=["b"]))["done"][0]["did"] == "approved"
    repo.loopr("run")
    assert (await agent("tree"))["loops"][0]["done"] is True
    assert len((await agent("show", loop="a"))["attempts"]) == 2


def test_an_agent_does_a_loop(repo: Repo) -> None:
    """An agent takes a lease and does the loop itself, while an engine judges and lands what it hands over."""
    repo.settings("types:\n  plan: {child: code}\n  code: {check: test -s b || grep . a}\nretry: {base_secs: 0.05}\n")
    entry = f"{{id: a, run: '{repo.script('a', WORK)}'}}"
    repo.write({"plan.md": f"---\nchildren: [{entry}, {{id: b}}]\n---\n# Demo\n"})
    with_agent(repo, _do)
    assert set(repo.statuses().values()) == {"complete"}
    assert repo.landed("demo") == [("demo/b", 3, 3), ("demo/a", 1, 1)]
    assert repo.on_branch("demo", "b") == "by hand"
    assert [each["data"]["holder"] for each in repo.events("lease_granted")][1] == f"{_user(repo)} via mcp"


async def _do(repo: Repo, agent: Agent) -> None:
    """Do one of two loops, at the third try, and leave the other one to the engine."""
    await agent("start", plans=["plan.md"])
    engine = repo.begin("run")
    assert repo.heard() == ["demo/a 1"]

    lease = (await agent("lease_take", type=["code"], limit=2))["leases"]
    assert [each["lease"] for each in lease] == ["demo/b#1"]
    listed, typed = await agent("lease_list"), repo.loopr("lease", "list", "--json").document
    assert [each["worktree"] for each in listed["leases"]] == [lease[0]["worktree"]]
    assert [list(each) for each in listed["leases"]] == [list(each) for each in typed["leases"]]
    assert (await agent("lease_complete", leases=["b#1"]))["leases"][0]["did"] == "handed over"

    lease = await _taken(agent)
    assert "The check said no" in Path(lease["environment"]["LOOPR_FEEDBACK_FILE"]).read_text()
    given = await agent("lease_release", leases=["b#2"], refused=True, reason="I know no better")
    assert given["leases"][0]["did"] == "given back as refused"

    lease = await _taken(agent)
    assert "I know no better" in Path(lease["environment"]["LOOPR_FEEDBACK_FILE"]).read_text()
    Path(lease["worktree"], "b").write_text("by hand")
    assert (await agent("lease_renew", leases=["b#3"]))["leases"][0]["did"] == "renewed"
    await agent("lease_complete", leases=["b#3"])
    repo.until("landed", 1, "demo/b")
    stale = json.loads(await agent.text("lease_complete", leases=["b#2"]))
    assert stale["error"]["code"] == "stale_lease"
    repo.gates["a"].open()
    engine.ended(0)


async def _taken(agent: Agent) -> dict[str, Any]:
    """Take a lease as soon as there is one: a loop that was refused rests for a moment."""
    async with asyncio.timeout(PATIENCE_SECS):
        while "error" in (found := json.loads(await agent.text("lease_take"))):
            assert found["error"]["code"] == "deferred", found
    lease: dict[str, Any] = found["leases"][0]
    return lease
