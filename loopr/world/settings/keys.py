"""The shape of one settings key, as data, and the words that say what it may hold.

Knows kinds, ranges and names. Must never know a file, a layer or which keys there are: those are in `schema.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from loopr.core.wording import PLACEHOLDERS

CEILING = 1_000_000_000_000  # no number in the settings is larger, so that milliseconds and micro-dollars fit 64 bits

Command = str | tuple[str, ...]
NO_CHECK = "none"
"""The bare word for a check: nothing judges, by decision. `[none]` is a program."""


_BRACED = tuple(f"{{{each}}}" for each in PLACEHOLDERS)


class Names(NamedTuple):
    """What the entries of an open map may be called."""

    what: str
    pattern: str
    spell: Callable[[str], str] = str.lower  # how a part of a variable's name becomes an entry's name


class Key(NamedTuple):
    """One key of loopr.yml: its kind, its range, its default and what it means."""

    kind: str
    meaning: str
    default: Any = None
    null: bool = False
    least: float | None = None
    above: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    says: str = ""
    keys: Mapping[str, Key] = {}
    names: Names | None = None
    rest: Key | None = None
    short: str = ""  # which of its keys is meant by a value that is no map
    secret: bool = False  # its values are shown to whoever asks for them, and never in a message

    def child(self, name: str) -> Key | None:
        """Return the key called `name` in this map: a fixed one, else the one that every other entry has."""
        return self.keys.get(name) or self.rest


def whole(default: int | None, meaning: str, least: float = 1, most: float | None = None, says: str = "") -> Key:
    """Describe a whole number; no default means that null is allowed."""
    return Key("whole", meaning, default, default is None, least=least, most=most, says=says)


def number(default: float | None, meaning: str, least: float | None = 0, most: float | None = None) -> Key:
    """Describe a number that may have a fraction; no default means that null is allowed."""
    return Key("number", meaning, default, default is None, least=least, most=most)


def positive(default: float | None, meaning: str, most: float | None = None) -> Key:
    """Describe a number above zero; no default means that null is allowed."""
    return Key("number", meaning, default, default is None, above=0, most=most)


def flag(default: bool, meaning: str) -> Key:
    """Describe a key that is true or false."""
    return Key("flag", meaning, default)


def text(default: str | None, meaning: str, pattern: str = r"[\s\S]+", says: str = "text") -> Key:
    """Describe a text that is not empty; no default means that null is allowed."""
    return Key("text", meaning, default, default is None, pattern=pattern, says=says)


def choice(meaning: str, *choices: str) -> Key:
    """Describe a text that is one of a few; the first is the default."""
    return Key("text", meaning, choices[0], choices=choices, says=" or ".join(choices))


def command(meaning: str) -> Key:
    """Describe a command, which may be left out: a list is an argument vector, a text goes to a shell."""
    return Key("command", meaning, None, null=True, says="a command: text for sh, or a list of arguments")


def texts(
    meaning: str, says: str, pattern: str = r"[\s\S]+", default: tuple[str, ...] = (), *, secret: bool = False
) -> Key:
    """Describe a list of texts, empty by default."""
    return Key("texts", meaning, default, pattern=pattern, says=says, secret=secret)


def template(default: str, meaning: str) -> Key:
    """Describe a text with placeholders in braces."""
    return Key("template", meaning, default, says="text with placeholders: " + ", ".join(_BRACED))


def trailers(meaning: str) -> Key:
    """Describe lines that end a commit message."""
    return Key("trailers", meaning, (), says='a map of names to texts, or a list of "Name: text"')


def block(meaning: str, /, **keys: Key) -> Key:
    """Describe a map with fixed keys."""
    return Key("map", meaning, {}, keys=keys, says="a map of keys")


def table(meaning: str, names: Names, rest: Key, default: Mapping[str, Any] | None = None, /, **keys: Key) -> Key:
    """Describe a map whose entries the user names, beside a few fixed keys."""
    says = f"a map with one entry per {names.what}"
    return Key("map", meaning, default or {}, keys=keys, names=names, rest=rest, says=says)


def allowed(key: Key) -> str:
    """Say in words what a key may hold, null left aside."""
    if key.says:
        return key.says
    if key.kind == "flag":
        return "true or false"
    noun = "a whole number" if key.kind == "whole" else "a number"
    if key.above is not None:
        return f"{noun} above {plain_number(key.above)}" + (
            f" and at most {plain_number(key.most)}" if key.most is not None else ""
        )
    if key.most is not None and key.least is not None:
        return f"{noun} from {plain_number(key.least)} to {plain_number(key.most)}"
    return f"{noun} of at least {plain_number(key.least)}" if key.least is not None else noun


def plain_number(value: float) -> str:
    """Write a number without an exponent where it is whole."""
    return str(int(value)) if value == int(value) else str(value)


def shown(value: Any) -> str:
    """Write a value for a message: short, and safe to send to a terminal."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, (list, tuple)):
        return "a list"
    return f'"{visible(value)}"' if isinstance(value, str) else visible(str(value))


def visible(words: str, limit: int = 60) -> str:
    """Cut a long text and escape what a terminal would obey."""
    cut = words if len(words) <= limit else words[: limit - 3] + "..."
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in cut)
