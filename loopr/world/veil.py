"""Hides keys in what a command has printed, before any of it is passed on: to a prompt, a journal, a page, a chat.

Knows which variables hold keys, by their names. Must never know what the words are for. The log itself stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAMES = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?$", re.IGNORECASE)
SHORTEST = 8
"""What is shorter is no key, and would stand in many words."""
HIDDEN = "***"


class Veil:
    """Hides the keys of one environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take the keys out of an environment; a path is none, though what lies there may be."""
        values = [value for name, value in environ.items() if _NAMES.search(name) and not value.startswith("/")]
        parts = {part for value in values for part in (value, *value.splitlines()) if len(part) >= SHORTEST}
        self._keys = sorted(parts, key=len, reverse=True)

    def over(self, text: str) -> str:
        """Hide every key in a text, and the beginning of one with which a text ends that was cut."""
        for key in self._keys:
            text = text.replace(key, HIDDEN)
        return self._end(text) if self._keys else text

    def over_bytes(self, raw: bytes) -> bytes:
        """Hide every key in an output."""
        for key in self._keys:
            raw = raw.replace(key.encode("utf-8", "surrogateescape"), HIDDEN.encode())
        return raw

    def _end(self, text: str) -> str:
        """Hide what may be the beginning of a key at the end of a text."""
        words = text.removesuffix("…")
        for key in self._keys:
            for length in range(min(len(key) - 1, len(words)), SHORTEST - 1, -1):
                if words.endswith(key[:length]):
                    return f"{words[:-length]}{HIDDEN}{text[len(words) :]}"
        return text
