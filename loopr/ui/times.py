"""Instants and durations as people write them.

Knows the words only; whoever asks brings the present instant.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from loopr.errors import UserError

_UTC = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HINT = "write 2026-01-31T02:00:00Z, or +90m for a while from now"


def read_duration(text: str) -> int:
    """Read a duration such as 90s, 1h30m or 250ms, in milliseconds."""
    from loopr.core.durations import read_spread

    try:
        found = read_spread(text)
    except UserError as error:
        raise UserError(f"{text!r} is not a duration of at most a year", hint="write 90s, 1h30m or 250ms") from error
    if found.low != found.high or found.tail:
        raise UserError(f"{text!r} is more than one duration", hint="write 90s, 1h30m or 250ms")
    return found.low


def read_instant(text: str, now: int) -> int:
    """Read an instant: RFC 3339, or a duration after (+) or before (-) now; in milliseconds UTC."""
    if text[:1] in ("+", "-"):
        sign = 1 if text[0] == "+" else -1
        return max(0, now + sign * read_duration(text[1:]))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{text!r} is not an instant", hint=_HINT) from None
    if not 1970 < found.year < 9999:  # what lies beyond cannot be told in every time zone
        raise UserError(f"{text!r} is out of range", hint="name a year from 1971 to 9998")
    if found.tzinfo is None:
        found = found.astimezone()
    since = found.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def say_duration(ms: int) -> str:
    """Write a duration with its two largest units: 41 s, 3 min 20 s, 2 h 5 min, 4 d 1 h."""
    secs = max(0, ms) // 1000
    if secs < 60:
        return f"{secs} s"
    if secs < 3600:
        return _two(secs // 60, "min", secs % 60, "s")
    if secs < 86_400:
        return _two(secs // 3600, "h", secs % 3600 // 60, "min")
    return _two(secs // 86_400, "d", secs % 86_400 // 3600, "h")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    """Write two units, the smaller one only if it says something."""
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"


def say_clock(at: int, now: int) -> str:
    """Write an instant as a local time of day, with the date where that is not today's, and the year likewise."""
    moment, today = (datetime.fromtimestamp(each / 1000).astimezone() for each in (at, now))
    if moment.date() == today.date():
        return moment.strftime("%H:%M:%S")
    year = f" {moment.year}" if moment.year != today.year else ""
    return f"{_MONTHS[moment.month - 1]} {moment.day}{year} {moment:%H:%M}"


def localized(text: str, now: int) -> str:
    """Write the instants that a text names in UTC as people read them, here."""

    def here(found: re.Match[str]) -> str:
        try:
            return say_clock(read_instant(found[0], now), now)
        except UserError:  # it only looks like one
            return found[0]

    return _UTC.sub(here, text)


def say_tokens(tokens: float) -> str:
    """Write a number of tokens shortly: 950, 12k, 3.4M."""
    if tokens < 1000:
        return f"{tokens:.0f}"
    if tokens < 1_000_000:
        return f"{tokens / 1000:.3g}k" if tokens < 999_500 else "1M"
    return f"{tokens / 1_000_000:.3g}M"
