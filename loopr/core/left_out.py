"""Files that never land, and a loop has changed: how a person is told of them, until its plan is home.

What is told of a loop lies among the problems of the workspace. Must never know which files those are, nor git.
"""

from __future__ import annotations

from loopr.core.model import Status
from loopr.core.scene import Scene

LEFT_OUT = "left out"
LEFT_PLACE = f"{LEFT_OUT} of "
"""How the place begins of what is told of a loop."""

_COMMAND = "; `"
_OVER = (Status.CANCELLED, Status.INVALIDATED)


def left_text(words: str, command: str) -> str:
    """Name the files that were left out, and the command that shows them."""
    return f"{words.replace('`', chr(39))}{_COMMAND}{command}`"


def read_left(text: str) -> tuple[str, str]:
    """Return the words and the command of such a text."""
    words, _, command = text.partition(_COMMAND)
    return words, command.removesuffix("`")


def told_of(scene: Scene) -> dict[str, str]:
    """Map the loops that have changed such files to what is told of it; nothing of those that are cancelled or gone."""
    texts = {
        at.removeprefix(LEFT_PLACE): text for at, text in scene.shared.problems.items() if at.startswith(LEFT_PLACE)
    }
    found = ((name, scene.loops.get(name), text) for name, text in sorted(texts.items()))
    return {name: text for name, loop, text in found if loop is not None and loop.status not in _OVER}


def left_of(scene: Scene, loop_id: str) -> str:
    """Name the files of a loop that never land; nothing where it has changed none."""
    return read_left(scene.shared.problems.get(f"{LEFT_PLACE}{loop_id}", ""))[0]
