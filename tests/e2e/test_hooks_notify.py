"""Addresses that are told what needs a person: what they get, what comes of one that fails, what is kept secret."""

from __future__ import annotations

import json
import select
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from loopr.world.notify import Sent, labels, lacks, send, shown
from tests.e2e.repos import PATIENCE_SECS, Process, Repo, opened

SECRET = "xoxb-very-secret"
LOCAL = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


class Page(ThreadingHTTPServer):
    """A page that can be posted to, and answers as a test says."""

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a port of its own."""
        self.got: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.more = threading.Condition()
        self.answers: list[int] = []
        self.slow = ""
        self.headers: dict[str, str] = {}
        self.open = threading.Event()
        self.open.set()
        super().__init__(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """The address, with a secret in its path, its query and its user."""
        return f"http://bot:{SECRET}@127.0.0.1:{self.server_port}/hooks/{SECRET}?token={SECRET}"

    def documents(self, number: int) -> list[dict[str, Any]]:
        """Wait until so many were posted, and return them."""
        with self.more:
            assert self.more.wait_for(lambda: len(self.got) >= number, PATIENCE_SECS), self.got
            return [each for _, _, each in self.got]

    def close(self) -> None:
        """Listen no more."""
        self.open.set()
        self.shutdown()
        self.server_close()


class Answer(BaseHTTPRequestHandler):
    """One request to a page."""

    server: Page

    def do_POST(self) -> None:
        """Take a document, and answer as is said."""
        page, body = self.server, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with page.more:
            page.got.append((self.path, dict(self.headers), body))
            page.more.notify_all()
            code = page.answers.pop(0) if page.answers else 204
        if page.slow in ("", body["kind"]):
            page.open.wait(PATIENCE_SECS)
        self.send_response(code)
        for name, value in page.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """Nobody is to come here."""
        self.send_response(500)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def page() -> Iterator[Page]:
    """Give a page."""
    found = Page()
    yield found
    found.close()


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository."""
    with opened(tmp_path) as found:
        found.env |= LOCAL
        yield found.found()


def ready(repo: Repo, *urls: str, run: str = "true", names: str = "a", more: str = "", text: str = "") -> None:
    """Write settings with addresses, and a plan of loops that run a script."""
    command = repo.script("code", run)
    repo.settings(f"types:\n  plan: {{child: code}}\n  code: {{run: '{command}'{more}}}\n{text}")
    (repo.root / "loopr.local.yml").write_text(f"notify: {json.dumps(urls)}\n")
    children = ", ".join(f"{{id: {name}}}" for name in names.split())
    repo.write({"plan.md": f"---\nid: demo\nchildren: [{children}]\n---\n# Demo\n"})


def complaints(repo: Repo) -> dict[str, str]:
    """Return what `status` says is wrong."""
    return {each["place"]: each["text"] for each in repo.loopr("status", "--json").document["problems"]}


def start(repo: Repo, *words: str) -> Process:
    """Start the plan."""
    return repo.begin("start", "plan.md", *words)


def until_told(page: Page, kind: str) -> None:
    """Wait until a page was told something of a kind."""
    with page.more:
        assert page.more.wait_for(lambda: any(each["kind"] == kind for _, _, each in page.got), PATIENCE_SECS), page.got


