"""A person's word on a file that may not be theirs: asked for on a terminal, with no as the default.

Knows a terminal. Must never know what the word is on; `--yes` is none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from loopr.ui import render
from loopr.ui.cli.frame import Frame


def word_of(frame: Frame) -> Callable[[str], bool]:
    """Return what asks the person at the terminal; without one the answer is no."""

    def ask(text: str) -> bool:
        if not sys.stdin.isatty():
            return False
        head, *lines = render.plain(text, keep_lines=True).split("\n")
        for line in (head, *(f"  {each}" for each in lines)):
            frame.note(line)
        return click.confirm("Is it yours, and to be taken?", default=False, err=True)

    return ask
