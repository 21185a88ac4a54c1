"""Texts that were handed over once, each under its digest: what is gone from the tree can come back from here.

Knows a folder of small files. Must never know whose they are, nor what is in one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class Archive:
    """Keeps texts for as long as the state folder is there."""

    def __init__(self, state: Path) -> None:
        """Name the folder of the state."""
        self.folder = state / "archive"

    def keep(self, digest: str, raw: bytes) -> None:
        """Keep a text; it is a second copy, so a disk that takes none holds nobody up."""
        path = self.folder / f"{digest}.md"
        with suppress(OSError):
            if path.exists():
                return
            self.folder.mkdir(parents=True, exist_ok=True)
            fresh = self.folder / f".{digest}.{os.getpid()}.new"
            fresh.touch(0o600)
            fresh.write_bytes(raw)
            fresh.replace(path)

    def find(self, digest: str) -> bytes | None:
        """Return what is kept under a digest, None if nothing is."""
        try:
            return (self.folder / f"{digest}.md").read_bytes()
        except OSError:
            return None
