"""The files without which git does nothing at all in a repository, told sound from unsound before git is asked.

A pipe in the place of one would have every git wait for ever. Must never know who has put it there, nor put it right.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from loopr.world.repo.checkouts import read_whole
from loopr.world.repo.ground import KEPT, Ground
from loopr.world.repo.keeping import digest_of, is_kept
from loopr.world.repo.packed import PACKED

HEAD, CONFIGS = "HEAD", ("config", "config.worktree")
VITAL = (HEAD, *CONFIGS, PACKED)
_HEAD = re.compile(r"ref: *refs/\S+|[0-9a-f]{40}([0-9a-f]{24})?")
_PACKED_LINE = re.compile(r"#.*|\^?[0-9a-f]{40}([0-9a-f]{24})?( refs/.+)?|")


def unsound(ground: Ground) -> Iterator[tuple[str, str]]:
    """Name the vital files that no git can work with as they lie there, each with what is wrong; asks no git."""
    for name in VITAL:
        place, kept = ground.common / name, is_kept(ground, name)
        try:
            facts = place.stat()
        except OSError:
            if kept and name != CONFIGS[1]:
                yield name, "it was gone"
            continue
        if not stat.S_ISREG(facts.st_mode):
            yield name, "it was no file"
        elif name in (HEAD, PACKED) and not is_sound(name, read_whole(place)):
            yield name, "git could not read it"


def is_sound(name: str, content: bytes) -> bool:
    """Say whether git can work with the content of a vital file; only git can tell of settings."""
    text = os.fsdecode(content).strip()
    if name == HEAD:
        return _HEAD.fullmatch(text) is not None
    return name != PACKED or all(map(_PACKED_LINE.fullmatch, text.split("\n")))


def refused(ground: Ground) -> list[str]:
    """Name the files of settings that have changed since git could work here, where it cannot any more."""
    if ground.door.ask("rev-parse", "--git-dir").code == 0:
        return []
    kept = ground.state / KEPT
    return [name for name in CONFIGS if digest_of(ground.common / name) != digest_of(kept / name)]
