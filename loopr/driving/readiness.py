"""Whether a worktree is set up as the settings say now, told by a mark that lies in it.

Knows the setup, the hook beside it, and the list of files that are copied. Must never run any.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from loopr.driving.handovers import is_plain_file
from loopr.world.artifacts import digest
from loopr.world.judges import paths_in
from loopr.world.prompts import write_files
from loopr.world.repo.ground import Ground
from loopr.world.settings.keys import Command

READY = "ready"  # nothing else of ours lies in a worktree before the first attempt


def seal_of(steps: Mapping[str, Command | None], ground: Ground, folder: Path) -> str:
    """Return the digest of all by which a worktree is set up, with the files in it that the commands name."""
    include = b""
    if ground.top is not None:
        with suppress(OSError):
            include = (ground.top / ground.include).read_bytes()
    words = sorted({word for command in steps.values() for word in paths_in(command)})
    named = [(word, digest((folder / word).read_bytes())) for word in words if is_plain_file(folder / word)]
    return digest(repr([sorted(steps.items()), named]).encode() + b"\0" + include)


def is_ready(own: Path, seal: str) -> bool:
    """Say whether a worktree is set up so; one from before this was sealed is taken for it."""
    if not is_plain_file(own / READY):
        return False
    return (own / READY).read_text("utf-8", "replace").strip() in ("", seal)


def was_ready(own: Path) -> bool:
    """Say whether a worktree has been set up before, in any way."""
    return is_plain_file(own / READY)


def mark_ready(own: Path, seal: str) -> None:
    """Note that a worktree is set up."""
    write_files(own, {READY: seal})
