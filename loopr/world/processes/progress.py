"""The last lines of an attempt's output, for whoever watches it.

Knows how logs lie in a run folder. Must never know whose they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loopr.world.launcher import words

PEEK_BYTES = 16 << 10
NOT_TEXT = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def last_lines(folder: Path, count: int = 1) -> list[str]:
    """Return the last lines that are not blank of the output that was written to last, without control characters."""
    try:
        _, _, newest = max(_logs(folder))
        end = _end_of(newest)
    except (OSError, ValueError):  # no output, or the log is being put in order
        return []
    found: list[str] = []
    for line in reversed(end.decode("utf-8", "replace").split("\n")):
        if len(found) == count:
            break
        if text := NOT_TEXT.sub("", line.rstrip("\r").rpartition("\r")[2]).rstrip():
            found.append(text)
    return found[::-1]


def _logs(folder: Path) -> Iterator[tuple[int, int, str]]:
    """Give each log and each segment of one: when it was written to, its offset, and where it lies."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name, _, offset = entry.name.partition(".log")
            if f"{name}.log" in words.STREAMS and (not offset or offset[1:].isdigit()):
                with suppress(FileNotFoundError):  # segments come and go
                    yield entry.stat().st_mtime_ns, int(offset[1:] or 0), entry.path


def _end_of(path: str) -> bytes:
    """Return the end of a log."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 # asked for every live attempt, again and again
        file.seek(max(0, file.seek(0, os.SEEK_END) - PEEK_BYTES))
        return file.read()
