"""The ground of all observations, and those about files and about steps beside a command.

An observation may be late, repeated or stale. Knows no decision; all others are in `observations.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopr.core.entries import Artifact
from loopr.core.policy import OWN_REPO


@dataclass(frozen=True, slots=True)
class Observation:
    """Something the world reports."""


@dataclass(frozen=True, slots=True)
class PlanOffered(Observation):
    """A person asks for a plan file to be driven; `digest` is the file's, `source` its place."""

    plan: str
    artifact: Artifact
    digest: str
    source: str
    base_branch: str = ""
    base_commit: str = ""
    repo: str = OWN_REPO


@dataclass(frozen=True, slots=True)
class FileSeen(Observation):
    """A settled artifact file, read without a problem; `during` were at work since the last look, None: a person's."""

    loop: str
    digest: str
    artifact: Artifact
    place: str
    during: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class FileUnchanged(Observation):
    """A loop's artifact file is on disk, the one that is known already."""

    loop: str


@dataclass(frozen=True, slots=True)
class FileRefused(Observation):
    """An artifact file that cannot be read as one."""

    loop: str
    place: str
    text: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class FileGone(Observation):
    """A loop's artifact file is not on disk."""

    loop: str


@dataclass(frozen=True, slots=True)
class InputGone(Observation):
    """The artifact that a leased loop works from is not on disk, seen before anything began."""

    loop: str
    attempt: int


@dataclass(frozen=True, slots=True)
class FileKept(Observation):
    """A file that is no loop's artifact yet, or a plan's own file, came or changed while loops were at work."""

    place: str
    digest: str
    during: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeclaredWritten(Observation):
    """The artifact of a loop that completes by declaration has been written from its entry."""

    loop: str
    digest: str
    artifact: Artifact
    place: str


@dataclass(frozen=True, slots=True)
class StepTook(Observation):
    """A step beside the attempt's command is over."""

    loop: str
    attempt: int
    step: str
    ms: int


@dataclass(frozen=True, slots=True)
class PackingDone(Observation):
    """The worktree of a loop is packed; or it is kept, and `why`."""

    loop: str
    attempt: int
    why: str = ""
