"""Which files commands begin for certain, before anything else of them can have made one.

Knows commands and the programs that run a file. Must never know which files there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loopr.core.entries import Command
from loopr.world.judges import begun_in, below, without_documents
from loopr.world.recipes import NAMES_ONE, RUNNERS

_LEADS_ELSEWHERE = re.compile(r"\d*(?:[<>]&[\d-]+|&?>>?\s*/dev/\w+)")
_WRITES = re.compile(r"&?\d*>>?\s*[^\s;&|<>()'\"]+")
_FILES = re.compile(r"&?\d*(?:>>?|<)\s*[^\s;&|<>()'\"]+")
_MAKES_NOTHING = frozenset(("cd", "set", "export", "umask", "ulimit", "trap", "echo", "true", ":"))
_RUN_FILES = {
    re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*"): re.compile(r"-[uBsSEIOqvbdix]+"),
    re.compile(r"(?:.*/)?(?:sh|dash|bash|zsh|ksh)"): re.compile(r"-[euxvfanm]+"),
    re.compile(r"(?:.*/)?(?:node|ruby|perl)"): re.compile(r"-[wT]+"),
}
"""The programs that run the file they are given, with the options that change nothing in that."""

_MAY_BRING = re.compile(
    r"\|\||\b(?:install|add|sync|activate|PATH|if|alias|function|command|which|type|hash|eval|exec|ssh|case)\b|\(\)"
)
"""Words in a text that may bring a program, or keep it from being begun."""

_PLAIN = re.compile(r"[A-Za-z][\w.+-]*")
_PATTERN = re.compile(r"[`{*?\[]")


def scripts_in(command: Command | None) -> Iterator[str]:
    """Give the paths by which a command begins programs, as they are from the top."""
    for words, folder in _begun(command):
        if "/" in words[0]:
            yield from _path(words[0], folder)


def run_files_in(command: Command | None) -> Iterator[str]:
    """Give the files with an ending that a command has interpreters run, from the top."""
    for words, folder in _begun(command):
        options = (each for program, each in _RUN_FILES.items() if program.fullmatch(words[0]))
        if (option := next(options, None)) is not None:
            word = next((each for each in words[1:] if not option.fullmatch(each)), "")
            yield from _path(word, folder) if "." in word.rpartition("/")[2] else ()


def recipes_in(command: Command | None) -> Iterator[tuple[str, ...]]:
    """Give the files of which one must be at the top for a program that a command runs there."""
    for words, folder in _begun(command):
        names = RUNNERS.get(words[0].rpartition("/")[2], ())
        if names and folder == "." and not any(map(NAMES_ONE.fullmatch, words[1:])):
            yield names


def programs_in(text: str) -> Iterator[str]:
    """Give the programs that a text for the shell begins by name; none if it may bring one."""
    if _MAY_BRING.search(text):
        return
    plain = _LEADS_ELSEWHERE.sub(" ", without_documents(text))
    for words, _ in begun_in(_FILES.sub(" ", plain)):
        if words and _PLAIN.fullmatch(words[0]):
            yield words[0]


def _path(word: str, folder: str) -> Sequence[str]:
    """Return the path of a word in a folder; nothing if that is outside, or a pattern."""
    return [each for each in below((folder,), word) if not _PATTERN.search(each)]


def _begun(command: Command | None) -> Iterator[tuple[list[str], str]]:
    """Give the words of each command that runs before anything else has, and the folder it is in.

    A command that follows another is left out, since that one may make a file, or decide that
    nothing more runs; so is one after which something else is done where it fails.
    """
    if not isinstance(command, str):
        yield from [([*command], ".")] if command else []
        return
    plain = _LEADS_ELSEWHERE.sub(" ", without_documents(command))
    writes, folder = _WRITES.search(plain) is not None, "."
    for words, end in begun_in(_WRITES.sub(" ", plain)):
        if words[:1] == ["cd"]:
            folder = "".join(_path(words[1], folder)) if len(words) == 2 else ""
        elif words and "||" not in end:
            yield words, folder
        goes_on = not words or words[0] in _MAKES_NOTHING or end == "|"
        if not goes_on or writes or not folder or any(each in end for each in ("||", ")", "`")):
            return
