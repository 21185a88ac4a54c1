"""The stand-in itself: an HTTP server on loopback that answers as its rules say, and remembers what it was asked.

Knows requests, rules and connections. Must never know how a provider words anything: that is its dialects' business.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any

from tests.standin.answers import Answer, Cut, Silence, Stalled, Text
from tests.standin.anthropic import Messages
from tests.standin.asked import Asked
from tests.standin.dialect import Dialect, Reply
from tests.standin.gemini import GenerateContent
from tests.standin.openai_chat import ChatCompletions
from tests.standin.openai_responses import Responses

PATIENCE_SECS = 200.0
LOOK_SECS = 0.02  # how often an answer that never comes looks whether anybody still waits for it
DIALECTS: tuple[Dialect, ...] = (Messages(), Responses(), ChatCompletions(), GenerateContent())

Chosen = Callable[[Asked], Answer]
Wanted = Callable[[Asked], bool]


@dataclass(slots=True)
class Rule:
    """An answer for the requests that it concerns, for so many of them, or for all (None)."""

    answer: Chosen
    concerns: Wanted
    times: int | None


class Standin:
    """A model server of the tests' own: the first rule that concerns a request answers it, else `otherwise`."""

    def __init__(self, otherwise: Chosen = lambda asked: Text()) -> None:
        """Listen on a free port of the network that the calling thread is in."""
        self.otherwise = otherwise
        self.over = Event()
        self._rules: list[Rule] = []
        self._asked: list[Asked] = []
        self._others: list[str] = []
        self._changed = Condition()
        self._http = _Http(("127.0.0.1", 0), _Talk)
        self._http.standin = self
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": LOOK_SECS}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def answer(
        self, answer: Answer | Chosen, *, times: int | None = None, when: Wanted = lambda asked: True
    ) -> Callable[[], None]:
        """Answer so from now on, before all rules there are; what is returned takes the rule back."""
        rule = Rule(answer if callable(answer) else (lambda asked: answer), when, times)
        with self._changed:
            self._rules.insert(0, rule)
        return lambda: self._take_back(rule)

    def _take_back(self, rule: Rule) -> None:
        """Forget a rule."""
        with self._changed, suppress(ValueError):
            self._rules.remove(rule)

    def asked(self, wanted: Wanted = lambda asked: True) -> list[Asked]:
        """Return the requests for a model's words so far, those that are wanted."""
        with self._changed:
            return [each for each in self._asked if wanted(each)]

    @property
    def others(self) -> list[str]:
        """Every request that was for something else than a model's words."""
        with self._changed:
            return list(self._others)

    def until(self, number: int, wanted: Wanted = lambda asked: True) -> list[Asked]:
        """Wait until there were so many requests, and return them."""
        with self._changed:
            enough = self._changed.wait_for(lambda: sum(map(wanted, self._asked)) >= number, PATIENCE_SECS)
            found = [each for each in self._asked if wanted(each)]
            assert enough, f"{len(found)} requests, not {number}: {[(e.loop, e.answer) for e in self._asked]}"
            return found

    def decide(self, asked: Asked) -> Answer:
        """Remember a request, and find its answer."""
        with self._changed:
            asked.number = len(self._asked) + 1
            rule = next((each for each in self._rules if each.times != 0 and each.concerns(asked)), None)
            if rule is not None and rule.times is not None:
                rule.times -= 1
        found = rule.answer(asked) if rule is not None else self.otherwise(asked)
        with self._changed:
            asked.answer = type(found).__name__.lower()
            self._asked.append(asked)
            self._changed.notify_all()
        return found

    def note(self, line: str) -> None:
        """Remember a request that no dialect understands."""
        with self._changed:
            self._others.append(line)

    def close(self) -> None:
        """Stop listening, and let go of whoever still waits."""
        self.over.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    """The listening socket; requests still being answered do not keep a test from ending."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    standin: Standin

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


class _Talk(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the stand-in remembers what it was asked."""

    def do_GET(self) -> None:
        """Answer whatever is not for a model's words."""
        self.server.standin.note(f"{self.command} {self.path}")
        if "upgrade" in self.headers:
            self._document(426, {}, {"error": {"message": "no sockets here", "type": "invalid_request_error"}})
        elif self.path.split("?")[0].endswith("/models"):
            self._document(200, {}, {"object": "list", "data": [], "models": []})
        else:
            self._document(404, {}, {"error": {"message": "nothing there", "type": "not_found_error"}})

    def do_HEAD(self) -> None:
        """Answer as to a GET, without the document."""
        self.do_GET()

    def do_POST(self) -> None:
        """Answer a request for a model's words."""
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(raw) if raw else {}
        for dialect in DIALECTS:
            asked = dialect.read(self.path, headers, body)
            if asked is not None:
                answer = self.server.standin.decide(asked)
                return self._answer(asked, answer, dialect.word(asked, answer))
        self.server.standin.note(f"POST {self.path}")
        tokens = {"input_tokens": 1000, "totalTokens": 1000}
        return self._document(200 if "ount" in self.path else 404, {}, tokens)

    def _answer(self, asked: Asked, answer: Answer, reply: Reply) -> None:
        """Send what was worded, or as much of it as is to be sent."""
        if isinstance(answer, Silence):
            return self._keep_waiting(asked)
        if reply.events is None:
            return self._document(reply.status, reply.headers, reply.document or {})
        self.send_response(reply.status)
        for name, value in {**reply.headers, "transfer-encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        for each in reply.events:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(each), each))
            self.wfile.flush()
        if reply.whole:
            return self._write(b"0\r\n\r\n")
        self.close_connection = True
        return self._keep_waiting(asked) if isinstance(answer, Stalled) else self._hang_up(answer)

    def _document(self, status: int, headers: dict[str, str], document: dict[str, Any]) -> None:
        """Send one document."""
        raw = b"" if self.command == "HEAD" else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers, "content-length": str(len(raw))}.items():
            self.send_header(name, value)
        self.end_headers()
        self._write(raw)

    def _write(self, raw: bytes) -> None:
        """Send bytes."""
        self.wfile.write(raw)
        self.wfile.flush()

    def _keep_waiting(self, asked: Asked) -> None:
        """Say nothing until the client goes, or the test ends."""
        self.close_connection = True
        while not self.server.standin.over.is_set():
            if select.select([self.connection], [], [], LOOK_SECS)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                asked.left = True
                return

    def _hang_up(self, answer: Answer) -> None:
        """Let the connection be gone at once."""
        if isinstance(answer, Cut):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()


@contextmanager
def standing_in(otherwise: Chosen = lambda asked: Text()) -> Iterator[Standin]:
    """Give a stand-in, and close it."""
    standin = Standin(otherwise)
    try:
        yield standin
    finally:
        standin.close()
