"""The kinds of value that a key of an artifact may hold, each read strictly and refused with its place.

Knows one value at a time. Must never know which keys there are: that is `fields.py`.
"""

from __future__ import annotations

import re
from decimal import Decimal

from loopr.core.entries import Command
from loopr.core.marked import Findings, Marked, MarkedList, MarkedMap, MarkedScalar, Pair, Position
from loopr.core.policy import MAX_OFFERED, NO_BUDGET, RESOURCE_NAME, Amounts, Budget
from loopr.core.slugs import nearest, one_line

MAX_AMOUNT = 10**15
_MICRO_DIGITS = 6
_MAX_DIGITS = 24
MAX_PRIORITY = 1000
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
CURLY = ("\u201c", "\u201d", "\u201e", "\u2018", "\u2019", "\u201a", "\u00ab", "\u00bb")
BUDGET_KEYS = ("tokens", "usd", "secs")


def read_text(findings: Findings, key: str, value: Marked) -> str | None:
    """Read a text; a number or a word such as `true` counts as it is spelt."""
    if not isinstance(value, MarkedScalar):
        findings.refuse(value.at, f"{key}: must be a text, not {kind(value)}", f"write `{key}: ...` on one line")
        return None
    if value.value is None:
        return None
    if _UNREADABLE.search(value.text):
        findings.refuse(value.at, f"{key}: has a NUL or half a character in it", "take out the escape sequence")
        return None
    return value.text.replace("\r\n", "\n").replace("\r", "\n")


def read_texts(findings: Findings, key: str, value: Marked) -> tuple[tuple[str, Position], ...]:
    """Read a list of texts, or one text, which counts as a list of one."""
    items = value.items if isinstance(value, MarkedList) else (value,)
    if isinstance(value, MarkedMap):
        findings.refuse(value.at, f"{key}: must be a list of texts, not a mapping", f"write `{key}: [one, two]`")
        return ()
    read = ((read_text(findings, key, item), item.at) for item in items)
    return tuple((text, at) for text, at in read if text is not None)


def read_command(findings: Findings, key: str, value: Marked) -> Command | None:
    """Read a command: a text for the shell, or a list that is the argument vector."""
    if isinstance(value, MarkedScalar):
        text = read_text(findings, key, value)
        if text is not None and text.startswith(CURLY):
            findings.refuse(value.at, f"{key}: begins with a curly quote, which no shell knows", "write plain quotes")
        if text is not None and not text.strip():
            findings.refuse(value.at, f"{key}: must not be empty", f"name a command, or leave `{key}` out")
        return text
    words = tuple(text for text, _ in read_texts(findings, key, value))
    if isinstance(value, MarkedList) and (not words or not words[0].strip()):
        findings.refuse(value.at, f"{key}: must name a program first", f"write `{key}: [program, argument]`")
    return words


def read_flag(findings: Findings, key: str, value: Marked) -> bool | None:
    """Read true or false."""
    if isinstance(value, MarkedScalar) and (value.value is None or isinstance(value.value, bool)):
        return value.value
    findings.refuse(value.at, f"{key}: must be true or false, not {kind(value)}", f"write `{key}: false`")
    return None


def read_priority(findings: Findings, value: Marked) -> int | None:
    """Read a whole number of at most a thousand, above or below 0."""
    if isinstance(value, MarkedScalar):
        number = value.value
        if number is None:
            return None
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if is_whole and re.fullmatch(r"[+-]?\d{1,4}", value.text) and abs(int(value.text)) <= MAX_PRIORITY:
            return int(value.text)
    message = f"priority: must be a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}, not {kind(value)}"
    findings.refuse(value.at, message, "write `priority: 10`, or leave it out for 0")
    return None


