"""Keeps our own calls of git from running what was not set when the work began.

What was there at the beginning is a person's, such as a filter for large files, and goes on. Whatever a command has
set since, in whichever of the files that git reads, is overruled. What was there is written down, for other processes
that come while the work goes on. Must never know who has set it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from loopr.world.repo.calls import GUARDS, Door, Environment, call
from loopr.world.repo.ground import Ground
from loopr.world.repo.keeping import PROGRAMS, note_seen, read_seen
from loopr.world.repo.programs import harmless_value, runs_program

_Marks = tuple[tuple[str, int, int, int], ...]
_INCLUDES = re.compile(r"include\.path|includeif\..+\.path", re.DOTALL)
_UNSEEN: _Marks = (("", -1, 0, 0),)  # as no file ever is


def guard(ground: Ground) -> None:
    """Take the programs that are set now for a person's: from here on our calls run no other."""
    last = GUARDS.get(ground.common)
    if not isinstance(last, _Guard) or last.marks != _marks(Path(name) for name, *_ in last.marks):
        known, files = _programs(ground.door)
        if isinstance(last, _Guard):  # the next work makes no person's of what the last one has planted
            known |= last.instead_of(known)
        GUARDS[ground.common] = _Guard(known, _marks(files), last.planted if isinstance(last, _Guard) else {})
        with suppress(OSError):  # a full disk keeps no loop from its work
            note_seen(ground, json.dumps(known), PROGRAMS)


def guard_as_begun(ground: Ground) -> None:
    """Take the programs for a person's that were set when the work began, of which another process may have told.

    Where that is not known, what is set now must do.
    """
    if ground.common in GUARDS:
        return
    try:
        known = {str(key): str(value) for key, value in json.loads(read_seen(ground, PROGRAMS)).items()}
    except (ValueError, AttributeError):
        guard(ground)
    else:
        GUARDS[ground.common] = _Guard(known, _UNSEEN)


def outer_files(ground: Ground) -> list[Path]:
    """List the files outside the repository that git reads settings from, and those that it would."""
    last = GUARDS.get(ground.common)
    files = [Path(name) for name, *_ in last.marks] if isinstance(last, _Guard) else []
    return [each for each in files if each.is_absolute() and not each.is_relative_to(ground.common)]


def strangers(ground: Ground) -> list[str]:
    """Name the programs that were set since in a person's own files, each once: no call of ours runs one.

    They stay where they are, since they may be that person's.
    """
    last = GUARDS.get(ground.common)
    if not isinstance(last, _Guard) or last.marks == _marks(Path(name) for name, *_ in last.marks):
        return []
    return last.told_of(_set_outside(ground.door))


def _set_outside(door: Door) -> dict[str, tuple[str, str]]:
    """Map each setting outside the repository that runs a program to its value and its file."""
    found: dict[str, tuple[str, str]] = {}
    for file, key, value in _listed(door):
        if not file.is_relative_to(door.common) and runs_program(key):
            found[key] = (value, str(file))
    return found


class _Guard:
    """Knows which programs were set at the beginning, and what has to be overruled for calls at each place.

    `planted` are those that came to a person's own files while somebody was at work.
    """

    def __init__(self, known: dict[str, str], marks: _Marks, planted: Mapping[str, str] | None = None) -> None:
        self._known, self.marks, self.planted = known, marks, dict(planted or {})
        self._overruled: dict[Path, tuple[_Marks, Environment]] = {}

    def told_of(self, found: Mapping[str, tuple[str, str]]) -> list[str]:
        """Note what is set now that was not, and name what was not named yet."""
        fresh = {
            key: each for key, each in found.items() if each[0] not in (self._known.get(key), self.planted.get(key))
        }
        self.planted |= {key: value for key, (value, _) in fresh.items()}
        return [f"{key} in {file} (stays; nothing of loopr's runs it)" for key, (_, file) in fresh.items()]

    def instead_of(self, found: Mapping[str, str]) -> dict[str, str]:
        """Say what counts for the settings that still are as they were planted."""
        same = (key for key, value in self.planted.items() if found.get(key) == value)
        return {key: self._known.get(key, harmless_value(key) or "") for key in same}

    def __call__(self, door: Door) -> Environment:
        """Return the variables that have git run nothing new in one call."""
        seen = self._overruled.get(door.git_dir)
        if seen is None or seen[0] != _marks(Path(name) for name, *_ in seen[0]):
            first = [Path(name) for name, *_ in seen[0]] if seen is not None else _first(door)
            before = {each[0]: each for each in _marks(first)}  # what changes while git reads is read again
            found, files = _programs(door)
            marks = tuple(before.get(str(each)) or _mark(each) for each in files)
            seen = self._overruled[door.git_dir] = (marks, self._overruling(found))
        return seen[1]

    def _overruling(self, found: Mapping[str, str]) -> Environment:
        """Set what is not as it was to what it was, or to what runs nothing."""
        pairs: list[tuple[str, str]] = []
        for key, value in found.items():
            if self._known.get(key) != value:
                instead = self._known.get(key, harmless_value(key))
                pairs += [(key, instead)] if instead is not None else []
        named = {f"GIT_CONFIG_KEY_{place}": key for place, (key, _) in enumerate(pairs)}
        named |= {f"GIT_CONFIG_VALUE_{place}": value for place, (_, value) in enumerate(pairs)}
        return named | {"GIT_CONFIG_COUNT": str(len(pairs))} if pairs else {}


def _programs(door: Door) -> tuple[dict[str, str], list[Path]]:
    """Return the last value of each setting that runs a program, and the files that git reads settings from."""
    found: dict[str, str] = {}
    files = dict.fromkeys(_first(door))
    for file, key, value in _listed(door):
        files[file] = None
        if runs_program(key):
            found[key] = value
        if _INCLUDES.fullmatch(key):  # that one may be made later
            files[file.parent / Path(value).expanduser()] = None
    return found, list(files)


def _first(door: Door) -> list[Path]:
    """List the files that git looks for at a place, whether they are there or not."""
    return [door.common / "config", door.git_dir / "config.worktree", *_of_person()]


def _of_person() -> list[Path]:
    """List the files in which a person's own settings may be, for all repositories."""
    home = Path(os.environ.get("HOME", "/"))
    more = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    named = os.environ.get("GIT_CONFIG_GLOBAL")
    return [Path(named)] if named else [home / ".gitconfig", more]


def _listed(door: Door) -> Iterator[tuple[Path, str, str]]:
    """Give each setting that git heeds at a place: its file, its key and its value."""
    places = {"GIT_DIR": str(door.git_dir), "GIT_COMMON_DIR": str(door.common), "GIT_WORK_TREE": str(door.work_tree)}
    said = call(door.work_tree, ["config", "--includes", "--show-origin", "--list", "-z"], places)
    parts = said.parts if said.code == 0 else []
    for origin, text in zip(parts[::2], parts[1::2], strict=True):
        key, _, value = text.partition("\n")
        if origin.startswith("file:"):
            yield door.work_tree / origin.removeprefix("file:"), key, value


def _marks(files: Iterable[Path]) -> _Marks:
    """Tell some files from what is later in their places."""
    return tuple(_mark(each) for each in files)


def _mark(file: Path) -> tuple[str, int, int, int]:
    """Tell a file from what is later in its place; what is not there has zeros."""
    try:
        facts = file.stat()
    except OSError:
        return str(file), 0, 0, 0
    return str(file), facts.st_ctime_ns, facts.st_size, facts.st_ino
