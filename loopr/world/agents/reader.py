"""What all readers share: pieces of a stream go in, what was newly said comes out, and in the end a report.

Knows how lines become events, and a verdict a report. Must never know a client's events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from loopr.world.agents.lines import Event, Lines, events_in
from loopr.world.agents.waits import NO_WAIT, wait_in
from loopr.world.agents.words import (
    DONE,
    FAILURES,
    NOTHING_USED,
    REST_MS,
    SILENT,
    Ending,
    Report,
    Rules,
    Share,
    Used,
    Verdict,
    short,
)

_OF_INPUT = ("command", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt")


class Reader(ABC):
    """Reads the stream of one attempt; `last` is what its agent said or did last, `used` what it has used so far."""

    vouches: ClassVar[bool] = True  # for the times that it reads; text that anybody may print says nothing for sure

    def __init__(self, rules: Rules) -> None:
        """Begin with nothing read."""
        self.rules = rules
        self.session = ""
        self.last = ""
        self.used: Used = NOTHING_USED
        self.denials: list[str] = []
        self.heard = False
        self.share: Share | None = None
        self._lines = Lines()

    def feed(self, piece: bytes) -> list[str]:
        """Take a piece of output, and return what was newly said or done in it."""
        return self._heed(self._lines.feed(piece))

    def close(self, ending: Ending) -> Report:
        """Say what the stream comes to, now that there is no more of it."""
        self._heed(self._lines.close())
        verdict = self.judge(ending)
        if verdict.kind == "limited":
            verdict = self._timed(verdict, ending)
        return Report(
            verdict != SILENT,
            FAILURES.get(verdict.kind),
            verdict.kind,
            self.rules.words(verdict) if verdict not in (DONE, SILENT) else "",
            self.used,
            self.session,
            tuple(dict.fromkeys(self.denials)),
            self.last,
            verdict.until_ms,
            verdict.retry_after_ms,
            self.share,
            self.vouches,
        )

    def _heed(self, lines: Iterable[str]) -> list[str]:
        """Read some lines, and note what was said in them."""
        found = [word.strip() for line in lines for word in self.read(line) if word.strip()]
        if found:
            self.last = short(found[-1])
        return found

    def _timed(self, verdict: Verdict, ending: Ending) -> Verdict:
        """Say until when a limit lasts, from its message where its events do not tell."""
        if verdict.until_ms is not None or verdict.retry_after_ms is not None:
            return verdict
        wait = wait_in(verdict.message, ending.now)
        if wait == NO_WAIT:  # in what else it wrote any hour may stand
            wait = wait_in(ending.errors, ending.now)
        if wait.until_ms is not None:
            return verdict._replace(until_ms=wait.until_ms)
        return verdict._replace(retry_after_ms=REST_MS if wait.for_ms is None else wait.for_ms)

    # -- what each client says in its own way

    @abstractmethod
    def read(self, line: str) -> Iterator[str]:
        """Read one line, and give what is said in it."""

    @abstractmethod
    def judge(self, ending: Ending) -> Verdict:
        """Say how it ended."""


class EventReader(Reader):
    """Reads a stream of events, one in a line; `waits` is for what its client waits, if its last event says so."""

    def __init__(self, rules: Rules) -> None:
        """Begin with nothing read."""
        super().__init__(rules)
        self.waits: Verdict | None = None

    def read(self, line: str) -> Iterator[str]:
        """Take the events of a line; a line without one is other people's text."""
        for event in events_in(line):
            if isinstance(event.get("type"), str):
                self.heard, self.waits = True, None
                yield from self.take(event)

    @abstractmethod
    def take(self, event: Event) -> Iterator[str]:
        """Take one event, and give what is said in it."""

    def cut_short(self, ending: Ending) -> Verdict:
        """Word the end of a stream that has not come to its last event; it may have been ended while it waited."""
        if self.waits is not None and ending.code is None:
            return self.waits
        said = next((line.strip() for line in reversed(ending.errors.splitlines()) if line.strip()), "")
        if not self.heard:
            kind = self.rules.kind_of(ending.errors)
            return Verdict(kind or "cut", said or "it wrote no event")
        how = "" if ending.code in (None, 0) else f" with exit {ending.code}"
        return Verdict("cut", f"its stream ended{how} without its last event{f': {said}' if said else ''}")


def deed(name: str, given: Any) -> str:
    """Word the use of a tool: its name, and the most telling part of what it was given."""
    values = given if isinstance(given, dict) else {}
    told = next((values[key] for key in _OF_INPUT if isinstance(values.get(key), str) and values[key]), "")
    return f"{name}: {short(told)}" if told else name
