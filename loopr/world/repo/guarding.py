"""Keeps our own calls of git from running what was not set when the work began.

What was there at the beginning is a person's, such as a filter for large files, and goes on. Whatever a command has
set since, in whichever of the files that git reads, is overruled. What was there is written down, for other processes
that come while the work goes on. Must never know who has set it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from loopr.world.repo.calls import GUARDS, Door, Environment, call
from loopr.world.repo.ground import Ground
from loopr.world.repo.keeping import PROGRAMS, note_seen, read_seen
from loopr.world.repo.programs import harmless_value, runs_program

_Marks = tuple[tuple[str, int, int, int], ...]
_UNSEEN: _Marks = (("", -1, 0, 0),)  # as no file ever is


def guard(ground: Ground) -> None:
    """Take the programs that are set now for a person's: from here on our calls run no other."""
    last = GUARDS.get(ground.common)
    if not isinstance(last, _Guard) or last.marks != _marks(Path(name) for name, *_ in last.marks):
        known, files = _programs(ground.door)
        GUARDS[ground.common] = _Guard(known, _marks(files))
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


class _Guard:
    """Knows which programs were set at the beginning, and what has to be overruled for calls at each place."""

    def __init__(self, known: Mapping[str, str], marks: _Marks) -> None:
        self._known, self.marks = known, marks
        self._overruled: dict[Path, tuple[_Marks, Environment]] = {}

    def __call__(self, door: Door) -> Environment:
        """Return the variables that have git run nothing new in one call."""
        seen = self._overruled.get(door.git_dir)
        if seen is None or seen[0] != _marks(Path(name) for name, *_ in seen[0]):
            found, files = _programs(door)
            seen = self._overruled[door.git_dir] = (_marks(files), self._overruling(found))
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
    places = {"GIT_DIR": str(door.git_dir), "GIT_COMMON_DIR": str(door.common), "GIT_WORK_TREE": str(door.work_tree)}
    said = call(door.work_tree, ["config", "--includes", "--show-origin", "--list", "-z"], places)
    parts = said.parts if said.code == 0 else []
    found: dict[str, str] = {}
    home = Path(os.environ.get("HOME", "/"))
    files = dict.fromkeys([door.common / "config", door.git_dir / "config.worktree", home / ".gitconfig"])
    for origin, text in zip(parts[::2], parts[1::2], strict=True):
        key, _, value = text.partition("\n")
        if origin.startswith("file:"):
            files[door.work_tree / origin.removeprefix("file:")] = None
        if runs_program(key):
            found[key] = value
    return found, list(files)


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
