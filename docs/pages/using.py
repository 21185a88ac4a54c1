"""The pages on how loopr is used: the settings, the verbs, who may steer, the tools, the exit codes.

Knows where the keys, the command line, the tools and the errors stand in the code. Must never describe one of them
itself.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import click

from loopr import errors
from loopr.core.authority import ACTS
from loopr.ui import cli
from loopr.ui.mcp.tools import TOOLS, Tool
from loopr.world.settings.keys import Key, allowed
from loopr.world.settings.schema import SCHEMA
from loopr.world.settings.writing import flow
from pages.markdown import code, one_line, page, table

# --- settings -----------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Tell every key of loopr.yml."""
    plain = [(name, key) for name, key in SCHEMA.keys.items() if key.kind != "map"]
    blocks = [(name, key) for name, key in SCHEMA.keys.items() if key.kind == "map"]
    head = ("key", "holds", "default", "meaning")
    return page(
        "Settings",
        "`loopr/world/settings/schema.py`",
        "Every key of `loopr.yml`; all of them may be left out. A word in CAPITALS is a name of your own. Later wins: "
        "built in, `~/.config/loopr/loopr.yml`, `loopr.yml`, `loopr.local.yml`, variables such as "
        "`LOOPR_SCHEDULER__MAX_LOAD=2`, and `--set scheduler.max_load=2`. Maps merge, lists replace. "
        "`loopr config explain KEY` says where a value comes from, `loopr config schema` prints all this as a JSON "
        "schema for editors.",
        table(head, (_key_row(name, key) for name, key in plain)),
        *(f"## {name}\n\n{key.meaning}\n\n{table(head, _key_rows(name, key))}" for name, key in blocks),
    )


def _key_rows(path: str, key: Key) -> Iterator[Sequence[str]]:
    """List what is in a map, maps in it with all that is in them."""
    inside = dict(key.keys)
    if key.rest is not None and key.names is not None:
        inside[key.names.what.partition(" ")[0].upper()] = key.rest
    for name, each in inside.items():
        yield _key_row(f"{path}.{name}", each, _given(key, name))
        if each.kind == "map":
            yield from _key_rows(f"{path}.{name}", each)


def _given(key: Key, name: str) -> str:
    """Tell which entries a map has before anybody sets one."""
    return flow(key.default) if key.default and name not in key.keys else ""


def _key_row(path: str, key: Key, given: str = "") -> Sequence[str]:
    """Tell one key."""
    default = given or ("" if key.kind == "map" else flow(key.default))
    holds = allowed(key) + (", or null" if key.null else "")
    return code(path), holds, code(default) if default else "", key.meaning


# --- verbs --------------------------------------------------------------------------------------------------------

Verb = tuple[str, click.Command]


def existing_verbs() -> Iterator[Verb]:
    """Give every verb whose module exists."""
    context = click.Context(cli.cli)
    for name, (module, _) in cli.VERBS.items():
        command = cli.cli.get_command(context, name) if find_spec(f"loopr.ui.cli.{module}") else None
        if command is not None:
            yield name, command


def verbs_page() -> str:
    """Tell every verb with its arguments and options."""
    every = list(existing_verbs())
    leaves = [leaf for verb in every for leaf in _leaves(*verb)]
    common = set.intersection(*({_spelling(each) for each in _options(leaf)} for _, leaf in leaves))
    shared = [each for each in _options(leaves[0][1]) if _spelling(each) in common]
    return page(
        "Verbs",
        "`loopr/ui/cli/`",
        f"{one_line(cli.cli.help)} An id may be given by its last segments or by a unique beginning. stdout is data, "
        "all else goes to stderr; the [exit code](exit-codes.md) says how it went. `loopr VERB --help` tells the same.",
        f"Every verb takes:\n\n{_option_table(shared)}",
        *(_verb(name, leaf, common) for name, leaf in leaves),
    )


def _leaves(name: str, command: click.Command) -> Iterator[Verb]:
    """Give the command itself, or those of a group of commands."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for own, each in command.commands.items():
        yield from _leaves(f"{name} {own}", each)


def _verb(name: str, command: click.Command, common: set[str]) -> str:
    """Tell one verb."""
    words = [f"loopr {name}", "[OPTIONS]", *(_argument(each) for each in _arguments(command))]
    own = [each for each in _options(command) if _spelling(each) not in common]
    parts = [f"## {name}", f"```\n{' '.join(words)}\n```", *_help(command)]
    return "\n\n".join([*parts, *([_option_table(own)] if own else [])])


def _help(command: click.Command) -> Iterator[str]:
    """Give the paragraphs of a help text; one that begins with a backspace is kept as it is set."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        as_it_is = re.match(r"(\x08|\\b)\n", paragraph)
        yield f"```\n{paragraph[as_it_is.end() :]}\n```" if as_it_is else one_line(paragraph)


def _arguments(command: click.Command) -> list[click.Argument]:
    """List the arguments of a command."""
    return [each for each in command.params if isinstance(each, click.Argument)]


