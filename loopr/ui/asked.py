"""Rows of what a person should know of or say a word to, the same for every surface.

Knows the files that are offered, and the branches that moved. Must never know a terminal, nor what a word leads to.
"""

from __future__ import annotations

from typing import Any

from loopr.core.model import Loop
from loopr.core.offering import file_of, offered_words
from loopr.core.scene import Scene


def offered_row(scene: Scene, loop: Loop) -> dict[str, Any]:
    """Return a file that waits for a person's word, and what to type."""
    offers = loop.offers
    return {
        "loop": loop.id,
        "place": file_of(scene, loop),
        "digest": offers.offered,
        "during": list(offers.during),
        "text": offered_words(scene, loop),
    }


def moved_rows(scene: Scene) -> list[dict[str, Any]]:
    """List the branches of people that moved while loops were at work, as long as a person should know."""
    rows = ((*key.partition(" ")[::2], each) for key, each in sorted(scene.shared.moved.items()))
    return [{"repo": repo, "branch": branch, **each._asdict()} for repo, branch, each in rows]
