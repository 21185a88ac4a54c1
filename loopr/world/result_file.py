"""The advice that a command may leave in its result file: what came of it, in its own words, and what it used.

Knows the form of that file, and that whoever wrote it may be anybody. Must never know what follows from it, except
that nothing in it can make an outcome better.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from loopr.core.model import Failure
from loopr.core.outline import one_line

SCHEMA = 1
MAX_BYTES = 64 * 1024
_LONGEST_MESSAGE = 2_000
_MOST = 10**15
_MICRO = 1_000_000
_MS_PER_SEC = 1_000
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")
_STATUSES: Mapping[str, Failure | None] = {
    "done": None,
    "refused": Failure.REFUSED,
    "limited": Failure.LIMITED,
    "config": Failure.CONFIG,
    "blocked": Failure.BLOCKED,
}
_OWN_WORDS = tuple(_STATUSES.values())  # from the mildest to the strictest; the rest was seen from outside


class Reported(NamedTuple):
    """What a command says it has used; None where it did not say. Cached input is not part of the input."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    micro_usd: int | None = None

    @property
    def tokens(self) -> int | None:
        """All tokens together, None if none were named."""
        named = [each for each in self[:3] if each is not None]
        return sum(named) if named else None


class Advice(NamedTuple):
    """What a result file says; `failure` is None for "done"."""

    failure: Failure | None
    message: str = ""
    usage: Reported = Reported()
    retry_after_ms: int | None = None
    resets_at_ms: int | None = None


class _Malformed(ValueError):
    """The file is not as it should be; says why."""


def read_advice(path: Path) -> tuple[Advice | None, str]:
    """Read a result file: its advice, or none and the reason why it is ignored; no file is no advice and no reason."""
    try:
        raw = _read(path)
        return (None, "") if raw is None else (_advice(raw), "")
    except _Malformed as error:
        return None, f"the result file is ignored: {error}"
    except OSError as error:
        return None, f"the result file is ignored: it cannot be read: {error.strerror or error}"


def stricter(seen: Failure | None, advice: Advice | None) -> Failure | None:
    """Return what became of an attempt: what its end says, or what the advice says if that is stricter."""
    if advice is None or seen not in _OWN_WORDS:
        return seen
    return max(seen, advice.failure, key=_OWN_WORDS.index)


def _read(path: Path) -> bytes | None:
    """Read an ordinary file of a modest size, and nothing through a link."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _Malformed("it is not a regular file") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise _Malformed("it is not a regular file")
        raw = os.read(file, MAX_BYTES + 1)
    finally:
        os.close(file)
    if len(raw) > MAX_BYTES:
        raise _Malformed(f"it is larger than {MAX_BYTES // 1024} KiB")
    return raw


def _advice(raw: bytes) -> Advice:
    """Read the advice, strictly: whoever writes half of it may have meant anything."""
    top = _object(_json(raw), "it", ("schema", "status", "message", "usage", "retry_after_secs", "resets_at"))
    if type(top.get("schema")) is not int or top["schema"] != SCHEMA:
        raise _Malformed(f"schema must be {SCHEMA}")
    status = top.get("status")
    if not isinstance(status, str) or status not in _STATUSES:
        raise _Malformed(f"status must be one of {', '.join(_STATUSES)}")
    message = top.get("message")
    if message is not None and not isinstance(message, str):
        raise _Malformed("message must be a text")
    return Advice(
        _STATUSES[status],
        one_line(message or "")[:_LONGEST_MESSAGE],
        _usage(top.get("usage")),
        _amount(top, "retry_after_secs", _MS_PER_SEC),
        _instant(top.get("resets_at")),
    )


def _json(raw: bytes) -> Any:
    """Parse JSON without its usual leniency."""
    try:
        return json.loads(raw.decode("utf-8"), parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=_pairs)
    except _Malformed:
        raise
    except (ValueError, RecursionError, ArithmeticError):
        raise _Malformed("it is not JSON in UTF-8") from None


def _refuse(word: str) -> NoReturn:
    """Refuse what JSON does not have."""
    raise _Malformed(f"{word} is not JSON")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object in which no key comes twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Malformed("a key is there twice")
    return found


def _object(value: Any, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return an object that has no keys but these."""
    if not isinstance(value, dict):
        raise _Malformed(f"{name} must be an object")
    for key in value:
        if key not in keys:
            raise _Malformed(f'{name} has an unknown key "{one_line(key)[:60]}"')
    return value


def _usage(value: Any) -> Reported:
    """Read what was used."""
    if value is None:
        return Reported()
    usage = _object(value, "usage", (*_TOKENS, "cost_usd"))
    tokens = {name: _amount(usage, name, 1) for name in _TOKENS}
    return Reported(**tokens, micro_usd=_amount(usage, "cost_usd", _MICRO))


def _amount(values: Mapping[str, Any], key: str, scale: int) -> int | None:
    """Read a number from 0 on as a whole count of its smallest unit, rounded up; tokens must be whole."""
    value = values.get(key)
    if value is None:
        return None
    fits = type(value) is int or (scale > 1 and isinstance(value, Decimal))
    if not fits or not 0 <= value <= _MOST:
        raise _Malformed(f"{key} must be a {'whole ' if scale == 1 else ''}number from 0 on")
    whole: int = math.ceil(value * scale)
    return whole


def _instant(value: Any) -> int | None:
    """Read an instant in RFC 3339 with its zone."""
    if value is None:
        return None
    try:
        instant = datetime.fromisoformat(value)
        if instant.tzinfo is None or "T" not in value.upper():
            raise ValueError(value)
        return int(instant.timestamp() * _MS_PER_SEC)
    except (TypeError, ValueError, OverflowError):
        raise _Malformed('resets_at must be an instant such as "2027-01-15T08:00:00Z"') from None
