"""The repository of a workspace, opened as its settings say; the engine and the verbs open it here and nowhere else.

Knows which settings speak of git. Must never know what is done in the repository.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from loopr.errors import SettingsError
from loopr.world.repo.ground import Ground, open_ground

if TYPE_CHECKING:
    from loopr.world.place import Place
    from loopr.world.settings import Settings


class Settled(Protocol):
    """A workspace, as far as a repository needs one: where it is, and how it is set."""

    @property
    def place(self) -> Place:
        """Where it is."""
        ...

    @property
    def settings(self) -> Settings:
        """How it is set."""
        ...


def ground_of(workspace: Settled) -> Ground:
    """Open the repository of a workspace, or say why there is none to open."""
    place, settings = workspace.place, workspace.settings
    if place.repository is None:
        raise SettingsError("this workspace is in no repository", hint="`git init` first gives each loop a worktree")
    ground = open_ground(
        place.root,
        worktrees=place.root / settings.worktrees.dir,
        state=place.state,
        prefix=settings.git.branch_prefix,
        pool=settings.worktrees.pool,
        include=settings.worktrees.include or "",
        artifacts=place.root / settings.artifacts.dir,
    )
    return replace(ground, max_file_bytes=settings.max_file_bytes)  # exact, where the megabytes are not whole
