"""The command line: finds the verb, runs it, and turns an error into words and an exit code.

A verb's module is imported only when it is asked for. Knows the names of verbs and where they live. Must never know
what a verb does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from gc import freeze  # `gc` is the verb here
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

import click

from loopr import __version__
from loopr.errors import UserError
from loopr.ui.refusals import BUG, Refusal, refusal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VERBS: dict[str, tuple[str, str]] = {
    "init": ("setup", "make loopr.yml, specs/ and worktrees/ where they are missing"),
    "start": ("start", "enqueue plans, and drive the work until it has settled"),
    "goal": ("goal", "work for a goal in words until a command of yours says that it is reached"),
    "run": ("run", "drive the work without adding anything"),
    "stop": ("run", "let the engine start nothing more, and end"),
    "dispatch": ("steer", "put loops ahead of the queue, past no gate"),
    "tree": ("tree", "draw the hierarchy with what each loop waits for"),
    "ls": ("see", "list loops, one a line"),
    "status": ("status", "say what the workspace as a whole is doing"),
    "show": ("see", "tell all about one loop"),
    "why": ("see", "say why a loop does not run, its score and its story"),
    "next": ("foretell", "show the next round of launches before it is decided"),
    "logs": ("logs", "print the output of a try, also while it is written"),
    "prompt": ("prompt", "print what a loop's command is asked"),
    "diff": ("diff", "show what a loop or a plan has changed"),
    "shell": ("shell", "open a shell, or run a command, in the worktree of a loop"),
    "events": ("events", "print the journal, also as it grows"),
    "usage": ("usage", "sum up tokens, money and time"),
    "wait": ("wait", "wait until loops and convoys are done, or can get no further"),
    "pause": ("steer", "start nothing more of a loop, a project or the workspace"),
    "resume": ("steer", "let go on what was paused or cleared"),
    "cancel": ("steer", "end loops with all that is unfinished below them"),
    "retry": ("steer", "begin again what failed, was parked or cancelled"),
    "reset": ("steer", "let parked loops try again, or end the rest of a lane"),
    "clear": ("steer", "take pending loops out of the queue"),
    "approve": ("steer", "let loops land that wait for a person"),
    "reject": ("steer", "end loops that wait for a person"),
    "iterate": ("steer", "send loops that wait for a person round once more"),
    "lease": ("lease", "let a person, a script or another scheduler do loops"),
    "convoy": ("convoy", "group loops and plans, to wait for all of them together"),
    "simulate": ("simulate", "play a plan in virtual time"),
    "land": ("land", "bring a finished plan home to its branch"),
    "adopt": ("adopt", "bring a commit of yours into a plan's branch"),
    "update": ("update", "merge the base branch into a plan's, judged by land.check"),
    "gc": ("gc", "clear away what is needed no more, and say why the rest is kept"),
    "config": ("config", "show, check and explain the settings"),
    "agent": ("agent", "list and show the agent presets"),
    "set": ("config", "change a setting in loopr.yml, keeping its comments"),
    "doctor": ("doctor", "check the workspace, its journal and the machine"),
    "mcp": ("mcp", "serve an agent by the Model Context Protocol"),
    "demo": ("demo", "show the main job in a folder of its own"),
    "completion": ("completion", "print a completion script for a shell"),
    "help": ("about", "explain loopr, or one verb"),
    "version": ("about", "print the version"),
}
INTERRUPTED = 130
_TAKE_A_PLAN = ("start", "simulate")


class Verbs(click.Group):
    """The verbs, each imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs in the order in which they are met."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"loopr.ui.cli.{VERBS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_verb")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest verb for one that does not exist."""
        if args and args[0] not in VERBS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise no_verb(args[0])
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a verb without importing one, or an option."""
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(name, help=words) for name, (_, words) in VERBS.items() if name.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing one."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, words) for name, (_, words) in VERBS.items()])


def no_verb(name: str) -> UserError:
    """Say that there is no such verb, and which is the nearest one."""
    from loopr.ui.nearby import nearest_word

    near = nearest_word(name, VERBS)
    hint = f"did you mean `loopr {near}`?" if near else "`loopr help` lists them"
    return UserError(f"there is no verb {name!r}", hint=hint)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", message="loopr %(version)s")
@click.option("-C", "directory", metavar="DIR", help="work in DIR instead of here")
@click.pass_context
def cli(ctx: click.Context, directory: str | None) -> None:
    """Drive a tree of work over files: each loop runs until a check says yes."""
    ctx.obj = directory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if os.environ.get("_LOOPR_COMPLETE", "").endswith("_complete"):
        from loopr.ui.cli.completion import answer

        return answer()
    try:
        result = cli.main(given, prog_name="loopr", standalone_mode=False)
        sys.stdout.flush()  # a reader that is gone is met here, not while the interpreter ends
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as shown:
        click.echo(shown.format_message())
        return 0
    except click.ClickException as error:
        return _say(given, Refusal(UserError.code, (error.format_message(),), _usage_hint(error), UserError.exit_code))
    except BrokenPipeError:
        _close_stdout()
        return 0
    except Exception as error:
        return _refuse(given, error)


def _refuse(given: Sequence[str], error: Exception) -> int:
    """Tell what is wrong; of a bug of ours, with all that helps to find it."""
    found = refusal(error)
    if found.exit_code == BUG:
        import traceback

        traceback.print_exc()
    if isinstance(error, UserError) and len(error.problems) == 1 and error.problems[0].where and "--json" not in given:
        found = found._replace(lines=(str(error.problems[0]),), hint="")  # as an editor finds it: one line with a place
    return _say(given, found)


def _usage_hint(error: click.ClickException) -> str:
    """Say where the help is for a command line that cannot be read."""
    ctx, message = getattr(error, "ctx", None), error.format_message()
    if ctx is not None and message.startswith("Got unexpected extra argument"):
        from loopr.ui.cli.about import instead

        if hint := instead(ctx.info_name, message.partition("(")[2].removesuffix(")").partition(" ")[0]):
            return hint
    if isinstance(error, click.BadParameter) and ctx is not None and (hint := _meant(ctx, error)):
        return hint
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        return f'`{error.param.opts[0]} "..."`' + (f": {error.param.help}" if error.param.help else "")
    return f"`{ctx.command_path} --help` explains it" if ctx is not None else ""


def _meant(ctx: click.Context, error: click.BadParameter) -> str:
    """Give the likely meaning of a value that is none of those there are, or of a nameless plan."""
    from loopr.ui.nearby import nearest_word, plan_to_name

    folder = Path(ctx.params.get("directory") or ctx.obj or ".")
    if isinstance(error, click.MissingParameter):
        return plan_to_name(folder, ctx.info_name) if ctx.info_name in _TAKE_A_PLAN else ""
    param = error.param
    if param is None or not isinstance(param.type, click.Choice):
        return ""
    near = nearest_word(error.message.partition("'")[2].partition("'")[0], param.type.choices)
    before = f"{param.opts[-1]} " if isinstance(param, click.Option) else ""
    return f"did you mean {before}{near}?" if near else ""


def _say(given: Sequence[str], found: Refusal) -> int:
    """Tell what is wrong: as the one JSON document on stdout if that was asked for, else as words on stderr."""
    if "--json" in given:
        try:
            sys.stdout.write(json.dumps(found.document()) + "\n")
            sys.stdout.flush()
            return found.exit_code
        except OSError:
            _close_stdout()
    from loopr.ui.render import plain
    from loopr.ui.times import localized

    now = int(time() * 1000)
    lines = (localized(plain(line), now) for line in found.lines)
    sys.stderr.write("loopr: " + "".join(f"{line}\n" for line in lines))
    if found.hint:
        sys.stderr.write(f"  hint: {plain(found.hint)}\n")
    return found.exit_code


def _close_stdout() -> None:
    """Let nothing more be written to a reader that is gone, or to a disk that is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run() -> None:
    """Run the command line of this process."""
    sys.stdout, sys.stderr = (each or open(os.devnull, "w") for each in (sys.stdout, sys.stderr))  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name or an arrow that the terminal cannot show is no error
            stream.reconfigure(errors="replace")
    exit_code = main()
    freeze()  # nothing is walked through once more for garbage while the interpreter ends
    sys.exit(exit_code)
