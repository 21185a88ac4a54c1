"""Reads output that is text: what is a sign of what is all that is known of it; and aider, which adds what it used.

A sign counts until the text shows success after it. Where there is neither sign nor mark of success, the exit code has
the word. Must never know a client beyond the line in which aider tells its tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopr.world.agents.lines import micro, total
from loopr.world.agents.reader import Reader
from loopr.world.agents.words import DONE, SILENT, Ending, Rules, Used, Verdict

_MORE_LINES = 5  # of a message that is wrapped


class PlainReader(Reader):
    """Reads text."""

    vouches = False

    def __init__(self, rules: Rules) -> None:
        """Begin with nothing read."""
        super().__init__(rules)
        self._kind = ""
        self._message: list[str] = []
        self._succeeded = False
        self._goes_on = False  # whether the message may be wrapped, and this be more of it

    def read(self, line: str) -> Iterator[str]:
        """Read one line."""
        self.heard = self.heard or bool(line.strip())
        if self.rules.success is not None and self.rules.success.search(line):
            self._kind, self._message, self._succeeded, self._goes_on = "", [], True, False
        elif self._goes_on and line.strip() and len(self._message) < _MORE_LINES:
            self._message.append(line.strip())
            self._kind = self.rules.kind_of(" ".join(self._message)) or self._kind
        elif kind := self.rules.kind_of(line):
            self._kind, self._message, self._succeeded, self._goes_on = kind, [line.strip()], False, True
        else:
            self._goes_on = False
        yield line

    def judge(self, ending: Ending) -> Verdict:
        """Say how it ended."""
        kind, words = self._kind, " ".join(self._message)
        if not kind and not self._succeeded and (kind := self.rules.kind_of(ending.errors)):
            words = next((line for line in ending.errors.splitlines() if self.rules.kind_of(line)), "").strip()
        if kind:
            return Verdict(kind, words)
        if self.rules.success is None or ending.code != 0:
            return SILENT
        return DONE if self._succeeded else Verdict("cut", "its output ended before it was done")


_SENT = re.compile(r"([\d.,]+)([kM]?) (sent|cache write|cache hit|received)")
_SESSION = re.compile(r"\$([\d.]+)\s+session")
_SCALE = {"": 1, "k": 1_000, "M": 1_000_000}


class AiderReader(PlainReader):
    """Reads what aider prints; its figures are rounded."""

    def __init__(self, rules: Rules) -> None:
        """Begin with nothing read."""
        super().__init__(rules)
        self._tokens = ""

    def read(self, line: str) -> Iterator[str]:
        """Read one line; that of the tokens may be wrapped, and its own waiting is not what the provider asks for."""
        if line.startswith("Retrying in "):
            self._goes_on = False
            yield line
            return
        if line.startswith("Tokens: "):
            self._tokens = ""
            self._take_tokens(line)
        elif self._tokens:
            self._take_cost(f"{self._tokens} {line}")
        self._tokens = line if line.startswith("Tokens: ") and not _SESSION.search(line) else ""
        yield from super().read(line)

    def _take_tokens(self, line: str) -> None:
        """Add the tokens of one message."""
        told: dict[str, int] = {}
        for amount, scale, what in _SENT.findall(line):
            number = amount.replace(",", "").strip(".")
            if number.count(".") <= 1 and number:
                told[what] = told.get(what, 0) + int(float(number) * _SCALE[scale])
        known = self.used
        self.used = Used(
            total(known.input_tokens, told.get("sent"), told.get("cache write")),
            total(known.cached_input_tokens, told.get("cache hit")),
            total(known.output_tokens, told.get("received")),
            known.micro_usd,
            measured=False,
        )
        self._take_cost(line)

    def _take_cost(self, line: str) -> None:
        """Take the cost of the session so far."""
        found = _SESSION.search(line)
        if found and found[1].strip(".") and found[1].count(".") <= 1:
            self.used = self.used._replace(micro_usd=micro(float(found[1])), measured=False)
