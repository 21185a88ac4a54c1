"""The use of a command: by its result file or its stream, and its time.

The engine's own clock stops when it hears of an end. Where it hears of that late, as after a night
in which no engine ran, the time of the command itself counts. Must never know the cost of use.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from loopr.core.model import Usage
from loopr.core.observations import StepTook
from loopr.driving.acts import Tell
from loopr.driving.agents import Heard
from loopr.driving.kit import Kit, Task
from loopr.world.launcher.words import RUN, STREAMS
from loopr.world.processes import Outcome
from loopr.world.result_file import Advice, Reported

LATE_MS = 2_000
LONG_MS = 1_000


def used_by(advice: Advice | None, heard: Heard | None, wall_ms: int) -> Usage | None:
    """Return the use of an attempt or a judge: by its result file, else its stream, else None."""
    if advice is not None and advice.usage != Reported():
        return Usage(advice.usage.tokens, advice.usage.micro_usd, wall_ms)
    return heard.usage(wall_ms) if heard is not None else None


class Span(NamedTuple):
    """Where a command wrote, when it began by the journal, and when its end is heard."""

    run: Path
    began: int | None
    heard: int


def timed(kit: Kit, task: Task, step: str, began: int) -> Iterator[Tell]:
    """Tell how long a step beside the command took, by this engine's clock; a short one costs no turn."""
    ms = kit.clock() - began
    if ms >= LONG_MS:
        yield Tell(StepTook(task.loop.id, task.attempt, step, ms))


def use_of(outcome: Outcome, advice: Advice | None, heard: Heard | None, span: Span) -> Usage | None:
    """Return the use of an attempt; None where nothing but the engine's own clock tells."""
    ms = _worked_ms(outcome, span)
    is_late = bool(ms) and span.began is not None and span.heard - span.began > ms + LATE_MS
    return used_by(advice, heard, ms) or (Usage(ms=ms) if is_late else None)


def _worked_ms(outcome: Outcome, span: Span) -> int:
    """Return how long a command ran; if its end is unknown, until it last wrote; else 0."""
    if outcome.wall_ms or span.began is None:
        return outcome.wall_ms
    signs = [span.run / name for name in (RUN, *STREAMS)]
    last = max((each.stat().st_mtime for each in signs if each.is_file()), default=0.0)
    return max(1, round(last * 1000) - span.began)
