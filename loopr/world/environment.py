"""What a command is given: its variables, its arguments and its ports.

Knows the names of variables and placeholders, and what must not reach a command. Must never know a loop, a lane or a
process: all of it is plain values. What a command may leave in return is the business of `result_file.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from loopr.errors import SettingsError

PREFIX = "LOOPR_"
PORTS_IN_BLOCK = 10
_FIRST_PORT, _PORT_BLOCKS = 10_240, 2_252  # up to 32,759: below what systems hand out by themselves
LAST_SLOT = _PORT_BLOCKS - 1
_NOT_OURS = frozenset({"CLAUDECODE"})
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_SPLICED = re.compile(r"(?<!\$)\{([a-z_]+)\}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})")
_COMMAND = "{command}"
GIT_LOCAL = frozenset(
    f"GIT_{name}"
    for name in (
        *("ALTERNATE_OBJECT_DIRECTORIES", "CONFIG", "CONFIG_PARAMETERS", "CONFIG_COUNT", "OBJECT_DIRECTORY", "DIR"),
        *("WORK_TREE", "IMPLICIT_WORK_TREE", "GRAFT_FILE", "INDEX_FILE", "NO_REPLACE_OBJECTS", "REPLACE_REF_BASE"),
        *("PREFIX", "INTERNAL_SUPER_PREFIX", "SHALLOW_FILE", "COMMON_DIR"),
    )
)
"""What ties git to one repository, as `git rev-parse --local-env-vars` has it; a newer git may be asked for more."""

Command = tuple[str, ...] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where and as what one attempt of a loop runs; whatever is not known or not limited is None."""

    workspace: Path
    plan: str
    loop: str
    type: str
    parent: str | None
    depth: int
    project: str
    iteration: int
    max_iterations: int
    attempt: int
    lease: str
    worktree: Path
    branch: str
    base_commit: str
    plan_branch: str
    input: Path
    output: Path
    prompt_file: Path
    feedback_file: Path
    context_file: Path
    result_file: Path
    log_dir: Path
    deadline_ms: int | None
    tokens_left: int | None
    port_base: int

    def values(self) -> dict[str, str]:
        """Return every value by its name, as text: an absent one is empty, the deadline is in seconds since 1970."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "deadline_ms"}
        plain["deadline"] = None if self.deadline_ms is None else self.deadline_ms // 1000
        return {name: "" if value is None else str(value) for name, value in plain.items()}


class Changes(NamedTuple):
    """What the settings change in an environment: names to take away may have stars in them.

    With `only`, of what loopr was started with nothing else gets in, but for the `BASICS`.
    """

    set: Mapping[str, str]
    unset: Collection[str] = ()
    only: Collection[str] | None = None


BASICS = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR")
"""What nearly every program needs, and no secret is in."""


def changed(inherited: Mapping[str, str], changes: Iterable[Changes]) -> dict[str, str]:
    """Return what changes, one after the other, make of an environment; each may say what gets in at all."""
    every = list(changes)
    narrow = [(*BASICS, *each.only) for each in every if each.only is not None]
    kept = {name: value for name, value in inherited.items() if all(is_among(name, only) for only in narrow)}
    for each in every:
        if each.unset:
            kept = {name: value for name, value in kept.items() if not is_among(name, each.unset)}
        kept |= each.set
    return kept


def is_among(name: str, names: Collection[str]) -> bool:
    """Say whether a variable is named, outright or by a name with stars in it."""
    return name in names or any("*" in each and fnmatchcase(name, each) for each in names)


def variables(
    setting: Setting,
    inherited: Mapping[str, str],
    *,
    ceiling: Path,
    changes: Iterable[Changes] = (),
    git_local: Collection[str] = GIT_LOCAL,
) -> dict[str, str]:
    """Return the whole environment of a command.

    It is what loopr was started with, without what ties git to a repository and what an outer loop or agent left, then
    with the changes of the settings in their order, and with loopr's own variables last: nothing can pretend to them.
    """
    foreign = {name: value for name, value in inherited.items() if name not in git_local and not _is_ours(name)}
    kept = changed(foreign, changes)
    own = {f"{PREFIX}{name.upper()}": value for name, value in setting.values().items()}
    return {
        **{name: value for name, value in kept.items() if not name.startswith(PREFIX)},
        **own,
        "LOOPR": "1",
        "GIT_CEILING_DIRECTORIES": _ceilings(ceiling, kept.get("GIT_CEILING_DIRECTORIES", "")),
        "TRACEPARENT": traceparent(setting.workspace, setting.plan, setting.lease, inherited.get("TRACEPARENT", "")),
    }


def _is_ours(name: str) -> bool:
    """Tell whether a variable was meant for whoever started loopr, not for what loopr starts."""
    return name == "LOOPR" or name.startswith(PREFIX) or name in _NOT_OURS


def _ceilings(ceiling: Path, others: str) -> str:
    """Return the folders in which git stops looking upwards, ours first."""
    if os.pathsep in str(ceiling):
        message = f"git cannot be kept inside {ceiling}: its path holds a `{os.pathsep}`"
        raise SettingsError(message, hint="name another folder in `worktrees.dir`")
    return os.pathsep.join([str(ceiling), *([others] if others else [])])


def traceparent(workspace: Path, plan: str, lease: str, inherited: str = "") -> str:
    """Return the trace that an attempt belongs to: the one loopr was started in, else one for each plan."""
    outer = _TRACEPARENT.fullmatch(inherited)
    trace = outer[1] if outer else _digest("trace", str(workspace), plan)[:32]
    return f"00-{trace}-{_digest('span', str(workspace), lease)[:16]}-{outer[2] if outer else '01'}"


def _digest(*parts: str) -> str:
    """Digest texts one after the other."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


