"""From pieces of output to its lines, and from a line to the events in it.

Tolerant: a line may be cut, glued to another or stand among text that is none; whatever is no whole event is text.
Knows JSON. Must never know what an event means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

MOST_BYTES = 16 << 20
_DECODER = json.JSONDecoder()

Event = dict[str, Any]


class Lines:
    """Cuts a stream into lines; one that is longer than anything sensible is dropped."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[str]:
        """Give the lines that end in a piece."""
        *whole, rest = piece.split(b"\n")
        for end in whole:
            self._keep(end)
            yield self._take()
        self._keep(rest)

    def close(self) -> Iterator[str]:
        """Give the last line, if it has no end."""
        if self._parts:
            yield self._take()

    def _keep(self, part: bytes) -> None:
        """Keep a part of a line that may go on."""
        self._size += len(part)
        if self._size > MOST_BYTES:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _take(self) -> str:
        """Return the line that was kept."""
        line = b"".join(self._parts).decode("utf-8", "replace") if self._size <= MOST_BYTES else ""
        self._parts, self._size = [], 0
        return line.rstrip("\r")


def events_in(line: str) -> list[Event]:
    """Read the events of a line: one, as a rule; text may stand before them, nothing half or foreign behind them."""
    at = line.find('{"') if '{"' in line else line.find("{")
    if at < 0:
        return []
    found: list[Event] = []
    while at < len(line):
        try:
            event, at = _DECODER.raw_decode(line, at)
        except (ValueError, RecursionError):
            return []
        if not isinstance(event, dict):
            return []
        found.append(event)
        while at < len(line) and line[at].isspace():
            at += 1
    return found


# --- values, of which any may be missing or be something else ---------------------------------------------------------


def inside(value: Any, *path: str) -> Any:
    """Return what lies at a path of keys, None where there is no such thing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: Any) -> str:
    """Return a text, an empty one for anything else."""
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    """Return a number from 0 on as a whole one, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return None
    return int(min(value, 10**15))


def share(value: Any) -> float | None:
    """Return a share of 1, None for anything else."""
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 10
    return min(1.0, float(value)) if fits else None


def micro(usd: Any) -> int | None:
    """Return dollars as whole micro-dollars, rounded up, None for anything else."""
    if isinstance(usd, bool) or not isinstance(usd, (int, float)) or not math.isfinite(usd) or not 0 <= usd <= 10**9:
        return None
    return math.ceil(Decimal(str(usd)) * 1_000_000)


def total(*amounts: int | None) -> int | None:
    """Add up what is known, None where nothing is."""
    known = [each for each in amounts if each is not None]
    return sum(known) if known else None
