"""Files that may have been meant for an artifact: beside its place, one folder too high, or in a folder misnamed.

Knows names and two or three folders a question. Must never know a loop beyond its id, nor read a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from loopr.core.outline import slug

SUFFIX = ".md"
MOST_LISTED = 2_000  # of a folder: one with more is nobody's slip
MOST_FOUND = 3
_NEAR = 0.75


class Sought(NamedTuple):
    """The artifact that is missing: its loop, its type, all types that there are, and which ids are loops."""

    loop_id: str
    type: str
    types: Collection[str]
    is_loop: Callable[[str], bool]

    @property
    def file(self) -> str:
        """What it is called."""
        return f"{self.type}{SUFFIX}"


def lookalikes(specs: Path, sought: Sought) -> list[Path]:
    """Return files that may have been meant for an artifact, the nearest first; none once something is in its place."""
    if os.path.lexists(specs / sought.loop_id / sought.file):
        return []
    return list(islice(dict.fromkeys(_candidates(specs, sought)), MOST_FOUND))


def _candidates(specs: Path, sought: Sought) -> Iterator[Path]:
    """Give them: in the loop's folder, in the one above, in one beside it, and by a shorter path."""
    above, _, name = sought.loop_id.rpartition("/")
    yield from _near_files(specs / sought.loop_id, sought)
    for file in _entries(specs / above, folders=False) if above else ():
        stem = _stem(file)
        if stem == sought.type.casefold() or (stem == name and stem not in sought.types):
            yield specs / above / file
    for folder in _entries(specs / above, folders=True):
        other = f"{above}/{folder}" if above else folder
        if folder != name and not sought.is_loop(other) and is_near(slug(folder), name):
            yield from _near_files(specs / other, sought, exact=True)
    for shorter in _shorter(sought.loop_id):
        if not sought.is_loop(shorter) and os.path.lexists(specs / shorter / sought.file):
            yield specs / shorter / sought.file


def _near_files(folder: Path, sought: Sought, *, exact: bool = False) -> Iterator[Path]:
    """Give the files of a folder that are called nearly as an artifact, or exactly so as well."""
    for file in _entries(folder, folders=False):
        if (exact and file == sought.file) or (file != sought.file and is_near(_stem(file), sought.type.casefold())):
            yield folder / file


def _entries(folder: Path, *, folders: bool) -> list[str]:
    """List the names in a folder, of folders or of files, hidden ones left out; none where there is no folder."""
    try:
        with os.scandir(folder) as entries:
            wanted = [each for each in islice(entries, MOST_LISTED) if each.name[0] != "."]
            return sorted(each.name for each in wanted if each.is_dir(follow_symlinks=False) is folders)
    except OSError:
        return []


def _stem(file: str) -> str:
    """Return the name of a file as far as it says what it is: `Spec.MD`, `spec.md.txt` and `spec (1).md` are specs."""
    return file.casefold().partition(".")[0].partition(" ")[0]


def is_near(name: str, wanted: str) -> bool:
    """Say whether a name may be a slip of another."""
    return name == wanted or SequenceMatcher(None, name, wanted).ratio() >= _NEAR


def _shorter(loop_id: str) -> Iterator[str]:
    """Give the ends of an id: where its folder would be without the ones above it."""
    parts = loop_id.split("/")
    yield from ("/".join(parts[start:]) for start in range(1, len(parts)))
