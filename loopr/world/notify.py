"""How an address is told of something: http and https by a POST with JSON, every other kind through apprise.

Knows addresses, and what of one may be seen by others. Must never know what it tells of, when, or how often.
"""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from email.message import Message
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, InvalidURL
from importlib.util import find_spec
from socket import SHUT_RDWR
from threading import Thread
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import AbstractHTTPHandler, HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

TIMEOUT_SECS = 10.0  # for each step of an exchange
LIMIT_SECS = 30.0  # for all of it: one that answers now and then with a byte would never be over
INSTALL = "pip install 'loopr[notify]'"
WEB = frozenset({"http", "https"})
_LATER = frozenset({408, 425, 429})
_LONGEST_REST_SECS = 3600


class Sent(NamedTuple):
    """What became of telling: nothing but `trouble` says that it failed; whether, and from when on, to try again."""

    trouble: str = ""
    again: bool = False
    rest_secs: int = 0


def shown(url: str) -> str:
    """Return what of an address may stand in a log: its kind, and a page's host; all else may be a secret."""
    kind = _kind(url)
    try:
        host = urlsplit(url).hostname if kind in WEB else ""
    except ValueError:
        host = ""
    return f"{kind}://{host}/…" if host else f"{kind}://…"


def labels(urls: Iterable[str]) -> dict[str, str]:
    """Map what each address is called to the address; those that look alike are counted."""
    found: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        label, count = shown(url), 1
        while label in found:
            count += 1
            label = f"{shown(url)} ({count})"
        found[label] = url
    return found


def lacks(urls: Iterable[str]) -> str:
    """Say which addresses nobody can be told at for want of apprise, nothing if there are none."""
    stuck = [shown(url) for url in urls if _kind(url) not in WEB]
    if not stuck or find_spec("apprise") is not None:
        return ""
    return f"{', '.join(dict.fromkeys(stuck))} is told through apprise, which is not installed"


def _kind(url: str) -> str:
    """Return the scheme of an address."""
    return url.partition("://")[0].lower()


def send(
    url: str,
    document: Mapping[str, Any],
    title: str,
    text: str,
    *,
    timeout_secs: float = TIMEOUT_SECS,
    limit_secs: float = LIMIT_SECS,
) -> Sent:
    """Tell an address: a page gets the document, apprise title and text; nobody waits longer than the limit."""
    lines: list[HTTPConnection] = []
    if _kind(url) in WEB:
        work = partial(_post, url, json.dumps(document).encode(), timeout_secs, lines)
    else:
        work = partial(_hand_to_apprise, url, title, text)
    answer: Future[Sent] = Future()
    Thread(target=_answer, args=(answer, work), daemon=True).start()
    try:
        return answer.result(limit_secs)
    except TimeoutError:
        _cut(lines)
        return Sent("does not answer: it took too long", again=True)


def _answer(answer: Future[Sent], work: Callable[[], Sent]) -> None:
    """Do some work, and hand over what came of it."""
    try:
        answer.set_result(work())
    except BaseException as error:  # whoever waits for the answer hears of it
        answer.set_exception(error)


def _cut(lines: Iterable[HTTPConnection]) -> None:
    """End what is still said on some lines, so that no thread goes on listening."""
    for line in lines:
        with suppress(OSError):
            if line.sock is not None:
                line.sock.shutdown(SHUT_RDWR)


# --- a page ---------------------------------------------------------------------------------------------------------


class _NoRedirect(HTTPRedirectHandler):
    """Follows nothing: a POST that is sent on comes to its end as a GET without its document."""

    def redirect_request(self, *given: Any, **named: Any) -> None:
        """Refuse to go on."""


class _Lines(AbstractHTTPHandler):
    """Keeps the lines that are opened, for whoever may have to cut them."""

    lines: list[HTTPConnection]

    def do_open(self, http_class: Any, req: Request, **named: Any) -> HTTPResponse:
        """Open a line and keep it."""

        def opened(*given: Any, **how: Any) -> HTTPConnection:
            line: HTTPConnection = http_class(*given, **how)
            self.lines.append(line)
            return line

        return super().do_open(opened, req, **named)


class _Http(_Lines, HTTPHandler):
    """Lines in the clear."""


class _Https(_Lines, HTTPSHandler):
    """Lines under a seal."""


def _post(url: str, body: bytes, timeout_secs: float, lines: list[HTTPConnection]) -> Sent:
    """Post a document; no word of a failure is taken from what was sent or from the address."""
    plain, sealed = _Http(), _Https()
    plain.lines = sealed.lines = lines
    try:
        with build_opener(_NoRedirect, plain, sealed).open(_request(url, body), timeout=timeout_secs) as answer:
            return _judged(answer.status, answer.headers)
    except HTTPError as error:
        with error:
            return _judged(error.code, error.headers)
    except URLError as error:
        return Sent(f"cannot be reached: {_words(error.reason)}", again=True)
    except (ValueError, InvalidURL):  # some of these carry the address
        return Sent("is no address that anything can be posted to")
    except (OSError, HTTPException) as error:
        return Sent(f"does not answer: {_words(error)}", again=True)


def _request(url: str, body: bytes) -> Request:
    """Make a request; a name and a password in the address become a header."""
    parts = urlsplit(url)
    user, at, netloc = parts.netloc.rpartition("@")
    headers = {"Content-Type": "application/json", "User-Agent": "loopr"}
    if at:
        headers["Authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
    return Request(urlunsplit(parts._replace(netloc=netloc, fragment="")), body, headers, method="POST")


def _judged(code: int, headers: Message) -> Sent:
    """Say what an answer means."""
    if 200 <= code < 300:
        return Sent()
    phrase = HTTPStatus(code).phrase if code in HTTPStatus._value2member_map_ else ""
    words = f"answered {code} {phrase}".strip()
    if 300 <= code < 400:
        return Sent(f"{words}: name the address that it leads to")
    asked = headers.get("Retry-After", "")
    rest = min(int(asked), _LONGEST_REST_SECS) if asked.isascii() and asked.isdigit() else 0
    return Sent(words, again=code in _LATER or code >= 500, rest_secs=rest)


def _words(reason: str | BaseException) -> str:
    """Put the reason of a failure in words that come from the system alone."""
    if isinstance(reason, TimeoutError):
        return "it took too long"
    said = reason.strerror if isinstance(reason, OSError) else ""
    return said or (type(reason).__name__ if isinstance(reason, BaseException) else "the address is not understood")


# --- everything else ------------------------------------------------------------------------------------------------


def _hand_to_apprise(url: str, title: str, text: str) -> Sent:
    """Let apprise deliver title and text, silently: what it logs is about addresses."""
    try:
        import apprise  # type: ignore[import-not-found, import-untyped, unused-ignore] # an extra, and slow to import
    except ImportError:
        return Sent(f"needs apprise: {INSTALL}")
    log = logging.getLogger("apprise")
    log.propagate = False
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    try:
        caller = apprise.Apprise()
        if not caller.add(url):
            return Sent("is no address that apprise understands")
        return Sent() if caller.notify(body=text, title=title) else Sent("apprise could not deliver it", again=True)
    except Exception as error:  # its parts are other people's, and what they raise may carry the address
        return Sent(f"apprise failed: {type(error).__name__}", again=True)
