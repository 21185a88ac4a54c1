"""Anthropic Messages, as Claude Code speaks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.standin import answers as a
from tests.standin.asked import Asked
from tests.standin.dialect import Body, Reply, event, refused, streamed, texts

_FOLDER = re.compile(r"[Ww]orking directory:\s*(/[^\n]*)")
_TYPES: dict[a.Kind, str] = {
    "rate_limit": "rate_limit_error",
    "overloaded": "overloaded_error",
    "server": "api_error",
    "authentication": "authentication_error",
    "billing": "invalid_request_error",
    "invalid": "invalid_request_error",
    "context": "invalid_request_error",
    "not_found": "not_found_error",
}
_STATUSES: dict[a.Kind, int] = {"rate_limit": 429, "overloaded": 529}


class Messages:
    """`POST /v1/messages`, streamed or not."""

    def read(self, path: str, headers: dict[str, str], body: Body) -> Asked | None:
        """Understand a request for the words of a model."""
        if path.split("?", maxsplit=1)[0] != "/v1/messages":
            return None
        messages = body.get("messages", [])
        said = "\n".join(texts(each["content"]) for each in messages if each["role"] == "user")
        folder = _FOLDER.search(texts(body.get("system", "")) + "\n" + said)
        last = messages[-1]["content"] if messages else ""
        follows = isinstance(last, list) and any(each.get("type") == "tool_result" for each in last)
        tools = tuple(each["name"] for each in body.get("tools", []))
        return Asked("messages", path, headers, body, said, folder[1] if folder else "", follows, tools)

    def word(self, asked: Asked, answer: a.Answer) -> Reply:
        """Word an answer."""
        match answer:
            case a.Refused():
                return refused(answer, _error(answer.kind, answer.message))
            case a.BrokenOff() if not asked.body.get("stream"):  # Claude Code's second try, after a stream that failed
                return Reply(_STATUSES.get(answer.kind, 500), {}, _error(answer.kind, answer.message))
            case a.BrokenOff():
                return streamed(_broken(asked, answer))
            case a.Stalled() | a.Cut() | a.Silence():
                return streamed(_begun(asked), whole=False)
        if not asked.body.get("stream"):
            return Reply(200, {}, _document(asked, answer))
        return streamed(_events(asked, answer))


def _error(kind: a.Kind, message: str) -> Body:
    """Word an error."""
    return {"type": "error", "error": {"type": _TYPES[kind], "message": message}, "request_id": "req_standin"}


def _usage(used: a.Used, output: int) -> dict[str, int]:
    """Word what was used."""
    fresh = used.input - used.cached
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": used.cached,
        "output_tokens": output,
    }


def _block(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> tuple[Body, str]:
    """Say what the one block of an answer is, and why the answer ends."""
    call = {"type": "tool_use", "id": f"toolu_standin{asked.number:06}"}
    match answer:
        case a.Edit():
            path = str(PurePosixPath(asked.folder) / answer.path)
            return call | {"name": "Write", "input": {"file_path": path, "content": answer.content}}, "tool_use"
        case a.Shell():
            return call | {"name": "Bash", "input": {"command": answer.command, "description": "run it"}}, "tool_use"
        case a.CutShort():
            return {"type": "text", "text": answer.text}, "max_tokens"
    return {"type": "text", "text": answer.text}, "end_turn"


def _document(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> Body:
    """Word an answer that is not streamed."""
    block, reason = _block(asked, answer)
    message = _message(asked, answer.used)
    return message | {"content": [block], "stop_reason": reason, "usage": _usage(answer.used, answer.used.output)}


def _message(asked: Asked, used: a.Used) -> Body:
    """Begin a message."""
    return {
        "id": f"msg_standin{asked.number:06}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(used, 1),
    }


def _begun(asked: Asked, used: a.Used | None = None) -> Iterator[bytes]:
    """Begin a stream."""
    message = _message(asked, used or a.Used())
    yield event({"type": "message_start", "message": message}, "message_start")
    yield event({"type": "ping"}, "ping")


def _broken(asked: Asked, answer: a.BrokenOff) -> Iterator[bytes]:
    """Begin a stream that ends in an error."""
    yield from _begun(asked)
    yield event(_error(answer.kind, answer.message), "error")


def _events(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> Iterator[bytes]:
    """Stream one whole message."""
    yield from _begun(asked, answer.used)
    block, reason = _block(asked, answer)
    if block["type"] == "text":
        empty, deltas = block | {"text": ""}, [{"type": "text_delta", "text": block["text"]}]
    else:
        written = json.dumps(block["input"])
        parts = written[: len(written) // 2], written[len(written) // 2 :]
        empty, deltas = block | {"input": {}}, [{"type": "input_json_delta", "partial_json": each} for each in parts]
    yield event({"type": "content_block_start", "index": 0, "content_block": empty}, "content_block_start")
    for delta in deltas:
        yield event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    yield event({"type": "content_block_stop", "index": 0}, "content_block_stop")
    end = {"stop_reason": reason, "stop_sequence": None}
    usage = {"output_tokens": answer.used.output}
    yield event({"type": "message_delta", "delta": end, "usage": usage}, "message_delta")
    yield event({"type": "message_stop"}, "message_stop")
