"""The verb `completion`, and what its scripts ask of loopr at each TAB.

Answers at once, or with nothing: whatever is wrong, a shell is told no error. Where an id is wanted neither the verb's
module nor the settings are read. Must never write anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

from loopr.recall import read_scene
from loopr.ui import views
from loopr.ui.cli import VERBS, cli
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.completing import MOST, PLACES, Item, offers
from loopr.wiring import Workspace, wall_clock
from loopr.world.settings.keys import Key

VARIABLE = "_LOOPR_COMPLETE"
_NAMES = """after agent at attempt by depth duration durations failures feedback for forget from holder id iteration
judging landing limit limits lost onto pass project reason run seed set since status svg tail timeout type until"""
VALUED = frozenset({"-C", *(f"--{name}" for name in _NAMES.split())})
"""Options that take a value; `-n` does for `events` only."""
_GROUPS = frozenset({"lease", "convoy", "config", "agent"})
_FILES = frozenset({"start", "simulate"})
_BREAKS = ":="


class Typed(NamedTuple):
    """What stands on a command line before the word that is typed."""

    verb: str = ""
    given: tuple[str, ...] = ()
    option: str = ""  # the one whose value is typed
    folder: str = "."


def typed_before(args: Sequence[str]) -> Typed:
    """Read a command line as far as it is typed."""
    verb, given, option, folder = "", list[str](), "", "."
    for each in args:
        if option:
            folder, option = (each if option == "-C" else folder), ""
        elif each in VALUED or (each == "-n" and verb == "events"):
            option = each
        elif each.startswith("-"):
            continue
        elif not verb or verb in _GROUPS:
            verb = f"{verb} {each}".strip()
        else:
            given.append(each)
    return Typed(verb, tuple(given), option, folder)


class _Bash(BashComplete):
    """Bash takes `lane:` for a word of its own; so the line itself is read, and answers begin after such a one."""

    source_template = BashComplete.source_template.replace(
        'env COMP_WORDS="', 'env COMP_LINE="${COMP_LINE:0:$COMP_POINT}" COMP_WORDS="'
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is typed, and that one."""
        line = os.environ.get("COMP_LINE", "")
        if not line:
            return super().get_completion_args()
        words = [*split_arg_string(line), *([""] if line[-1:].isspace() else [])]
        return words[1:-1], words[-1]

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Leave out of an answer what bash takes for another word."""
        typed = self.get_completion_args()[1] if os.environ.get("COMP_LINE") else ""
        cut = max(typed.rfind(each) for each in _BREAKS) + 1
        return f"{item.type},{item.value[cut:] if item.type == 'plain' else item.value}"


class _Fish(FishComplete):
    """Fish is told a word in one line: its kind, itself and its meaning; the first comma parts."""

    source_template = FishComplete.source_template.replace("string split", "string split --max 1")


_SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": ZshComplete, "fish": _Fish}


_HELP = """\
Print a script that completes verbs, options, and the ids that a verb has something to do with.

\b
bash:  eval "$(loopr completion bash)"      in ~/.bashrc
zsh:   eval "$(loopr completion zsh)"       in ~/.zshrc, after compinit
fish:  loopr completion fish | source       in ~/.config/fish/config.fish
"""


@click.command("completion", help=_HELP)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@framed
def completion_verb(frame: Frame, shell: str) -> None:
    """Print the script of a shell."""
    asks = _asks(shell)
    script = (asks.source_template % asks.source_vars()).strip()  # `source()` would start a shell to ask its version
    if frame.as_json:
        frame.document(views.document(wall_clock(), {"shell": shell, "script": script}))
    else:
        frame.lines([script])


def _asks(shell: str) -> ShellComplete:
    """Return the protocol of a shell."""
    return _SHELLS[shell](cli, {}, "loopr", VARIABLE)


def answer() -> int:
    """Answer the script of a shell; say nothing where something is wrong."""
    try:
        asks = _asks(os.environ[VARIABLE].partition("_")[0])
        args, typed = asks.get_completion_args()
        found = _found(typed_before(args), typed)
        items = asks.get_completions(args, typed) if found is None else found
        said = "\n".join(map(asks.format_completion, items))
    except Exception:  # a person who types has not asked what is wrong
        return 1
    sys.stdout.write(f"{said}\n" if said else "")
    return 0


def _found(before: Typed, typed: str) -> list[CompletionItem[str]] | None:
    """List what may be typed, None where click knows: verbs, options and their values."""
    verb, given = before.verb, before.given
    if before.option:
        verb, given = f"{before.verb} {before.option}", given[:0]
    if before.option == "-C":
        return [CompletionItem(typed, type="dir")]
    if typed.startswith("-") or not verb:
        return None
    items = _words(before, verb, given, typed)
    if not items and before.verb in _FILES and not before.option:
        return [CompletionItem(typed, type="file")]
    return [CompletionItem(each.value, help=each.help) for each in items] if items is not None else None


def _words(before: Typed, verb: str, given: Sequence[str], typed: str) -> list[Item] | None:
    """List words of this workspace, or of loopr itself; None where a verb takes none that is known."""
    if verb == "help" and not given:
        return [Item(name, words) for name, (_, words) in VERBS.items() if name.startswith(typed)]
    if verb in ("set", "config show", "config explain") and not given:
        from loopr.world.settings.schema import SCHEMA

        return [each for each in _keys(SCHEMA) if each.value.startswith(typed)][:MOST]
    if verb not in PLACES and not verb.startswith("agent ") and verb not in _FILES:
        return None
    workspace = Workspace(Path(before.folder))
    if verb.startswith("agent "):
        return [Item(name) for name in workspace.settings.shelf.names if name.startswith(typed)]
    with workspace.journal() as journal:
        now = wall_clock()
        scene, _ = read_scene(journal, lambda records, loops: None, now)
    return offers(scene, verb, given, typed, now)


def _keys(known: Key, above: str = "") -> Iterator[Item]:
    """Give the keys of the settings with their paths."""
    for name, key in known.keys.items():
        path = f"{above}{name}"
        if key.keys:
            yield from _keys(key, f"{path}.")
        else:
            yield Item(path, key.meaning)
