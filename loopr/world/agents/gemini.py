"""Reads the stream of the Gemini CLI (`--output-format stream-json`).

Its exit code is the status of the API modulo 256, or 0 where a signal ended it. Its retries, and which kind of error it
was, are told on standard error only. Knows its events. Must never know a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from loopr.world.agents.lines import Event, events_in, inside, text, whole
from loopr.world.agents.reader import EventReader, deed
from loopr.world.agents.waits import wait_in
from loopr.world.agents.words import DONE, Ending, Rules, Used, Verdict, kind_of_status

_RETRIES = re.compile(r"^Attempt \d+ failed\b", re.MULTILINE)
_OWN_WAIT = re.compile(r"\.? ?Retrying (?:after|with) .*", re.DOTALL)
_REPORT = re.compile(r"^Error when talking to .*$", re.MULTILINE)
_NOISE = re.compile(r"^(?:\[STARTUP\]|(?:Security )?Warning: |YOLO mode |Ripgrep is ).*\n?", re.MULTILINE)
_CODES: Mapping[int, str] = {41: "authentication", 42: "config", 52: "config", 53: "refused", 55: "config"}
_STATUSES = {status % 256: status for status in (400, 401, 403, 404, 429, 500, 502, 503, 504, 529)}
_DAILY, _WHERE_DAYS_BEGIN = re.compile(r"(?i)\bdaily quota\b"), "America/Los_Angeles"


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
        fresh, output = whole(told.get("input")), whole(told.get("output_tokens"))
        if fresh is None and everything is not None:
            fresh = max(0, everything - (cached or 0))
        whole_of_it = whole(told.get("total_tokens"))
        if None not in (output, everything, whole_of_it):  # what it thought is output too, but counted in the sum only
            output = max(output or 0, (whole_of_it or 0) - (everything or 0))
        self.used = Used(fresh, cached, output)

    def judge(self, ending: Ending) -> Verdict:
        """Say how it ended."""
        ending = ending._replace(errors=_NOISE.sub("", ending.errors))
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
            self.waits = _limited(words, ending.now)

    def _failed(self, words: str, ending: Ending) -> Verdict:
        """Say what an error means: its words, else what it reports of it on standard error, else its exit code."""
        said, reports = _unwrapped(words) or self.cut_short(ending).message, _REPORT.findall(ending.errors)
        kind = self.rules.kind_of(words or ending.errors) or (self.rules.kind_of(reports[-1]) if reports else "")
        if not kind and ending.code is not None:
            kind = _CODES.get(ending.code, "") or kind_of_status(_STATUSES.get(ending.code))
        kind = kind or ("infra" if words else "cut")
        return _limited(said, ending.now) if kind == "limited" else Verdict(kind, said)


def _unwrapped(words: str) -> str:
    """Take an error out of what the client has put around it."""
    inner = words.removeprefix("[API Error: ").partition("]\nPlease wait")[0].removesuffix("]")
    return next((text(inside(each, "error", "message")) for each in events_in(inner)), "") or inner


def _limited(words: str, now: datetime) -> Verdict:
    """Say how long the provider asks to wait; what the client itself waits grows with every try."""
    if _DAILY.search(words):
        return Verdict("limited", words, _next_day(now))
    asked = wait_in(_OWN_WAIT.sub("", words), now)
    return Verdict("limited", words, asked.until_ms, asked.for_ms)


def _next_day(now: datetime) -> int | None:
    """Return when the provider's next day begins, None where this machine knows no zones."""
    with suppress(ZoneInfoNotFoundError):
        there = now.astimezone(ZoneInfo(_WHERE_DAYS_BEGIN))
        midnight = (there + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        return int(midnight.timestamp() * 1000)
    return None
