"""The stand-in speaks as the providers do, remembers what it was asked, and lives on a network of its own."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.standin import answers as a
from tests.standin.author import author
from tests.standin.dialect import Body
from tests.standin.island import Island, NoIsland
from tests.standin.openai_responses import KEY_MESSAGE
from tests.standin.server import Standin, standing_in

PROMPT = "You do the work of `demo/one/code`, one piece of a larger work.\n"
OUTLINE = """\
You write the plan `demo`, one piece of a larger work.

Write .loopr/output.md: Markdown whose front matter

- `specs` has one entry for each
"""


@pytest.fixture
def standin() -> Iterator[Standin]:
    """Give a stand-in on this machine's own loopback."""
    with standing_in() as found:
        yield found


def requests(prompt: str = PROMPT, *, stream: bool = True) -> dict[str, tuple[str, Body]]:
    """Word one request for each dialect, as its clients do."""
    user = {"role": "user", "content": prompt}
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    tools = [{"type": "function", "name": "exec_command"}]
    return {
        "messages": ("/v1/messages?beta=true", {"model": "m", "stream": stream, "messages": [user]}),
        "responses": ("/v1/responses", {"model": "m", "input": [{"type": "message", **user}], "tools": tools}),
        "chat": ("/v1/chat/completions", {"model": "m", "stream": stream, "messages": [user]}),
        "gemini": (f"/v1beta/models/m:{verb}", {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}),
    }


DIALECTS = tuple(requests())


