"""Reads the stream of the Gemini CLI (`--output-format stream-json`).

Its exit code is the status of the API modulo 256, and how long to wait is told on standard error only. Knows its
events. Must never know a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from loopr.world.agents.lines import Event, inside, text, whole
from loopr.world.agents.reader import EventReader, deed
from loopr.world.agents.words import DONE, Ending, Rules, Used, Verdict, kind_of_status

_RETRIES = re.compile(r"^Attempt \d+ failed\b", re.MULTILINE)
_CODES: Mapping[int, str] = {41: "authentication", 42: "config", 52: "config", 53: "refused"}
_STATUSES = {status % 256: status for status in (400, 401, 403, 404, 429, 500, 502, 503, 504)}


class GeminiReader(EventReader):
    """Reads what the Gemini CLI says."""

    def __init__(self, rules: Rules) -> None:
        """Begin with nothing read."""
        super().__init__(rules)
        self._result: Event | None = None
        self._trouble = ""
        self._saying = ""

    def take(self, event: Event) -> Iterator[str]:
        """Take one event; what the model says comes in pieces."""
        self.session = text(event.get("session_id")) or self.session
        if event["type"] != "message":
            yield from self._end_of_saying()
        match event["type"]:
            case "message" if event.get("role") == "assistant":
                self._saying += text(event.get("content"))
                if event.get("delta") is not True:
                    yield from self._end_of_saying()
                elif self._saying.strip():
                    self.last = self._saying.strip().splitlines()[-1][:200]
            case "tool_use":
                yield deed(text(event.get("tool_name")) or "a tool", event.get("parameters"))
            case "error":
                self._trouble = text(event.get("message")) or self._trouble
            case "result":
                self._result = event
                self._take_usage(event.get("stats"))

    def _end_of_saying(self) -> Iterator[str]:
        """Give what was said piece by piece."""
        if self._saying:
            yield self._saying
            self._saying = ""

    def _take_usage(self, told: Any) -> None:
        """Take what was used; its input contains what was cached."""
        if not isinstance(told, dict):
            return
        everything, cached = whole(told.get("input_tokens")), whole(told.get("cached"))
        fresh = whole(told.get("input"))
        if fresh is None and everything is not None:
            fresh = max(0, everything - (cached or 0))
        self.used = Used(fresh, cached, whole(told.get("output_tokens")))

    def judge(self, ending: Ending) -> Verdict:
        """Say how it ended."""
        if self._result is None and not self.heard:
            return self._failed("", ending)
        if self._result is None:
            self._take_retry(ending)
            return self.cut_short(ending)
        if self._result.get("status") != "success":
            words = text(inside(self._result, "error", "message")) or self._trouble
            return self._failed(words or text(inside(self._result, "error", "type")), ending)
        if ending.code != 0:
            return Verdict("infra", f"it reported success, and ended with exit {ending.code}")
        return DONE

    def _take_retry(self, ending: Ending) -> None:
        """Take note that it still waited for its provider, if that is the last that it has said at all."""
        tries = list(_RETRIES.finditer(ending.errors)) if ending.errors_last else []
        words = ending.errors[tries[-1].start() :] if tries else ""
        if self.rules.kind_of(words) == "limited":
            self.waits = Verdict("limited", words)

    def _failed(self, words: str, ending: Ending) -> Verdict:
        """Say what an error means: its words, else its exit code."""
        said = words or self.cut_short(ending).message
        kind = self.rules.kind_of(words or ending.errors)
        if not kind and ending.code is not None:
            kind = _CODES.get(ending.code, "") or kind_of_status(_STATUSES.get(ending.code))
        return Verdict(kind or ("infra" if words else "cut"), said)
