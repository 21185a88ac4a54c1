"""The verb `tree`: drawn once, or again whenever something has changed, until whoever looks has seen enough (Ctrl-C).

Knows a terminal. Must never know what a tree shows, nor change anything.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from loopr.errors import NotFound, UserError
from loopr.ui.cli.frame import Frame, reading
from loopr.ui.cli.see import draw_tree
from loopr.ui.names import counted

LOOK_SECS = 0.2
TICK_SECS = 1.0


@click.command("tree")
@click.argument("loop", required=False)
@click.option("-a", "--all", "everything", is_flag=True, help="draw every loop, folding nothing")
@click.option("--depth", type=click.IntRange(0), help="draw only so many levels")
@click.option("--dot", is_flag=True, help="print every loop and need as a graph in the DOT language")
@click.option("-w", "--watch", is_flag=True, help="draw it again whenever something changes, until Ctrl-C")
@reading
def tree_verb(frame: Frame, *, watch: bool, **how: Any) -> None:
    """Draw the hierarchy, with what each loop waits for."""
    if watch:
        keep_drawing(frame, lambda: draw_tree(frame, **how))
    else:
        draw_tree(frame, **how)


def keep_drawing(frame: Frame, draw: Callable[[], None]) -> None:
    """Draw a view over and over: at once when the journal moves on, else each second."""
    if not frame.terminal or frame.as_json or frame.at is not None:
        raise UserError("--watch draws the present, on a terminal", hint="`loopr events -f` tells it line by line")
    from loopr.ui.progress import Screen  # slow to import, and most look once
    from loopr.ui.terminal import Terminal

    screen = Screen(sys.stdout.write, lambda: _size(frame), Terminal.behind_of(sys.stdout.fileno()))
    lines: list[str] = []
    try:
        while True:
            frame.canvas = lines = []
            draw()
            screen.draw(_fitting(lines, screen.room[1]))
            gc.enable()  # a verb that looks once has switched it off, and this one stays
            _wait(frame, _seq(frame))
    finally:
        screen.erase()
        screen.print(lines)
        screen.close()


def _size(frame: Frame) -> tuple[int, int]:
    """Return how many columns and lines the terminal has."""
    return frame.width, frame.height or 24


def _fitting(lines: list[str], height: int) -> list[str]:
    """Leave out the middle of what does not fit: the tree begins at the top, its sums stand at the end."""
    if len(lines) <= height:
        return lines
    end = min(3, height // 3)
    more = f"… {counted(len(lines) - height + 1, 'more line')}"
    return [*lines[: height - end - 1], more, *lines[len(lines) - end :]]


def _seq(frame: Frame) -> int:
    """Return the number of the last event, 0 where there is no journal."""
    with suppress(NotFound), frame.workspace.journal() as journal:
        return journal.last_seq()
    return 0


def _wait(frame: Frame, known: int) -> None:
    """Wait until something has happened, or for a second."""
    ends = time.monotonic() + TICK_SECS
    while time.monotonic() < ends and _seq(frame) == known:
        time.sleep(LOOK_SECS)