def post(standin: Standin, path: str, body: Body, timeout: float = 10) -> tuple[http.client.HTTPResponse, bytes]:
    """Ask, and read the whole answer."""
    connection = http.client.HTTPConnection(urlsplit(standin.url).netloc, timeout=timeout)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def events(raw: bytes) -> list[Any]:
    """Read server-sent events."""
    lines = [line.removeprefix("data: ") for line in raw.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("api", DIALECTS)
def test_each_dialect_says_a_text(standin: Standin, api: str) -> None:
    """A streamed answer carries its text and what it has cost, whatever the dialect."""
    standin.answer(a.Text("All is well.", a.Used(1234, 200, 77)))
    response, raw = post(standin, *requests()[api])
    assert response.status == 200
    assert response.headers["content-type"] == "text/event-stream"
    said = json.dumps(events(raw))
    assert "All is well." in said
    assert "77" in said
    assert "1234" in said or "1034" in said


@pytest.mark.parametrize("api", ["messages", "chat", "gemini"])
def test_each_dialect_can_do_without_a_stream(standin: Standin, api: str) -> None:
    """Who asks for no stream gets one document."""
    response, raw = post(standin, *requests(stream=False)[api])
    assert response.headers["content-type"] == "application/json"
    assert "Done." in json.dumps(json.loads(raw))


@pytest.mark.parametrize("api", DIALECTS)
def test_each_dialect_knows_the_loop(standin: Standin, api: str) -> None:
    """The loop that a prompt is about is found in it, and the request is counted for that loop."""
    post(standin, *requests()[api])
    assert [(each.api, each.loop, each.answer) for each in standin.asked()] == [(api, "demo/one/code", "text")]


@pytest.mark.parametrize("api", DIALECTS)
def test_each_dialect_refuses_for_a_while(standin: Standin, api: str) -> None:
    """The first n requests are refused with their header, and the next is answered."""
    standin.answer(a.rate_limit(7), times=2)
    found = [post(standin, *requests()[api])[0] for _ in range(3)]
    assert [each.status for each in found] == [429, 429, 200]
    assert [each.headers["retry-after"] for each in found] == ["7", "7", None]


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("answer", [a.OVERLOADED, a.BROKEN, a.UNKNOWN_KEY, a.NO_CREDIT, a.TOO_LONG, a.NO_MODEL])
def test_each_dialect_words_each_error(standin: Standin, api: str, answer: a.Refused) -> None:
    """An error has its status, and its message in the body's `error`; OpenAI has words of its own for a wrong key."""
    standin.answer(answer)
    response, raw = post(standin, *requests()[api])
    assert response.status == answer.status
    said = json.loads(raw)["error"]["message"]
    assert said in (answer.message, KEY_MESSAGE)
    assert (said == KEY_MESSAGE) == (answer is a.UNKNOWN_KEY and api in ("responses", "chat"))


def test_a_usage_limit_says_when_it_ends(standin: Standin) -> None:
    """The instant at which a usage limit ends is in Anthropic's headers, and in OpenAI's body."""
    standin.answer(a.usage_limit(1_800_000_000))
    headers = post(standin, *requests()["messages"])[0].headers
    assert headers["anthropic-ratelimit-unified-reset"] == "1800000000"
    _, raw = post(standin, *requests()["responses"])
    assert json.loads(raw)["error"]["resets_at"] == 1_800_000_000


@pytest.mark.parametrize("api", DIALECTS)
def test_an_edit_is_a_tool_call(standin: Standin, api: str) -> None:
    """A file is written through the tool of the client; aider, which has none, is told of it in its own format."""
    standin.answer(a.Edit("a/b.txt", "hello\n"))
    _, raw = post(standin, *requests()[api])
    said = json.dumps(events(raw))
    assert "a/b.txt" in said
    assert {"messages": "tool_use", "responses": "exec_command", "chat": "REPLACE", "gemini": "write_file"}[api] in said


@pytest.mark.parametrize("api", DIALECTS)
def test_a_stream_can_be_cut(standin: Standin, api: str) -> None:
    """A cut stream has begun, and its end is missing."""
    standin.answer(a.Cut())
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(standin, *requests()[api])


@pytest.mark.parametrize("answer", [a.Silence(), a.Stalled()])
@pytest.mark.parametrize("api", DIALECTS)
def test_silence(standin: Standin, api: str, answer: a.Answer) -> None:
    """A request that is never answered, or never to its end, keeps its client waiting, and is known to."""
    standin.answer(answer)
    with pytest.raises(TimeoutError):
        post(standin, *requests()[api], timeout=0.3)
    assert standin.until(1)[0].answer == type(answer).__name__.lower()


def test_the_newest_rule_comes_first(standin: Standin) -> None:
    """A later rule goes before an earlier one, for the requests that it concerns, until it is taken back."""
    standin.answer(a.BROKEN)
    back = standin.answer(a.OVERLOADED, when=lambda asked: asked.loop == "demo/one/code")
    statuses = []
    for prompt in (PROMPT, "something else", PROMPT):
        statuses.append(post(standin, *requests(prompt)["messages"])[0].status)
        if len(statuses) == 2:
            back()
    assert statuses == [529, 500, 500]


def test_the_author_hands_over_what_is_asked_for() -> None:
    """A prompt that asks for an outline is answered with one, at the place and with the key that it names."""
    with standing_in(author({"demo": ("one", "two")})) as standin:
        _, raw = post(standin, *requests(OUTLINE)["messages"])
        call = "".join(each["delta"].get("partial_json", "") for each in events(raw) if "delta" in each)
        written = json.loads(call)
        assert written["file_path"] == ".loopr/output.md"
        assert written["content"].startswith("---\nspecs:\n  - id: one\n")


def test_an_island_has_a_loopback_and_nothing_else() -> None:
    """On an island its own server is reached, this machine's are not, and the rest of the world is not either."""
    try:
        island = Island()
    except NoIsland as error:
        pytest.skip(str(error))
    with standing_in() as ashore:
        there = island.do(Standin)
        try:
            assert island.do(lambda: post(there, *requests()["messages"])[0].status) == 200
            with pytest.raises(ConnectionRefusedError):
                island.do(lambda: post(ashore, *requests()["messages"]))
            with pytest.raises(OSError, match="unreachable"):
                island.do(lambda: socket.create_connection(("192.0.2.1", 80), timeout=1))
            assert socket.create_connection(urlsplit(ashore.url).netloc.split(":")).close() is None
        finally:
            there.close()
            island.close()
