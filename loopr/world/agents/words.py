"""What is said of how an agent's work ended: what it used, what it means, and the rules by which that is read.

Knows the nouns, and what a status of HTTP means. Must never know a client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from loopr.core.model import Failure
from loopr.core.outline import one_line

LONGEST_WORD = 200
LONGEST_MESSAGE = 1_000
REST_MS = 60_000
"""How long a lane rests for which nobody says a time."""

FAILURES: Mapping[str, Failure] = {
    "authentication": Failure.LANE,
    "billing": Failure.LANE,
    "model": Failure.LANE,
    "limited": Failure.LIMITED,
    "config": Failure.CONFIG,
    "refused": Failure.REFUSED,
    "infra": Failure.INFRA,
    "cut": Failure.INFRA,  # the stream ended too early: how the process ended may tell more
}
"""What each kind of end comes to; the order is that in which signs are looked for."""

_OF_THE_LANE = {"authentication": "is not logged in", "billing": "has no credit", "model": "does not know this model"}


class Used(NamedTuple):
    """What an agent has used, None where its client did not say; `measured` unless it was rounded or pieced together.

    Cached input is not part of the input; what was written to a cache is.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    micro_usd: int | None = None
    measured: bool = True

    @property
    def tokens(self) -> int | None:
        """All tokens together, None if none were named."""
        named = [each for each in self[:3] if each is not None]
        return sum(named) if named else None


NOTHING_USED = Used()


class Share(NamedTuple):
    """How much of its provider's window an account has used, of 1, and when that window ends, where that is told."""

    part: float
    ends_ms: int | None = None


class Ending(NamedTuple):
    """How the client's process ended, what it wrote to standard error in the end, and when that was, in local time.

    `errors_last` is True where it wrote nothing to standard output after that.
    """

    code: int | None
    errors: str = ""
    now: datetime = datetime.fromtimestamp(0).astimezone()
    errors_last: bool = False


class Verdict(NamedTuple):
    """What a stream comes to: a kind of `FAILURES`, "done", or "" where only the exit code can tell."""

    kind: str
    message: str = ""
    until_ms: int | None = None
    retry_after_ms: int | None = None


DONE, SILENT = Verdict("done"), Verdict("")


class Report(NamedTuple):
    """All that the stream of an agent says of its work; `failure` is None for what ended well.

    `decides` is False where the stream says nothing of that, so that the exit code has the word. `share` is how much of
    its provider's limits is used up, where that is told. `vouched` is False where any text may have told the times.
    """

    decides: bool
    failure: Failure | None
    kind: str
    message: str
    used: Used = NOTHING_USED
    session: str = ""
    denials: tuple[str, ...] = ()
    last: str = ""
    resets_at_ms: int | None = None
    retry_after_ms: int | None = None
    share: Share | None = None
    vouched: bool = False


class Rules:
    """How the messages of one client are read: what is a sign of what, and what a person is to do about it."""

    def __init__(
        self,
        name: str = "agent",
        signs: Mapping[str, tuple[str, ...]] | None = None,
        success: str = "",
        mend: Mapping[str, str] | None = None,
    ) -> None:
        """Take the rules of a preset."""
        self.name = name
        given = signs or {}
        self._signs = [(kind, [re.compile(each, re.MULTILINE) for each in given.get(kind, ())]) for kind in FAILURES]
        self.success = re.compile(success, re.MULTILINE) if success else None
        self._mend = mend or {}

    @property
    def has_signs(self) -> bool:
        """True if anything but the exit code can tell how a text ended."""
        return self.success is not None or any(patterns for _, patterns in self._signs)

    def kind_of(self, text: str) -> str:
        """Say what a message is a sign of, nothing if it is none."""
        return next((kind for kind, each in self._signs if any(pattern.search(text) for pattern in each)), "")

    def words(self, verdict: Verdict) -> str:
        """Word a verdict for a person: what the client said, and for a whole lane what is to be done about it."""
        said = one_line(verdict.message)[:LONGEST_MESSAGE]
        if verdict.kind not in _OF_THE_LANE:
            return f"{self.name}: {said or 'it did not say why it ended'}"
        head = f"{self.name} {_OF_THE_LANE[verdict.kind]}"
        mend = self._mend.get(verdict.kind, "")
        return f"{head}{f' ({said})' if said else ''}{f': {mend}' if mend else ''}"


def kind_of_status(status: int | None) -> str:
    """Say what a status of HTTP means, nothing if it means nothing in particular."""
    if status is None:
        return ""
    known = {401: "authentication", 403: "authentication", 402: "billing", 404: "model", 408: "infra", 429: "limited"}
    if status in known:
        return known[status]
    return "config" if 400 <= status < 500 else "infra" if status >= 500 else ""


def short(text: str) -> str:
    """Make one line of what was said, no longer than a screen is wide."""
    line = one_line(text)
    return line if len(line) <= LONGEST_WORD else f"{line[: LONGEST_WORD - 1]}…"
