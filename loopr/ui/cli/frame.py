"""What every verb shares: its common options, the workspace it works in, and where its output goes.

stdout is data, everything else is stderr. Must never know a single verb.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import click

from loopr.errors import UserError
from loopr.ui.damage import naming_damage
from loopr.ui.declared import naming_declared
from loopr.ui.times import read_instant
from loopr.wiring import Workspace, wall_clock

Function = TypeVar("Function", bound=Callable[..., Any])
PIPE_WIDTH = 80
UNCUT = 1_000_000
"""As many columns as nothing fills."""


def several(*names: str, **more: Any) -> Callable[[Function], Function]:
    """Make an option that may be given several times, and takes several words with commas."""

    def words(ctx: click.Context, own: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(word.strip() for each in given for word in each.split(","))

    return click.option(*names, multiple=True, callback=words, **more)


class Frame:
    """The surroundings of one verb."""

    def __init__(
        self, directory: str | None, *, as_json: bool, color: bool, at: str | None, sets: Iterable[str]
    ) -> None:
        """Take what the common options say."""
        self.directory = Path(directory or ".")
        self.as_json = as_json
        self.sets = tuple(sets)
        self.at = read_instant(at, wall_clock()) if at is not None else None
        self.terminal = sys.stdout.isatty()
        self.canvas: list[str] | None = None  # takes the lines of text, where they are not printed at once
        self.color = self.terminal and color and not os.environ.get("NO_COLOR")

    @cached_property
    def workspace(self) -> Workspace:
        """The workspace that the verb works in."""
        if not self.directory.is_dir():
            raise UserError(f"{self.directory} is not a folder", hint="name one with -C")
        return Workspace(self.directory, overrides=self.sets)

    @property
    def now(self) -> int:
        """The instant at which the verb is asked."""
        return self.at if self.at is not None else wall_clock()

    @property
    def width(self) -> int:
        """How many columns a line may have."""
        return os.get_terminal_size(sys.stdout.fileno()).columns or PIPE_WIDTH if self.terminal else PIPE_WIDTH

    @property
    def room(self) -> int:
        """How many columns a line is cut at: none is, but on a terminal."""
        return self.width if self.terminal else UNCUT

    @property
    def height(self) -> int:
        """How many lines fit on the screen."""
        return os.get_terminal_size(sys.stdout.fileno()).lines if self.terminal else 0

    def document(self, body: dict[str, Any]) -> None:
        """Print the one JSON document of a verb."""
        _print(json.dumps(body, check_circular=False) + "\n")

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines of text, or put them on the canvas."""
        if self.canvas is not None:
            self.canvas += lines
            return
        _print("".join(f"{line}\n" for line in lines))

    def note(self, text: str) -> None:
        """Tell a person something that is no data."""
        sys.stderr.write(f"{text}\n")

    def tell_doubt(self) -> None:
        """Tell a person that settings are wrong, where a verb could do without them, or that a turn held some back."""
        for keys in self.opened.in_force.held_now if self.opened is not None else ():
            from loopr.core.accepting import held_words
            from loopr.ui.render import plain

            self.note(plain(f"settings are {held_words(keys)}"))
        if self.opened is not None and self.opened.doubt:
            self.note(f"the settings are wrong, this goes by those from before:\n{self.opened.doubt}")

    @property
    def opened(self) -> Workspace | None:
        """The workspace, if the verb has come to open it."""
        found: Workspace | None = self.__dict__.get("workspace")
        return found


def _print(text: str) -> None:
    """Write to stdout; a reader that has seen enough, as `head` has, is no failure."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(0) from None


def framed(function: Function) -> Function:
    """Give a verb the options that all have; it is called with a `Frame` as its first argument."""
    return _framed(function, timed=False)


def reading(function: Function) -> Function:
    """Give a verb the options of those that only show: the common ones, and `--at`."""
    return _framed(function, timed=True)


def _framed(function: Function, *, timed: bool) -> Function:
    """Wrap a verb so that it gets its frame."""

    @click.pass_context
    def wrapped_verb(ctx: click.Context, /, **given: Any) -> Any:
        frame = Frame(
            given.pop("directory") or ctx.obj,
            as_json=given.pop("as_json"),
            color=not given.pop("no_color"),
            at=given.pop("at", None) if timed else None,
            sets=given.pop("sets"),
        )
        with naming_damage(lambda: frame.opened), naming_declared(lambda: frame.opened):
            result = function(frame, **given)
        frame.tell_doubt()
        return result

    wrapped_verb.__doc__ = function.__doc__
    wrapped_verb.__name__ = function.__name__
    wrapped: Any = wrapped_verb
    for option in reversed(_options(timed)):
        wrapped = option(wrapped)
    wrapped.__click_params__ = wrapped.__click_params__ + getattr(function, "__click_params__", [])
    result: Function = wrapped
    return result


def _options(timed: bool) -> list[Callable[[Any], Any]]:
    """List the common options in the order of the help."""
    options = [
        click.option("-C", "directory", metavar="DIR", help="work in DIR instead of here"),
        click.option("--json", "as_json", is_flag=True, help="print one JSON document"),
        click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="set a value for this run"),
        click.option("--no-color", is_flag=True, help="no colours, as with NO_COLOR"),
    ]
    if timed:
        options.append(click.option("--at", metavar="TIME", help="as it will be, or was, at an instant or +10m"))
    return options
