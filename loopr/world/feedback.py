"""Feedback: the end of what a judge or a command said, short enough to be read again, and the mark of a failure.

Knows output as bytes. Must never know who refused what, nor when: that a failure is the same as the last one is for
core to say, by comparing signatures.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from loopr.core.outline import DIGEST_LENGTH, one_line

MAX_LINES = 200
MAX_BYTES = 16 * 1024
MAX_EARLIER = 50
SIGNATURE_LINES = 40
_LONGEST_REASON = 200  # of the one line that is left of an earlier iteration
_WINDOW = 1024 * 1024  # what can matter of output that has no end
_CUT = "[... what came before is left out ...]"

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)")
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_REDRAWN = re.compile(r"^.*\r(?!$)", re.MULTILINE)

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[AP]M)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)(?!\w))?"
_UNIT = r"(?:ns|us|µs|μs|ms|msecs?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?)"
_PERIOD = rf"\d+(?:[.,]\d+)?\s?{_UNIT}"
_DATED = rf"(?:{_DAY}\s+)?(?:\d{{1,2}}\s+{_MONTH}|{_MONTH}\s+\d{{1,2}}),?\s+(?:\d{{4}}\s+)?{_CLOCK}{_ZONE}"
_IN_UNITS = r"(?:[_ ]?(?:ms|us|ns|s|secs?|seconds?))?"
_NAMED = rf"(?i:\b(?:duration|elapsed|time){_IN_UNITS}\b['\"]?\s?[:=]?\s*)"
_CHANGING = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d_\d\d_\d\d_\d+Z"), "<time>"),  # the log that npm names
    (re.compile(rf"{_NAMED}\d+(?:[.,:]\d+)*\b"), "<duration>"),
    (re.compile(r"(?i:\bseed)(?:[ =:]+)\d+\b"), "<seed>"),
    (re.compile(r"(?<=\bthread ')([^']*)' \(\d+\)"), r"\1' <thread>"),
    (re.compile(r"(?<![\w/.])/(?:var/)?tmp/[\w.-]+(?:/pytest-\d+)?"), "<temporary>"),
    (re.compile(rf"{_DATED}(?:\s\d{{4}})?(?!\w)"), "<time>"),
    (re.compile(rf"(?<![\w.-])\d{{4}}[-/]\d\d[-/]\d\d(?:[T ]{_CLOCK}{_ZONE})?(?![\w-])"), "<time>"),
    (re.compile(rf"(?<![\w:.]){_CLOCK}{_ZONE}(?![\w:])"), "<time>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<hex>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<hex>"),
    (re.compile(r"\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{7,}\b|\b\d{10,}\b"), "<hex>"),
    (re.compile(rf"(?<![\w.]){_PERIOD}(?:\s?{_PERIOD})*(?![\w-])"), "<duration>"),
)


class Earlier(NamedTuple):
    """What is left of an earlier iteration: its number, and why it was refused."""

    iteration: int
    reason: str


def bounded(raw: bytes) -> str:
    """Return the end of an output: at most 200 lines and 16 KiB, as plain text, with the cut marked."""
    text, cut = _plain(raw)
    lines = text.split("\n")
    kept = lines[-MAX_LINES:]
    cut = cut or len(kept) < len(lines)
    room = MAX_BYTES - len(_CUT) - 1
    tail = "\n".join(kept).encode()
    if len(tail) > MAX_BYTES or (cut and len(tail) > room):
        cut = True
        tail = tail[-room:]
        after = tail.find(b"\n") + 1
        if 0 < after < len(tail):  # else it is one endless line, of which the end is better than nothing
            tail = tail[after:]
    said = tail.decode("utf-8", "ignore")
    return "\n".join([_CUT, *said.split("\n")[-MAX_LINES + 1 :]]) if cut else said


def _plain(raw: bytes) -> tuple[str, bool]:
    """Turn output into text: what a terminal was told to draw over is gone; tell whether the beginning is missing."""
    window = raw[-_WINDOW:]
    text = window.decode("utf-8", "replace").replace("\r\n", "\n")
    text = _UNSEEN.sub("", _REDRAWN.sub("", _ESCAPES.sub("", text)).replace("\r", ""))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n"), len(window) < len(raw)


def render_feedback(refused: str, earlier: Sequence[Earlier] = ()) -> str:
    """Write the feedback for the next iteration: what refused the last one, and a line for each before.

    Of more than `MAX_EARLIER` the last are told, and how many there were.
    """
    told = earlier[-MAX_EARLIER:]
    before = [f"- iteration {each.iteration}: {_short(each.reason)}" for each in told]
    parts = [refused.strip("\n")] if refused.strip() else []
    if before:
        more = f" (the last {len(told)} of {told[-1].iteration} iterations)" if len(told) < len(earlier) else ""
        parts.append("\n".join([f"Refused before that{more}:", "", *before]))
    return "\n\n".join(parts) + "\n" if parts else ""


def _short(reason: str) -> str:
    """Make one line of a reason."""
    line = one_line(reason) or "refused"
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 1]}…"


def signature(exit_code: int | None, output: bytes, worktree: Path) -> str:
    """Return the mark of a failure, equal for two that differ in parts that each run has anew.

    These are times, durations, seeds, long hex, the worktree and temporary folders.
    """
    text, _ = _plain(output)
    for name in sorted({str(worktree), os.path.realpath(worktree)}, key=len, reverse=True):
        text = re.sub(rf"{re.escape(name)}(?![\w.-])", "<worktree>", text)
    lines = [_settled(line) for line in text.split("\n") if line.strip()][-SIGNATURE_LINES:]
    return hashlib.sha256("\n".join([str(exit_code), *lines]).encode()).hexdigest()[:DIGEST_LENGTH]


def plain(raw: bytes) -> str:
    """Return the end of an output, at most 1 MiB of it, as a terminal would show it."""
    return _plain(raw)[0]


def is_silent(output: bytes) -> bool:
    """Say whether an output has no words at all."""
    return not plain(output).strip()


def _settled(line: str) -> str:
    """Replace what differs from one run to the next."""
    for pattern, word in _CHANGING:
        line = pattern.sub(word, line)
    return line
