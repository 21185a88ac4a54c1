"""Reads the stream of Codex (`exec --json`), and what it writes of a failed turn into its own session file.

An `error` event is a retry and an item of type `error` a warning: only the end of the turn tells. Knows its events and
the form of that file. Must never look for the file itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loopr.core.model import Failure
from loopr.world.agents.lines import Event, events_in, inside, text, whole
from loopr.world.agents.reader import EventReader
from loopr.world.agents.waits import epoch_ms, until
from loopr.world.agents.words import DONE, FAILURES, Ending, Rules, Share, Used, Verdict, kind_of_status

_CAUSES: Mapping[str, str] = {
    "rate_limit_exceeded": "limited",
    "usage_limit_exceeded": "limited",
    "model_not_found": "model",
    "context_window_exceeded": "config",
    "server_overloaded": "infra",
    "internal_server_error": "infra",
}


class CodexReader(EventReader):
    """Reads what Codex says."""

    def __init__(self, rules: Rules) -> None:
        """Begin with nothing read."""
        super().__init__(rules)
        self._completed = False
        self._failure: str | None = None
        self._cause: Any = None
        self._resets_at: int | None = None
        self._begun: set[str] = set()

    def take(self, event: Event) -> Iterator[str]:
        """Take one event."""
        match event["type"]:
            case "thread.started":
                self.session = text(event.get("thread_id")) or self.session
            case "turn.started":
                self._completed = False
            case "turn.completed":
                self._completed = True
                self._take_usage(event.get("usage"))
            case "turn.failed":
                self._failure = text(inside(event, "error", "message")) or "its turn failed"
            case "error":
                self._take_retry(text(event.get("message")))
            case "item.started" | "item.completed":
                yield from self._take_item(event.get("item"))

    def _take_retry(self, words: str) -> None:
        """Take note that it tries again, where whoever waits for it would wait for the provider or a person."""
        kind = self.rules.kind_of(words)
        self.waits = Verdict(kind, words) if FAILURES.get(kind) in (Failure.LIMITED, Failure.LANE) else None

    def _take_item(self, item: Any) -> Iterator[str]:
        """Take what was said or done; what was told when it began is not told again."""
        name = text(inside(item, "id"))
        if name and name in self._begun:
            return
        said = _words(item)
        if said and name:
            self._begun.add(name)
        if said:
            yield said

    def _take_usage(self, told: Any) -> None:
        """Take what the whole thread has used; its input contains what was cached."""
        if not isinstance(told, dict):
            return
        everything, cached = whole(told.get("input_tokens")), whole(told.get("cached_input_tokens"))
        fresh = max(0, everything - (cached or 0)) if everything is not None else None
        self.used = Used(fresh, cached, whole(told.get("output_tokens")))

    def feed_session(self, raw: bytes) -> None:
        """Take what its session file says of the turn: the cause of its end, what it used, when a limit ends."""
        for line in raw.decode("utf-8", "replace").split("\n"):
            for event in events_in(line):
                payload = event.get("payload")
                if inside(payload, "type") == "task_complete":
                    self._cause = inside(payload, "error", "codex_error_info")
                elif inside(payload, "type") == "token_count":
                    self._take_usage(inside(payload, "info", "total_token_usage"))
                    limits = inside(payload, "rate_limits")
                    self._resets_at = _resets_at(limits) or self._resets_at
                    self.share = _share(limits)

    @property
    def failed(self) -> bool:
        """True if its turn is not known to have ended well, so that its session may know more."""
        return self._failure is not None or not self._completed

    def judge(self, ending: Ending) -> Verdict:
        """Say how it ended."""
        if self._failure is not None:
            return self._failed(self._failure, ending)
        if not self._completed:
            return self.cut_short(ending)
        if ending.code != 0:
            return Verdict("infra", f"it completed its turn, and ended with exit {ending.code}")
        return DONE

    def _failed(self, words: str, ending: Ending) -> Verdict:
        """Say what the failure of its turn means: its words where they are clear, else the cause in its session."""
        kind = self.rules.kind_of(words)
        if kind in ("", "infra", "config"):
            kind = _kind_of(self._cause) or kind or "infra"
        resets_at = until(self._resets_at, ending.now) if kind == "limited" and self._is_plan_limit(words) else None
        return Verdict(kind, words, resets_at)

    def _is_plan_limit(self, words: str) -> bool:
        """Say whether it is the limit of a plan, whose end the session knows, and not that of a moment."""
        return self._cause == "usage_limit_exceeded" or "usage limit" in words


def _resets_at(limits: Any) -> int | None:
    """Say when the limit of a plan ends: that of the last window that is used up, else that of the first one."""
    windows = [inside(limits, name) for name in ("primary", "secondary")]
    full = [each for each in windows if (whole(inside(each, "used_percent")) or 0) >= 100]
    ends = [end for each in full or windows[:1] if (end := whole(inside(each, "resets_at"))) is not None]
    return max(ends, default=None)


def _share(limits: Any) -> Share | None:
    """Say how much of the fuller window is used up, and when that one ends."""
    windows = [inside(limits, name) for name in ("primary", "secondary")]
    known = [(used, each) for each in windows if (used := whole(inside(each, "used_percent"))) is not None]
    if not known:
        return None
    used, fuller = max(known, key=lambda each: each[0])
    return Share(min(1.0, used / 100), epoch_ms(whole(inside(fuller, "resets_at"))))


def _kind_of(cause: Any) -> str:
    """Say what a cause means."""
    if isinstance(cause, str):
        return _CAUSES.get(cause, "")
    told = next(iter(cause.values()), None) if isinstance(cause, dict) else None
    return kind_of_status(whole(inside(told, "http_status_code")))


def _words(item: Any) -> str:
    """Word an item: a message, a command, a change of files."""
    match inside(item, "type"):
        case "agent_message":
            return text(item.get("text"))
        case "command_execution":
            return f"$ {text(item.get('command'))}" if text(item.get("command")) else ""
        case "file_change":
            changes = item.get("changes")
            paths = [text(inside(each, "path")) for each in changes] if isinstance(changes, list) else []
            return f"edits {', '.join(filter(None, paths))}" if any(paths) else ""
        case "mcp_tool_call":
            return f"{text(item.get('server'))} {text(item.get('tool'))}"
        case "web_search":
            return f"searches: {text(item.get('query'))}"
    return ""
