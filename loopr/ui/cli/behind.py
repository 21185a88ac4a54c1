"""Leaves the work to an engine in the background, and tells of it.

Must never know what the engine does.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopr.ui.cli.frame import Frame
from loopr.ui.driving import detach


def begin_behind(frame: Frame, arguments: Sequence[str], *, stay: bool) -> int:
    """Begin an engine in the background, or leave the work to one that is there, and return its pid."""
    words = [word for each in frame.sets for word in ("--set", each)]
    pid = detach(frame.workspace, [*words, *arguments])
    frame.note(f"an engine works in the background (pid {pid}): `loopr tree`, `loopr wait`, `loopr stop`")
    holder = frame.workspace.engine()
    if stay and holder is not None and holder["pid"] == pid and not holder["stays"]:
        frame.note("it was there already, and ends when all has settled: `loopr run --stay` then stays")
    return pid
