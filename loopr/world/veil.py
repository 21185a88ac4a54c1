"""Hides keys in what a command has printed, before any of it is passed on: to a prompt, a journal, a page, a chat.

Knows which variables hold keys, by their names, and which part of an address is one. Must never know what the words
are for. The log itself stays as it is.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote

_WORDS = re.compile(
    r"(?:^|[_\d])(?:KEY|TOKEN|SECRET|PASSWORD|PASS|PAT|AUTH|CREDENTIAL)S?(?=$|[_\d])"
    r"|(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?$",
    re.IGNORECASE,
)
_PASSWORDS = re.compile(r"\w://[^/\s:@]*:([^@/\s]+)@")
_PATH = ("/", "./", "../", "~/")
_PLAIN = re.compile(r"[A-Za-z]+|\d{1,12}")
SHORTEST = 8
"""What is shorter is no key, and would stand in many words."""
HIDDEN = "***"


def names_key(name: str) -> bool:
    """Say whether a variable holds a key, by its name: API_KEY_V2 and GH_PAT do, PATH and AUTHOR do not."""
    return _WORDS.search(name) is not None


def key_variables(environ: Mapping[str, str]) -> list[str]:
    """Name the variables that hold a key, or an address with a password."""
    return sorted(name for name, value in environ.items() if any(_keys(name, value)))


class Veil:
    """Hides the keys of some environments."""

    def __init__(self, *environs: Mapping[str, str], is_public: Callable[[str], bool] = lambda key: False) -> None:
        """Take the keys out of environments; what `is_public` knows stays, for everybody may read it."""
        each = ((name, value) for environ in environs for name, value in environ.items())
        found = dict.fromkeys(key for name, value in each for key in _keys(name, value))
        self._keys = sorted(found, key=len, reverse=True)
        self._is_public = is_public
        self._public: dict[str, bool] = {}

    def over(self, text: str) -> str:
        """Hide every key in a text, and the beginning of one with which a text ends that was cut."""
        for key in self._keys:
            if key in text and not self._stays(key):
                text = text.replace(key, _hidden(key))
        return self._end(text) if self._keys else text

    def over_bytes(self, raw: bytes) -> bytes:
        """Hide every key in an output."""
        for key in self._keys:
            sought = key.encode("utf-8", "surrogateescape")
            if sought in raw and not self._stays(key):
                raw = raw.replace(sought, _hidden(key).encode())
        return raw

    def held_back(self, raw: bytes) -> int:
        """Return how many bytes at the end of an output may be the beginning of a key."""
        every = (key.encode("utf-8", "surrogateescape") for key in self._keys)
        lengths = ((key, min(len(key) - 1, len(raw))) for key in every)
        return max(
            (size for key, most in lengths for size in range(most, 0, -1) if raw.endswith(key[:size])),
            default=0,
        )

    def _stays(self, key: str) -> bool:
        """Say whether a key is none, because everybody may read it; asked once of each that was printed."""
        if key not in self._public:
            self._public[key] = self._is_public(key)
        return self._public[key]

    def _end(self, text: str) -> str:
        """Hide what may be the beginning of a key at the end of a text."""
        words = text.removesuffix("…")
        for key in self._keys:
            for length in range(min(len(key) - 1, len(words)), SHORTEST - 1, -1):
                if words.endswith(key[:length]) and not self._stays(key):
                    return f"{words[:-length]}{HIDDEN}{text[len(words) :]}"
        return text


def _keys(name: str, value: str) -> Iterator[str]:
    """Give what of a variable is to be hidden: all of it, or the passwords of the addresses in it."""
    if names_key(name) and not value.startswith(_PATH):
        for part in (value, *value.splitlines()):
            if _is_key(part):
                yield part
                yield b64encode(part.encode("utf-8", "surrogateescape")).decode()[: len(part) * 4 // 3]
    for password in _PASSWORDS.findall(value):
        yield f":{password}@"
        yield from (each for each in (password, unquote(password)) if _is_key(each))


def _is_key(text: str) -> bool:
    """Say whether a text may be a key: it is long enough, and neither a plain word nor a number."""
    return len(text) >= SHORTEST and _PLAIN.fullmatch(text) is None


def _hidden(key: str) -> str:
    """Return what stands in the place of a key."""
    return f":{HIDDEN}@" if key.startswith(":") and key.endswith("@") else HIDDEN