def read_resources(findings: Findings, value: Marked) -> Amounts | None:
    """Read how much is wanted of each named resource; an empty mapping says that nothing is."""
    hint = "write `resources: {NAME: 1}`, or `{}` for none"
    if isinstance(value, MarkedScalar) and value.value is None:
        return None
    if not isinstance(value, MarkedMap):
        findings.refuse(value.at, f"resources: must be a mapping of names to numbers, not {kind(value)}", hint)
        return None
    amounts: dict[str, int] = {}
    for pair in value.pairs:
        amount = _whole(pair.value)
        if not re.fullmatch(RESOURCE_NAME, pair.key):
            findings.refuse(pair.at, f'resources: "{shown(pair.key)}" is no name of a resource', hint)
        elif amount is None or not 1 <= amount <= MAX_OFFERED:
            message = f"resources.{pair.key}: must be a whole number from 1 on, not {kind(pair.value)}"
            findings.refuse(pair.value.at, message, "leave it out for none of it")
        else:
            amounts[pair.key] = amount
    return tuple(sorted(amounts.items()))


def _whole(value: Marked) -> int | None:
    """Return a whole number that is written as one, else None."""
    is_number = isinstance(value, MarkedScalar) and re.fullmatch(r"\d{1,7}", value.text)
    return int(value.text) if is_number and isinstance(value, MarkedScalar) and type(value.value) is int else None


def read_budget(findings: Findings, value: Marked) -> Budget:
    """Read a budget; money becomes whole millionths of a dollar, without ever being a float."""
    if isinstance(value, MarkedScalar) and value.value is None:
        return NO_BUDGET
    if not isinstance(value, MarkedMap):
        findings.refuse(value.at, f"budget: must be a mapping, not {kind(value)}", "write `budget: {tokens: 500000}`")
        return NO_BUDGET
    limits: dict[str, int | None] = {}
    for pair in value.pairs:
        if pair.key not in BUDGET_KEYS:
            refuse_key(findings, pair, BUDGET_KEYS)
        else:
            limits[pair.key] = _amount(findings, pair, _MICRO_DIGITS if pair.key == "usd" else 0)
    return Budget(limits.get("tokens"), limits.get("usd"), limits.get("secs"))


def _amount(findings: Findings, pair: Pair, digits: int) -> int | None:
    """Read a number of at least 0 as a whole count of its smallest unit."""
    value = pair.value
    if isinstance(value, MarkedScalar) and value.value is None:
        return None
    if isinstance(value, MarkedScalar) and isinstance(value.value, int | float) and not isinstance(value.value, bool):
        amount = _exact(value.text, digits)
        if amount is not None:
            return amount
    wanted = f"a number from 0 on, with up to {digits} decimals" if digits else "a whole number from 0 on"
    findings.refuse(value.at, f"budget.{pair.key}: must be {wanted}, not {kind(value)}", "leave it out for no limit")
    return None


def _exact(text: str, digits: int) -> int | None:
    """Return a decimal number times ten to the digits, or None if that is no whole number in range."""
    plain = text.replace("_", "")
    if len(plain) > _MAX_DIGITS or not re.fullmatch(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", plain):
        return None
    number = Decimal(plain).scaleb(digits)
    if number > MAX_AMOUNT or number != number.to_integral_value():
        return None
    return int(number)


def refuse_key(findings: Findings, pair: Pair, known: tuple[str, ...], hint: str = "") -> None:
    """Refuse an unknown key and name the nearest known one."""
    close = nearest(pair.key, known)
    hint = hint or (f'did you mean "{close}"?' if close else f"known keys: {', '.join(known)}")
    if not close and isinstance(pair.value, MarkedScalar) and pair.value.value is None:
        hint = f"between {{ and }} a comma ends a text: put that in quotes; {hint}"
    findings.refuse(pair.at, f'unknown key "{shown(pair.key)}"', hint)


def kind(value: Marked) -> str:
    """Say what a value is, for a message."""
    if isinstance(value, MarkedMap):
        return "a mapping"
    if isinstance(value, MarkedList):
        return "a list"
    return f'"{shown(value.text)}"' if value.text else "nothing"


def shown(text: str, limit: int = 60) -> str:
    """Shorten a text from a file so that a message about it stays one line."""
    line = one_line(text)
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
