"""The tools for agents: the same words, documents and refusals as the command line has, from a client of the SDK."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import apsw
import click
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult, Implementation, TextContent

from loopr.core.model import Failure
from loopr.ui.cli import cli
from loopr.ui.mcp.server import build
from loopr.ui.mcp.tools import LEASE_TOOLS, QUESTION_TOOLS, TOOLS, WISH_TOOLS, Seat
from loopr.ui.options import Option
from loopr.wiring import Workspace
from tests.ui.calls import Answer, git, loopr, this_tree
from tests.ui.scenes import COMMANDS, MINUTE, Desk, flat

Talk = Callable[[Client], Coroutine[Any, Any, Any]]


def talk(desk: Desk, what: Talk) -> Any:
    """Let a client talk to a server of this process."""

    async def main() -> Any:
        me = Implementation(name="hal", version="1")
        async with Client(build(Seat(desk.folder)), client_info=me) as client:
            return await what(client)

    return asyncio.run(main())


def call(desk: Desk, tool: str, **given: Any) -> tuple[str, bool]:
    """Call a tool, and return the text of its answer and whether it is a refusal."""

    async def what(client: Client) -> CallToolResult:
        return await client.call_tool(tool, given)

    answer = talk(desk, what)
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return content.text, answer.is_error


def typed(desk: Desk, line: str) -> Answer:
    """Have a command line answered as a document."""
    return loopr(*shlex.split(line), "-C", desk.folder, "--json")


LATER = "2026-01-01T13:00:00Z"
KINDS: dict[str, Any] = {"after": 3, "type": ["held", "settled"], "limit": 2}
ASKED: Sequence[tuple[str, dict[str, Any], str]] = [
    ("tree", {}, "tree"),
    ("tree", {"loop": "tokens", "at": LATER}, f"tree tokens --at {LATER}"),
    ("ls", {"status": ["running", "parked"], "type": ["code"]}, "ls --status running --status parked --type code"),
    ("ls", {"ready": True, "loop": "oauth", "project": ["default"]}, "ls oauth --ready --project default"),
    ("status", {"at": "+10m"}, "status --at +10m"),
    ("show", {"loop": "store"}, "show store"),
    ("why", {"loop": "endpoints", "at": LATER}, f"why endpoints --at {LATER}"),
    ("next", {"at": LATER}, f"next --at {LATER}"),
    (
        "next",
        {"pull": True, "type": ["code"], "project": ["default"], "limit": 1},
        "next --pull --type code --project default --limit 1",
    ),
    ("logs", {"loop": "store"}, "logs store"),
    ("logs", {"loop": "store", "tail": 1, "stderr": True}, "logs store --tail 1 --stderr"),
    ("logs", {"loop": "store", "raw": True}, "logs store --raw"),
    ("logs", {"loop": "store", "step": "check"}, "logs store --check"),
    ("events", {}, "events"),
    ("events", KINDS, "events --after 3 --type held --type settled -n 2"),
    ("events", {"loop": "store"}, "events store"),
    ("usage", {"by": "type", "since": "7d", "at": LATER}, f"usage --by type --since 7d --at {LATER}"),
    ("convoy_list", {}, "convoy list"),
    ("convoy_show", {"name": "draft"}, "convoy show draft"),
    ("lease_list", {"at": LATER}, f"lease list --at {LATER}"),
    ("show", {"loop": "nothing"}, "show nothing"),
    ("ls", {"type": ["nothing"]}, "ls --type nothing"),
    ("tree", {"at": "tomorrow"}, "tree --at tomorrow"),
    ("logs", {"loop": "endpoints"}, "logs endpoints"),
    ("logs", {"loop": "store", "attempt": 1, "iteration": 1}, "logs store --attempt 1 --iteration 1"),
    ("events", {"type": ["landde"]}, "events --type landde"),
    ("usage", {"since": "long ago"}, "usage --since 'long ago'"),
    ("convoy_show", {"name": "@nothing"}, "convoy show @nothing"),
]  # fmt: skip


@pytest.fixture
def busy(shop: Desk) -> Desk:
    """Give a workspace in which a command has run, one was paused, and a convoy waits."""
    shop.start()
    shop.choose()
    shop.run("oauth/tokens/store")
    folder = Workspace(shop.folder).place.state / "runs/oauth.tokens.store.g1/1"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_bytes(b"one\ntw\xffo\n")
    (folder / "stderr.log").write_bytes(b"trouble\nmore\n")
    shop("pause", "endpoints", "--reason", "tea \N{HOT BEVERAGE}")
    typed(shop, "convoy create @draft oauth")
    shop.clock.at += MINUTE
    return shop


@pytest.mark.parametrize(("tool", "given", "line"), ASKED, ids=[line for _, _, line in ASKED])
def test_an_answer_is_the_command_lines(busy: Desk, tool: str, given: dict[str, Any], line: str) -> None:
    """A question has the same answer, byte for byte, as its verb has with --json; so has one that is refused."""
    answer = typed(busy, line)
    assert call(busy, tool, **given) == (answer.out, answer.code != 0)


def test_every_question_is_compared() -> None:
    """No question is left out of the comparison, neither as one that is answered nor with any of its options."""
    for name, tool in QUESTION_TOOLS.items():
        given = {option for asked, options, _ in ASKED for option in options if asked == name}
        assert given <= set(tool.options)
        assert set(tool.options) - given <= {"at"}, name
        assert any(asked == name for asked, _, _ in ASKED), name


def verb_of(name: str) -> click.Command:
    """Return the verb that a tool is called after."""
    context = click.Context(cli)
    group, _, own = name.partition("_")
    command = cli.get_command(context, group)
    assert command is not None
    return command.commands[own] if isinstance(command, click.Group) else command


COMMON = {"directory", "as_json", "sets", "no_color"}
SPELT = {
    "kinds": "type",
    "wanted": "status",
    "types": "type",
    "projects": "project",
    "only_errors": "stderr",
    "name": "name",
}
SHOWN = {"everything", "depth", "dot", "watch", "metrics", "following", "unveiled"}  # how much is drawn, and streams


@pytest.mark.parametrize("name", QUESTION_TOOLS)
def test_a_question_takes_what_its_verb_takes(name: str) -> None:
    """A tool that shows has every option of its verb but those of the screen, and no other."""
    params = {SPELT.get(each.name or "", each.name) for each in verb_of(name).params}
    assert set(TOOLS[name].options) == params - COMMON - SHOWN


@pytest.mark.parametrize("name", [name for name in (*WISH_TOOLS, *LEASE_TOOLS) if name != "convoy"])
def test_a_wish_takes_what_its_verb_takes(name: str) -> None:
    """A tool that steers has every option of its verb, in the same words, and the same are required."""
    params = {
        SPELT.get(each.name or "", each.name or ""): each for each in verb_of(name).params if each.name not in COMMON
    }
    assert set(TOOLS[name].options) == set(params)
    from_environ = {own for own, each in params.items() if each.envvar}
    assert set(TOOLS[name].required) == {own for own, each in params.items() if each.required} | from_environ
    for own, each in params.items():
        if isinstance(each, click.Option):
            assert TOOLS[name].options[own].meaning == (each.help or "").removesuffix("; may be repeated")


def test_what_is_offered(desk: Desk) -> None:
    """Every tool has a name, a meaning and a sound schema, says whether it changes anything, and is listed once."""

    async def what(client: Client) -> Any:
        return (await client.list_tools()).tools

    listed = talk(desk, what)
    assert [each.name for each in listed] == list(TOOLS)
    for each in listed:
        Draft202012Validator.check_schema(each.input_schema)
        assert each.description
        assert each.annotations.read_only_hint is (each.name in QUESTION_TOOLS)
        assert all(value["description"] for value in each.input_schema["properties"].values())


def test_a_wish_is_answered_as_on_the_command_line(busy: Desk) -> None:
    """A wish that changes nothing has the very document of its verb, and one that does is journalled with who asked."""
    for name, given, line in [
        ("pause", {"ids": ["endpoints"], "now": False}, "pause endpoints"),
        ("resume", {"all": True}, "resume --all"),
        ("dispatch", {"ids": ["refresh"], "dry_run": True}, "dispatch --dry-run refresh"),
        ("convoy", {"name": "@draft", "ids": ["oauth"]}, "convoy add @draft oauth"),
        ("approve", {"ids": ["endpoints"]}, "approve endpoints"),
        ("reset", {"ids": ["lane:nothing"]}, "reset lane:nothing"),
        ("retry", {"ids": ["endpoints"], "fresh": True}, "retry endpoints --fresh"),
        ("retry", {"ids": ["endpoints"], "stale": True}, "retry endpoints --stale"),
        ("retry", {"stale": True}, "retry --stale"),
        ("cancel", {"ids": ["a", "b"]}, "cancel a b"),
        ("iterate", {"ids": ["endpoints"], "feedback": " "}, "iterate endpoints --feedback ' '"),
        ("pause", {"ids": ["endpoints"], "all": True}, "pause endpoints --all"),
        ("lease_take", {"type": ["plan"], "limit": 2}, "lease take --type plan --limit 2"),
        ("lease_take", {"type": ["cde"]}, "lease take --type cde"),
        ("lease_take", {"holder": "engine"}, "lease take --holder engine"),
        ("lease_renew", {"leases": ["refresh#7"]}, "lease renew refresh#7"),
        ("lease_complete", {"leases": ["refresh#7", "endpoints#1"]}, "lease complete refresh#7 endpoints#1"),
        ("lease_release", {"leases": ["refresh#7"], "failed": True}, "lease release refresh#7 --failed"),
        ("lease_release", {"leases": ["refresh#7"], "refused": True}, "lease release refresh#7 --refused"),
        ("lease_release", {"leases": ["refresh#7"], "reason": "tea"}, "lease release refresh#7 --reason tea"),
        ("lease_reclaim", {"leases": ["refresh"]}, "lease reclaim refresh"),
        ("lease_reclaim", {"leases": ["store#1"]}, "lease reclaim store#1"),
    ]:
        answer = typed(busy, line)
        assert call(busy, name, **given) == (answer.out, answer.code != 0), line
    _, refused = call(busy, "cancel", ids=["endpoints"], reason="too dear")
    assert not refused
    assert busy.loop("oauth/endpoints").reason == "too dear"
    assert '"actor": "ada via hal"' in busy.lines("events", "--json", "-n", "1")[0]


@pytest.mark.parametrize("again", ["reset", "retry"])
def test_a_plan_goes_along_with_its_base(shop: Desk, again: str) -> None:
    """A plan of which nothing has landed goes on from its base as it is now, whoever resets a loop, and says so."""
    shop.write("loopr.yml", COMMANDS)
    shop.start(flat(["a"]))
    told = []
    for ask in (lambda: call(shop, again, ids=["p/a"])[0], lambda: typed(shop, f"{again} p/a").out):
        shop.choose()
        shop.run("p/a")
        shop.end("p/a", Failure.CONFIG, "no tool")
        git(shop.folder, "commit", "--quiet", "--allow-empty", "--message=the tool")
        (said,) = json.loads(ask())["bases"]
        tip = git(shop.folder, "rev-parse", "main")
        assert Workspace(shop.folder).look().scene.shared.plans["p"].base_commit == tip
        told.append(said.removesuffix(tip[:12]))
    assert told == ["nothing of p has landed, so it goes on from main as it is now, "] * 2


def test_lists_become_plans(desk: Desk) -> None:
    """A checklist and an export are taken as `start` takes them; a rehearsal writes nothing."""
    path = desk.write("todo.md", "# Todo\n\n- [ ] one\n- [x] two\n")
    rehearsed = desk("start", "-n", "--json", path).out
    assert call(desk, "start", plans=["todo.md"], dry_run=True) == (rehearsed, False)
    assert not (desk.folder / "specs").exists()
    assert '"declared": ["todo", ' in call(desk, "start", plans=["todo.md"])[0]
    assert "two" not in (desk.folder / "specs/todo/plan.md").read_text("utf-8")
    desk.write("out.jsonl", '{"id": "a", "title": "A"}\n')
    said = call(desk, "start", **{"plans": ["out.jsonl"], "from": "jsonl", "id": "work"})
    assert ('"declared": ["work", ' in said[0], said[1]) == (True, False), said
    refused = call(desk, "start", plans=["out.jsonl", "todo.md"], id="work")
    assert refused[1] and "names the plan of one list" in refused[0]


def test_plans_and_settings(desk: Desk) -> None:
    """A plan is enqueued and a setting changed as by their verbs, and a rehearsal of either writes nothing."""
    desk.write("plan.md", "---\nid: p\nspecs: [{id: a}]\n---\n")
    rehearsed = desk("start", "-n", desk.folder / "plan.md", "--json").out
    assert call(desk, "start", plans=["plan.md"], dry_run=True) == (rehearsed, False)
    assert '"declared": ["p", "p/a"]' in call(desk, "start", plans=["plan.md"])[0]
    assert call(desk, "start", plans=["plan.md"]) == (
        desk("start", "--no-run", desk.folder / "plan.md", "--json").out,
        False,
    )
    assert call(desk, "start", plans=["nothing.md"]) == (desk("start", desk.folder / "nothing.md", "--json").out, True)
    line = desk("set", "-n", "concurrency.max_loops", "3", "--json").out
    assert call(desk, "set", key="concurrency.max_loops", value=3, dry_run=True) == (line, False)
    assert not (desk.folder / "loopr.yml").exists()
    assert call(desk, "set", key="types.code.run", value=["make", "code"])[1] is False
    assert typed(desk, "config show types.code.run").document["value"] == ["make", "code"]
    assert call(desk, "set", key="concurrency.max_loops", value="many") == (
        desk("set", "concurrency.max_loops", "many", "--json").out,
        True,
    )


@pytest.mark.parametrize(("tool", "given", "message", "hint"), [
    ("tree", {"loops": "a"}, "tree has no option 'loops'", "known: loop, at"),
    ("tree", {"loop": 3}, "loop of tree is 3", "a text"),
    ("events", {"after": True}, "after of events is True", "a whole number of at least 0"),
    ("events", {"limit": 0}, "limit of events is 0", "a whole number of at least 1"),
    ("ls", {"status": "running"}, "status of ls is 'running'", "a list, each one of waiting, ready, paused, starting"),
    ("show", {}, "show without loop", "the loop: an id"),
    ("show", {"loop": None}, "show without loop", "the loop: an id"),
    ("pause", {"ids": "p"}, "ids of pause is 'p'", "a list, each a text"),
    ("set", {"key": "version"}, "set without value", "what it is to be"),
    ("lease_take", {"limit": 0}, "limit of lease_take is 0", "a whole number of at least 1"),
    ("lease_complete", {}, "lease_complete without leases", "leases: LOOP#ATTEMPT each"),
])  # fmt: skip
def test_what_nobody_can_understand(desk: Desk, tool: str, given: dict[str, Any], message: str, hint: str) -> None:
    """An input that does not fit its schema is refused by a document that says what would."""
    text, refused = call(desk, tool, **given)
    assert refused
    assert f'"code": "usage", "message": "{message}", "hint": "{hint}' in text


def test_a_value_of_each_kind() -> None:
    """The kinds of options that schemas are made of are all that there are."""
    kinds = {option.kind for tool in TOOLS.values() for option in tool.options.values() if isinstance(option, Option)}
    assert kinds == {bool, str, int, object}


def test_a_tool_that_is_not_there(desk: Desk) -> None:
    """A call of a tool that is not offered fails by the protocol, and names those that are."""

    async def what(client: Client) -> None:
        with pytest.raises(MCPError, match="no tool 'halt'; known: tree, ls, status"):
            await client.call_tool("halt", {"all": True})
        assert {each.name for each in (await client.list_tools()).tools} == set(TOOLS)

    talk(desk, what)


def test_a_workspace_that_comes_later(desk: Desk) -> None:
    """A server that was started before there is anything sees what comes, and settings as they are at each call."""

    async def what(client: Client) -> list[Any]:
        found = []
        for step in (lambda: None, desk.start, lambda: desk("set", "concurrency.max_loops", "3")):
            step()
            answer = await client.call_tool("status", {})
            assert isinstance(answer.content[0], TextContent)
            found.append(answer.content[0].text == desk("status", "--json").out)
        return found

    assert talk(desk, what) == [True, True, True]


def test_a_long_call_holds_up_no_other(desk: Desk) -> None:
    """While one call waits for the journal, another one is answered."""
    desk.start()

    async def what(client: Client) -> None:
        journal = apsw.Connection(str(Workspace(desk.folder).place.journal))
        journal.execute("BEGIN IMMEDIATE")
        waits = asyncio.create_task(client.call_tool("pause", {"ids": ["tokens"]}))
        await client.call_tool("status", {})
        assert not (await client.call_tool("tree", {})).is_error
        assert not waits.done()
        journal.execute("ROLLBACK")
        journal.close()
        assert not (await waits).is_error

    talk(desk, what)
    hold = desk.loop("oauth/tokens").hold
    assert hold is not None
    assert hold.by == "ada via hal"


# --- the verb -------------------------------------------------------------------------------------------------------


def offered(desk: Desk, *options: str, **environ: str) -> set[str]:
    """Start the server as a process, and return the names of the tools that it offers."""

    async def main() -> set[str]:
        command = ["-m", "loopr", "mcp", "-C", str(desk.folder), *options]
        server = StdioServerParameters(command=sys.executable, args=command, env=this_tree() | environ)
        async with Client(server) as client:
            return {each.name for each in (await client.list_tools()).tools}

    return asyncio.run(main())


def test_every_tool_is_offered_to_everybody(desk: Desk) -> None:
    """Started by a loop's command the server offers what it offers a person: the gate says which may be used."""
    marks = {"LOOPR_WORKSPACE": str(desk.folder), "LOOPR_LEASE": "oauth/tokens#1"}
    assert offered(desk) == offered(desk, **marks) == set(TOOLS)


