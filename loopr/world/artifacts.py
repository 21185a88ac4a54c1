"""The tree as files: finds artifacts, and names the place of one.

Knows folders and links. Must never know what an artifact means for its loop, nor follow a link or an id out of the
folder it was given. What is inside a file is the business of `artifact_text.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from loopr.core.outline import MAX_DEPTH, Ladder, id_problem, shown, slug
from loopr.core.policy import TypePolicy
from loopr.errors import PlanError, Problem
from loopr.world.artifact_text import MAX_BYTES, digest, parse_artifact, read_artifact_file

__all__ = [
    "MAX_BYTES",
    "Found",
    "Scan",
    "artifact_path",
    "digest",
    "parse_artifact",
    "read_artifact_file",
    "scan",
]

SUFFIX = ".md"
_LONGEST_PATH = 400  # of a path in a message
_TYPE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


class Found(NamedTuple):
    """One artifact on disk, as a listing tells it."""

    loop_id: str
    type: str
    path: Path
    mtime_ns: int
    size: int


class Scan(NamedTuple):
    """What lies in the tree: its artifacts in the order of their ids, and what stands there but cannot be a loop."""

    found: tuple[Found, ...]
    odd: tuple[Problem, ...]


def scan(specs_dir: Path, types: Mapping[str, TypePolicy]) -> Scan:
    """List the artifacts below a folder without opening one; what cannot be a loop is named, not raised."""
    levels = Ladder(types).levels()
    found: list[Found] = []
    odd: list[Problem] = []
    folders: list[tuple[tuple[str, ...], str]] = [((), str(specs_dir))]
    if specs_dir.is_symlink():
        return Scan((), (_link(str(specs_dir)),))
    while folders:
        parts, folder = folders.pop()
        for entry in _listing(folder, odd):
            if entry.name.startswith("."):
                continue
            if not entry.is_dir(follow_symlinks=False):
                seen = _look_at(entry, parts, levels)
                if isinstance(seen, Problem):
                    odd.append(seen)
                elif seen:
                    found.append(seen)
            elif len(parts) < len(levels) and _is_id(entry, odd):
                folders.append(((*parts, entry.name), entry.path))
    return Scan(tuple(sorted(found)), tuple(sorted(odd, key=str)))


def _listing(folder: str, odd: list[Problem]) -> list[os.DirEntry[str]]:
    """List a folder; one that is gone is empty, one that cannot be read is named."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        odd.append(Problem(f"cannot be listed: {error.strerror}", folder, "check its permissions"))
        return []


def _is_id(entry: os.DirEntry[str], odd: list[Problem]) -> bool:
    """Tell a folder that can be a loop's from one that is named otherwise."""
    problem = id_problem(entry.name)
    if problem:
        where = shown(entry.path, _LONGEST_PATH)
        odd.append(Problem(f"is not a loop's folder: {problem}", where, f"rename it {slug(entry.name)}"))
    return problem is None


def _look_at(entry: os.DirEntry[str], parts: tuple[str, ...], levels: tuple[str, ...]) -> Found | Problem | None:
    """Take a file in a loop's folder if it is called after a type; anything else there is the user's own."""
    name = entry.name.removesuffix(SUFFIX)
    ours = bool(parts) and name != entry.name and name in levels
    if entry.is_symlink() and (ours or entry.is_dir()):
        return _link(entry.path)
    if not ours or not entry.is_file(follow_symlinks=False):
        return None
    expected = levels[len(parts) - 1]
    if name != expected:
        return Problem(f"is at the level of a {expected}", entry.path, f"move it, or call it {expected}{SUFFIX}")
    with suppress(FileNotFoundError):  # it was there a moment ago; the next scan will agree
        status = entry.stat(follow_symlinks=False)
        return Found("/".join(parts), name, Path(entry.path), status.st_mtime_ns, status.st_size)
    return None


def _link(path: str) -> Problem:
    """Say that a link is not followed."""
    where = shown(path, _LONGEST_PATH)
    return Problem("is a symbolic link, which is not followed here", where, "put the file or folder itself there")


def artifact_path(specs_dir: Path, loop_id: str, type_name: str) -> Path:
    """Return where a loop's artifact lies; refuse an id, or a link on the way, that would lead anywhere else."""
    parts = loop_id.split("/")
    for part in parts:
        if problem := id_problem(part):
            raise PlanError(problem, where=shown(loop_id), hint=f"such as {slug(part)}")
    if len(parts) > MAX_DEPTH + 1:
        raise PlanError(f"is deeper than {MAX_DEPTH}", where=shown(loop_id), hint="use fewer levels")
    if not _TYPE_NAME.fullmatch(type_name):
        raise PlanError(
            f'"{shown(type_name)}" is no name of a type', where=shown(loop_id), hint="see `types` in loopr.yml"
        )
    folders = [*accumulate((str(specs_dir), *parts), "{}/{}".format)]
    for folder in folders:
        if os.path.islink(folder):  # noqa: PTH114 # asked for every level of every loop
            link = _link(folder)
            raise PlanError(link.message, where=link.where, hint=link.hint)
    return Path(f"{folders[-1]}/{type_name}{SUFFIX}")


def ensure_folders(specs_dir: Path, path: Path) -> None:
    """Refuse a place below something that is no folder: no artifact can be written there."""
    for folder in path.parents:
        if folder.is_dir() or folder == specs_dir.parent:
            return
        if os.path.lexists(folder):
            where, hint = shown(str(folder), _LONGEST_PATH), "move it away, or put a folder there"
            raise PlanError("stands where the folder of a loop belongs", where=where, hint=hint)
