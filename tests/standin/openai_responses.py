"""OpenAI Responses, as codex speaks it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

from tests.standin import answers as a
from tests.standin.asked import Asked
from tests.standin.dialect import Body, Reply, event, refused, streamed, texts

_FOLDER = re.compile(r"<cwd>([^<]*)</cwd>")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
TYPES: dict[a.Kind, tuple[str, str | None]] = {
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "overloaded": ("service_unavailable_error", "server_is_overloaded"),
    "server": ("server_error", None),
    "authentication": ("invalid_request_error", "invalid_api_key"),
    "billing": ("insufficient_quota", "insufficient_quota"),
    "invalid": ("invalid_request_error", None),
    "context": ("invalid_request_error", "context_length_exceeded"),
    "not_found": ("invalid_request_error", "model_not_found"),
}
KEY_MESSAGE = "Incorrect API key provided: sk-stand***********cdef. You can find your API key in your account."
"""What OpenAI says of a key; libraries know it by these words."""


class Responses:
    """`POST …/responses`, always streamed."""

    def read(self, path: str, headers: dict[str, str], body: Body) -> Asked | None:
        """Understand a request for the words of a model."""
        if not path.split("?", maxsplit=1)[0].endswith("/responses"):
            return None
        items = body.get("input", [])
        said = "\n".join(texts(each.get("content")) for each in items if each.get("role") == "user")
        folder = _FOLDER.search(said)
        follows = bool(items) and items[-1].get("type") in _OUTPUTS
        tools = tuple(str(each.get("name") or each.get("type")) for each in body.get("tools", []))
        return Asked("responses", path, headers, body, said, folder[1] if folder else "", follows, tools)

    def word(self, asked: Asked, answer: a.Answer) -> Reply:
        """Word an answer."""
        match answer:
            case a.Refused():
                return refused(answer, _error(answer))
            case a.BrokenOff():
                return streamed(_broken(asked, answer))
            case a.Stalled() | a.Cut() | a.Silence():
                return streamed(_begun(asked), whole=False)
        return streamed(_events(asked, answer))


def _error(answer: a.Refused) -> Body:
    """Word an error."""
    if answer.resets_at is not None:
        plan = {"type": answer.code, "message": answer.message, "plan_type": "plus", "resets_at": answer.resets_at}
        return {"error": plan}
    return worded(answer.kind, answer.message)


def worded(kind: a.Kind, message: str) -> Body:
    """Word an error as all of OpenAI's interfaces do."""
    name, code = TYPES[kind]
    said = KEY_MESSAGE if kind == "authentication" else message
    return {"error": {"message": said, "type": name, "param": None, "code": code}}


def _response(asked: Asked, **more: object) -> Body:
    """Begin a response."""
    begun = {"id": f"resp_standin{asked.number:06}", "object": "response", "model": asked.model, "output": []}
    return begun | {"status": "in_progress"} | more


def _begun(asked: Asked) -> Iterator[bytes]:
    """Begin a stream."""
    yield event({"type": "response.created", "response": _response(asked)}, "response.created")


def _broken(asked: Asked, answer: a.BrokenOff) -> Iterator[bytes]:
    """Begin a stream that ends in an error."""
    yield from _begun(asked)
    error = {"code": TYPES[answer.kind][1], "message": answer.message}
    failed = _response(asked, status="failed", error=error)
    yield event({"type": "response.failed", "response": failed}, "response.failed")


def _item(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> Body:
    """Say what the one item of an answer is."""
    match answer:
        case a.Edit():
            return _call(
                asked, f'mkdir -p "$(dirname {answer.path})" && printf %s {shlex.quote(answer.content)} > {answer.path}'
            )
        case a.Shell():
            return _call(asked, answer.command)
    content = [{"type": "output_text", "text": answer.text, "annotations": []}]
    return {"type": "message", "id": f"msg_standin{asked.number:06}", "role": "assistant", "content": content}


def _call(asked: Asked, command: str) -> Body:
    """Call whichever tool for the shell there is."""
    call = {"type": "function_call", "id": f"fc_standin{asked.number:06}", "call_id": f"call_standin{asked.number:06}"}
    if "exec_command" in asked.tools:
        return call | {"name": "exec_command", "arguments": json.dumps({"cmd": command})}
    if "shell_command" in asked.tools:
        return call | {"name": "shell_command", "arguments": json.dumps({"command": command})}
    return call | {"name": "shell", "arguments": json.dumps({"command": ["sh", "-c", command]})}


def _usage(used: a.Used) -> Body:
    """Word what was used."""
    return {
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cached},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.input + used.output,
    }


def _events(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> Iterator[bytes]:
    """Stream one whole response."""
    yield from _begun(asked)
    item = _item(asked, answer)
    yield event({"type": "response.output_item.added", "output_index": 0, "item": item}, "response.output_item.added")
    yield event({"type": "response.output_item.done", "output_index": 0, "item": item}, "response.output_item.done")
    usage = _usage(answer.used)
    if isinstance(answer, a.CutShort):
        details = {"reason": "max_output_tokens"}
        end = _response(asked, status="incomplete", incomplete_details=details, output=[item], usage=usage)
        yield event({"type": "response.incomplete", "response": end}, "response.incomplete")
    else:
        end = _response(asked, status="completed", output=[item], usage=usage)
        yield event({"type": "response.completed", "response": end}, "response.completed")
