"""Reads the stream of Claude Code (`--output-format stream-json`).

Its `subtype` is "success" for every error of the API: only `is_error` tells. Knows its events. Must never know a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from loopr.world.agents.lines import Event, inside, micro, share, text, total, whole
from loopr.world.agents.reader import EventReader, deed
from loopr.world.agents.waits import epoch_ms, until
from loopr.world.agents.words import DONE, Ending, Rules, Share, Used, Verdict, kind_of_status

_ERRORS: Mapping[str, str] = {
    "rate_limit": "limited",
    "usage_limit_reached": "limited",
    "rate_limit_error": "limited",
    "authentication_failed": "authentication",
    "oauth_org_not_allowed": "authentication",
    "billing_error": "billing",
    "model_not_found": "model",
    "invalid_request": "config",
    "max_output_tokens": "refused",
    "server_error": "infra",
    "overloaded": "infra",
    "connection_failed": "infra",
}
_ENDS: Mapping[str, str] = {
    "prompt_too_long": "config",
    "error_max_turns": "refused",
    "error_max_budget_usd": "refused",
}
_USES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class ClaudeReader(EventReader):
    """Reads what Claude Code says."""

    def __init__(self, rules: Rules) -> None:
        """Begin with nothing read."""
        super().__init__(rules)
        self._result: Event | None = None
        self._error: Event = {}
        self._rejected: Event | None = None
        self._delay_ms: int | None = None
        self._messages: dict[str, Used] = {}

    def take(self, event: Event) -> Iterator[str]:
        """Take one event."""
        self.session = text(event.get("session_id")) or self.session
        match event["type"]:
            case "system":
                self._take_system(event)
            case "rate_limit_event":
                told = inside(event, "rate_limit_info")
                if isinstance(told, dict):
                    self._take_limits(told)
            case "assistant":
                yield from self._take_message(event)
            case "result":
                self._take_result(event)

    def _take_system(self, event: Event) -> None:
        """Take note of retries and of what was not permitted."""
        if event.get("subtype") == "api_retry" and event.get("error_status") == 429:
            self._delay_ms = whole(event.get("retry_delay_ms"))
            self.waits = Verdict("limited", "it still waited for its provider (429)", None, self._delay_ms)
        elif event.get("subtype") == "permission_denied":
            self.denials.append(deed(text(event.get("tool_name")) or "a tool", event.get("tool_input")))

    def _take_limits(self, told: Event) -> None:
        """Take note of how much of its limits is used up, and whether one is reached that nothing is paid beyond."""
        is_reached = told.get("status") == "rejected" and told.get("isUsingOverage") is not True
        self._rejected = told if is_reached else None
        windows = told.get("unifiedWindows")
        parts = [told, *(windows.values() if isinstance(windows, dict) else [])]
        known = [(part, each) for each in parts if (part := share(inside(each, "utilization"))) is not None]
        if known:
            part, fullest = max(known, key=lambda each: each[0])
            self.share = Share(part, epoch_ms(whole(inside(fullest, "resetsAt"))))

    def _take_message(self, event: Event) -> Iterator[str]:
        """Take what the model said and did, and what that used: its output is only known when all is over."""
        if text(event.get("error")):
            self._error = event
        message = event.get("message")
        name, used = text(inside(message, "id")), inside(message, "usage")
        if name and isinstance(used, dict) and inside(message, "model") != "<synthetic>":
            self._messages[name] = _used(used)
            if self._result is None:
                self.used = _sum(list(self._messages.values()))
        content = inside(message, "content")
        for block in content if isinstance(content, list) else []:
            if inside(block, "type") == "text":
                yield text(block.get("text"))
            elif inside(block, "type") == "tool_use":
                yield deed(text(block.get("name")) or "a tool", block.get("input"))

    def _take_result(self, event: Event) -> None:
        """Take the last event: what it says of usage is the whole of it."""
        self._result = event
        told = event.get("usage")
        if isinstance(told, dict):
            self.used = _used(told)._replace(micro_usd=micro(event.get("total_cost_usd")))
        denied = event.get("permission_denials")
        for each in denied if isinstance(denied, list) else []:
            self.denials.append(deed(text(inside(each, "tool_name")) or "a tool", inside(each, "tool_input")))

    def judge(self, ending: Ending) -> Verdict:
        """Say how it ended."""
        result = self._result
        if result is None:
            return self.cut_short(ending)
        if result.get("is_error") is not False:
            return self._failed(result, ending)
        if result.get("subtype") != "success":
            return Verdict(_ENDS.get(text(result.get("subtype")), "infra"), self._words(result))
        if ending.code != 0:
            return Verdict("infra", f"it reported success, and ended with exit {ending.code}")
        if result.get("num_turns") == 0:
            return Verdict("config", "it took the prompt for a command of its own, and asked no model")
        if self.denials:
            names = ", ".join(dict.fromkeys(self.denials))
            return Verdict("refused", f"it was not permitted what it wanted to do: {names}")
        return DONE

    def _failed(self, result: Event, ending: Ending) -> Verdict:
        """Say what an error means: its class in words, else how the turn ended, else the status of the API."""
        status = whole(result.get("api_error_status")) or whole(self._error.get("api_error_status"))
        known = [text(self._error.get(key)) for key in ("error", "api_error", "api_error_type")]
        ends = [text(result.get(key)) for key in ("terminal_reason", "subtype")]
        kind = "limited" if status == 429 or self._rejected is not None else ""
        kind = kind or next((_ENDS[each] for each in ends if each in _ENDS), "")
        kind = kind or next((_ERRORS[each] for each in known if each in _ERRORS), "")
        words = self._words(result)
        kind = kind or self.rules.kind_of(words) or kind_of_status(status) or "infra"
        if kind != "limited":
            return Verdict(kind, words)
        return Verdict(kind, words, until(whole(inside(self._rejected, "resetsAt")), ending.now), self._delay_ms)

    def _words(self, result: Event) -> str:
        """Return what it said of its end."""
        errors = result.get("errors")
        listed = [each for each in errors if isinstance(each, str)] if isinstance(errors, list) else []
        said = text(result.get("result")) or "; ".join(listed)
        return said or text(result.get("terminal_reason")) or text(result.get("subtype"))


def _used(told: Event) -> Used:
    """Read what was used."""
    fresh, written, cached, output = (whole(told.get(key)) for key in _USES)
    return Used(total(fresh, written), cached, output)


def _sum(parts: list[Used]) -> Used:
    """Add up the usage of messages: an estimate."""
    sums = [total(*(part[place] for part in parts)) for place in range(3)]
    return Used(sums[0], sums[1], sums[2], measured=False)
