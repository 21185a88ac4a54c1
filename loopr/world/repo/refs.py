"""Refs: read several at once, change several at once, ask who descends from whom.

Knows the plumbing of git. Must never know what a ref is for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.calls import Door, GitFailed
from loopr.world.repo.checkouts import read_line
from loopr.world.repo.ground import Ground
from loopr.world.repo.objects import descends, fork_of, loose_commit
from loopr.world.repo.packed import packed_refs
from loopr.world.repo.ref_locks import free_left_locks

LOOSE_LIMIT = 1000
_ABSENT = ("0" * 40, "0" * 64)
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_RACED = re.compile(r"but expected|reference already exists|unable to resolve reference|reference is missing")


class Move(NamedTuple):
    """One ref to change: `new` empty deletes it; `old` empty: it must not exist, None: it may be anything."""

    ref: str
    new: str
    old: str | None = None


class RefRaced(GitFailed):
    """A ref was not where it was expected: somebody else moved it, nothing was changed."""


def read_refs(door: Door, *names: str) -> dict[str, str]:
    """Return where these refs stand, without those that do not exist; a name that ends in / means all below it."""
    below = [name for name in names if name.endswith("/")]
    found = _read_below(door, below) if below else {}
    packed: dict[str, str] | None = None
    for name in names:
        if name.endswith("/"):
            continue
        commit = read_line(door.common / name)  # a loose ref is the newer one, and is gone only once it is packed
        if not COMMIT.fullmatch(commit):
            packed = packed_refs(door.common) if packed is None else packed
            commit = packed.get(name, "")
        if commit:
            found[name] = commit
    return found


def refs_below(door: Door, *places: str) -> dict[str, str]:
    """Return all refs at or below some names, read from git's files; one that leads to another is shown as it is."""
    loose: dict[str, str] = {}
    for place in places:
        walked = ((Path(folder), files) for folder, _, files in os.walk(door.common / place))
        below = [folder / name for folder, files in walked for name in files if not name.endswith(".lock")]
        for file in (door.common / place, *below):
            loose[file.relative_to(door.common).as_posix()] = read_line(file)
    packed = {name: commit for name, commit in packed_refs(door.common).items() if _is_below(name, places)}  # read last
    return packed | {name: text for name, text in loose.items() if text}


def _is_below(name: str, places: Sequence[str]) -> bool:
    """Say whether a ref is at or below one of some names."""
    return any(name == place or name.startswith(f"{place}/") for place in places)


def _read_below(door: Door, folders: Sequence[str]) -> dict[str, str]:
    """Ask git for all refs below some names."""
    said = door.run("for-each-ref", "--format=%(refname)%00%(objectname)", *(name.rstrip("/") for name in folders))
    rows = (line.split("\0") for line in os.fsdecode(said.out).split("\n")[:-1])
    return {name: commit for name, commit in rows if name.startswith(tuple(folders))}


def any_packed_below(door: Door, folder: str) -> bool:
    """Say whether a packed ref has a name that begins so."""
    return any(name.startswith(folder) for name in packed_refs(door.common))


def move_refs(door: Door, moves: Sequence[Move], why: str = "loopr") -> None:
    """Change refs in one transaction, all or none; `RefRaced` where one of them is not where it was expected."""
    if not moves:
        return
    free_left_locks(door.common)
    text = b"".join(_command(move) for move in moves)
    said = door.ask("update-ref", "-m", why, "--stdin", "-z", stdin=text)
    if said.code:
        kind = RefRaced if _RACED.search(said.err) else GitFailed
        raise kind("the branches could not be moved", said)


def _command(move: Move) -> bytes:
    """Write one line of the transaction; a ref that leads to another is itself what moves, never the other."""
    zeros = _ABSENT[0] if len(move.new or move.old or "") <= 40 else _ABSENT[1]
    if not move.new:
        words = [f"delete {move.ref}", move.old or ""]
    elif move.old is None:
        words = [f"update {move.ref}", move.new, ""]
    else:
        words = [f"update {move.ref}", move.new, move.old or zeros]
    return b"".join(os.fsencode(word) + b"\0" for word in ["option no-deref", *words])


def is_ancestor(door: Door, old: str, new: str) -> bool:
    """Say whether one commit is contained in another; an object that is gone is contained in nothing."""
    return descends(door, old, new) or door.ask("merge-base", "--is-ancestor", old, new).code == 0


def merge_base(door: Door, one: str, other: str) -> str:
    """Return the commit at which two lines part, nothing where they have none in common."""
    known = fork_of(door, one, other) or (one if descends(door, one, other) else "")
    if known:
        return known
    said = door.ask("merge-base", one, other)
    return said.line.partition("\n")[0] if said.code == 0 else ""


def tree_of(door: Door, commit: str) -> str:
    """Return the tree of a commit."""
    found = loose_commit(door, commit)
    return found.tree if found else door.run("rev-parse", "--verify", f"{commit}^{{tree}}").line


def commit_of(door: Door, name: str) -> str:
    """Return the commit that a name stands for, nothing if it stands for none."""
    said = door.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return said.line if said.code == 0 else ""


def contained_in(door: Door, commit: str, refs: Iterable[str]) -> str:
    """Return the first of these refs that contains a commit, nothing if none does."""
    patterns = [ref.rstrip("/") for ref in refs]
    said = door.ask("for-each-ref", "--count=1", "--format=%(refname)", f"--contains={commit}", *patterns)
    return said.line if said.code == 0 and patterns else ""


def pack_refs(ground: Ground, limit: int = LOOSE_LIMIT) -> bool:
    """Pack the refs once there are many files of them, and say whether that was done; for whoever begins.

    What somebody who was killed has left locked is freed in any case: nobody else's git could move it.
    """
    free_left_locks(ground.common)
    folders = [ground.common / "refs" / "loopr", ground.common / "refs" / "heads"]
    if sum(_files(folder) for folder in folders) <= limit:
        return False
    with ground.alone() as door:
        door.run("pack-refs", "--all")
    return True


def _files(folder: Path) -> int:
    """Count the files below a folder."""
    return sum(len(files) for _, _, files in os.walk(folder))
