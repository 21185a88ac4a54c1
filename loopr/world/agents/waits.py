"""How long a message asks to wait: a span, or an instant, in the words that providers and clients use.

Knows words for time. Must never know who says them. Instants without a date or a zone are local, and to come or only
just gone by.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

MOST = timedelta(days=32)
LATE = timedelta(minutes=15)
"""So long after it an hour of the day is still the one that was meant: its seconds are not told, and ends take time."""
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_AMOUNT = r"\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_SPAN = re.compile(
    rf"(?:\bin|\bafter|\bfor|\bwait|retry[- ]after:?)\s+((?:{_AMOUNT}[\s,]*(?:and\s+)?)+)"
    r"|retry[- ]after:?\s+(\d+)\b(?![.:-]\d)",
    re.IGNORECASE,
)
_ONE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LEAD = r"(?:\bat|\bresets(?:\s+at)?|\buntil):?\s+"
_ZONE = r"(?:\s*\(?(?P<zone>utc|gmt|z|[a-z]+(?:/[a-z0-9_+-]+)+)\b)?"
_INSTANT = re.compile(
    rf"{_LEAD}"
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+"
    r"(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?)?"
    rf"(?P<hour>\d{{1,2}})(?::(?P<minute>\d\d)(?::\d\d)?)?\s*(?P<half>[ap]\.?m\.?)?{_ZONE}",
    re.IGNORECASE,
)
_WRITTEN = re.compile(
    rf"{_LEAD}(\d{{4}}-\d\d-\d\d)[t ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s?(z\b|utc\b|gmt\b|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"\blimit reached\|(\d{10,13})\b")


class Wait(NamedTuple):
    """A wish to wait: until an instant, or for a span from now on; neither where nothing was said."""

    until_ms: int | None = None
    for_ms: int | None = None


NO_WAIT = Wait()


def wait_in(message: str, now: datetime) -> Wait:
    """Find how long a message asks to wait; the longest span, if it says several."""
    spans = [each for found in _SPAN.finditer(message) if (each := _span(found[1], found[2])) is not None]
    if spans:
        return Wait(for_ms=max(spans))
    instants = [each for found in _INSTANT.finditer(message) if (each := _instant(found, now)) is not None]
    instants += [each for found in _WRITTEN.finditer(message) if (each := _written(found, now)) is not None]
    instants += [each for epoch in _EPOCH.findall(message) if (each := until(int(epoch), now)) is not None]
    return Wait(until_ms=max(instants)) if instants else NO_WAIT


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
    """Return the next instant that some words may mean, or the last one if that is only just gone by."""
    hour, minute, half = int(found["hour"]), int(found["minute"] or 0), (found["half"] or "").lower()
    if not (found["minute"] or half) or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    zone = _zone(found["zone"])
    try:
        meant = (now.astimezone(zone) if zone else now).replace(hour=hour, minute=minute, second=0, microsecond=0)
        meant = _dated(meant, found, now) if found["month"] else _of_a_day(meant, now)
    except (ValueError, OverflowError):
        return None
    return _believed(meant, now)


def _dated(hour: datetime, found: re.Match[str], now: datetime) -> datetime:
    """Give an hour the date that is said with it; without a year it is the next of that name."""
    month = _MONTHS.index(found["month"].lower()) + 1
    meant = hour.replace(year=int(found["year"] or hour.year), month=month, day=int(found["day"]))
    return meant if found["year"] or meant > now - LATE else meant.replace(year=meant.year + 1)


def _of_a_day(hour: datetime, now: datetime) -> datetime:
    """Give an hour the first day on which it is not long gone by: yesterday's, shortly after midnight."""
    days = (hour + timedelta(days=each) for each in (-1, 0, 1))
    return next(each for each in days if each > now - LATE)


def _written(found: re.Match[str], now: datetime) -> int | None:
    """Return an instant that is written as computers do; without a zone it is local."""
    told = (found[3] or "").upper()
    try:
        meant = datetime.fromisoformat(f"{found[1]}T{found[2]}{'Z' if told in ('UTC', 'GMT') else told}")
    except ValueError:
        return None
    return _believed(meant if meant.tzinfo else meant.replace(tzinfo=now.tzinfo), now)


def _believed(meant: datetime, now: datetime) -> int | None:
    """Return an instant in milliseconds, None where it cannot be meant."""
    return int(meant.timestamp() * 1000) if now - LATE < meant <= now + MOST else None


def _zone(name: str | None) -> tzinfo | None:
    """Return a zone by its name, None for the local one and for what this machine does not know."""
    if name is None or "/" not in name:
        return UTC if name else None
    with suppress(ValueError, OSError, KeyError):
        return ZoneInfo(name)
    return None
