"""Which words of a command are files of a commit.

Knows one commit. Must never know what the words are for.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopr.world.repo.ground import Ground


def files_among(ground: Ground, commit: str, words: Iterable[str]) -> list[str]:
    """Return which words are files of a commit."""
    said = ground.door.ask("ls-tree", "-z", "--full-tree", commit, "--", *words)
    rows = [row.partition("\t") for row in said.parts] if said.code == 0 else []
    return [path for meta, _, path in rows if meta.split()[1:2] == ["blob"]]
