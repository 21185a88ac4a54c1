"""Plain values -> YAML text that reads back as the same values.

Knows YAML. Must never know keys or files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from loopr.world.settings.keys import plain_number
from loopr.world.settings.reading import resolve

_PLAIN = r"[A-Za-z0-9_./+][A-Za-z0-9_./~*+=@%-]*(?: [A-Za-z0-9_./~*+=@%-]+)*"
_SIMPLE = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_SHORT = 100


def flow(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(str(name))}: {flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(each) for each in value) + "]"
    if isinstance(value, str):
        return _text(value)
    return _number(value)


def block(values: Mapping[str, Any], indent: str = "") -> str:
    """Write a map over several lines; short maps without maps in them stay on one."""
    return "".join(f"{line}\n" for line in _lines(values, indent))


def _lines(values: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Write a map line by line."""
    for name, value in values.items():
        head = f"{indent}{flow(str(name))}:"
        line = f"{head} {flow(value)}"
        nested = isinstance(value, Mapping) and any(isinstance(each, Mapping) and each for each in value.values())
        if isinstance(value, Mapping) and value and (nested or len(line) > _SHORT):
            yield head
            yield from _lines(value, indent + "  ")
        else:
            yield line


def _number(value: Any) -> str:
    """Write null, a flag or a number."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return plain_number(value) if isinstance(value, int) else str(value)


def _text(value: str) -> str:
    """Write a text without quotes where it would be read back as the same text, else in double quotes."""
    if re.fullmatch(_PLAIN, value) and resolve(value) == value:
        return value
    return quoted(value, '"')


def _escaped(each: str) -> str:
    """Write one character within double quotes."""
    if each in _SIMPLE:
        return _SIMPLE[each]
    if each.isprintable():
        return each
    code = ord(each)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def quoted(value: str, quote: str) -> str:
    """Write a text in the quotes that are asked for."""
    if quote == "'":
        return "'" + value.replace("'", "''") + "'"
    return '"' + "".join(_escaped(each) for each in value) + '"'
