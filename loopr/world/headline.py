"""The headline of a refusal: the one line of a long output that says why.

Knows how test runners and compilers word a failure, and which lines say nothing of it. Must never
know who said no, nor that another try comes.

A runner's own words about its first failing test come first, then a compiler's first error, then
the last line that tells a failure, then the last line that is no warning and no cleaning up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Lines = Sequence[str]
Found = list[str]
"""The failing tests of one runner, each with its reason as far as it is told."""

_WIDEST = 500  # of a line that is looked at: what is longer is data
_WINDOW = 128 * 1024  # of the end of an output
_MOST_TOLD = 20
_NEAR = 40  # lines in which the reason of a failing test is looked for

_NOISE = re.compile(
    r"""\W*(?:(?i:warn)|npm\ (?:warn|notice|http|verb|info))\b   # warnings by their beginning
    | (?i:\W*warning\b) | [^:]*:\d+(?::\d+)?:\ warning: | .*\b[A-Z]\w*Warning\b
    | \(Use\ `node\ --trace | Node\.js\ v\d | \s+at\s.*[:(] | \s*\W+$
    | (?:g?make)(?:\[\d+\])?:\ (?:\*\*\*\ .*\bError\ \d+|Entering|Leaving|Target)
    | npm\ (?:error|ERR!) | \ ?ELIFECYCLE\b | error\ Command\ failed\ with\ exit\ code
    | error:\ (?:could\ not\ compile|test\ failed,\ to\ rerun|Recipe\ .*\ failed)
    | For\ more\ information\ about\ this\ error | note:\ | \[\d+\]$
    | (?i:\W*(?:destroying|removing|cleaning|clearing|stopping|tearing)\b.*)
    """,
    re.VERBOSE,
)
_OF_NPM = re.compile(r"npm (?:error|ERR!) (?P<words>\S.*)")
_LITTLE_OF_NPM = re.compile(
    r"(?:code|errno|syscall|path|command|cwd|workspace|location|Lifecycle|Exit|A complete log)\b"
)
_PASSED = re.compile(r"\s*(?:ok\b|✓|✔|√|PASS\b|--- PASS)|.*\bPASSED\b")
_FAILURE = re.compile(
    r"""(?i:\W*(?:[^\s:]+:\s+){0,2}(?:fatal|error|panic|failed|failure|fail|aborted)\b\s*[:!\[(])
    | (?:.*[\s.:])?(?:[A-Z]\w*)?(?:Error|Exception|Failure)(?:\s\[\w+\])?:\s
    | \W*(?:FAILED|FAIL|ERROR|FATAL|not\ ok)\b
    | (?:.*[\s(])?[1-9]\d*\s(?:tests?\s)?(?:failed|failing|failures?|errors?|problems?)\b
    """,
    re.VERBOSE,
)
_AT_PLACE = re.compile(r"\S[^:(]*(?::\d+(?::\d+)?:|\(\d+,\d+\):) (?:fatal )?error\b")
_POINTED_AT = re.compile(r"\s*--> (?P<place>\S+:\d+:\d+)$")
_IN_A_TABLE = re.compile(r"\s+(?P<place>\d+:\d+)\s+error\s+(?P<words>\S.*)")
_GO_PLACE = re.compile(r"\S+\.go:\d+(?::\d+)?: \S")
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):")


class Headline(NamedTuple):
    """The line that says why, and how many more tests have failed beside the one that it names."""

    line: str
    more: int = 0

    def within(self, room: int) -> str:
        """Word it in at most so many characters; the count is never what is cut."""
        count = f"more than {_MOST_TOLD}" if self.more > _MOST_TOLD else str(self.more)
        tail = f" (and {count} more)" if self.more else ""
        left = room - len(tail)
        return (self.line if len(self.line) <= left else f"{self.line[: left - 1]}…") + tail


def headline(text: str) -> Headline:
    """Find the line of an output that tells best why it was a no."""
    lines = [line[:_WIDEST].rstrip() for line in text[-_WINDOW:].split("\n") if line.strip()]
    for failing in _RUNNERS:
        found = failing(lines)
        if found:
            return Headline(_one(found[0]), len(found) - 1)
    return Headline(_one(_broken(lines) or _telling(lines)))


def _one(line: str) -> str:
    """Write the blanks of a line as single ones."""
    return " ".join(line.split())


def _with(name: str, reason: str) -> str:
    """Add the reason to the name of a test, if there is one."""
    return f"{name}: {reason}" if reason else name


# --- runners: the names of failing tests -----------------------------------------------------------


def _of_pytest(lines: Lines) -> Found:
    """Read the short summary of pytest; a name without its reason gets the first that is told."""
    start = _after(lines, re.compile(r"=+ short test summary info =+$"))
    found = [line for line in lines[start:] if re.match(r"(?:FAILED|ERROR) \S", line)] if start else []
    if found and " - " not in found[0]:
        told = (match[1] for line in lines if (match := re.match(r"E   +(\S.*)", line)))
        found[0] = _with(found[0], next(told, ""))
    return found


def _of_unittest(lines: Lines) -> Found:
    """Read the blocks of unittest, which Django's runner prints too."""
    found = []
    for at, line in enumerate(lines):
        match = re.match(r"(?P<how>FAIL|ERROR): (?P<name>\S+)(?: \((?P<where>.*?)\))?", line)
        if match is None or not at or not re.match(r"={70}$", lines[at - 1]):
            continue
        where = match["where"] or ""
        full = where if where.endswith(match["name"]) else f"{where}.{match['name']}".lstrip(".")
        found.append(_with(f"{match['how']} {full}", _end_of_traceback(lines, at)))
    return found


def _end_of_traceback(lines: Lines, start: int) -> str:
    """Return the line with the exception of the first traceback from a line on."""
    began = False
    for line in lines[start : start + _NEAR]:
        if began and not line.startswith((" ", "\t")):
            return line
        began = began or _TRACEBACK.match(line) is not None
    return ""


def _of_mocha(lines: Lines) -> Found:
    """Read the list of failures below `N failing`: the parts of a title, the last with a colon."""
    start = _after(lines, re.compile(r"\s+\d+ failing$"))
    found = []
    for at in range(start, len(lines)) if start else ():
        match = re.match(r"\s+\d+\) (?P<title>\S.*)", lines[at])
        if match is not None:
            end = next((n for n in range(at, min(at + 12, len(lines))) if lines[n].endswith(":")), at)
            title = " ".join([match["title"], *(line.strip() for line in lines[at + 1 : end + 1])])
            found.append(_with(title.rstrip(":"), _reason(lines, end + 1)))
    return found


def _of_jest(lines: Lines) -> Found:
    """Read what follows the bullets of jest, with expected and received where it tells them."""
    found: Found = []
    for at, line in enumerate(lines):
        match = re.match(r"\s*● (?P<name>(?!Console$|Deprecation|Multiple configs).+)", line)
        if match is None:
            continue
        block = []
        for each in lines[at + 1 : at + _NEAR]:
            if re.match(r"\s*(?:●|at |FAIL |>? *\d+ \|)", each):
                break
            block.append(each.strip())
        compared = [each for each in block if re.match(r"(?:Expected|Received)\b.*: ", each)]
        reason = ", ".join(compared) or (block[0] if block else "")
        found.append(_with(match["name"], reason))
    ran = any(re.match(r"Tests: |Test Suites: ", line) for line in lines)
    return [*dict.fromkeys(found)] if ran else []  # of many suites it tells the failures twice


def _of_vitest(lines: Lines) -> Found:
    """Read the list of failed tests of vitest."""
    start = _after(lines, re.compile(r"\W*Failed (?:Tests|Suites) \d+\W*$"))
    if not start:
        return []
    names = [at for at in range(start, len(lines)) if re.match(r"\s*FAIL\s+\S", lines[at])]
    return [_with(lines[at].split(maxsplit=1)[1], _reason(lines, at + 1)) for at in names]


def _of_node(lines: Lines) -> Found:
    """Read the list that node's own runner ends with for people."""
    start = _after(lines, re.compile(r"✖ failing tests:$"))
    found = []
    for at in range(start, len(lines)) if start else ():
        match = re.match(r"✖ (?P<name>.*?)(?: \([\d.]+ms\))?(?P<todo> # (?:TO[D]O|SKIP).*)?$", lines[at])
        if match is not None and not match["todo"]:
            found.append(_with(match["name"], _reason(lines, at + 1)))
    return found


def _of_tap(lines: Lines) -> Found:
    """Read TAP: of tests that lie in others those that failed themselves; what is to do is no failure."""
    leaves: Found = []
    open_at: list[int] = []  # how far those in are whose parent has not come yet
    if not any(re.match(r"TAP version|\d+\.\.\d+", line) for line in lines):
        return []
    for at, line in enumerate(lines):
        match = re.match(r"(?P<in>\s*)(?P<no>not )?ok \d+(?: -)?(?: (?P<name>.*))?$", line)
        if match is None:
            continue
        depth, inner = len(match["in"]), [each for each in open_at if each > len(match["in"])]
        open_at = [each for each in open_at if each <= depth]
        if match["no"] and not inner and not re.search(r"# (?:TO[D]O|SKIP)\b", match["name"] or "", re.I):
            leaves.append(_with(f"not ok {match['name'] or ''}".strip(), _reason_in_tap(lines, at + 1)))
            open_at.append(depth)
        elif match["no"] and inner:
            open_at.append(depth)
    return leaves


def _reason_in_tap(lines: Lines, start: int) -> str:
    """Return the message of a test in TAP: a key of its YAML, or the line below it."""
    if start >= len(lines) or not re.match(r"\s", lines[start]):
        return ""
    if lines[start].strip() != "---":
        return _reason(lines, start)
    for at in range(start + 1, min(start + 30, len(lines))):
        match = re.match(r"\s+(?:error|message): (?P<words>.*)", lines[at])
        if match is not None:
            block = re.match(r"[|>]", match["words"])
            return _reason(lines, at + 1) if block else match["words"].strip("'\"")
        if lines[at].strip() == "...":
            break
    return ""


def _of_go(lines: Lines) -> Found:
    """Read the failing tests of go, those inside others instead of them; else why it did not build."""
    if any("[build failed]" in line or "[setup failed]" in line for line in lines):
        return [line for line in lines if _GO_PLACE.match(line)]
    found = {}
    for at, line in enumerate(lines):
        match = re.match(r"\s*--- FAIL: (?P<name>\S+)", line)
        if match is not None:
            near = [*lines[at + 1 : at + 2], *reversed(lines[max(at - 2, 0) : at])]
            told = (each.strip() for each in near if _GO_PLACE.match(each.strip()))
            found[match["name"]] = next(told, "")
    outer = {name.rpartition("/")[0] for name in found}
    return [_with(name, reason) for name, reason in found.items() if name not in outer]


def _of_cargo(lines: Lines) -> Found:
    """Read the failing tests of cargo, with what each panicked with."""
    names = (re.match(r"test (?P<name>\S+).* \.\.\. FAILED$", line) for line in lines)
    found = []
    for name in [match["name"] for match in names if match is not None][: _MOST_TOLD + 2]:
        at = _after(lines, re.compile(rf"thread '{re.escape(name)}'.* panicked at "))
        found.append(_with(name, lines[at].strip() if 0 < at < len(lines) else ""))
    return found


_RUNNERS: tuple[Callable[[Lines], Found], ...] = (
    *(_of_pytest, _of_unittest, _of_mocha, _of_jest, _of_vitest, _of_node, _of_go, _of_cargo),
    _of_tap,
)


def _after(lines: Lines, mark: re.Pattern[str]) -> int:
    """Return the place after the last line that matches, 0 where none does."""
    return next((at for at in range(len(lines), 0, -1) if mark.match(lines[at - 1])), 0)


def _reason(lines: Lines, start: int) -> str:
    """Return the first words from a line on; where they end with a colon, the next line too."""
    told = [line.strip() for line in lines[start : start + 2]]
    return " ".join(told if told and told[0].endswith(":") else told[:1])


# --- everything else -------------------------------------------------------------------------------


def _broken(lines: Lines) -> str:
    """Return the first error of a compiler or a linter, with its place; nothing where there is none."""
    for at, line in enumerate(lines):
        if _AT_PLACE.match(line):
            return line
        pointed = _POINTED_AT.match(lines[at + 1]) if at + 1 < len(lines) else None
        if pointed is not None and not _NOISE.match(line):
            return f"{line.strip()} ({pointed['place']})"
        row = _IN_A_TABLE.match(line)
        if row is not None:
            file = next((each for each in reversed(lines[:at]) if not each[0].isspace()), "")
            return f"{file}:{row['place']} {row['words']}"
    return ""


def _telling(lines: Lines) -> str:
    """Return the last line that tells a failure, else the last that is no noise, else what there is."""
    quiet = [(at, line) for at, line in enumerate(lines) if not _NOISE.match(line)]
    ends = set(_ends_of_tracebacks(lines))
    for at, line in reversed(quiet):
        if at in ends or (_FAILURE.match(line) and not _PASSED.match(line)):
            return line.strip("= ")
    if quiet:
        return quiet[-1][1]
    of_npm = [match["words"] for line in lines if (match := _OF_NPM.match(line))]
    useful = [words for words in of_npm if not _LITTLE_OF_NPM.match(words)]
    return next(iter([*useful, *of_npm, *reversed(lines)]), "")


def _ends_of_tracebacks(lines: Lines) -> Iterator[int]:
    """List which lines name the exception of a traceback of Python."""
    began = False
    for at, line in enumerate(lines):
        if began and not line.startswith((" ", "\t")):
            yield at
            began = False
        began = began or _TRACEBACK.match(line) is not None
