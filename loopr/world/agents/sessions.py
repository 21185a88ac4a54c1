"""Where Codex keeps what it knows of a thread: one file, in a folder for each day.

Knows that place on disk. Must never know what is in such a file (`codex.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

TAIL_BYTES = 1 << 20
_THREAD = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{7,79}")


def read_session(environ: Mapping[str, str], thread: str, begun: datetime) -> bytes:
    """Read the end of a thread's file, nothing where there is none; it lies with the day on which it began."""
    home = environ.get("CODEX_HOME") or (f"{environ['HOME']}/.codex" if environ.get("HOME") else "")
    if not home or not _THREAD.fullmatch(thread):
        return b""
    for days in (0, 1, -1):
        day = begun + timedelta(days=days)
        folder = Path(home) / "sessions" / f"{day:%Y}" / f"{day:%m}" / f"{day:%d}"
        for path in sorted(folder.glob(f"rollout-*-{thread}.jsonl")):
            return _end_of(path)
    return b""


def _end_of(path: Path) -> bytes:
    """Read the end of a file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read()
    except OSError:
        return b""