def test_without_the_sdk(desk: Desk) -> None:
    """Where the SDK is not installed the verb says what to install, and nothing else."""
    program = "import sys; sys.modules['mcp'] = None; from loopr.ui.cli import main; sys.exit(main(['mcp']))"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=desk.folder, env=this_tree(), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (78, "")
    assert "pip install 'loopr[mcp]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_server_ends_with_its_client(desk: Desk) -> None:
    """A server whose client has gone ends by itself, also if it never said a word, and leaves no trace."""
    command = [sys.executable, "-m", "loopr", "mcp"]
    ran = subprocess.run(
        command, cwd=desk.folder, env=os.environ | this_tree(), input=b"", capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


HELLO = (
    b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", '
    b'"capabilities": {}, "clientInfo": {"name": "hal", "version": "1"}}}\n'
)


def test_a_person_ends_the_server(desk: Desk) -> None:
    """Ctrl-C ends a server at once though its client is still there; one of the older protocol is understood."""
    command, pipe = [sys.executable, "-m", "loopr", "mcp"], subprocess.PIPE
    with subprocess.Popen(command, cwd=desk.folder, env=this_tree(), stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(HELLO)
        server.stdin.flush()
        assert b'"protocolVersion":"2025-06-18"' in server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait() == -signal.SIGINT
        assert server.stderr.read() == b""
