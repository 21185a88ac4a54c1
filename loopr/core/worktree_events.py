"""The events of worktrees that are packed: their work is kept as a commit, and their folder is freed for another loop.

A part of `events.py`. Knows nothing but what is told.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopr.core.events import LoopEvent


@dataclass(frozen=True, slots=True)
class WorktreePacking(LoopEvent):
    """The worktree of a loop that is not at work is to be packed, since others need the room."""


@dataclass(frozen=True, slots=True)
class WorktreePacked(LoopEvent):
    """All that was in the worktree is committed, and its folder is free; the next try lays it again."""


@dataclass(frozen=True, slots=True)
class WorktreeKept(LoopEvent):
    """The worktree cannot be packed without loss: it stays, and counts no more."""

    why: str
