"""How long a message asks to wait: a span, or an instant, in the words that providers and clients use.

Knows words for time. Must never know who says them. Instants without a date or a zone are local and to come.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import NamedTuple

MOST = timedelta(days=32)
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_AMOUNT = r"\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_SPAN = re.compile(
    rf"(?:\bin|\bafter|\bfor|retry-after:?)\s+((?:{_AMOUNT}[\s,]*(?:and\s+)?)+)|retry-after:?\s+(\d+)\b", re.IGNORECASE
)
_ONE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_INSTANT = re.compile(
    r"(?:\bat|\bresets(?:\s+at)?|\buntil)\s+"
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+"
    r"(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]\.?m\.?)?(?P<utc>\s*\(?(?:utc|gmt|z)\b)?",
    re.IGNORECASE,
)

_EPOCH = re.compile(r"\blimit reached\|(\d{10,13})\b")


class Wait(NamedTuple):
    """A wish to wait: until an instant, or for a span from now on; neither where nothing was said."""

    until_ms: int | None = None
    for_ms: int | None = None


def wait_in(message: str, now: datetime) -> Wait:
    """Find how long a message asks to wait; the longest span, if it says several."""
    spans = [each for found in _SPAN.finditer(message) if (each := _span(found[1], found[2])) is not None]
    if spans:
        return Wait(for_ms=max(spans))
    instants = [each for found in _INSTANT.finditer(message) if (each := _instant(found, now)) is not None]
    instants += [each for epoch in _EPOCH.findall(message) if (each := until(int(epoch), now)) is not None]
    return Wait(until_ms=max(instants)) if instants else Wait()


def until(epoch: int | None, now: datetime) -> int | None:
    """Return an instant given in seconds or milliseconds since 1970, None where it cannot be meant."""
    ms = epoch_ms(epoch)
    return ms if ms is not None and ms <= int((now + MOST).timestamp() * 1000) else None


def epoch_ms(epoch: int | None) -> int | None:
    """Return seconds or milliseconds since 1970 as milliseconds."""
    return epoch if epoch is None or epoch > 10**11 else epoch * 1000


def _span(words: str | None, secs: str | None) -> int | None:
    """Return a span in milliseconds."""
    if secs is not None:
        ms = float(secs) * 1000
    else:
        ms = sum(float(amount) * _UNITS[_unit(word)] * 1000 for amount, word in _ONE.findall(words or ""))
    return int(ms) if 0 < ms <= MOST.total_seconds() * 1000 else None


def _unit(word: str) -> str:
    """Return the short name of a unit."""
    word = word.lower()
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def _instant(found: re.Match[str], now: datetime) -> int | None:
    """Return the next instant that some words may mean."""
    hour, minute, half = int(found["hour"]), int(found["minute"] or 0), (found["half"] or "").lower()
    if not (found["minute"] or half) or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    local = now.astimezone(_UTC) if found["utc"] else now
    try:
        meant = local.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            meant = meant.replace(year=int(found["year"] or local.year), month=month, day=int(found["day"]))
        elif meant <= local:
            meant += timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    return int(meant.timestamp() * 1000) if now < meant <= now + MOST else None


_UTC = datetime.fromisoformat("1970-01-01T00:00:00+00:00").tzinfo
