"""Opens a workspace and puts the parts together; the only module that knows where everything comes from.

Imports are lazy where they are slow, so that the verbs which only show stay instant. Must never decide or show
anything.
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loopr.core.policy import DEFAULT_PROJECT, OWN_REPO, Policy
from loopr.core.scene import Scene
from loopr.errors import NotFound, PlanError, SettingsError
from loopr.inforce import InForce
from loopr.recall import read_scene
from loopr.world.account import account_name
from loopr.world.journal import Journal
from loopr.world.journal_copies import is_gone, lost
from loopr.world.place import Head, Place, commit_of, find_place, head_of, remember_place, traces

if TYPE_CHECKING:
    from loopr.core.entries import Artifact
    from loopr.core.forest import Forest
    from loopr.driving.driver import Driver
    from loopr.driving.kit import Kit
    from loopr.engine import Engine, Mind
    from loopr.hands import FileHands
    from loopr.world.lock import Holder
    from loopr.world.settings import Settings
    from loopr.world.veil import Veil


def wall_clock() -> int:
    """Return the present instant in whole milliseconds UTC."""
    return time.time_ns() // 1_000_000


class ForwardClock:
    """A clock that goes on from where it was when the machine's is set back: what is due stays due in time."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """Begin with the machine's own time."""
        self._clock, self._lag, self._last = clock, 0, 0

    def __call__(self) -> int:
        """Return the instant."""
        now = self._clock() + self._lag
        if now < self._last:
            self._lag += self._last - now
            now = self._last
        self._last = now
        return now


class Scenery(NamedTuple):
    """What a reading verb looks at: the state at an instant."""

    scene: Scene
    seq: int
    now: int
    live: bool = True  # it is this instant, and not another one that was asked for


def differs(path: Path, known: str) -> bool:
    """Say whether a file can be read and does not have the digest that is known of it."""
    try:
        raw = path.read_bytes() if path.is_file() else None
    except OSError:
        return False
    if raw is None or sha256(raw).hexdigest().startswith(known):
        return False
    from loopr.world.artifact_text import digest  # slow to import, and only a stamp or a change gets here

    return digest(raw) != known


class Workspace:
    """One workspace: where it is, how it is set, and how to open what it remembers."""

    def __init__(
        self, start: Path, *, environ: Mapping[str, str] = os.environ, overrides: Sequence[str] = (), actor: str = ""
    ) -> None:
        """Find the workspace that a folder belongs to."""
        self.place: Place = find_place(start)
        self.environ, self._overrides = environ, overrides
        self.user = actor or account_name(environ)
        self.actor, self.client = self.user, ""  # `client`: the program through which they ask
        self.doubt = ""  # what is wrong with the settings, where what is shown goes by those from before

    @property
    def overrides(self) -> Sequence[str]:
        """What is set on the command line, on top of all layers."""
        return self._overrides

    def act_for(self, name: str) -> None:
        """Have the journal name whoever asks, with the program that passes it on."""
        self.actor = f"{name} via {self.client}" if self.client else name

    @cached_property
    def in_force(self) -> InForce:
        """What the files say, and what was accepted of it."""
        return InForce(self.place.root, self.place.state, self.environ, self._overrides, self.journal)

    @property
    def settings(self) -> Settings:
        """The settings that are in force."""
        return self.in_force.current

    @property
    def policy(self) -> Policy:
        """What the settings mean for decisions."""
        return self.settings.policy

    def _settle(self, records: Mapping[str, str], loops: Sequence[str]) -> Policy | None:
        """Return the policy of now, None if it is the journalled one, or if what is written now is wrong."""
        known = json.loads(records.get("seal", '""'))
        if self.in_force.is_known(known, records, loops):
            return None
        try:
            return self.policy
        except SettingsError as error:
            if not known or self._overrides:
                raise
            self.doubt = str(error)
            return None

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

        given = path
        try:
            path = path.resolve()
        except RuntimeError as error:
            raise PlanError("is a link in a circle", where=str(path), hint="put the file itself there") from error
        if given.is_symlink() and not path.exists():
            hint = "point it at the plan, or put the file itself there"
            raise NotFound(f"is a link to {given.readlink()}, which is not there", where=str(given), hint=hint)
        name = self.name_of(path)
        return name, path, *read_plan_file(path, name, self.policy)

    def repository(self, project: str = DEFAULT_PROJECT) -> tuple[str, Path | None]:
        """Return what the repository of a project's new plans is called, and its top; None where it has none."""
        known = self.settings.projects.get(project)
        repo = known.repo if known is not None else OWN_REPO
        if repo in ("", OWN_REPO):
            return repo, self.place.repository if repo else None
        from loopr.grounds import project_problems  # slow to import, and most workspaces have one repository

        wrong = project_problems(self)[project]
        if wrong is not None:
            raise SettingsError("", problems=[wrong])
        return repo, (self.place.root / repo).resolve()

    def start_point(self, top: Path | None, project: str = DEFAULT_PROJECT) -> Head:
        """Say which branch and commit new plans of a project begin at, in its repository."""
        return head_of(top, self.settings.of_project(project).git.base) if top is not None else Head("", "")

    def in_the_way(self, top: Path, plan: str) -> str:
        """Name the branch that keeps a new plan from having its own; nothing if there is none."""
        prefix = self.settings.git.branch_prefix
        if commit_of(top, f"refs/loopr/plans/{plan}"):
            return ""
        parts = f"{prefix}{plan}".split("/")
        names = ("/".join(parts[: count + 1]) for count in range(len(parts)))
        return next((name for name in names if commit_of(top, f"refs/heads/{name}")), "")

    def look(self, at: int | None = None) -> Scenery:
        """Read what is remembered, changing nothing; an empty scene where nothing is remembered yet."""
        gc.disable()  # a process that only shows makes no garbage worth a walk through every loop
        now = wall_clock() if at is None else at
        try:
            with self.journal() as journal:
                scene, seq = read_scene(journal, self._settle, now)
        except NotFound:
            scene, seq = Scene(self.policy), 0
        return Scenery(scene, seq, now, at is None)

    def changed_sources(self, scene: Scene) -> list[str]:
        """Name the plan files that are not what was started from them any more."""
        bindings = (bound for _, bound in sorted(scene.shared.plans.items()))
        return [each.source for each in bindings if differs(self.place.root / each.source, each.digest)]

    def engine(self) -> Holder | None:
        """Say who serves the workspace now, if anybody does."""
        from loopr.world.lock import holder

        return holder(self.place.lock)

    def ponder(self, at: int | None = None) -> tuple[Forest, int, int]:
        """Read a forest of the caller's own, with its seq and the instant: what is decided on it is not remembered."""
        from loopr.core.forest import Forest
        from loopr.engine import recall

        now = wall_clock() if at is None else at
        try:
            with self.journal() as journal:
                return *recall(journal, self._settle, now), now
        except NotFound:
            return Forest(self.policy), 0, now

    def journal(self) -> Journal:
        """Open the journal for reading; raise if there is none yet."""
        self._ensure_not_lost()
        return Journal.open(self.place.journal, readonly=True)

    def remembers(self) -> bool:
        """Say whether there is a journal; refuse where it is gone."""
        self._ensure_not_lost()
        return self.place.journal.exists()

    def _ensure_not_lost(self) -> None:
        """Refuse where the journal is gone, and something tells that there was one: it is not begun anew in silence."""
        if is_gone(self.place.journal) and (left := traces(self.place)):
            raise lost(self.place.journal, left)

    def _folders(self) -> tuple[Path, Path, Path, Policy]:
        """Return what hands need to know."""
        return self.place.root, self.specs, self.place.state, self.policy

    @contextmanager
    def turn(self) -> Iterator[Engine]:
        """Take the workspace for one turn: its lock, its journal, and hands that write."""
        from loopr.engine import Engine, Journalled, Mind
        from loopr.world.lock import EngineLock

        remember_place(self.place)
        with EngineLock.acquire(self.place.lock, "turn"):  # who is held up by an engine goes by what that decides by
            self._ensure_not_lost()
            if not self.place.journal.exists():
                self.settings  # noqa: B018 - wrong ones are refused before anything is made
            with Journal.open(self.place.journal, create=True) as journal:
                mind = Mind(Journalled(journal), wall_clock, self.actor)
                self.in_force.take_up(mind)
                if mind.forest.shared.plans.keys() - mind.forest.shared.tips.keys():
                    from loopr.driving.building import take_tips  # slow to import, and few journals are from before

                    take_tips(self, mind)
                yield Engine(mind, self.hands())

    @contextmanager
    def visit(self) -> Iterator[Engine]:
        """Decide beside the engine that serves the workspace: what its hands owe is left to it, and it is told."""
        from loopr.engine import Engine, Journalled, Mind
        from loopr.world.bell import ring

        self._ensure_not_lost()
        with Journal.open(self.place.journal, create=True) as journal:  # that engine may have begun a moment ago
            mind = Mind(Journalled(journal), wall_clock, self.actor)  # by the policy that the engine decides by
            if mind.forest.shared.policy_known:
                hands = self._hands_as_decided(mind)
            else:
                mind.heed_policy(self.in_force.seen_policy())
                hands = self.hands()
            yield Engine(mind, hands, settles=False)
        ring(self.place.state)

    @contextmanager
    def serve(self, *, step: Callable[[str], None] = lambda name: None, stays: bool = False) -> Iterator[Driver]:
        """Serve the workspace as its engine: its lock, its journal, and all that acts; others see whether it stays."""
        from loopr.driving.building import build
        from loopr.world.lock import EngineLock

        with ExitStack() as stack:
            remember_place(self.place)
            stack.enter_context(EngineLock.acquire(self.place.lock, "engine", stays=stays))
            self._ensure_not_lost()
            yield build(self, stack, ForwardClock(wall_clock), step)

    def kit(self) -> Kit:
        """Gather what an attempt is prepared with, for whoever holds a lease and is no engine."""
        from loopr.driving.building import kit_of

        return kit_of(self, ForwardClock(wall_clock))

    def hands(self) -> FileHands:
        """Make hands for the present settings."""
        from loopr.hands import FileHands

        return FileHands(*self._folders(), stamps=self.settings.artifacts.stamp)

    def _hands_as_decided(self, mind: Mind) -> FileHands:
        """Make hands for the policy that is in force, whatever the settings say by now."""
        from loopr.hands import FileHands

        policy = mind.forest.policy
        return FileHands(self.place.root, self.place.root / policy.artifacts_dir, self.place.state, policy)

    def hide(self, text: str) -> str:
        """Hide keys in what a command has said."""
        return self._shown_veil.over(text)

    @cached_property
    def _shown_veil(self) -> Veil:
        """What hides keys, for whatever is shown again and again."""
        return self.veil()

    def veil(self, is_public: Callable[[str], bool] = lambda key: False) -> Veil:
        """Return what hides keys: those of this process, and those that the settings give to commands."""
        from loopr.world.veil import Veil

        given: list[Mapping[str, str]] = []
        with suppress(SettingsError):
            given = self.settings.given_variables()
        return Veil(self.environ, *given, is_public=is_public)

    @contextmanager
    def rehearsal(self, at: int | None = None, known: tuple[Forest, int] | None = None) -> Iterator[Engine]:
        """Take a turn on paper: everything is decided as it would be, and nothing is written or remembered.

        `known` is what `ponder` has read and nothing has changed since; it is taken, and not read again.
        """
        from loopr.engine import Engine, Mind, Paper
        from loopr.hands import PaperHands

        kept = [known] if known is not None else []
        with ExitStack() as stack:
            journal = None
            with suppress(NotFound):
                journal = stack.enter_context(self.journal())
            mind = Mind(
                Paper(lambda: kept.pop() if kept else self.ponder(at)[:2], journal),
                lambda: wall_clock() if at is None else at,
                self.actor,
            )
            self.in_force.take_up(mind, paper=True)
            yield Engine(mind, PaperHands(*self._folders()))
