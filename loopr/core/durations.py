"""How long things take in a simulation and what goes wrong by chance: from what a person wrote, and from a hash.

Knows texts such as `30s..90s` and how to draw a number from them. Must never know a loop, a clock or a file's place.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from loopr.core.marked import Findings, Position
from loopr.core.slugs import id_problem, nearest
from loopr.core.values import shown
from loopr.errors import UserError

ALL = 1 << 64
"""A draw is a whole number from 0 up to this one, itself excluded."""

LONGEST_MS = 366 * 86_400_000
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)")
_PARTS = re.compile(rf"(?:{_PART.pattern})+")
_SECONDS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(%?)")
_HINT = "write 90s, 1m30s, 30s..90s (anything between) or ~60s (60s on average, now and then much more)"


class Spread(NamedTuple):
    """How long something takes: anything from `low` to `high`, both included; with a `tail`, `low` on average."""

    low: int
    high: int
    tail: bool = False

    def ms(self, drawn: int) -> int:
        """Return the duration that a draw stands for, in whole milliseconds."""
        if not self.tail:
            return self.low + (drawn * (self.high - self.low + 1) >> 64)
        # -log2 of the draw, as straight lines between the powers of two: 1.5 on average, and exact in whole numbers
        zeros = 64 - drawn.bit_length()
        scaled = (zeros << 63) + ALL - (drawn << zeros) if drawn else 65 << 63
        return (2 * scaled * self.low + (3 << 62)) // (3 << 63)


def constant(ms: int) -> Spread:
    """Return a duration that is always the same."""
    return Spread(ms, ms)


def draw(seed: int, loop_id: str, attempt: int, what: str) -> int:
    """Draw a number for one question about one attempt: the same question always gets the same answer."""
    digest = hashlib.sha256(f"{seed}/{loop_id}#{attempt}/{what}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def happens(rate: Fraction, drawn: int) -> bool:
    """Say whether something that happens at a rate happens in this draw."""
    return drawn * rate.denominator < rate.numerator * ALL


# --- what a person wrote ------------------------------------------------------------------------------------------


def read_spread(text: str, what: str = "duration") -> Spread:
    """Read a duration such as `90s`, `1m30s`, `30s..90s` or `~60s`; a bare number is seconds."""
    try:
        return _spread(text)
    except ValueError as error:
        raise UserError(f"{what}: {error}", hint=_HINT) from None


def _spread(text: str) -> Spread:
    """Read a duration, or raise a ValueError that says what is wrong."""
    words = text.strip()
    if words.startswith("~"):
        mean = _ms(words[1:], text)
        return Spread(mean, mean, tail=True)
    first, dots, last = words.partition("..")
    low = _ms(first, text)
    high = _ms(last, text) if dots else low
    if high < low:
        raise ValueError(f'"{shown(text)}" ends before it begins')
    return Spread(low, high)


def _ms(part: str, whole: str) -> int:
    """Read one span of time into whole milliseconds, half up."""
    part = part.strip()
    if _SECONDS.fullmatch(part):
        part += "s"
    if not _PARTS.fullmatch(part):
        raise ValueError(f'"{shown(whole)}" is not a duration')
    exact = sum((Fraction(amount) * _UNIT_MS[unit] for amount, unit in _PART.findall(part)), Fraction(0))
    if exact > LONGEST_MS:
        raise ValueError(f'"{shown(whole)}" is longer than a year')
    return int(exact + Fraction(1, 2))


def read_rate(text: str, what: str) -> Fraction:
    """Read how often something happens: `0.1` or `10%`."""
    found = _RATE.fullmatch(text.strip())
    rate = Fraction(found[1]) / (100 if found[2] else 1) if found else Fraction(2)
    if rate > 1:
        raise UserError(f'{what}: "{shown(text)}" is not a rate', hint="write a number from 0 to 1, or 10%")
    return rate


def read_type_durations(words: Iterable[str], types: Collection[str]) -> dict[str, Spread]:
    """Read `code=30s..90s` for one type or `5m` for all of them; later words win."""
    found: dict[str, Spread] = {}
    for word in words:
        name, equals, text = word.rpartition("=")
        if equals and name not in types:
            close = nearest(name, types)
            hint = f'did you mean "{close}"?' if close else f"there are {', '.join(types)}"
            raise UserError(f'duration: there is no type "{shown(name)}"', hint=hint)
        spread = read_spread(text, f"duration of {name}" if equals else "duration")
        found.update(dict.fromkeys([name] if equals else types, spread))
    return found


def read_durations(text: str, source: str) -> dict[str, Spread]:
    """Read a file of durations by loop: lines `id,duration`, or one JSON object; raise with all that is wrong in it."""
    findings = Findings(source)
    text = text.removeprefix("\ufeff")
    rows = _json_rows(findings, text) if text.lstrip().startswith("{") else _line_rows(findings, text)
    found: dict[str, Spread] = {}
    for loop_id, words, at in rows:
        if any(map(id_problem, loop_id.split("/"))):
            findings.refuse(at, f'"{shown(loop_id)}" is not the id of a loop', "write the whole of it: oauth/tokens")
        elif loop_id in found:
            findings.refuse(at, f"{loop_id} is here twice", "take one of the two out")
        else:
            found[loop_id] = _found(findings, words, at)
    findings.raise_if_any()
    return found


def _found(findings: Findings, words: str, at: Position) -> Spread:
    """Read one duration of a file, or note what is wrong with it."""
    try:
        return _spread(words)
    except ValueError as error:
        findings.refuse(at, str(error), _HINT)
        return constant(0)


def _line_rows(findings: Findings, text: str) -> Iterator[tuple[str, str, Position]]:
    """Read lines of two columns; a heading, empty lines and those that begin with # say nothing."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        columns = [each.strip().strip('"').strip() for each in line.split(",")]
        if len(columns) != 2:
            findings.refuse(Position(number, 1), "a line is an id, a comma and a duration", "such as `oauth/tokens,5m`")
        elif number > 1 or columns[0].casefold() not in ("loop", "id"):
            yield columns[0], columns[1], Position(number, 1)


def _json_rows(findings: Findings, text: str) -> Iterator[tuple[str, str, Position]]:
    """Read an object from ids to durations, keeping keys that are there twice."""
    try:
        pairs = json.loads(text, object_pairs_hook=list, parse_float=str, parse_int=str, parse_constant=str)
    except json.JSONDecodeError as error:
        findings.refuse(Position(error.lineno, error.colno), f"is not JSON: {error.msg}", "check it with a JSON editor")
        return
    except RecursionError:
        findings.refuse(Position(1, 1), "is nested too deeply", "write one object from ids to durations")
        return
    for key, value in pairs:
        at = _place(text, json.dumps(key, ensure_ascii=False))
        if isinstance(value, str):
            yield key, value, at
        else:
            findings.refuse(at, f"{shown(key)}: must be a duration", _HINT)


def _place(text: str, word: str) -> Position:
    """Return where a word first stands in a text; its beginning if it is spelt otherwise there."""
    index = max(0, text.find(word))
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))
