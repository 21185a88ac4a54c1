"""Opens a workspace and puts the parts together; the only module that knows where everything comes from.

Imports are lazy where they are slow, so that the verbs which only show stay instant. Must never decide or show
anything.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from loopr.core.entries import Artifact
from loopr.core.forest import Forest
from loopr.core.policy import Policy
from loopr.engine import Engine, Journalled, Mind, Paper, recall
from loopr.errors import NotFound
from loopr.world.journal import Journal
from loopr.world.lock import EngineLock, Holder, holder
from loopr.world.place import Head, Place, find_place, head_of, remember_place
from loopr.world.settings import Settings, load


def wall_clock() -> int:
    """Return the present instant in whole milliseconds UTC."""
    return time.time_ns() // 1_000_000


class Scenery(NamedTuple):
    """What a reading verb looks at: the forest at an instant, and who serves the workspace."""

    forest: Forest
    seq: int
    now: int
    engine: Holder | None


class Workspace:
    """One workspace: where it is, how it is set, and how to open what it remembers."""

    def __init__(
        self, start: Path, *, environ: Mapping[str, str] = os.environ, overrides: Sequence[str] = (), actor: str = ""
    ) -> None:
        """Find the workspace that a folder belongs to."""
        self.place: Place = find_place(start)
        self._environ, self._overrides = environ, overrides
        self.actor = actor or environ.get("USER") or environ.get("LOGNAME") or "somebody"

    @cached_property
    def settings(self) -> Settings:
        """The settings as all layers have them now."""
        home = self._environ.get("HOME")
        return load(
            self.place.root, environ=self._environ, home=Path(home) if home else None, overrides=self._overrides
        )

    @property
    def policy(self) -> Policy:
        """What the settings mean for decisions."""
        return self.settings.policy

    @property
    def specs(self) -> Path:
        """The folder that mirrors the tree."""
        return self.place.root / self.settings.artifacts.dir

    def name_of(self, path: Path) -> str:
        """Return a path as messages and the journal call it: relative to the workspace if it is inside."""
        path = path.resolve()
        return path.relative_to(self.place.root).as_posix() if path.is_relative_to(self.place.root) else str(path)

    def has_file(self, name: str) -> bool:
        """Say whether a file of that name (see `name_of`) exists."""
        return (self.place.root / name).is_file()

    def read_plan(self, path: Path) -> tuple[str, Path, str, str, Artifact]:
        """Read a plan file: its name, path, text, digest and what it says."""
        from loopr.hands import read_plan_file

        path = path.resolve()
        return self.name_of(path), path, *read_plan_file(path, self.policy)

    def start_point(self) -> Head:
        """Say which branch and commit new plans begin at."""
        if self.place.repository is None:
            return Head("", "")
        return head_of(self.place.repository, self.settings.git.base)

    def look(self, at: int | None = None) -> Scenery:
        """Read what is remembered, changing nothing; an empty forest where nothing is remembered yet."""
        now = wall_clock() if at is None else at
        try:
            with Journal.open(self.place.journal, readonly=True) as journal:
                forest, seq = recall(journal, policy=self.policy, at=now)
        except NotFound:
            forest, seq = Forest(self.policy), 0
        return Scenery(forest, seq, now, holder(self.place.lock))

    def journal(self) -> Journal:
        """Open the journal for reading; raise if there is none yet."""
        return Journal.open(self.place.journal, readonly=True)

    def _folders(self) -> tuple[Path, Path, Path, Policy, Callable[[Path], str]]:
        """Return what hands need to know."""
        return self.place.root, self.specs, self.place.state / "inputs", self.policy, self.name_of

    @contextmanager
    def turn(self) -> Iterator[Engine]:
        """Take the workspace for one turn: its lock, its journal, and hands that write."""
        from loopr.hands import FileHands

        policy, hands = self.policy, FileHands(*self._folders())
        remember_place(self.place)
        with (
            EngineLock.acquire(self.place.lock, "turn"),
            Journal.open(self.place.journal, create=True) as journal,
        ):
            mind = Mind(Journalled(journal), wall_clock, self.actor, policy)
            yield Engine(mind, hands)

    @contextmanager
    def rehearsal(self) -> Iterator[Engine]:
        """Take a turn on paper: everything is decided as it would be, and nothing is written or remembered."""
        from loopr.hands import PaperHands

        with ExitStack() as stack:
            journal = None
            with suppress(NotFound):
                journal = stack.enter_context(self.journal())
            mind = Mind(Paper(lambda: self.look()[:2], journal), wall_clock, self.actor, self.policy)
            yield Engine(mind, PaperHands(*self._folders()))
