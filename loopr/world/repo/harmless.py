"""Which changes of what all worktrees share harm nobody: what is only added, and what only describes.

A new tag or branch does, unless it changes what a name means to somebody's git or stands in the way of another; so do
settings that say who a person is, how git looks, and what a branch follows. Must never know who made a change.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from loopr.world.repo.ground import HEADS, Ground
from loopr.world.repo.programs import HOOKS, runs_program
from loopr.world.repo.refs import refs_below

TAGS, REMOTES = "refs/tags/", "refs/remotes/"
_DESCRIBES = frozenset({"user.name", "user.email"})
_FORMAT = {"extensions.worktreeconfig": "true", "core.repositoryformatversion": "1"}
ASTRAY = frozenset(
    f"core.{each}" for each in ("worktree", "bare", "repositoryformatversion", "sparsecheckout", "sparsecheckoutcone")
)
_LOOKS = ("advice.", "color.", "column.", "gui.")
_OF_BRANCH = re.compile(r"branch\.(?P<branch>.+)\.(?P<key>[^.]+)", re.DOTALL)
_OPTIONS = "mergeoptions"  # may name a program
_PLACES = frozenset({"remote", "pushremote"})  # where a push goes: a name that is known already, else an address
_HERE = "."
_REMOTE = re.compile(r"remote\.(?P<name>.+)\.[^.]+", re.DOTALL)
_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_ABBREVIATED = re.compile(r"(?:.+-g)?([0-9a-f]{4,64})")  # also as `git describe` says it
_OF_GIT = re.compile(r"[A-Z_]*HEAD")


def remotes_in(settings: Iterable[str]) -> frozenset[str]:
    """Name the remotes that some settings are about."""
    found = (_REMOTE.fullmatch(key) for key in settings)
    return frozenset(each["name"] for each in found if each is not None)


def is_harmless_setting(key: str, values: Collection[str], remotes: frozenset[str]) -> bool:
    """Say whether a setting only describes a person, a look or a branch, or a form that git knows."""
    if key in _DESCRIBES or key.startswith(_LOOKS):
        return True
    if key in _FORMAT:  # `git sparse-checkout` needs these
        return set(values) == {_FORMAT[key]}
    found = _OF_BRANCH.fullmatch(key)
    if found is None or found["key"] == _OPTIONS:
        return False
    return found["key"] not in _PLACES or all(each == _HERE or each in remotes for each in values)


def is_slip(key: str, values: Collection[str], remotes: frozenset[str]) -> bool:
    """Say whether tools set this by themselves: hooks below each checkout, how files are written, another remote."""
    if key == HOOKS:
        return bool(values) and all(_is_below_checkout(each) for each in values)
    if runs_program(key):
        return False
    remote = _REMOTE.fullmatch(key)
    if remote is not None:
        return remote["name"] not in remotes
    return key.startswith("core.") and key not in ASTRAY


def _is_below_checkout(value: str) -> bool:
    """Say whether a path leads to the own files of whichever checkout it is asked in."""
    path = PurePosixPath(value)
    return not (path.is_absolute() or value.startswith(("~", "%")) or {"..", ".git"} & set(path.parts))


def harmless_additions(ground: Ground, added: Mapping[str, str], refs: Mapping[str, str]) -> frozenset[str]:
    """Name those of some new refs that harm nobody; `refs` are all that are there now."""
    plain = {ref: commit for ref, commit in added.items() if ref.startswith((HEADS, TAGS)) and _ID.fullmatch(commit)}
    if not plain:
        return frozenset()
    sorts = _sorts(ground, plain)
    folders = {above for ref in refs for above in _above(ref)} | set(_above(f"{HEADS}{ground.prefix}x"))
    return frozenset(
        ref
        for ref in plain
        if (sorts[ref] == "commit" if ref.startswith(HEADS) else sorts[ref] != "missing")
        and ref not in folders
        and not any(above in refs for above in _above(ref))
        and not _shadows(ground, ref, refs)
    )


def _sorts(ground: Ground, refs: Mapping[str, str]) -> dict[str, str]:
    """Say of what each ref leads to which sort of object it is, or that it is missing: git stumbles over such a ref."""
    text = "".join(f"{commit}\n" for commit in refs.values()).encode()
    lines = ground.door.run("cat-file", "--batch-check=%(objecttype)", stdin=text).out.decode().splitlines()
    return {ref: line.rpartition(" ")[2] for ref, line in zip(refs, lines, strict=True)}


def _above(ref: str) -> list[str]:
    """List the names that cannot be refs where this one is."""
    return [str(each) for each in PurePosixPath(ref).parents]


def _shadows(ground: Ground, ref: str, refs: Mapping[str, str]) -> bool:
    """Say whether the short name of a new ref means something to git already, or will to us."""
    other = TAGS if ref.startswith(HEADS) else HEADS
    short = ref.removeprefix(HEADS).removeprefix(TAGS)
    if other + short in refs or short.startswith((ground.prefix, "refs/")) or _OF_GIT.fullmatch(short):
        return True
    if refs_below(ground.door, REMOTES + short) or f"refs/{short}" in refs_below(ground.door, f"refs/{short}"):
        return True
    said = _ABBREVIATED.fullmatch(short)
    return said is not None and bool(ground.door.ask("rev-parse", f"--disambiguate={said[1]}").out)
