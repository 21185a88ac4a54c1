"""Gemini generateContent, as the Gemini command line speaks it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.standin import answers as a
from tests.standin.asked import Asked
from tests.standin.dialect import Body, Reply, event, refused, streamed, texts

_STATUSES: dict[a.Kind, str] = {
    "rate_limit": "RESOURCE_EXHAUSTED",
    "overloaded": "UNAVAILABLE",
    "server": "INTERNAL",
    "authentication": "UNAUTHENTICATED",
    "billing": "RESOURCE_EXHAUSTED",
    "invalid": "INVALID_ARGUMENT",
    "context": "INVALID_ARGUMENT",
    "not_found": "NOT_FOUND",
}


class GenerateContent:
    """`POST …:generateContent` and `…:streamGenerateContent`."""

    def read(self, path: str, headers: dict[str, str], body: Body) -> Asked | None:
        """Understand a request for the words of a model."""
        place, _, verb = path.split("?", maxsplit=1)[0].rpartition(":")
        if verb not in ("generateContent", "streamGenerateContent"):
            return None
        contents = body.get("contents", [])
        said = "\n".join(texts(each.get("parts")) for each in contents if each.get("role", "user") == "user")
        last = contents[-1].get("parts", []) if contents else []
        follows = any("functionResponse" in each for each in last)
        declared = [each for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])]
        tools = tuple(each["name"] for each in declared)
        named = {**body, "model": place.rpartition("/")[2]}
        return Asked("gemini", path, headers, named, said, "", follows, tools)

    def word(self, asked: Asked, answer: a.Answer) -> Reply:
        """Word an answer."""
        match answer:
            case a.Refused():
                return refused(answer, _error(answer))
            case a.BrokenOff():
                error = {"code": 429 if answer.kind == "rate_limit" else 503, "message": answer.message}
                return streamed(iter((_begun(asked), event({"error": error | {"status": _STATUSES[answer.kind]}}))))
            case a.Stalled() | a.Cut() | a.Silence():
                return streamed(iter((_begun(asked),)), whole=False)
        if "streamGenerateContent" not in asked.path:
            return Reply(200, {}, _document(asked, answer))
        return streamed(_events(asked, answer))


def _error(answer: a.Refused) -> Body:
    """Word an error."""
    error: Body = {"code": answer.status, "message": answer.message, "status": _STATUSES[answer.kind]}
    if "retry-after" in answer.headers:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        error["details"] = [{"@type": kind, "retryDelay": f"{answer.headers['retry-after']}s"}]
        error["message"] += f" Please retry in {answer.headers['retry-after']}s."
    if answer.resets_at is not None:  # it says that the day is over, and not when the next begins
        kind = "type.googleapis.com/google.rpc.QuotaFailure"
        error["details"] = [{"@type": kind, "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}]
    return {"error": error}


def _part(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> Body:
    """Say what the one part of an answer is."""
    match answer:
        case a.Edit():
            return {
                "functionCall": {"name": "write_file", "args": {"file_path": answer.path, "content": answer.content}}
            }
        case a.Shell():
            return {"functionCall": {"name": "run_shell_command", "args": {"command": answer.command}}}
    return {"text": answer.text}


def _candidate(asked: Asked, part: Body, reason: str | None = None) -> Body:
    """Word what the model says."""
    content = {"role": "model", "parts": [part]}
    end = {"finishReason": reason} if reason else {}
    return {"candidates": [{"index": 0, "content": content, **end}], "modelVersion": asked.model}


def _document(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> Body:
    """Word an answer in one piece."""
    used = answer.used
    usage = {
        "promptTokenCount": used.input,
        "cachedContentTokenCount": used.cached,
        "candidatesTokenCount": used.output,
        "totalTokenCount": used.input + used.output,
    }
    reason = "MAX_TOKENS" if isinstance(answer, a.CutShort) else "STOP"
    return _candidate(asked, _part(asked, answer), reason) | {"usageMetadata": usage}


def _begun(asked: Asked) -> bytes:
    """Begin a stream."""
    return event(_candidate(asked, {"text": ""}))


def _events(asked: Asked, answer: a.Text | a.Edit | a.Shell | a.CutShort) -> Iterator[bytes]:
    """Stream one whole answer."""
    yield _begun(asked)
    yield event(_document(asked, answer))