# --- arguments ------------------------------------------------------------------------------------------------------


def arguments(command: Command, setting: Setting, wrap: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Return the argument vector of a command: a list with its placeholders filled in, a text handed to `sh -c`.

    A filled-in value stays within its argument, and is never looked at again; braces that name nothing stay.
    """
    values = setting.values()
    if isinstance(command, str):
        _refuse_splices(command, values)
        vector: tuple[str, ...] = ("sh", "-c", command)
    else:
        vector = tuple(_filled(word, values) for word in command)
    if wrap is None:
        return vector
    at = wrap.index(_COMMAND)
    before, after = (tuple(_filled(word, values) for word in part) for part in (wrap[:at], wrap[at + 1 :]))
    return (*before, *vector, *after)


def _filled(word: str, values: Mapping[str, str]) -> str:
    """Fill in the placeholders of one argument."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word)


def _refuse_splices(command: str, values: Mapping[str, str]) -> None:
    """Refuse a placeholder in a text for the shell, where a value could become code."""
    for found in _SPLICED.finditer(command):
        if found[1] in values:
            message = f"a command for the shell has no placeholders: {found[0]}"
            hint = f'write "${PREFIX}{found[1].upper()}" there, or write the command as a list'
            raise SettingsError(message, hint=hint)


def reads_prompt_file(command: Command) -> bool:
    """Tell whether a command takes its prompt from a file, so that its standard input is empty."""
    return not isinstance(command, str) and any("{prompt_file}" in word for word in command)


# --- ports ----------------------------------------------------------------------------------------------------------


def free_slot(taken: Collection[int]) -> int:
    """Return the lowest number that no live attempt has."""
    slot = 0
    while slot in taken:
        slot += 1
    return slot


def port_base(slot: int, workspace: Path) -> int:
    """Return the first of the ten ports of a slot; workspaces begin at different places, so that they rarely meet."""
    if not 0 <= slot < _PORT_BLOCKS:
        raise SettingsError(
            f"there are ports for {_PORT_BLOCKS:,} tries at once, not for more", hint="lower `concurrency.max_loops`"
        )
    begin = int(_digest("ports", str(workspace))[:8], 16)
    return _FIRST_PORT + PORTS_IN_BLOCK * ((begin + slot) % _PORT_BLOCKS)
