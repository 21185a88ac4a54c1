"""The lines that files of runners such as make have a command run: those behind `make test`.

Knows how make and just write rules and variables, and package.json its scripts. Must never run one,
nor know which files there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from loopr.core.entries import Command

RUNNERS = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "cargo": ("Cargo.toml",),
}
"""The file that a program goes by where none is named: the first that is there."""

NAMES_ONE = re.compile(
    r"-[CfF].*"
    r"|--(?:file|makefile|directory|prefix|dir|cwd|justfile|manifest-path)(?:=.*)?"
)
Read = Callable[[str], str]

_MOST_BYTES, _MOST_TIMES, _LONGEST, _LONGEST_VALUE = 1_000_000, 5, 2_000, 500
_CALL = re.compile(
    r"(?:^|[;&|(\n`])\s*(?:[A-Za-z_]\w*=\S*\s+)*(?:[\w./-]*/)?"
    rf"(?P<program>{'|'.join(RUNNERS)})(?![\w./-])"
    r"(?P<words>(?:[ \t]+[^\s;&|()<>`]+)*)"
)
_GOES = re.compile(r"\b(?:cd|pushd)\s")
_SET = re.compile(r"(?:(?:export|override)\s+)?(?P<name>[\w.-]+)\s*(?:[?+!]|:{0,3})=(?P<value>.*)")
_RULE = re.compile(r"(?P<names>[^\s#:][^:#]*?)\s*::?(?!=)(?P<needs>[^;#]*)(?:;(?P<text>.*))?")
_USE = re.compile(r"\$[({](\w+)[)}]|\{\{\s*(\w+)\s*\}\}")
_RUNS = frozenset({"run", "run-script"})
_HERE = {"CURDIR": ".", "PWD": "."}
_PROGRAM = re.compile(r"(?<![\w/.$~-])(?:\./)*((?:[\w.-]+/)+bin/[\w.+-]+)")
_MAKES_ONE = re.compile(
    r"-m\s*(?:venv|virtualenv)\b|\bvirtualenv\b"
    r"|\buv\s+(?:venv|sync|run)\b|\bpoetry\s+install\b"
)
_ASKS_FIRST = re.compile(
    r"\|\||\bif\b|\[ |\btest\s+-|\$\((?:wildcard|shell)\b"
    r"|\bwhich\b|\bcommand\s+-v"
)
"""Words of a line that looks whether a program is there, or does without it."""


class Line(NamedTuple):
    """A line of a runner's file, with its variables put in."""

    file: str
    number: int
    text: str


class _Rules(NamedTuple):
    """The needs and the lines of each rule of a runner's file, and the names of rules in order."""

    needs: dict[str, list[str]]
    lines: dict[str, list[Line]]
    names: list[str]


def reader(folder: Path) -> Read:
    """Return the reader of files in a folder; one that is not there has no text."""

    def read(name: str) -> str:
        path = folder / name
        try:
            fits = path.is_file() and path.stat().st_size <= _MOST_BYTES
            return path.read_text("utf-8", errors="replace") if fits else ""
        except OSError:
            return ""

    return read


def lines_behind(command: Command | None, read: Read) -> list[Line]:
    """List the lines that a runner's file at the top has a command run."""
    text, found = text_of(command), dict[Line, None]()
    if goes_elsewhere(text):
        return []
    for call in _CALL.finditer(text):
        words = [each.strip("'\"") for each in call["words"].split()]
        if not any(map(NAMES_ONE.fullmatch, words)):
            goals = [each for each in words if _is_goal(each)]
            found.update(dict.fromkeys(_behind(RUNNERS[call["program"]], goals, read)))
    return list(found)


def _is_goal(word: str) -> bool:
    """Say whether a word after a runner names a rule: it is no option, no variable, and no verb."""
    return not word.startswith("-") and "=" not in word and word not in _RUNS


def goes_elsewhere(text: str) -> bool:
    """Say whether a text for the shell goes to another folder."""
    return _GOES.search(text) is not None


