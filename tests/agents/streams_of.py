"""Streams of agents for tests: those that real clients wrote, and small ones of a test's own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from loopr.world.agents import CodexReader, Ending, Reader, Report, Rules, reader_for
from loopr.world.settings.presets import Shelf

STREAMS = Path(__file__).with_name("streams")
NOW = datetime(2026, 11, 18, 18, 0, tzinfo=UTC)


@cache
def rules(client: str) -> Rules:
    """Return the rules of a shipped preset."""
    preset = Shelf().preset(client)
    return Rules(client, preset.signs, preset.success, preset.mend)


def reader(client: str) -> Reader:
    """Make the reader of a shipped preset."""
    return reader_for(client, rules(client))


def report(
    client: str,
    raw: bytes,
    code: int | None = 0,
    errors: str = "",
    session: bytes = b"",
    *,
    errors_last: bool = False,
) -> Report:
    """Read a whole stream."""
    found = reader(client)
    found.feed(raw)
    if session and isinstance(found, CodexReader) and found.failed:
        found.feed_session(session)
    return found.close(Ending(code, errors, NOW, errors_last))


def lines(*events: Any) -> bytes:
    """Write events, one in a line."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in events)


def recorded(client: str) -> dict[str, bytes]:
    """Return all that was recorded of a client, by situation."""
    found = sorted((STREAMS / client).glob("*.jsonl" if client != "aider" else "*.txt"))
    return {each.stem: each.read_bytes() for each in found if "." not in each.stem}


def exit_of(client: str, name: str) -> int | None:
    """Return the exit code that was recorded, None where a signal ended it."""
    code: int = json.loads((STREAMS / client / "manifest.json").read_bytes())[name]["exit"]
    return code if code >= 0 else None


def beside(client: str, name: str, what: str) -> bytes:
    """Return what was recorded beside a stream."""
    path = STREAMS / client / f"{name}.{what}"
    return path.read_bytes() if path.exists() else b""


def cases(clients: Iterable[str]) -> list[tuple[str, str]]:
    """List every recorded situation of some clients."""
    return [(client, name) for client in clients for name in recorded(client)]


def claude_result(**values: Any) -> dict[str, Any]:
    """Return the last event of Claude Code."""
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 2,
        "result": "Done.",
        "session_id": "s-1",
        "total_cost_usd": 0.00564,
        "usage": {
            "input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 300,
            "output_tokens": 40,
        },
        "permission_denials": [],
        **values,
    }


def claude_error(kind: str, status: int | None, **result: Any) -> bytes:
    """Return a stream of Claude Code that ends with an error of the API."""
    message = {"id": "e", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}
    return lines(
        {"type": "system", "subtype": "init", "session_id": "s-1"},
        {"type": "assistant", "message": message, "error": kind, "api_error_status": status},
        claude_result(is_error=True, api_error_status=status, result=result.pop("result", "API Error"), **result),
    )
