"""Files that never land, and a loop has changed: how a person is told of them, until its plan is home.

What is told of a loop lies among the problems of the workspace. Must never know which files those are, nor git.
"""

from __future__ import annotations

from loopr.core.scene import Scene

LEFT_OUT = "left out"
LEFT_PLACE = f"{LEFT_OUT} of "
"""How the place begins of what is told of a loop."""

_COMMAND = "; `"


def left_text(words: str, command: str) -> str:
    """Say what was left out, and which command shows it."""
    return f"{words.replace('`', chr(39))}{_COMMAND}{command}`"


def read_left(text: str) -> tuple[str, str]:
    """Return the words and the command of such a text."""
    words, _, command = text.partition(_COMMAND)
    return words, command.removesuffix("`")


def left_of(scene: Scene, loop_id: str) -> str:
    """Say what a loop has changed that never lands; nothing where it has changed nothing of the kind."""
    return read_left(scene.shared.problems.get(f"{LEFT_PLACE}{loop_id}", ""))[0]
