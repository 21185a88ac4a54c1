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

_OTHERS = (HEADS, "refs/tags/", "refs/notes/", "refs/replace/", "refs/stash")
_LOG_LINES = 200
_DERIVED = "info/refs"  # git writes it anew whenever it packs; nothing is decided by it
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
    """Say what is not as it was; a move of a branch that a person's checkout has in its own log is a person's."""
    found = [Change(_kind(name), name, was, now) for name, was, now in _differing(before.files, after.files)]
    logged = _logged(ground)
    for ref, was, now in _differing(before.refs, after.refs):
        found.append(Change(_kind(ref), ref, was, now, by_person=(ref, now) in logged))
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
    if name == "refs/stash":
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
