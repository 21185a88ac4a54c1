"""Reads the stream of opencode (`run --format json`).

It has no last event: its work is over when the last step ended for another reason than to use a tool. Knows its events.
Must never know a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from loopr.world.agents.lines import Event, inside, micro, text, total, whole
from loopr.world.agents.reader import EventReader, deed
from loopr.world.agents.waits import until
from loopr.world.agents.words import DONE, Ending, Rules, Used, Verdict, kind_of_status

_NAMES: Mapping[str, str] = {
    "ProviderAuthError": "authentication",
    "ProviderModelNotFoundError": "model",
    "ContextOverflowError": "config",
    "MessageOutputLengthError": "refused",
    "MessageAbortedError": "infra",
}
_GOES_ON = frozenset({"tool-calls", "tool_calls"})
_REASONS: Mapping[str, str] = {"length": "refused", "content-filter": "refused", "error": "infra"}


class OpencodeReader(EventReader):
    """Reads what opencode says."""

    def __init__(self, rules: Rules) -> None:
        """Begin with nothing read."""
        super().__init__(rules)
        self._error: Event | None = None
        self._reason: str | None = None

    def take(self, event: Event) -> Iterator[str]:
        """Take one event."""
        self.session = text(event.get("sessionID")) or self.session
        part = event.get("part")
        match event["type"]:
            case "step_start":
                self._reason = None
            case "step_finish":
                self._reason = text(inside(part, "reason")) or "stop"
                self._take_usage(part)
            case "text":
                yield text(inside(part, "text"))
            case "tool_use":
                yield deed(text(inside(part, "tool")) or "a tool", inside(part, "state", "input"))
            case "error":
                told = event.get("error")
                self._error = told if isinstance(told, dict) else {}

    def _take_usage(self, part: object) -> None:
        """Add what a step has used."""
        tokens, known = inside(part, "tokens"), self.used
        fresh = total(whole(inside(tokens, "input")), whole(inside(tokens, "cache", "write")))
        output = total(whole(inside(tokens, "output")), whole(inside(tokens, "reasoning")))
        self.used = Used(
            total(known.input_tokens, fresh),
            total(known.cached_input_tokens, whole(inside(tokens, "cache", "read"))),
            total(known.output_tokens, output),
            total(known.micro_usd, micro(inside(part, "cost"))),
        )

    def judge(self, ending: Ending) -> Verdict:
        """Say how it ended."""
        if self._error is not None:
            return self._failed(self._error, ending)
        if self._reason is None or self._reason in _GOES_ON:
            return self.cut_short(ending)
        if self._reason in _REASONS:
            return Verdict(_REASONS[self._reason], f"its last step ended because of {self._reason}")
        if ending.code != 0:
            return Verdict("infra", f"it finished its last step, and ended with exit {ending.code}")
        return DONE

    def _failed(self, error: Event, ending: Ending) -> Verdict:
        """Say what an error means: its words, its name, its status."""
        words = text(inside(error, "data", "message")) or text(error.get("message")) or text(error.get("name"))
        status = whole(inside(error, "data", "statusCode"))
        kind = "limited" if status == 429 and self.rules.kind_of(words) != "billing" else ""
        kind = kind or _NAMES.get(text(error.get("name")), "") or self.rules.kind_of(words)
        kind = kind or kind_of_status(status) or "infra"
        if kind != "limited":
            return Verdict(kind, words)
        return self._rest(words, inside(error, "data", "responseHeaders"), ending)

    def _rest(self, words: str, headers: object, ending: Ending) -> Verdict:
        """Say how long the provider asks to wait."""
        told = {str(key).lower(): each for key, each in headers.items()} if isinstance(headers, dict) else {}
        after, after_ms = (str(told.get(key, "")) for key in ("retry-after", "retry-after-ms"))
        if after_ms.isdecimal():
            return Verdict("limited", words, retry_after_ms=min(int(after_ms), 10**10))
        if after.isdecimal():
            return Verdict("limited", words, retry_after_ms=min(int(after), 10**7) * 1000)
        reset = str(told.get("x-ratelimit-reset", ""))
        return Verdict("limited", words, until(int(reset), ending.now) if reset.isdecimal() else None)
