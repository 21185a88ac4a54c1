"""The last lines of an attempt's output, for whoever watches it.

Knows how logs lie in a run folder. Must never know whose they are.
"""

from __future__ import annotations

import re
from pathlib import Path

from loopr.world.launcher import log, words

PEEK_BYTES = 16 << 10
NOT_TEXT = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def last_lines(folder: Path, count: int = 1) -> list[str]:
    """Return the last lines that are not blank of the output that was written to last, without control characters."""
    newest: tuple[int, bytes] = (-1, b"")
    for name in words.STREAMS:
        try:
            newest = max(newest, _end_of(folder / name))
        except OSError:  # no output, or the log is being put in order
            continue
    text = newest[1].decode("utf-8", "replace")
    lines = (NOT_TEXT.sub("", line.rstrip("\r").rpartition("\r")[2]).rstrip() for line in text.split("\n"))
    return [line for line in lines if line][-count:]


def _end_of(path: Path) -> tuple[int, bytes]:
    """Return when a log was written to, and its end."""
    offsets = log.segments(str(path))
    newest = path.with_name(f"{path.name}.{offsets[-1]}") if offsets else path
    with newest.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - PEEK_BYTES))
        return newest.stat().st_mtime_ns, file.read()
