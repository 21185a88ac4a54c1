"""Reads the stream of opencode (`run --format json`), and of its log what it says of its tries.

It has no last event: its work is over when the last step ended for another reason than to use a tool. It says nothing
of its own retries in the stream, and of a model that it does not know only that something failed; its log, which the
preset lets it write to standard error, tells both. Knows its events and the form of its log. Must never know a loop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from loopr.core.model import Failure
from loopr.world.agents.lines import Event, events_in, inside, micro, text, total, whole
from loopr.world.agents.reader import EventReader, deed
from loopr.world.agents.waits import until
from loopr.world.agents.words import DONE, FAILURES, Ending, Rules, Used, Verdict, kind_of_status

_NAMES: Mapping[str, str] = {
    "ProviderAuthError": "authentication",
    "ProviderModelNotFoundError": "model",
    "ContextOverflowError": "config",
    "MessageOutputLengthError": "refused",
    "ContentFilterError": "refused",
    "MessageAbortedError": "infra",
}
_GOES_ON = frozenset({"tool-calls", "tool_calls"})
_REASONS: Mapping[str, str] = {"length": "refused", "content-filter": "refused", "error": "infra"}
_REJECTED, _NO_DATABASE = "The user rejected permission", "Failed query:"
_RESETS = ("x-ratelimit-reset", "anthropic-ratelimit-unified-reset")
_TRY = re.compile(r'^timestamp=(\S+) .*message="stream error" .*\bsmall=false .*?\berror\.error\S*?=(.*)$', re.M)
_LOG = re.compile(r"^timestamp=.*$", re.M)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SAME_ANSWER_MS = 1_000
"""An event of an answer that breaks off in the middle follows the log by some milliseconds, the next try by seconds."""


class OpencodeReader(EventReader):
    """Reads what opencode says."""

    def __init__(self, rules: Rules) -> None:
        """Begin with nothing read."""
        super().__init__(rules)
        self._error: Event | None = None
        self._reason: str | None = None
        self._resumed = self._hopeless = False
        self._at_ms = 0

    def take(self, event: Event) -> Iterator[str]:
        """Take one event."""
        self.session = text(event.get("sessionID")) or self.session
        self._at_ms = whole(event.get("timestamp")) or self._at_ms
        part = event.get("part")
        match event["type"]:
            case "step_start":
                self._reason = None
            case "step_finish":
                self._reason = text(inside(part, "reason")) or "stop"
                self._take_usage(part)
            case "text":
                yield from self._take_text(part)
            case "tool_use":
                yield from self._take_tool(part)
            case "error":
                self._take_error(event.get("error"))

    def _take_error(self, told: object) -> None:
        """Take an error; what is too long still when it was summed up, and before any step since, will never fit."""
        self._hopeless = self._hopeless or self._resumed and self._reason is None and _is_too_long(told)
        self._error, self._resumed = (told if isinstance(told, dict) else {}), False

    def _take_text(self, part: object) -> Iterator[str]:
        """Take what was said; it tells itself to go on when a conversation that was too long has become a short one."""
        if inside(part, "metadata", "compaction_continue") is not True:
            yield text(inside(part, "text"))
            return
        self._reason = None
        self._resumed = self._resumed or _is_too_long(self._error)
        if self._resumed and not self._hopeless:
            self._error = None

    def _take_tool(self, part: object) -> Iterator[str]:
        """Take what was done, or refused."""
        said = deed(text(inside(part, "tool")) or "a tool", inside(part, "state", "input"))
        if text(inside(part, "state", "error")).startswith(_REJECTED):
            self.denials.append(said)
        yield said

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
        """Say how it ended; an error that it has got over leaves its exit code at 1."""
        if self._error is not None:
            return self._failed(self._error, ending)
        if self._reason is None or self._reason in _GOES_ON:
            return self._unfinished(ending)
        if self._reason in _REASONS:
            return Verdict(_REASONS[self._reason], f"its last step ended because of {self._reason}")
        if ending.code != (1 if self._resumed else 0):
            return Verdict("infra", f"it finished its last step, and ended with exit {ending.code}")
        return DONE

    def _unfinished(self, ending: Ending) -> Verdict:
        """Say why it has not come to an end: it was refused what it wanted, it still waited, or it was cut short."""
        if self.denials and self._reason is not None and ending.code == 0:
            names = ", ".join(dict.fromkeys(self.denials))
            return Verdict("refused", f"it was not permitted what it wanted to do: {names}")
        if not self.heard and _NO_DATABASE in ending.errors:
            return Verdict("infra", "it could not make its database, as if another one was making it at that moment")
        tries = list(_TRY.finditer(ending.errors))
        if tries and _ms(tries[-1][1]) >= self._at_ms - _SAME_ANSWER_MS:
            kind = self.rules.kind_of(tries[-1][2])
            waits = FAILURES.get(kind) in (Failure.LIMITED, Failure.LANE)
            self.waits = Verdict(kind, _unquoted(tries[-1][2])) if waits else None
        last = _unquoted(tries[-1][2]) if tries else _LOG.sub("", ending.errors)
        return self.cut_short(ending._replace(errors=last))

    def _failed(self, error: Event, ending: Ending) -> Verdict:
        """Say what an error means: its words, its name, its status."""
        words = text(inside(error, "data", "message")) or text(error.get("message")) or text(error.get("name"))
        words = _logged(text(inside(error, "data", "ref")), ending.errors) or words
        told = f"{words}\n{text(inside(error, 'data', 'responseBody'))}"
        words = next((text(each.get("message")) for each in events_in(words)), "") or words
        status = whole(inside(error, "data", "statusCode"))
        kind = "limited" if status == 429 and self.rules.kind_of(told) != "billing" else ""
        kind = kind or _NAMES.get(text(error.get("name")), "") or self.rules.kind_of(told)
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
        resets = [int(each) for key in _RESETS if (each := str(told.get(key, ""))).isdecimal()]
        return Verdict("limited", words, until(max(resets), ending.now) if resets else None)


def _is_too_long(error: object) -> bool:
    """Say whether an error is that the conversation is too long for its model."""
    return text(inside(error, "name")) == "ContextOverflowError"


def _ms(instant: str) -> int:
    """Read an instant of its log, 0 where it is none."""
    try:
        return int(datetime.fromisoformat(instant).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def _logged(ref: str, log: str) -> str:
    """Return what its log says of an error that its stream has only a number for."""
    found = re.search(rf"^timestamp=.*\bref={re.escape(ref)} error=(.*)$", log, re.M) if ref else None
    return _unquoted(found[1]) if found else ""


def _unquoted(words: str) -> str:
    """Return the first value of a line of its log."""
    found = _QUOTED.match(words)
    try:
        return text(json.loads(found[0])) if found else words
    except ValueError:
        return words
