"""Files that have changed since a loop last landed are newer than all others in its worktree.

A checkout gives all files the time at which git came to them, so make and its like would take old products for new
ones. Must never know a loop, nor change the contents of a file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from loopr.world.repo.ground import Ground
from loopr.world.repo.landing import is_there
from loopr.world.repo.scanning import NOTHING, changed_entries


def make_newer(ground: Ground, folder: Path, since: str, tip: str) -> None:
    """Give the files that are others than in a commit the time of now; nothing where that commit is gone."""
    if since == tip or not is_there(ground, since):
        return
    for each in changed_entries(ground.door, since, tip):
        if each.mode != NOTHING:
            with suppress(FileNotFoundError, NotADirectoryError):  # a sparse checkout has not all of them
                os.utime(folder / each.path, follow_symlinks=False)
