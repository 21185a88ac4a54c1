"""Brackets in the words of an item that look as if they were read, `(needs x)` or `[approve]`, and are not.

Knows words. Must never know a file, nor who approves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopr.core.slugs import one_line

_NEEDS = re.compile(
    r"\s*(?P<mark>[(\[]\s*(?:needs|depends[ _-]on|blocked[ _-]by)\b\s*:?\s*(?P<needs>[^()\[\]]*[^()\[\]\s])\s*[)\]])",
    re.I,
)
_AFTER = re.compile(r"(?P<mark>[(\[]\s*(?:after|requires)\b\s*:?\s*(?P<needs>[^()\[\]]*[^()\[\]\s])\s*[)\]])", re.I)
_APPROVE = re.compile(r"\s*(?P<mark>[(\[](?:needs\s+)?(?:approve|approval)[)\]])", re.I)


def unread_brackets(words: str, type_name: str) -> Iterator[tuple[str, str]]:
    """Give each bracket that is not read, and how to say what it is likely to mean."""
    for found in _APPROVE.finditer(words):
        yield (
            one_line(found["mark"]),
            f"`types.{type_name}.approve: true` in loopr.yml lets a person have the last word",
        )
    rest = _APPROVE.sub("", words)
    for found in (*_NEEDS.finditer(rest), *_AFTER.finditer(rest)):
        yield one_line(found["mark"]), f"write `- Needs: {one_line(found['needs'])}` below it"


def without_brackets(title: str) -> str:
    """Return a title as its id is made of it: without needless brackets, if anything is left."""
    return _NEEDS.sub("", _APPROVE.sub("", title)).strip() or title
