"""OpenAI Chat Completions, as aider and many others speak it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.standin import answers as a
from tests.standin.asked import Asked
from tests.standin.dialect import Body, Reply, event, refused, streamed, texts
from tests.standin.openai_responses import worded


class ChatCompletions:
    """`POST …/chat/completions`, streamed or not."""

    def read(self, path: str, headers: dict[str, str], body: Body) -> Asked | None:
        """Understand a request for the words of a model."""
        if not path.split("?", maxsplit=1)[0].endswith("/chat/completions"):
            return None
        messages = body.get("messages", [])
        said = "\n".join(texts(each.get("content")) for each in messages if each.get("role") == "user")
        follows = bool(messages) and messages[-1].get("role") == "tool"
        tools = tuple(each["function"]["name"] for each in body.get("tools", []))
        return Asked("chat", path, headers, body, said, "", follows, tools)

    def word(self, asked: Asked, answer: a.Answer) -> Reply:
        """Word an answer."""
        match answer:
            case a.Refused():
                return refused(answer, worded(answer.kind, answer.message))
            case a.BrokenOff():
                return streamed(iter((_begun(asked), event(worded(answer.kind, answer.message)))))
            case a.Stalled() | a.Cut() | a.Silence():
                return streamed(iter((_begun(asked),)), whole=False)
        if not asked.body.get("stream"):
            return Reply(200, {}, _document(asked, answer))
        return streamed(_events(asked, answer))


def _message(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> tuple[Body, str]:
    """Say what the model says, and why it ends; who has no tools is told of a file in its own words."""
    match answer:
        case a.Edit() if not asked.tools:
            return {"content": _in_words(answer)}, "stop"
        case a.Edit():
            return _call(asked, "write", {"filePath": answer.path, "content": answer.content}), "tool_calls"
        case a.Shell():
            return _call(asked, "bash", {"command": answer.command, "description": "run it"}), "tool_calls"
        case a.CutShort():
            return {"content": answer.text}, "length"
    return {"content": answer.text}, "stop"


def _in_words(answer: a.Edit) -> str:
    """Write a new file as aider reads it from what a model says: a block that replaces nothing."""
    block = f"<<<<<<< SEARCH\n=======\n{answer.content}>>>>>>> REPLACE"
    return f"Here it is.\n\n{answer.path}\n````\n{block}\n````\n"


def _call(asked: Asked, name: str, arguments: dict[str, str]) -> Body:
    """Call a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": f"call_{asked.number}", "type": "function", "function": function}]}


def _usage(used: a.Used) -> Body:
    """Word what was used."""
    return {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached},
    }


def _document(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> Body:
    """Word an answer that is not streamed."""
    message, reason = _message(asked, answer)
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return _head(asked, "chat.completion") | {"choices": [choice], "usage": _usage(answer.used)}


def _head(asked: Asked, kind: str) -> Body:
    """Begin a document."""
    return {"id": f"chatcmpl-{asked.number}", "object": kind, "created": 0, "model": asked.model}


def _chunk(asked: Asked, delta: Body, reason: str | None = None) -> bytes:
    """Stream one piece."""
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return event(_head(asked, "chat.completion.chunk") | {"choices": [choice]})


def _begun(asked: Asked) -> bytes:
    """Begin a stream."""
    return _chunk(asked, {"role": "assistant", "content": ""})


def _events(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> Iterator[bytes]:
    """Stream one whole message."""
    yield _begun(asked)
    message, reason = _message(asked, answer)
    calls = [{"index": at, **each} for at, each in enumerate(message.get("tool_calls", []))]
    yield _chunk(asked, {"tool_calls": calls} if calls else message)
    yield _chunk(asked, {}, reason)
    yield event(_head(asked, "chat.completion.chunk") | {"choices": [], "usage": _usage(answer.used)})
    yield event("[DONE]")