def texts_of(commands: Iterable[Command | None], read: Read) -> list[str]:
    """List commands as texts, along with the lines that runners' files have them run."""
    found = dict[str, None]()
    for each in commands:
        lines = lines_behind(each, read)
        found.update(dict.fromkeys([text_of(each), *(line.text for line in lines)]))
    return list(filter(None, found))


def programs_of(lines: Iterable[Line]) -> dict[str, Line]:
    """Map the paths of programs in folders called bin to the first line that counts on each."""
    found: dict[str, Line] = {}
    for line in lines:
        for path in _PROGRAM.findall(line.text) if not _ASKS_FIRST.search(line.text) else ():
            found.setdefault(path, line)
    return found


def makes_environment(texts: Iterable[str]) -> bool:
    """Say whether one of some texts makes a virtual environment by itself."""
    return any(map(_MAKES_ONE.search, texts))


def text_of(command: Command | None) -> str:
    """Return a command as one text: the one for the shell, or its words."""
    if isinstance(command, str) or not command:
        return str(command or "")
    shell = command[0].rpartition("/")[2] in ("sh", "bash") and command[1:2] == ("-c",)
    return command[2] if shell and len(command) > 2 else " ".join(command)


def _behind(names: Sequence[str], goals: Sequence[str], read: Read) -> Iterator[Line]:
    """Give the lines of the first file that is there which some goals lead to."""
    for name in names:
        text = read(name)
        if text and name == "package.json":
            yield from _scripts(name, text, goals)
        elif text:
            rules = _rules(name, text)
            yield from _reached(rules, goals or rules.names[:1])
        if text:
            return


def _scripts(file: str, text: str, goals: Sequence[str]) -> Iterator[Line]:
    """Give the lines of a package.json that hold the scripts of some names."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith(tuple(f'"{each}":' for each in goals)):
            yield Line(file, number, line.strip())


def _reached(rules: _Rules, goals: Iterable[str]) -> Iterator[Line]:
    """Give the lines of rules, each behind those that it needs."""
    waiting, seen = [*goals][::-1], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield from rules.lines.get(name, ())
            waiting += rules.needs.get(name, [])[::-1]


def _rules(file: str, text: str) -> _Rules:
    """Read the rules of a runner's file, their variables put in."""
    rows = [(number, row[:_LONGEST]) for number, row in enumerate(text.splitlines(), 1)]
    sets = [found for _, row in rows if (found := _SET.fullmatch(row.rstrip()))]
    bare = {each["name"]: each["value"].strip().strip("'\"") for each in sets}
    values = _HERE | {name: value[:_LONGEST_VALUE] for name, value in bare.items()}
    rules, names = _Rules({}, {}, []), list[str]()
    for number, row in rows:
        if row[:1].isspace():
            for each in names:
                rules.lines[each] += _lines(file, number, _put_in(row, values))
        elif row and not _SET.fullmatch(row.rstrip()):
            found = _RULE.match(row)
            parts = found.groups("") if found else ("", "", "")
            head, needs, inline = (_put_in(each, values) for each in parts)
            names = [each.lstrip("@") for each in head.split()]
            rules.names.extend(each for each in names if not each.startswith("."))
            for each in names:
                rules.needs.setdefault(each, []).extend(needs.split())
                rules.lines.setdefault(each, []).extend(_lines(file, number, inline))
    return rules


def _lines(file: str, number: int, text: str) -> list[Line]:
    """Make a line of a recipe without the marks before it; none of a comment."""
    bare = text.strip().lstrip("@-+ ")
    return [Line(file, number, bare)] if bare and not bare.startswith("#") else []


def _put_in(text: str, values: Mapping[str, str]) -> str:
    """Put the values of variables into a text, as far as it is long; an unknown one stays."""
    for _ in range(_MOST_TIMES):
        before, text = text, text[:_LONGEST]
        text = _USE.sub(lambda found: values.get(found[1] or found[2], found[0]), text)[:_LONGEST]
        if text == before:
            break
    return text
