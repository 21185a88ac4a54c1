"""What loops were refused, in words: whatever is tried is seen. Must never know who may have which wish."""

from __future__ import annotations

from loopr.core.model import Loop
from loopr.core.scene import Scene
from loopr.core.shared import Denied

MOST_DENIED = 5
DAY_MS = 86_400_000


def denied(scene: Scene, now: int) -> list[str]:
    """Say what loops were refused of late, the last first."""
    late = [(each, key) for key, each in scene.shared.denied.items() if each.at > now - DAY_MS]
    late.sort(key=lambda each: -each[0].at)
    return [f"{each.lease} was refused {_tried(key, each)}" for each, key in late[:MOST_DENIED]]


def denied_to(scene: Scene, loop: Loop) -> list[str]:
    """Say what a loop was refused."""
    told = sorted(scene.shared.denied.items())
    return [_tried(key, each) for key, each in told if key.startswith(f"{loop.id} ")]


def _tried(key: str, each: Denied) -> str:
    """Say what was tried, and how often."""
    often = f", at least {each.tries} times" if each.tries > 1 else ""
    typed = " ".join(filter(None, ["loopr", key.partition(" ")[2], each.about]))
    return f"`{typed}`{often}"
