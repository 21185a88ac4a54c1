"""From what a YAML parser complains of to what a person has most likely done, and to the line that is to be mended.

Knows the lines of one text and the parser's words. Must never know which keys mean something.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SECOND_COLON = re.compile(r"(?P<head>[ ]*(?:- +)*[^\s:'\"\[{][^:]*: +)(?P<rest>[^\s'\"].*)$")
_NO_BLANK = re.compile(r" *(?:- +)*(?P<key>[A-Za-z_]+):(?P<value>[^\s/].*)$")
_CHECKBOX = re.compile(r"- +\[[ xX]?\] *(?P<text>.*)")
_INNER = re.compile(r"(?:- +)+(?=\S)")
_ODD_BLANK = re.compile(r" *[^\S\n\t ]")
_LONGEST = 40


class Slip(NamedTuple):
    """What is wrong, what to do about it, and where: line and column of the text, both from 0."""

    message: str
    hint: str
    line: int
    col: int


class _Complaint(NamedTuple):
    """What the parser said at which place of which text, and where what it was reading began."""

    lines: list[str]
    said: str
    line: int
    col: int
    begun: tuple[int, int] | None
    first: int

    @property
    def text(self) -> str:
        """The line that it complains of."""
        return self.lines[self.line] if self.line < len(self.lines) else ""

    def slip(self, message: str, hint: str, line: int | None = None, col: int | None = None) -> Slip:
        """Say something of its place, or of another."""
        return Slip(message, hint, self.line if line is None else line, self.col if col is None else col)


def explain(text: str, said: str, at: tuple[int, int], begun: tuple[int, int] | None, first: int) -> Slip:
    """Say what a complaint of the parser most likely comes from.

    `begun` is where what it was reading began, `first` the number that people give to the first line of the text.
    """
    complaint = _Complaint(text.split("\n"), said, *at, begun, first)
    for look in (_blanks, _tab, _checkbox, _unclosed, _colon, _after_quote, _indent, _start):
        if (found := look(complaint)) is not None:
            return found
    return complaint.slip(f"not valid YAML: {said}", "look at the indent, the quotes and the brackets here")


def _blanks(it: _Complaint) -> Slip | None:
    """Find a line that is indented with blanks that look like others and are not."""
    for number in range(min(it.line, len(it.lines) - 1), max(-1, it.line - 3), -1):
        if found := _ODD_BLANK.match(it.lines[number]):
            message = f"this line is indented with U+{ord(found[0][-1]):04X}, which only looks like a blank"
            return it.slip(message, "write plain blanks instead", number, found.end() - 1)
    return None


def _tab(it: _Complaint) -> Slip | None:
    """Find a tab where YAML has none."""
    return it.slip("a tab cannot indent or separate YAML", "use spaces") if r"'\t'" in it.said else None


def _checkbox(it: _Complaint) -> Slip | None:
    """Find an item of a checklist, as Markdown has it."""
    found = _CHECKBOX.search(it.text)
    if not found or "expected <block end>" not in it.said:
        return None
    hint = f"write `- {_short(found['text']) or 'title'}`, or the list under a heading below the front matter"
    return it.slip("a checkbox is not read in front matter", hint, col=found.start())


def _unclosed(it: _Complaint) -> Slip | None:
    """Find the bracket or the quote that is still open where the text ends, or goes on as no bracket does."""
    ends = "end>" in it.said or "end of stream" in it.said or "expected ',' or" in it.said
    if not ends or it.begun is None or "<block end>" in it.said:
        return None
    line, col = it.begun
    sign = it.lines[line][col : col + 1] if line < len(it.lines) else ""
    if sign not in ("[", "{", "'", '"'):
        return None
    closing = {"[": "]", "{": "}"}.get(sign, sign)
    message = f"not valid YAML: the {sign} that begins here is never closed"
    return it.slip(message, f"close it with {closing}", line, col)


def _colon(it: _Complaint) -> Slip | None:
    """Tell a second `: ` on one line from a line that is indented below one that has its value already."""
    if "mapping values are not allowed" not in it.said:
        return None
    found = _SECOND_COLON.match(it.text)
    if found and len(found["head"]) <= it.col:
        rest = found["rest"].replace("\\", "\\\\").replace('"', '\\"')
        head = found["head"].strip()
        whole = f'in quotes: {head} "{rest}"' if len(rest) <= _LONGEST else f"on lines of its own, below `{head} |`"
        hint = f"put a text that holds `: ` {whole}"
        return it.slip("not valid YAML: a second `: ` on one line", hint)
    above = _above(it)
    if above is None:
        return None
    number, text = above
    if bare := _NO_BLANK.match(text):
        hint = f"write `{bare['key']}: {_short(bare['value'])}`"
        return it.slip("there is no blank after this colon", hint, number, bare.end("key"))
    if ":" not in text:
        message = f"not valid YAML: `{_short(text)}` is no key with a value"
        return it.slip(message, f"write `{_short(text)}:` if it is a key, or take it out", number, _width(text))
    return _misindented(it)


def _after_quote(it: _Complaint) -> Slip | None:
    """Find text that goes on after its closing quote."""
    if "<scalar>" not in it.said or "<block end>" not in it.said or not re.search("['\"]", it.text[: it.col]):
        return None
    quote = "'" if '"' in it.text[: it.col] else '"'
    return it.slip("not valid YAML: text goes on after its closing quote", f"put all of it between {quote} and {quote}")


def _indent(it: _Complaint) -> Slip | None:
    """Find a line that begins where none above it does."""
    return _misindented(it) if "expected <block end>" in it.said else None


def _start(it: _Complaint) -> Slip | None:
    """Find signs that begin no value."""
    if "cannot start any token" in it.said:
        return it.slip(f"not valid YAML: {it.said}", "put the value in quotes")
    if "sequence entries are not allowed" in it.said:
        hint = "put each `- ` on a line of its own, or write `[one, two]`"
        return it.slip("not valid YAML: a list begins on a new line", hint)
    if "comment or a line break" in it.said:
        hint = "put the text on the lines below, indented; or take out the `|` or `>`"
        return it.slip("not valid YAML: text goes on after `|` or `>`", hint)
    if it.text.lstrip().startswith("* "):
        return it.slip("not valid YAML: `* ` begins no item here", "write `- `", col=_width(it.text))
    return None


def _misindented(it: _Complaint) -> Slip:
    """Say where a line should begin: like which of the lines above it."""
    width, dash = _width(it.text), it.text.lstrip().startswith("- ")
    message = f"not valid YAML: this line is indented wrongly, by {width}"
    columns = _columns(it.lines[: it.line])
    open_lines = {at: line for at, line, is_dash in columns if is_dash is dash and at != width}
    beside = next((line for at, line, is_dash in columns if at == width and not is_dash), None)
    if dash and beside is not None and not open_lines:
        message = "not valid YAML: `- ` begins an entry of a list here, and above it there is none"
        return Slip(message, f"begin line {beside + it.first} with `- ` too, or take this one out", it.line, width)
    below = max((each for each in open_lines if each < width), default=None)
    above = min((each for each in open_lines if each > width), default=None)
    near = [each for each in (below, above) if each is not None]
    like = ", or ".join(f"by {each} like line {open_lines[each] + it.first}" for each in near)
    return Slip(message, f"indent it {like or 'like the lines that it belongs to'}", it.line, width)


def _columns(lines: list[str]) -> list[tuple[int, int, bool]]:
    """List the columns that are open after some lines: each with the line that began it, and whether it is a dash's."""
    stack: list[tuple[int, int, bool]] = []
    for number, text in enumerate(lines):
        bare = text.strip()
        if not bare or bare.startswith("#"):
            continue
        width, dash = _width(text), _INNER.match(text.lstrip(" "))
        stack = [each for each in stack if each[0] < width or (each[0] == width and dash and not each[2])]
        if dash:
            stack.append((width, number, True))
            width += dash.end()
        if ":" in bare:
            stack.append((width, number, False))
    return stack


def _above(it: _Complaint) -> tuple[int, str] | None:
    """Return the last line above that says anything, with its number."""
    for number in range(it.line - 1, -1, -1):
        if it.lines[number].strip() and not it.lines[number].lstrip().startswith("#"):
            return number, it.lines[number]
    return None


def _width(text: str) -> int:
    """Return how many blanks a line begins with."""
    return len(text) - len(text.lstrip(" "))


def _short(text: str) -> str:
    """Shorten a piece of a line for a hint."""
    bare = text.strip()
    return bare if len(bare) <= _LONGEST else f"{bare[: _LONGEST - 3]}..."
