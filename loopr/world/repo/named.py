"""What is called by its path: which words are files of a commit, and what stands at some paths of a tree.

Knows one commit. Must never know what the words are for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from loopr.world.repo.ground import Ground

PLAIN_FILE = "100644"
FILL = "git submodule update --init"
GITLINK = "160000"
_NO_FILES = ("040000", GITLINK)  # folders and repositories within
MOST_BYTES = 1_000_000  # of a file that is read
MOST_PATHS = 500  # as arguments of one call


def files_among(ground: Ground, commit: str, words: Iterable[str]) -> list[str]:
    """Return which words are files of a commit; a folder stands for none of those in it."""
    modes = modes_among(ground, commit, words)
    return [path for path, mode in modes.items() if mode not in _NO_FILES]


def modes_among(ground: Ground, commit: str, words: Iterable[str]) -> dict[str, str]:
    """Return the modes that git keeps for those words that a commit has, folders among them."""
    asked = dict.fromkeys(words)
    said = ground.door.ask("ls-tree", "-z", "--full-tree", commit, "--", *asked) if asked else None
    rows = said.parts if said is not None and said.code == 0 else []
    parted = [row.partition("\t") for row in rows]
    return {path: meta.split()[0] for meta, _, path in parted if path in asked}


def in_submodules(ground: Ground, commit: str, paths: Iterable[str]) -> list[str]:
    """Return which paths lie in repositories within a commit: these have commits of their own."""
    above = {each: [str(folder) for folder in PurePosixPath(each).parents[:-1]] for each in paths}
    modes = modes_among(ground, commit, (folder for every in above.values() for folder in every))
    within = {folder for folder, mode in modes.items() if mode == GITLINK}
    return [path for path, folders in above.items() if within.intersection(folders)]


def text_at(ground: Ground, commit: str, path: str) -> str:
    """Return the text of a file of a commit, nothing where there is none."""
    said = ground.door.ask("cat-file", "blob", f"{commit}:{path}")
    return said.out[:MOST_BYTES].decode(errors="replace") if said.code == 0 else ""


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Say whether a path lies below one of some folders."""
    return any(path.startswith(f"{each}/") for each in folders)


def paths_of(ground: Ground, commit: str) -> list[str]:
    """List all files of a commit; none where it is gone."""
    said = ground.door.ask("ls-tree", "-r", "-z", "--full-tree", "--name-only", commit)
    return [path for path in said.parts if path] if said.code == 0 else []


def only_here(ground: Ground, commit: str, words: Sequence[str]) -> list[str]:
    """Return which words are files of the user's checkout that a commit has not, or not as they are there."""
    top = ground.top
    here = [each for each in words if top is not None and (top / each).is_file()]
    if not here:
        return []
    known = set(files_among(ground, commit, here))
    said = ground.users_door.ask("diff", "--no-ext-diff", "--name-only", "--no-renames", "-z", commit, "--", *here)
    changed = set(said.parts) if said.code == 0 else set()
    return [each for each in here if each not in known or each in changed]


def contents_of(ground: Ground, tree: str, paths: Sequence[str]) -> str:
    """Name what stands at some paths of a tree, whatever else is in it; of very many paths, the tree itself."""
    if len(paths) > MOST_PATHS:
        return tree
    said = ground.door.ask("ls-tree", "-z", "--full-tree", tree, "--", *paths) if paths else None
    if said is None or said.code == 0:
        return "\0".join([*paths, *(said.parts if said is not None else ())])
    return tree