def leaks(repo: Repo) -> list[str]:
    """Name the files of the state, and what was said, that hold the secret; accepted settings are for us alone."""
    files = [path for path in repo.state.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    accepted = [path for path in files if path.parent.name == "accepted"]
    assert {path.stat().st_mode & 0o777 for path in accepted} <= {0o600}
    found = [str(path) for path in files if path not in accepted]
    told = [repo.loopr(*words, code=None) for words in (["events"], ["status"], ["doctor"], ["config", "check"])]
    return found + [each.out + each.err for each in told if SECRET in each.out + each.err]


def test_what_needs_a_person_is_told(repo: Repo, page: Page) -> None:
    """A page gets each kind of news once, as JSON, with name and password as a header; a second engine repeats none."""
    run = 'case "$LOOPR_LOOP" in */b) exit 78;; */c) exit 1;; esac'
    ready(repo, page.url, run=run, names="a b c", text="retry: {max_iterations: {code: 1}}\n")
    repo.loopr("start", "--no-run", "plan.md")
    repo.loopr("convoy", "create", "one", "demo/a")
    repo.loopr("run", code=1)
    found = page.documents(4)
    assert sorted((each["kind"], each["loop"]) for each in found) == [
        ("convoy", None),
        ("failed", "demo/c"),
        ("parked", "demo/b"),
        ("settled", None),
    ]
    assert found[-1]["text"] == "nothing goes on by itself: demo is stuck"
    assert {each["workspace"] for each in found} == {"repo"}
    path, headers, _ = page.got[0]
    assert path == f"/hooks/{SECRET}?token={SECRET}" and headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == f"Basic {b64encode(f'bot:{SECRET}'.encode()).decode()}"
    repo.loopr("run", code=1)
    assert len(page.got) == 4
    assert leaks(repo) == []


def test_approval_done_and_a_lane(repo: Repo, page: Page) -> None:
    """A wait for approval and a plan that is done are told; what is not in `notify_on` is not."""
    ready(repo, page.url, more=", approve: true", text="notify_on: [approval, done]\n")
    repo.loopr("start", "plan.md", code=4)
    (asked,) = page.documents(1)
    assert (asked["kind"], asked["loop"], asked["status"]) == ("approval", "demo/a", "awaiting_approval")
    repo.loopr("approve", "demo/a")
    repo.loopr("run")
    assert [(each["kind"], each["text"]) for each in page.documents(2)[1:]] == [("done", "demo is done")]


def test_a_budget_that_is_spent(repo: Repo, page: Page) -> None:
    """A plan whose budget is used up is told once, however long it stays so."""
    ready(repo, page.url, run="sleep 1.1", names="a b", text="concurrency: {max_loops: 1}\n")
    plan = (repo.root / "plan.md").read_text().replace("id: demo\n", "id: demo\nbudget: {secs: 1}\n")
    repo.write({"plan.md": plan})
    repo.loopr("start", "plan.md", code=5)
    assert "budget" in {each["kind"] for each in page.documents(2)}
    repo.loopr("run", code=5)
    assert [each["kind"] for each in page.documents(2)].count("budget") == 1


def test_a_page_that_fails_is_tried_again(repo: Repo, page: Page) -> None:
    """A page that answers with 503 is tried again after a delay, and what it was to hear comes in order, once."""
    page.answers = [503, 429]
    ready(repo, page.url, run="exit 78", text="concurrency: {max_loops: 1}\n", names="a b")
    process = start(repo)
    process.ended(1)
    kinds = [(each["kind"], each["loop"]) for each in page.documents(5)]
    assert kinds[0] == kinds[1] == kinds[2]
    assert kinds[3:] == [("parked", "demo/b"), ("settled", None)]
    assert complaints(repo).keys() == {"demo/a (parked)", "demo/b (parked)"}
    assert repo.events("problem_seen")[0]["data"]["place"] == "notify http://127.0.0.1/…"


def test_a_page_that_is_gone_holds_nobody_up(repo: Repo, page: Page) -> None:
    """Where nobody listens the engine ends after some tries; it is shown, and the next engine tells what is owed."""
    page.close()
    ready(repo, page.url)
    repo.loopr("start", "plan.md")
    assert set(repo.statuses().values()) == {"complete"}
    text = complaints(repo)["notify http://127.0.0.1/…"]
    assert text == "cannot be reached: Connection refused; it is tried again"
    assert any("Connection refused" in line for line in repo.loopr("doctor").out.splitlines())
    assert leaks(repo) == []
    again = Page()
    try:
        (repo.root / "loopr.local.yml").write_text(f"notify: {json.dumps([again.url])}\n")
        repo.loopr("run")
        assert [each["kind"] for each in again.documents(1)] == ["done"]
        assert complaints(repo) == {}
    finally:
        again.close()


def test_a_page_that_hangs_holds_no_loop_up(repo: Repo, page: Page) -> None:
    """While a page does not answer the loops go on."""
    page.open.clear()
    ready(repo, page.url, run='case "$LOOPR_LOOP" in */a) exit 78;; */b) tell b; wait_at gate;; esac', names="a b c")
    gate = repo.gate("gate")
    process = start(repo)
    page.documents(1)
    repo.heard(1)
    gate.let_on()
    repo.until("landed", 2)
    page.open.set()
    process.ended(1)
    assert len(page.documents(2)) == 2


def test_an_answer_that_drips_is_not_waited_for() -> None:
    """An address that answers with a byte now and then, for ever, is left when the time for all of it is over."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server, over), daemon=True)
        thread.start()
        sent = send(f"http://127.0.0.1:{server.getsockname()[1]}/{SECRET}", {}, "", "", limit_secs=0.3)
        assert sent == Sent("does not answer: it took too long", again=True)
        assert over.wait(PATIENCE_SECS)
        thread.join(PATIENCE_SECS)


def drip(server: socket.socket, over: threading.Event) -> None:
    """Answer one call with a header that never ends, and say when nobody listens any more."""
    line, _ = server.accept()
    with line, suppress(OSError):
        line.sendall(b"HTTP/1.1 204 No Content\r\nX-Slow: ")
        while not select.select([line], [], [], 0.02)[0] or line.recv(4096):
            line.sendall(b"x")
    over.set()


@pytest.mark.parametrize(
    ("code", "words"), [(404, "answered 404 Not Found"), (302, "answered 302 Found: name the address that it leads to")]
)
def test_a_page_that_refuses(repo: Repo, page: Page, code: int, words: str) -> None:
    """A page that will never take a document is not asked again, not at another address either, and that is shown."""
    page.answers, page.headers = [code], {"Location": "/elsewhere"}
    ready(repo, page.url)
    repo.loopr("start", "plan.md")
    assert complaints(repo) == {"notify http://127.0.0.1/…": words}
    assert len(page.got) == 1


def test_a_crash_tells_again(repo: Repo, page: Page) -> None:
    """What was being told when the engine was killed is told by the next one."""
    page.open.clear()
    ready(repo, page.url, run="exit 78")
    process = start(repo)
    page.documents(1)
    process.kill()
    page.open.set()
    repo.loopr("run", code=1)
    assert [each["kind"] for each in page.documents(3)] == ["parked", "parked", "settled"]


@pytest.mark.parametrize("kind", ["settled", "budget"])
def test_a_crash_tells_of_what_stands_again(repo: Repo, page: Page, kind: str) -> None:
    """That nothing goes on, or that a budget is spent, is told again if the engine was killed before it was heard."""
    page.slow = kind
    page.open.clear()
    ready(repo, page.url, run="tell ran; exit 78", names="a b", text="concurrency: {max_loops: 1}\n")
    if kind == "budget":
        repo.write(
            {"plan.md": (repo.root / "plan.md").read_text().replace("id: demo\n", "id: demo\nbudget: {tokens: 0}\n")}
        )
    process = start(repo)
    until_told(page, kind)
    process.kill()
    page.open.set()
    before = len(page.got)
    repo.loopr("run", code=None)
    assert kind in {each["kind"] for each in page.documents(before)[before:]}
    before = len(page.got)
    repo.loopr("run", code=None)
    assert len(page.got) == before


def test_addresses_of_other_kinds(repo: Repo, page: Page) -> None:
    """Without apprise what is missing is said by `config check`, `doctor` and `status`; with it, it is told."""
    ready(repo, f"json://user:{SECRET}@127.0.0.1:{page.server_port}/{SECRET}")
    check = repo.loopr("config", "check")
    repo.loopr("start", "plan.md")
    if find_spec("apprise") is None:
        words = "json://… is told through apprise, which is not installed"
        assert words in check.err and words in repo.loopr("doctor").out
        assert complaints(repo) == {"notify json://…": "needs apprise: pip install 'loopr[notify]'"}
    else:
        assert "demo is done" in json.dumps(page.documents(1))
        assert complaints(repo) == {} and check.err == ""
    assert leaks(repo) == []


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://hooks.example.invalid/services/T0/secret", "https://hooks.example.invalid/…"),
        ("HTTPS://me:secret@Example.invalid:8443?key=secret", "https://example.invalid/…"),
        ("tgram://123secret/456", "tgram://…"),
        ("mailto://me:secret@example.invalid", "mailto://…"),
        ("http://[secret", "http://…"),
    ],
)
def test_what_may_be_seen_of_an_address(url: str, seen: str) -> None:
    """Of an address no more than its kind and a page's host is shown, also where it cannot be read or called."""
    assert shown(url) == seen
    assert "secret" not in " ".join(labels([url])) + lacks([url])
    sent = send(url.replace("example.invalid", "127.0.0.1").replace(":8443", ":1"), {}, "", "", timeout_secs=0.2)
    assert sent.trouble and "secret" not in sent.trouble


def test_addresses_that_look_alike() -> None:
    """Two addresses of which the same may be seen are told apart, and the same one twice is one."""
    urls = ["https://a.invalid/1", "https://a.invalid/2", "https://a.invalid/1"]
    assert labels(urls) == {"https://a.invalid/…": urls[0], "https://a.invalid/… (2)": urls[1]}
