"""What every dialect of the stand-in can do, and what they have in common.

A dialect reads the requests of one provider and words answers as that provider does. Must never know which answer is
given to whom.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from tests.standin.answers import Answer, Refused
from tests.standin.asked import Asked

Body = dict[str, Any]


class Reply(NamedTuple):
    """An answer on the wire: a stream of events if `events` is given, else one document."""

    status: int
    headers: dict[str, str]
    document: Body | None = None
    events: Iterator[bytes] | None = None
    whole: bool = True
    """False: after the last event the connection just ends, or is left open in silence."""


class Dialect(Protocol):
    """The language of one provider."""

    def read(self, path: str, headers: dict[str, str], body: Body) -> Asked | None:
        """Understand a request; None if it is not one for a model's words."""

    def word(self, asked: Asked, answer: Answer) -> Reply:
        """Word an answer, the beginning of it only where it is one that breaks off."""


def event(document: Body | str, name: str = "") -> bytes:
    """Write one server-sent event."""
    data = document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


def streamed(events: Iterator[bytes], *, whole: bool = True) -> Reply:
    """Answer with a stream."""
    return Reply(200, {"content-type": "text/event-stream"}, events=events, whole=whole)


def refused(answer: Refused, document: Body) -> Reply:
    """Answer with an error."""
    return Reply(answer.status, dict(answer.headers), document)


def texts(content: Any) -> str:
    """Join what is text in a message, however it is nested."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(texts, content)))
    if isinstance(content, dict):
        return str(content.get("text") or texts(content.get("content") or content.get("parts") or ""))
    return ""
