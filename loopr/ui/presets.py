"""Agent presets as rows: what there is, what each consists of, and whether its program is on this machine.

Knows presets and the search path. Must never start a program, nor know a terminal.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from loopr.core.entries import Command
from loopr.errors import SettingsError
from loopr.world.environment import reads_prompt_file
from loopr.world.place import Place
from loopr.world.settings import Settings
from loopr.world.settings.presets import Preset, mentions

Row = dict[str, Any]
_SHORT = ("name", "about", "program", "shell", "lanes", "types", "from", "problem")
_PLAIN = re.compile(r"[\w./+:,@%-]+")
_OF_THE_SHELL = re.compile(r"[.:]|case|cd|command|eval|exec|export|for|if|set|test|time|trap|while")


def here_of(place: Place) -> Path:
    """Return the folder from which commands name files: the top of the repository, if any."""
    return place.repository or place.root


def preset_rows(settings: Settings, path: str | None, here: Path) -> list[Row]:
    """List all presets, those that cannot be used with what is wrong with them."""
    return [_row(settings, name, path, here) for name in settings.shelf.names]


def _row(settings: Settings, name: str, path: str | None, here: Path) -> Row:
    """Tell one preset in short."""
    users = sorted({key.split(".")[1] for key, each in mentions(settings.values) if each == name})
    try:
        preset = settings.preset(name)
    except SettingsError as error:
        told = "; ".join(str(each) for each in error.problems)
        return dict.fromkeys(_SHORT) | {"name": name, "lanes": [], "types": users, "problem": told}
    program, shell = program_of(preset.command, path, here), isinstance(preset.command, str)
    about, lanes = preset.about or None, list(preset.lanes)
    told_all = (name, about, program, shell, lanes, users, preset.origin, None)
    return dict(zip(_SHORT, told_all, strict=True))


def program_of(command: Command, path: str | None, here: Path) -> str | None:
    """Find the program of a command; of a text for the shell its first word, if that is plain.

    None where it is not on this machine, or where only a shell can tell.
    """
    word = (command.split() or [""])[0] if isinstance(command, str) else command[0]
    if isinstance(command, str) and (not _PLAIN.fullmatch(word) or _OF_THE_SHELL.fullmatch(word)):
        return None
    if "/" not in word:
        return shutil.which(word, path=path)
    found = here / word
    return str(found) if found.is_file() and os.access(found, os.X_OK) else None


def preset_row(preset: Preset, path: str | None, here: Path) -> Row:
    """Tell all of one preset."""
    return {
        "name": preset.name,
        "about": preset.about or None,
        "from": preset.origin,
        "command": preset.command if isinstance(preset.command, str) else list(preset.command),
        "program": program_of(preset.command, path, here),
        "shell": isinstance(preset.command, str),
        "prompt": "file" if reads_prompt_file(preset.command) else "stdin",
        "model": preset.model or None,
        "env": {"set": dict(preset.set), "unset": list(preset.unset), "only": _only(preset)},
        "own_tmpdir": preset.own_tmpdir,
        "lanes": list(preset.lanes),
        "reader": preset.reader,
        "reports_cost": preset.reports_cost,
        "success": preset.success or None,
        "signs": {kind: list(each) for kind, each in preset.signs.items()},
        "mend": dict(preset.mend),
        "version": preset.version if isinstance(preset.version, str | None) else list(preset.version),
        "install": preset.install or None,
    }


def _only(preset: Preset) -> list[str] | None:
    """List what alone gets in of loopr's own environment, None where all of it does."""
    return None if preset.only is None else list(preset.only)


def preset_words(row: Row) -> list[tuple[str, str]]:
    """Word a preset for a person, a line for each thing."""
    told = [(key, _words(row[key])) for key in ("name", "about", "from", "command", "program", "prompt", "model")]
    told += [("set", f"{name}={value}") for name, value in row["env"]["set"].items()]
    told += [("unset", ", ".join(row["env"]["unset"]))] if row["env"]["unset"] else []
    told += [("only", ", ".join(row["env"]["only"]) or "nothing")] if row["env"]["only"] is not None else []
    told += [("TMPDIR", "a folder of the attempt's own")] if row["own_tmpdir"] else []
    told += [("lane", ", ".join(row["lanes"])), ("reader", row["reader"]), ("success", _words(row["success"]))]
    told += [(kind, each) for kind, patterns in row["signs"].items() for each in patterns]
    told += [(f"mend {kind}", words) for kind, words in row["mend"].items()]
    told += [("version", _words(row["version"])), ("install", _words(row["install"]))]
    return [(key, words) for key, words in told if words]


def _words(value: Any) -> str:
    """Write a value on one line, nothing for none."""
    if value is None:
        return ""
    return value if isinstance(value, str) else shlex.join(value)
