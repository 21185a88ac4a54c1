"""What loopr says of itself: `help` and `version`, and what is meant where a verb is given more than it takes.

Knows the verbs by name. Must never know a workspace.
"""

from __future__ import annotations

import click

from loopr import __version__
from loopr.errors import UserError
from loopr.ui import views
from loopr.ui.cli import VERBS, cli, no_verb
from loopr.ui.cli.frame import Frame, framed
from loopr.wiring import wall_clock

_INSTEAD = {
    "status": "`loopr status` is about the whole workspace: `loopr tree {0}` or `loopr show {0}` is about one of it",
    "next": "`loopr next` is about the whole workspace: `loopr why {0}` says why one loop waits",
    "run": "`loopr run` drives all that is there: `loopr start PLAN` adds a plan, `loopr dispatch {0}` puts one first",
    "stop": "`loopr stop` ends the engine: `loopr pause {0}` or `loopr cancel {0}` holds or ends one loop",
    "usage": "`loopr usage --by loop` has all of them, `loopr show {0}` one",
    "doctor": "`loopr doctor` looks at the whole workspace: `loopr why {0}` is about one loop",
    "init": "`loopr -C {0} init` makes a workspace there",
    "version": "`loopr help {0}` explains a verb",
}


@click.command("help")
@click.argument("words", metavar="[VERB...]", nargs=-1)
@framed
def help_verb(frame: Frame, words: tuple[str, ...]) -> None:
    """Explain loopr, or one verb of it, as `--help` does."""
    command, ctx = _command(words)
    text = command.get_help(ctx)
    if frame.as_json:
        frame.document(views.document(wall_clock(), {"verb": " ".join(words), "help": text}))
    else:
        frame.lines([text])


def _command(words: tuple[str, ...]) -> tuple[click.Command, click.Context]:
    """Find a verb, or a part of one, with the context in which it is explained."""
    command: click.Command = cli
    ctx = click.Context(cli, info_name="loopr", **cli.context_settings)
    for place, word in enumerate(words):
        found = command.get_command(ctx, word) if isinstance(command, click.Group) else None
        if found is None and place == 0:
            raise no_verb(word)
        if found is None:
            above = " ".join(words[:place])
            raise UserError(f"`loopr {above}` has no part called {word!r}", hint=f"`loopr help {above}` explains it")
        command, ctx = found, click.Context(found, info_name=word, parent=ctx)
    return command, ctx


@click.command("version")
@framed
def version_verb(frame: Frame) -> None:
    """Print the version, as `--version` does."""
    if frame.as_json:
        frame.document(views.document(wall_clock(), {"version": __version__}))
    else:
        frame.lines([f"loopr {__version__}"])


def instead(verb: str, argument: str) -> str:
    """Say what may be meant by a verb with one argument more than it takes; nothing where that is anybody's guess."""
    return _INSTEAD[verb].format(argument) if verb in _INSTEAD and argument not in VERBS else ""
