"""The files that a command writes by its own words: `> F`, `cp a F`, `sed -i ... F`, `make F`.

Must never know which files there are, nor what becomes of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loopr.world.judges import Command, begun_in, below, without_documents

_WRITTEN = re.compile(r"(?<![<>])&?\d*>>?\s*(?P<path>[^\s;&|<>()'\"]+)")
_GOES = re.compile(r"\b(?:cd|pushd)\s")
_TO_LAST = re.compile(r"(?:/(?:usr/)?bin/)?(?:cp|mv|install|ln|sed|perl)")
_IN_PLACE = re.compile(r"-[A-Za-z]*i.*|--in-place(?:=.*)?")
_OPERANDS = ("tee", "touch", "make", "gmake", "ninja")  # a goal of make is a file that it makes
_HERE = (".",)


def written_by(run: Command | None) -> frozenset[str]:
    """Return the files that a command writes by its own words, none where it goes elsewhere."""
    text = run if isinstance(run, str) else " ".join(run or ())
    if _GOES.search(text):
        return frozenset()
    plain = without_documents(run) if isinstance(run, str) else ""
    led = [found["path"] for found in _WRITTEN.finditer(plain)]
    commands = [words for words, _ in begun_in(plain)] if plain else [run or ()]
    told = [each for words in commands if words for each in _by_words(words)]
    return frozenset(path for each in (*led, *told) for path in below(_HERE, each))


def _by_words(words: Sequence[str]) -> Iterator[str]:
    """Give the files that one simple command is told to write."""
    operands = [each for each in words[1:] if not each.startswith("-")]
    if words[0].rpartition("/")[2] in _OPERANDS:
        written = operands
    elif _TO_LAST.fullmatch(words[0]):
        edits = words[0].endswith(("sed", "perl"))
        is_told = not edits or any(map(_IN_PLACE.fullmatch, words[1:]))
        written = operands[-1:] if is_told else []
    else:
        written = [to for at, to in zip(words, words[1:], strict=False) if at in ("-o", "--output")]
        written += [each.partition("=")[2] for each in words if each.startswith("--output=")]
    yield from written
