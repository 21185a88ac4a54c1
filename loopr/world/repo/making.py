"""How a commit is made: its words, its identity, the object itself.

Knows how git writes a commit. Must never know what is committed, nor move a branch.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from loopr.world.repo.calls import Door
from loopr.world.repo.checkouts import read_whole
from loopr.world.repo.objects import write_loose
from loopr.world.repo.words import Message

SIGNED_OFF = "Signed-off-by"
_NOBODY = "loopr <loopr@localhost>"
_SPECIAL = r"^core\.(sharedrepository|fsync.*|loosecompression|compression)$"
_NAMES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL", "HOME")


class Habits(NamedTuple):
    """Who commits in a repository, and whether its objects and refs are written in the plain way."""

    author: str
    committer: str
    plain: bool


def make_commit(door: Door, tree: str, parents: Sequence[str], message: Message) -> str:
    """Make a commit object; the same words, time and identity give the same commit."""
    habits = habits_of(door)
    when = f"{message.at_ms // 1000} +0000"
    heads = [f"tree {tree}", *(f"parent {parent}" for parent in dict.fromkeys(parents))]
    heads += [f"author {message.author or habits.author} {when}", f"committer {habits.committer} {when}"]
    if message.signoff and (own := (SIGNED_OFF, habits.committer)) not in message.trailers:
        message = message._replace(trailers=(*message.trailers, own))
    text = "\n".join([*heads, "", message_text(message).replace("\0", "")])
    content = text.encode("utf-8", "replace")
    if habits.plain:
        return write_loose(door, "commit", content, long=len(tree) > 40)
    return door.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=content).line


def habits_of(door: Door) -> Habits:
    """Learn the habits of a repository; it is asked again once its settings or our own identity have changed."""
    settings = read_whole(door.common / "config")
    seen = (settings, *(os.environ.get(name) for name in _NAMES))
    known = _HABITS.get(door.common)
    if known is None or known[0] != seen:
        author, committer = (_identity(door, f"GIT_{who}_IDENT") for who in ("AUTHOR", "COMMITTER"))
        special = door.ask("config", "--get-regexp", _SPECIAL).code == 0
        known = (seen, Habits(author, committer, not special))
        _HABITS[door.common] = known
    return known[1]


def _identity(door: Door, variable: str) -> str:
    """Return name and address as git would write them, or our own where the user has configured none."""
    said = door.ask("-c", "user.useConfigOnly=true", "var", variable)
    return said.line.rsplit(" ", 2)[0] if said.code == 0 else _NOBODY


_HABITS: dict[Path, tuple[tuple[object, ...], Habits]] = {}


def message_text(message: Message) -> str:
    """Write a commit message: one line, a body, and the trailers as a paragraph of their own."""
    paragraphs = [" ".join(message.subject.split()) or "work"]
    paragraphs += [message.body.strip()] if message.body.strip() else []
    trailers = [f"{key}: {' '.join(str(value).split())}" for key, value in message.trailers]
    return "\n\n".join([*paragraphs, *(["\n".join(trailers)] if trailers else [])]) + "\n"
