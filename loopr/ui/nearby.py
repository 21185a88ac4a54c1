"""The likely meaning of an unknown word or file: one that begins so, else the one most like it.

Knows words, and the names in one folder. Must never know the use of any.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

PLAN = "plan.md"
MOST_FILES = 1_000


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the only known word that begins so, else the one most like it; nothing without one."""
    names = list(known)
    begin = [each for each in names if word and each.startswith(word)]
    if len(begin) == 1:
        return begin[0]
    from difflib import get_close_matches  # slow to import

    return next(iter(get_close_matches(word, names, n=1)), "")


def nearest_file(path: Path) -> Path | None:
    """Return the plan, or the list, that may be meant by a file that is not there."""
    endings = {".md", path.suffix.casefold()} - {""}
    try:
        with os.scandir(path.parent) as entries:
            found = [each.name for each in islice(entries, MOST_FILES) if each.is_file()]
    except OSError:
        return None
    folded = {each.casefold(): each for each in sorted(found) if Path(each).suffix in endings}
    name = path.name.casefold()
    plain = f"{path.stem.casefold()}.md"
    near = plain if plain in folded else nearest_word(name, folded)
    return path.with_name(folded[near]) if near else None


def meant_instead(path: Path, name_of: Callable[[Path], str]) -> str:
    """Ask whether another file is meant by one that is not there; nothing where none is like it."""
    near = nearest_file(path)
    return f"did you mean {name_of(near)}?" if near is not None else ""


def plan_to_name(folder: Path, verb: str) -> str:
    """Say which plan a verb that names none may be about, or how one is written."""
    if (folder / PLAN).is_file():
        return f"`loopr {verb} {PLAN}`"
    form = f"`# Title`, and under `## {_children(folder)}` a list of what is to be done"
    return f"write {PLAN} first: {form}; `loopr demo` shows one"


def _children(folder: Path) -> str:
    """Return the heading under which a plan lists its children, by the settings if they load."""
    from loopr.errors import LooprError
    from loopr.wiring import Workspace

    try:
        policy = Workspace(folder).policy
        child = policy.type_of(policy.root_type).child
    except (LooprError, OSError):
        child = None
    return f"{(child or 'spec').capitalize()}s"
