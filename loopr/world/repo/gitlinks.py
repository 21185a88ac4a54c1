"""Submodules in what would land: whether others can have the commit that a loop has moved one to.

Knows the stores of submodules, of checkouts and of a loop's worktree. Must never fetch or push.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from loopr.errors import Problem
from loopr.world.repo.calls import QUIET, Door, Said
from loopr.world.repo.checkouts import checkouts, read_line
from loopr.world.repo.ground import Ground
from loopr.world.repo.programs import harmless_value, runs_program
from loopr.world.repo.scanning import GITLINK, Entry
from loopr.world.repo.slots import Opened

MODULES = "modules"
_GITDIR = "gitdir:"
_OWN_SCOPES = ("local", "worktree")
_NO_TRANSPORT = {"GIT_ALLOW_PROTOCOL": "none"}


def unpublished(at: Opened, entries: Iterable[Entry]) -> Iterator[Problem]:
    """Name the submodules that are moved to a commit which nobody else can have."""
    for each in entries:
        if each.mode == GITLINK and each.was == GITLINK and not _is_to_be_had(at, each):
            place = shlex.quote(each.path)
            push = f"`git -C {place} push origin {each.blob[:12]}:refs/heads/BRANCH` publishes it"
            words = f"is a submodule, and its commit {each.blob[:12]} is nowhere but here"
            back = f"`git -C {place} checkout {each.old[:12]}` goes back"
            yield Problem(words, each.path, f"{push}, {back}")


def _is_to_be_had(at: Opened, entry: Entry) -> bool:
    """Say whether a commit is in a person's checkout, or on a branch of a remote."""
    if any(_has(store, entry.blob) for store in _stores_of_people(at.ground, entry.path)):
        return True
    own = [*stores(at.admin / MODULES), *_behind(at.place / entry.path)]
    return any(_is_on_remote(store, entry.blob) for store in dict.fromkeys(own))


def _stores_of_people(ground: Ground, path: str) -> Iterator[Path]:
    """Give the git directories of submodules that are not in worktrees of ours."""
    yield from stores(ground.common / MODULES)
    for each in checkouts(ground):
        if not each.ours:
            yield from stores(each.git_dir / MODULES) if each.git_dir != ground.common else ()
            yield from _behind(each.folder / path)


def stores(folder: Path) -> Iterator[Path]:
    """Find the git directories of submodules, those of submodules of these too."""
    for path, folders, files in os.walk(folder):
        if "HEAD" in files and "objects" in folders:
            folders[:] = [MODULES] if MODULES in folders else []
            yield Path(path)


def _behind(folder: Path) -> Iterator[Path]:
    """Give the git directory of a folder that is the top of a repository."""
    mark = folder / ".git"
    if mark.is_dir():
        yield mark
    elif (line := read_line(mark)).startswith(_GITDIR):
        found = (folder / line.removeprefix(_GITDIR).strip()).resolve()
        if (found / "objects").is_dir():
            yield found


def ask_store(store: Path, *words: str, place: Path | None = None) -> Said:
    """Ask git about a store, whose settings a command may have written: it runs and fetches nothing.

    A program that is set there may be a person's; where files need it they count as changed.
    """
    door = Door(store, store, place or store, QUIET)
    own = door.ask("config", "--list", "--show-scope", "--name-only", "-z").parts
    keys = {key for scope, key in zip(own[::2], own[1::2], strict=True) if scope in _OWN_SCOPES}
    instead = ((key, harmless_value(key)) for key in sorted(keys) if runs_program(key))
    pairs = [(key, value) for key, value in instead if value is not None]
    named = {f"GIT_CONFIG_KEY_{place}": key for place, (key, _) in enumerate(pairs)}
    named |= {f"GIT_CONFIG_VALUE_{place}": value for place, (_, value) in enumerate(pairs)}
    return door.ask(*words, variables={**_NO_TRANSPORT, "GIT_CONFIG_COUNT": str(len(pairs)), **named})


def _has(store: Path, commit: str) -> bool:
    """Say whether a store has a commit."""
    return ask_store(store, "cat-file", "-e", f"{commit}^{{commit}}").code == 0


def _is_on_remote(store: Path, commit: str) -> bool:
    """Say whether a branch of a remote, as a store knows it, has a commit."""
    said = ask_store(store, "rev-list", "--max-count=1", commit, "--not", "--remotes")
    return said.code == 0 and not said.out
