"""Says whether a text stands anywhere in a commit: what everybody may read is no secret.

Must never know why that is asked.
"""

from __future__ import annotations

from loopr.world.repo.calls import Door


def has_text(door: Door, commit: str, text: str) -> bool:
    """Say whether a line of some file in a commit has this text in it; the text reaches no list of processes."""
    if not commit or "\n" in text:
        return False
    words = ("grep", "--quiet", "--fixed-strings", "--text", "-f", "-", commit)
    return door.ask(*words, stdin=f"{text}\n".encode("utf-8", "surrogateescape")).code == 0
