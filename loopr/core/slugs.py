"""Ids, titles and path patterns that come from files: what is allowed, and the nearest thing that would be.

Knows characters and words only. Must never know a folder: whether a path exists is for `world/artifacts.py`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

MAX_ID_LENGTH = 63
ID_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
RESERVED = frozenset({"con", "prn", "aux", "nul"} | {f"{device}{n}" for device in ("com", "lpt") for n in range(10)})

_HASH_LENGTH = 6
_PLAIN_GAPS = frozenset("PZ")  # punctuation and spaces, like accents, may go without leaving a trace in a slug
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor moves
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]).*?(?:\x07|\x1b\\|\x9c|$)"  # window titles, links and other strings
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_INVISIBLE = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def id_problem(text: str) -> str | None:
    """Say what is wrong with an id that somebody wrote, or None if it may be used."""
    if not text:
        return "an id must not be empty"
    if len(text) > MAX_ID_LENGTH:
        return f"an id has at most {MAX_ID_LENGTH} characters, this one has {len(text)}"
    if text.casefold() in RESERVED:
        return f'"{text}" is not an id: Windows keeps that name for a device'
    if not ID_PATTERN.fullmatch(text):
        return f'"{one_line(text)}" is not an id: it takes a-z, 0-9 and -, and begins with a letter or a digit'
    return None


def slug(text: str) -> str:
    """Turn any text into a valid id; a text that is too long, or that loses letters or signs, gets a short hash."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(each for each in apart if unicodedata.category(each)[0] != "M")  # also within a word: Tür is tur
    plain = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")
    odd = any(not each.isascii() and unicodedata.category(each)[0] not in _PLAIN_GAPS for each in letters)
    if plain and not odd and len(plain) <= MAX_ID_LENGTH and plain not in RESERVED:
        return plain
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
    kept = plain[: MAX_ID_LENGTH - _HASH_LENGTH - 1].strip("-") or "x"
    return f"{kept}-{mark}"


def one_line(text: str) -> str:
    """Make a text safe as a title: one line, no terminal escapes, no control or direction-changing characters."""
    bare = _INVISIBLE.sub("", _ESCAPES.sub("", text))
    return " ".join(_CONTROL.sub(" ", bare).split())


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a misspelt one most likely meant."""
    found = get_close_matches(word[:MAX_ID_LENGTH], list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def pattern_problem(pattern: str) -> str | None:
    """Say what is wrong with a path pattern of `files`, which must stay inside the repository."""
    if not pattern.strip():
        return "a path must not be empty"
    if pattern.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:", pattern):
        return f'"{one_line(pattern)}" is not a path inside the repository'
    if ".." in re.split(r"[/\\]", pattern):
        return f'"{one_line(pattern)}" leaves the repository'
    return None