def _options(command: click.Command) -> list[click.Option]:
    """List the options of a command."""
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def _argument(argument: click.Argument) -> str:
    """Write an argument as a usage line has it."""
    kind = argument.type
    word = "|".join(map(str, kind.choices)) if isinstance(kind, click.Choice) else (argument.name or "").upper()
    word = argument.metavar or word + ("..." if argument.nargs != 1 else "")
    return word if argument.required else f"[{word}]"


def _spelling(option: click.Option) -> str:
    """Write an option as it is typed."""
    words = sorted([*option.opts, *option.secondary_opts], key=len)
    return ", ".join(words) + ("" if option.is_flag else f" {option.metavar or _value(option.type)}")


def _value(kind: click.ParamType) -> str:
    """Name the value of an option."""
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    return "N" if isinstance(kind, click.IntRange | click.types.IntParamType) else kind.name.upper()


def _option_table(options: Iterable[click.Option]) -> str:
    """Tell options, with their range or default where they have one."""
    return table(("option", "does"), ((code(_spelling(each)), _does(each)) for each in options))


def _does(option: click.Option) -> str:
    """Tell what an option does."""
    said = [option.help or ""]
    if isinstance(option.type, click.IntRange) and option.type.min is not None:
        said.append(f"at least {option.type.min}")
    if isinstance(option.default, str | int | float) and not isinstance(option.default, bool):
        said.append(f"default {option.default}")
    return "; ".join(said) + ("; may be repeated" if option.multiple else "")


# --- tools --------------------------------------------------------------------------------------------------------


def tools_page() -> str:
    """Tell every tool for agents with what it takes."""
    return page(
        "Tools",
        "`loopr/ui/mcp/tools.py`, `loopr/ui/questions.py` and `loopr/ui/vocabulary.py`",
        "What `loopr mcp` offers to an [agent](../guide/mcp.md). Each answers with the document that the verb of its "
        "name prints with `--json`. All are offered to everybody; what is refused, and to "
        "whom, says [who may steer](who-may-steer.md).",
        *(_tool(each) for each in TOOLS.values()),
    )


def _tool(tool: Tool) -> str:
    """Tell one tool."""
    inputs = tool.schema()["properties"]
    rows = [(code(name), _holds(inputs[name]), _needed(tool, name)) for name in tool.options]
    does = "Changes nothing." if tool.reads else ""
    head = [f"## {tool.name}", f"{tool.meaning} {does}".strip()]
    return "\n\n".join([*head, *([table(("input", "holds", "meaning"), rows)] if rows else [])])


def _needed(tool: Tool, name: str) -> str:
    """Tell what an input means, and whether it must be given."""
    return tool.options[name].meaning + ("; required" if name in tool.required else "")


def _holds(schema: Mapping[str, Any]) -> str:
    """Tell what may stand in an input."""
    if schema.get("type") == "array":
        return f"list of {_holds(schema['items'])}"
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    least = f" of at least {schema['minimum']}" if "minimum" in schema else ""
    return str(schema.get("type", "any value")) + least


# --- who may steer ------------------------------------------------------------------------------------------------


def authority_page() -> str:
    """Tell of every wish who may have it beside a person."""
    rows = [(code(name), _by_loop(name), _by_hook(name), _by_worker(name)) for name in ACTS]
    return page(
        "Who may steer",
        "`loopr/core/authority.py`",
        "What changes a workspace, and who may have it done there beside a person, who may have all of it done. "
        "[Steering](../guide/steering.md#who-may-steer) says how loopr knows who asks. A loop with the word in "
        "`types.TYPE.may` may do it to what is **below itself**, and to plans that it started. What is not named here "
        "changes nothing, and is open to all; so is every `--dry-run`. In another workspace than "
        "`LOOPR_WORKSPACE` everybody is a person.",
        "No option of the command line changes any of it. `--allow-nested`, which did, is gone: leave it out. In a "
        "repository of its own a loop needs no leave, and in this one only the settings give it.",
        table(("wish", "a loop", "a hook", "a pull worker"), rows),
    )


def _by_loop(name: str) -> str:
    """Say whether a loop may have a wish."""
    return f"with {code(f'may: [{ACTS[name].may}]')}" if ACTS[name].may else "never"


def _by_hook(name: str) -> str:
    """Say whether a hook may have a wish."""
    return "with `hooks.may_decide: true`" if ACTS[name].decides else "yes"


def _by_worker(name: str) -> str:
    """Say whether a pull worker may have a wish."""
    return "of its own lease; else as a loop" if ACTS[name].own else "as a loop"


# --- exit codes ---------------------------------------------------------------------------------------------------


def exit_codes_page() -> str:
    """Tell every exit code, and every error with its own."""
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.LooprError)]
    rows = sorted((each.exit_code, code(each.code), one_line(each.__doc__)) for each in kinds[1:])
    return page(
        "Exit codes",
        "`loopr/errors.py`",
        "What `loopr` ends with. `start`, `run` and `wait` end with how things stand: where several codes would apply,"
        " the first of 1, 5 and 4 does.",
        table(("exit", "means"), [(str(number), words) for number, words in errors.EXITS.items()]),
        "With `--json` a refusal is a document on stdout, and `error.code` in it says more:",
        table(("exit", "code", "means"), [(str(number), *more) for number, *more in rows]),
    )
