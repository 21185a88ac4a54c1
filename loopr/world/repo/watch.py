"""What all worktrees share and no loop may change: settings, hooks, info, stash, replacements, other people's refs.

Looked at before and after an attempt. Knows how to tell a change, and whether the user's own checkout explains it. Must
never undo one, nor know what follows from it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from loopr.world.repo.checkouts import checkouts, read_line
from loopr.world.repo.ground import HEADS, Ground
from loopr.world.repo.refs import refs_below
from loopr.world.repo.words import Change

_STASH = "refs/stash"
_OTHERS = (HEADS, "refs/tags/", "refs/notes/", "refs/replace/", _STASH)
_LOG_LINES = 200
_DERIVED = "info/refs"  # git writes it anew whenever it packs; nothing is decided by it
_STASHED = re.compile(r"\t(?:WIP on|On) ([^:]+): ")
_SWITCHED = re.compile(r"\tcheckout: moving from (\S+) to ")

What = Literal["config", "hooks", "info", "stash", "replace", "ref"]


class Sight(NamedTuple):
    """What was seen: a digest for each file and a commit for each ref, plain enough to be written down."""

    files: Mapping[str, str]
    refs: Mapping[str, str]


def look(ground: Ground) -> Sight:
    """See what is shared now."""
    files = {"config": _settings(ground, ground.common / "config")}
    files["config.worktree"] = _settings(ground, ground.common / "config.worktree")
    for folder in ("hooks", "info"):
        for path in sorted((ground.common / folder).rglob("*")):
            name = path.relative_to(ground.common).as_posix()
            if path.is_file() and not name.endswith(".sample") and name != _DERIVED:
                files[name] = _digest(path)
    refs = refs_below(ground.door, *(each.rstrip("/") for each in _OTHERS))
    return Sight(files, {ref: commit for ref, commit in refs.items() if not ref.startswith(HEADS + ground.prefix)})


def changes(ground: Ground, before: Sight, after: Sight) -> list[Change]:
    """Say what is not as it was; what a person's checkout has in its own log is a person's: moves, and new stashes."""
    found = [Change(_kind(name), name, was, now) for name, was, now in _differing(before.files, after.files)]
    logged = _logged(ground)
    for ref, was, now in _differing(before.refs, after.refs):
        by_person = (ref, now) in logged or (ref == _STASH and _all_stashed_there(ground, was, now, logged))
        found.append(Change(_kind(ref), ref, was, now, by_person=by_person))
    return found


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Give each key whose value is another, with both."""
    for key in sorted(before.keys() | after.keys()):
        if before.get(key, "") != after.get(key, ""):
            yield key, before.get(key, ""), after.get(key, "")


def _kind(name: str) -> What:
    """Say what sort of thing a name is."""
    if name.startswith("config"):
        return "config"
    if name.startswith("hooks/"):
        return "hooks"
    if name.startswith("info/"):
        return "info"
    if name == _STASH:
        return "stash"
    return "replace" if name.startswith("refs/replace/") else "ref"


def _digest(path: Path) -> str:
    """Digest a file, with whether it may be executed."""
    try:
        content = path.read_bytes()
        return hashlib.sha256(content).hexdigest()[:16] + ("x" if os.access(path, os.X_OK) else "")
    except OSError:
        return "unreadable"


def _settings(ground: Ground, file: Path) -> str:
    """Digest the settings in a file, but for those that using submodules or branches of ours leaves there."""
    bytes_digest = _digest(file) if file.exists() else ""
    if bytes_digest and (ground.prefix, bytes_digest) not in _SETTINGS:
        _SETTINGS[ground.prefix, bytes_digest] = _told_settings(ground, file) or f"broken {bytes_digest}"
    return _SETTINGS.get((ground.prefix, bytes_digest), "")


_SETTINGS: dict[tuple[str, str], str] = {}


def _told_settings(ground: Ground, file: Path) -> str:
    """Ask git for the settings in a file, and digest them; nothing where it cannot read them."""
    said = ground.door.ask("config", "--file", str(file), "--list", "-z")
    if said.code:
        return ""
    ours = ("submodule.", f"branch.{ground.prefix}")
    kept = sorted(part for part in said.parts if not part.startswith(ours))
    return hashlib.sha256("\0".join(kept).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _logged(ground: Ground) -> set[tuple[str, str]]:
    """Pair branches with the commits that people's checkouts have moved them to lately."""
    found = set()
    for each in checkouts(ground):
        if each.ours:
            continue
        branch = each.branch
        for line in reversed(read_line(each.git_dir / "logs" / "HEAD").splitlines()[-_LOG_LINES:]):
            found.add((branch, line.partition(" ")[2].partition(" ")[0]))
            switched = _SWITCHED.search(line)
            if switched:
                branch = HEADS + switched.group(1)
    return found


def _all_stashed_there(ground: Ground, was: str, now: str, logged: set[tuple[str, str]]) -> bool:
    """Say whether stashes were only added, each upon a branch and commit that a person's checkout has stood at."""
    lines = read_line(ground.common / "logs" / _STASH).splitlines()
    commits = [line.split(" ")[1] for line in lines]
    if commits[-1:] != [now] or (was and was not in commits):
        return False
    fresh = lines[commits.index(was) + 1 :] if was else lines
    return all(_stood_at(ground, line) in logged for line in fresh)


def _stood_at(ground: Ground, line: str) -> tuple[str, str]:
    """Return upon which branch and commit a stash was made, from its line in the log; empty where it does not say."""
    branch = _STASHED.search(line)
    commit = ground.door.ask("rev-parse", "--verify", "--quiet", f"{line.split(' ')[1]}^1").line
    return (HEADS + branch[1] if branch is not None else "", commit)
